// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/online"
)

// recorded is a recording of the drawn people.
type recorded []face.Frame

func (r *recorded) Next(context.Context) (face.Frame, error) {
	if len(*r) == 0 {
		return face.Frame{}, io.EOF
	}
	f := (*r)[0]
	*r = (*r)[1:]
	return f, nil
}

// The report of a recording is a page that a browser shows without an error. With FACEAUTH_PICTURES
// it is the picture of the README.
func TestSystemReportInBrowser(t *testing.T) {
	b := newBrowser(t)
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
		ImpostorRadius: .93}
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	names := []string{"Ann Archer", "Ben Okafor"}
	for i, name := range names {
		at := cast[name].at
		for _, d := range [][2]float32{{0, 0}, {.1, .05}, {-.05, .1}, {.05, -.1}} {
			fixture.Check(t, l.Label([]float32{at[0] + d[0], at[1] + d[1]}, online.Person(i+1)))
		}
	}
	var film recorded
	lot := rand.New(rand.NewPCG(3, 4))
	const rate = 10
	for i := range 60 * rate {
		f := face.Frame{Index: i, Time: time.Duration(i) * time.Second / rate}
		for track, who := range []string{"Ann Archer", "Ben Okafor", "stranger 1"} {
			from, to := 12*track, 28+14*track
			if second := i / rate; second < from || second >= to {
				continue
			}
			turn := math.Sin(float64(i) / 15)
			x := make([]float32, 2)
			for j := range x {
				x[j] = cast[who].at[j] + .06*float32(lot.NormFloat64()) +
					.5*float32(turn)*float32(1-j)
			}
			f.Samples = append(f.Samples, face.Sample{Track: track + 1, Space: space.ID, Vector: x,
				JPEG: portrait(who, turn, false)})
		}
		film = append(film, f)
	}
	r := replay.NewReport(space)
	how := replay.Options{Names: func(p online.Person) string { return names[p-1] }}
	for f, err := range replay.Judge(t.Context(), &film, l, how) {
		fixture.Check(t, err)
		r.Add(f)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	w := fixture.Must(os.Create(path))(t)
	fixture.Check(t, r.WriteHTML(w, replay.Meta{Source: "hall.mp4"}))
	fixture.Check(t, w.Close())
	b.screen(1100, 900, "light")
	b.do(chromedp.Navigate("file://" + path))
	for _, name := range []string{"Ann Archer", "Ben Okafor", "unknown"} {
		b.awaits(has("body", name))
	}
	if n := b.script(
		"document.images.length - [...document.images].filter(i => i.naturalWidth).length"); n != "0" {
		t.Errorf("%s pictures are broken", n)
	}
	for _, width := range []int64{390, 1100} {
		b.screen(width, 900, "light")
		if got := b.script(faults); got != "" {
			t.Errorf("%d:\n%s", width, got)
		}
	}
	b.picture("report")
}
