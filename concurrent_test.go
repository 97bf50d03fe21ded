// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package faceauth

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/preprocess"
)

// middle takes the middle of each picture for a face.
type middle struct{}

func (middle) Detect(p *facedet.Picture) ([]facedet.Face, error) {
	return []facedet.Face{{Box: p.Bounds().Inset(20), Score: 1}}, nil
}

func (middle) Close() error { return nil }

// stripes returns the file of a picture of stripes of a width.
func stripes(t testing.TB, width int) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 160, 160))
	for i := range m.Pix {
		x, y := i%160, i/160
		m.Pix[i] = color.Gray{uint8(40 + 80*(x/width%2) + 60*(y/8%2))}.Y
	}
	var b bytes.Buffer
	fixture.Check(t, png.Encode(&b, m))
	return b.Bytes()
}

// Many goroutines enrol, ask, watch, save and forget at once; one closes meanwhile, and then all
// are told so. Run it with -race, too.
func TestSystemSeesConcurrent(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	film := filepath.Join(dir, "0.png")
	alice := stripes(t, 5)
	fixture.Check(t, os.WriteFile(film, alice, 0o600))
	r := fixture.Must(with(Options{Gallery: filepath.Join(dir, "g.db")}, middle{},
		preprocess.Pixels))(t)
	e := fixture.Must(r.EnrollBytes(ctx, "alice", alice, alice))(t)
	if e.Faces != 1 || e.Sources[1].Known != 1 {
		t.Fatalf("%+v", e)
	}
	asked := make(chan bool, 1000)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				faces, err := r.WhoBytes(ctx, alice)
				if err == nil && (len(faces) != 1 || faces[0].Name != "alice") {
					t.Errorf("%v", faces)
				}
				if err == nil && i == 0 {
					_, err = r.EnrollBytes(ctx, "bob", stripes(t, 9+n%3))
				}
				if err == nil && i == 1 {
					err = r.Save()
				}
				for f, watched := range r.Watch(ctx, film) {
					if watched == nil && !f.Left && f.Name != "alice" {
						t.Errorf("%v", f)
					}
					err = errors.Join(err, watched)
				}
				r.People()
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("not said to be closed: %v", err)
					}
					return
				}
				asked <- true
			}
		})
	}
	for range 40 {
		<-asked
	}
	fixture.Check(t, r.Close())
	fixture.Check(t, r.Close())
	all.Wait()
}

// A face in a log says who it is, and holds nothing of the face.
func TestSystemSeesFaceString(t *testing.T) {
	f := Face{Name: "alice", Confirmed: true, Left: true, Vector: []float32{.5},
		Picture: []byte("jpeg"), Likeness: Likeness{Rarity: "a stranger comes as near seldom"}}
	u := Face{Reason: "blurred", Nearest: "bob"}
	for _, c := range []struct {
		face Face
		want string
	}{{f, "alice, confirmed, has left; a stranger comes as near seldom"},
		{u, "unknown; blurred; the nearest is bob"}, {Face{}, "unknown"}} {
		if got := c.face.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
