// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/page"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// longName is the longest name that somebody can have, in one word.
var longName = "Wolfeschlegelsteinhausenberger" + strings.Repeat("dorff", 14)

// cast is the people in the scene: where their faces lie in the plane, and how they are drawn. None
// of them is real.
var cast = map[string]struct {
	at         [2]float32
	skin, hair color.RGBA
	long       bool
}{
	"Ann Archer": {[2]float32{0, 0}, color.RGBA{241, 194, 160, 255}, color.RGBA{110, 60, 30, 255},
		true},
	"Ben Okafor": {[2]float32{6, 0}, color.RGBA{120, 80, 55, 255}, color.RGBA{30, 25, 25, 255},
		false},
	longName: {[2]float32{12, 0}, color.RGBA{255, 219, 172, 255}, color.RGBA{220, 190, 90, 255},
		false},
	"Dana": {[2]float32{18, 0}, color.RGBA{224, 172, 130, 255}, color.RGBA{60, 60, 70, 255},
		true},
	"Dan": {[2]float32{18.4, 0}, color.RGBA{224, 172, 130, 255}, color.RGBA{60, 60, 70, 255},
		false},
	"stranger 1": {[2]float32{0, 9}, color.RGBA{198, 134, 92, 255}, color.RGBA{20, 20, 20, 255},
		true},
	"stranger 2": {[2]float32{6, 9}, color.RGBA{250, 210, 180, 255}, color.RGBA{170, 70, 40, 255},
		false},
	"stranger 3": {[2]float32{12, 9}, color.RGBA{90, 60, 45, 255}, color.RGBA{200, 200, 205, 255},
		false},
}

// scene is an office with drawn people: some are known, some are not, some were seen lately, some
// are there. It has days of history, and one camera that is down.
type scene struct {
	t      *testing.T
	page   *page.Page
	office *office.Office
}

// part is a person who is in view for some frames.
type part struct {
	who    string
	frames int
	// the distance from their place in the plane: at the beginning, and its growth with each frame
	from, drift float32
	unsteady    float32
}

// fps is the frame rate of the cameras in the scene.
const fps = 5

// newScene returns a scene after its whole script was played: one camera is down, and events are
// not delivered.
func newScene(t *testing.T, o page.Options) *scene {
	t.Helper()
	o.Sinks = func() []sink.Status {
		return []sink.Status{
			{Name: "webhook"},
			{Name: "mqtt", Waiting: 12, Lost: 3,
				Error: "the broker at mqtt://broker refuses the connection"},
		}
	}
	return play(t, o, office.Camera{Name: "yard",
		Open: func(context.Context, func() bool) (office.Stream, error) {
			return nil, errors.New("the camera refuses the password; look at its address")
		}})
}

// slowScene returns a scene with a camera that gives fewer frames than are asked for.
func slowScene(t *testing.T) *scene {
	t.Helper()
	lane := film("lane", []part{{frames: 1 << 30}}, 0)
	lane.Rate = 1000
	return perform(t, page.Options{}, 1, 1, lane)
}

// play returns a scene after its whole script was played, with one more camera.
func play(t *testing.T, o page.Options, more office.Camera) *scene {
	t.Helper()
	door := []part{
		{who: "Ann Archer", frames: 24, drift: .15},
		{frames: 20},
		{who: "Ann Archer", frames: 15, from: 3.4},
		{frames: 20},
		{who: "stranger 1", frames: 40, unsteady: .4},
		{frames: 20},
		{who: "stranger 2", frames: 40, unsteady: .4},
		{frames: 20},
		{who: "stranger 3", frames: 40, unsteady: .3},
		{frames: 20},
		{who: "Ann Archer", frames: 1 << 30, unsteady: .1},
	}
	hall := []part{
		{frames: 20}, {who: "Ben Okafor", frames: 40, unsteady: .3}, {frames: 20},
		{who: "Dana", frames: 10},
		{frames: 20}, {who: "Dan", frames: 10}, {frames: 20},
		{who: longName, frames: 1 << 30, unsteady: .2},
	}
	played := 10
	for _, p := range door[:len(door)-1] {
		played += p.frames
	}
	s := perform(t, o, 3, played, film("door", door, played), film("hall", hall, played), more)
	s.until(func() bool {
		door, _, _ := s.office.Picture("door")
		return len(s.office.Now().People) >= 2 && len(s.office.Strangers()) >= 3 && door != nil
	})
	return s
}

// sure reports whether nobody may have left: a busy machine shows a camera late.
func (s *scene) sure() bool {
	return !slices.ContainsFunc(s.office.Now().People, func(p presence.Presence) bool {
		return p.Unsure
	})
}

// until waits for a state of the office. The race detector makes a busy machine twenty times
// slower.
func (s *scene) until(there func() bool) {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !there(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("the scene does not come about: %+v, %d strangers", s.office.Now(),
				len(s.office.Strangers()))
		}
	}
}

// perform runs an office that has days of history, with cameras that have played some frames now.
func perform(t *testing.T, o page.Options, days, played int, cameras ...office.Camera) *scene {
	t.Helper()
	space := face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
		ImpostorRadius: .93}
	g := fixture.Must(gallery.Create(filepath.Join(t.TempDir(), "gallery"), space,
		online.Settings{}))(t)
	for _, name := range []string{"Ann Archer", "Ben Okafor", longName, "Dana", "Dan"} {
		at := cast[name].at
		var faces [][]float32
		for _, d := range [][2]float32{{0, 0}, {.1, .05}, {-.05, .1}, {.05, -.1}} {
			faces = append(faces, []float32{at[0] + d[0], at[1] + d[1]})
		}
		fixture.Must(g.Enroll(name, faces, time.Now().Add(-50*time.Hour),
			gallery.Enrolment{Force: true}))(t)
	}
	begun := time.Now().Add(-time.Duration(played) * time.Second / fps)
	history(t, g, begun, days)
	past := fixture.Must(office.OpenPast(g, "office", office.PastSettings{Clips: 8 << 20}))(t)
	w := office.New(past, office.Options{
		Clock: func(f face.Frame) time.Time { return begun.Add(f.Time) }, Backoff: time.Hour,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, cameras) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		past.Close()
		g.Close()
	})
	p := fixture.Must(page.New(w, o))(t)
	return &scene{t, p, w}
}

// history writes the sightings and events of the days before: some hundred visits.
func history(t *testing.T, g *gallery.Gallery, until time.Time, days int) {
	t.Helper()
	fixture.Check(t, g.Rows().Write(false, func(tx *gallery.Tx) error {
		home, err := tx.Int(
			`insert into office(name, code, temporary, off, last) values('office', 'code', 0, 0, 0)
			returning id`)
		if err != nil {
			return err
		}
		events := int64(0)
		add := func(kind presence.EventKind, person any, group int, camera string,
			at time.Time) error {
			events++
			return tx.Exec(
				`insert into event(office, number, kind, person, stranger, camera, trust, at, known,
				sighting, of, told, told_stranger)
				values(?1, ?2, ?3, ?4, ?5, ?6, 'confirmed', ?7, ?8, 0, 0, coalesce(?4, 0), ?5)`,
				home, events, string(kind), person, int64(group), camera,
				at.UnixNano(), at.UnixNano())
		}
		lot := rand.New(rand.NewPCG(1, 2))
		for day := days; day >= 0; day-- {
			at := until.Add(-time.Duration(24*day)*time.Hour - 8*time.Hour)
			for range 40 {
				person := g.Number([]string{"Ann Archer", "Ben Okafor", longName}[lot.IntN(3)])
				camera := []string{"door", "hall"}[lot.IntN(2)]
				if err := add("arrived", person, 0, camera, at); err != nil {
					return err
				}
				if lot.IntN(8) == 0 {
					if err := add("unknown", nil, lot.IntN(3)+1, "door",
						at.Add(time.Minute)); err != nil {
						return err
					}
				}
				left := at.Add(time.Duration(2+lot.IntN(8)) * time.Minute)
				if lot.IntN(20) == 0 {
					if err := add("mistake", person, 0, camera, at); err != nil {
						return err
					}
				} else if err := add("left", person, 0, camera, left); err != nil {
					return err
				} else if err := seen(tx, home, person, camera, at, left); err != nil {
					return err
				}
				at = at.Add(11 * time.Minute)
			}
		}
		return tx.Exec("update office set last = ? where id = ?", events, home)
	}))
}

// seen writes a sighting.
func seen(tx *gallery.Tx, home, person int64, camera string, first, last time.Time) error {
	id, err := tx.Next("sighting", 1)
	if err == nil {
		err = tx.Exec(
			`insert into sighting(id, office, camera, first, last, person, trust, stranger, size)
			values(?, ?, ?, ?, ?, ?, 'confirmed', 0, 0)`,
			id, home, camera, first.UnixNano(), last.UnixNano(), person)
	}
	return err
}

// film is a camera that shows parts: the first frames at once, and the later frames in real time.
func film(name string, parts []part, atOnce int) office.Camera {
	return office.Camera{Name: name,
		Open: func(_ context.Context, wanted func() bool) (office.Stream, error) {
			return &screen{
				parts:  parts,
				atOnce: atOnce,
				wanted: wanted,
				lot:    rand.New(rand.NewPCG(7, uint64(len(name)))),
				live:   time.Now(), // however long the first frames take
			}, nil
		}}
}

type screen struct {
	parts  []part
	atOnce int
	wanted func() bool
	lot    *rand.Rand
	n, in  int       // frames so far, and of the part
	live   time.Time // when it was opened
}

func (s *screen) Dropped() int { return 3 }
func (s *screen) Close() error { return nil }

func (s *screen) Next(ctx context.Context) (face.Frame, error) {
	if s.n >= s.atOnce {
		select {
		case <-time.After(time.Second / fps):
		case <-ctx.Done():
			return face.Frame{}, ctx.Err()
		}
	}
	for len(s.parts) > 0 && s.in == s.parts[0].frames {
		s.parts, s.in = s.parts[1:], 0
	}
	if len(s.parts) == 0 {
		return face.Frame{}, io.EOF
	}
	p := s.parts[0]
	at := time.Duration(s.n) * time.Second / fps
	if s.n > s.atOnce {
		at = time.Duration(s.atOnce)*time.Second/fps + time.Since(s.live)
	}
	f := face.Frame{Index: s.n, Time: at, Size: image.Pt(640, 480)}
	turn := math.Round(math.Sin(float64(s.n)/9)*8) / 8
	box := image.Rect(220, 120, 380, 300).Add(image.Pt(int(60*turn), 0))
	if who, ok := cast[p.who]; ok {
		away := p.from + p.drift*float32(s.in)
		x := []float32{who.at[0] + away*.8, who.at[1] + away*.6}
		for i := range x {
			x[i] += p.unsteady * float32(s.lot.NormFloat64()) / 2
		}
		f.Samples = []face.Sample{
			{Box: box, Vector: x, JPEG: portrait(p.who, turn, s.in < 2 &&
				strings.HasPrefix(p.who, "stranger"))},
		}
	}
	if s.wanted() {
		f.JPEG = room(p.who, box, turn)
	}
	s.n++
	s.in++
	return f, nil
}

var (
	drawings sync.Map
	outside  = color.RGBA{190, 200, 205, 255}
)

// portrait draws a face with the head turned from -1 to 1, sharply or blurred.
func portrait(who string, turn float64, blurred bool) []byte {
	turn = math.Round(turn*4) / 4
	key := fmt.Sprint(who, turn, blurred)
	if b, ok := drawings.Load(key); ok {
		return b.([]byte)
	}
	m := image.NewRGBA(image.Rect(0, 0, 112, 112))
	fill(m, m.Bounds(), outside)
	soft := .02
	if blurred {
		soft = .3
	}
	head(m, m.Bounds(), who, turn, soft)
	b := encode(m)
	drawings.Store(key, b)
	return b
}

// room draws the view of a camera.
func room(who string, box image.Rectangle, turn float64) []byte {
	key := fmt.Sprint(who, box, turn)
	if b, ok := drawings.Load(key); ok {
		return b.([]byte)
	}
	m := image.NewRGBA(image.Rect(0, 0, 640, 480))
	fill(m, m.Bounds(), outside)
	fill(m, image.Rect(441, 111, 580, 381), color.RGBA{165, 175, 180, 255})
	fill(m, image.Rect(0, 381, 640, 480), color.RGBA{150, 130, 110, 255})
	if _, ok := cast[who]; ok {
		head(m, box.Inset(-30), who, turn, .02)
	}
	b := encode(m)
	drawings.Store(key, b)
	return b
}

func encode(m image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		panic(err) // into memory
	}
	return b.Bytes()
}

// head draws a head into a box.
func head(m *image.RGBA, box image.Rectangle, who string, turn, soft float64) {
	c := cast[who]
	dark, white := color.RGBA{40, 30, 30, 255}, color.RGBA{250, 250, 250, 255}
	coat := color.RGBA{c.hair.B/2 + 60, c.hair.R/2 + 50, c.hair.G/2 + 90, 255}
	width, height := float64(box.Dx()), float64(box.Dy())
	spot := func(cu, cv, ru, rv float64, with color.RGBA) {
		du, dv := (1+soft)*ru, (1+soft)*rv
		around := image.Rect(int((cu-du+1)/2*width)-1, int((cv-dv+1)/2*height)-1,
			int((cu+du+1)/2*width)+1, int((cv+dv+1)/2*height)+1).Add(box.Min)
		around = around.Intersect(box).Intersect(m.Bounds())
		for y := around.Min.Y; y < around.Max.Y; y++ {
			for x := around.Min.X; x < around.Max.X; x++ {
				u := 2*(float64(x-box.Min.X)+.5)/width - 1
				v := 2*(float64(y-box.Min.Y)+.5)/height - 1
				d := math.Hypot((u-cu)/ru, (v-cv)/rv)
				share := min(max((1+soft-d)/(2*soft), 0), 1)
				mix := func(a, b uint8) uint8 {
					return uint8(float64(a)*(1-share) + float64(b)*share)
				}
				at := m.RGBAAt(x, y)
				m.SetRGBA(x, y, color.RGBA{mix(at.R, with.R), mix(at.G, with.G),
					mix(at.B, with.B), 255})
			}
		}
	}
	look := .18 * turn
	spot(0, 1.05, .85, .45, coat)
	if c.long {
		spot(0, .05, .66, .8, c.hair)
	}
	spot(-look/3, -.2, .58, .66, c.hair)
	spot(0, .5, .2, .4, c.skin)
	spot(0, .02, .48, .62, c.skin)
	spot(look/2, -.52, .5, .24, c.hair)
	for _, side := range []float64{-1, 1} {
		spot(look+.2*side, -.08, .11, .075, white)
		spot(look*1.3+.2*side, -.08, .05, .065, dark)
		spot(look+.2*side, -.24, .13, .03, c.hair)
	}
	spot(look*1.4, .1, .05, .1, color.RGBA{c.skin.R - 30, c.skin.G - 25, c.skin.B - 20, 255})
	spot(look, .34, .17, .05, color.RGBA{170, 70, 70, 255})
}

// fill fills a part of a picture.
func fill(m *image.RGBA, part image.Rectangle, with color.RGBA) {
	draw.Draw(m, part, image.NewUniform(with), image.Point{}, draw.Src)
}

func (s *scene) group(i int) string     { return fmt.Sprint(s.office.Strangers()[i].ID) }
func (s *scene) groupFace(i int) string { return fmt.Sprint(s.office.Strangers()[i].Faces[0].ID) }

func (s *scene) lastGroup() string {
	all := s.office.Strangers()
	return fmt.Sprint(all[len(all)-1].ID)
}

// learnedSighting returns a sighting whose name only learned faces support.
func (s *scene) learnedSighting() string {
	for _, x := range s.office.Sightings(0, 64) {
		if x.Trust == sighting.Likely {
			return fmt.Sprint(x.ID)
		}
	}
	s.t.Fatalf("nobody is known by what was learned alone: %+v", s.office.Sightings(0, 64))
	return ""
}

func (s *scene) sightingOf(name string) string {
	for _, x := range s.office.Sightings(0, 64) {
		if x.Name == name && !x.Live {
			return fmt.Sprint(x.ID)
		}
	}
	s.t.Fatalf("there is no sighting of %s", name)
	return ""
}

// learnedWay returns the address of the longest chain of a learned face.
func (s *scene) learnedWay() string {
	p := fixture.Must(s.office.Profile("Ann Archer"))(s.t)
	longest := p.Faces[0]
	for _, f := range p.Faces {
		if f.Hops > longest.Hops {
			longest = f
		}
	}
	if longest.Hops < 2 {
		s.t.Fatalf("nothing was learned far from what was enrolled: %+v", p)
	}
	return fmt.Sprintf("/api/way?face=%d", longest.ID)
}

// aClip returns the address of a clip of a sighting.
func (s *scene) aClip() string {
	s.t.Helper()
	for _, x := range s.office.Sightings(0, 64) {
		if x.Clip > 0 {
			return fmt.Sprintf("/clip/%d/0", x.ID)
		}
	}
	s.t.Fatal("there is no clip")
	return ""
}

func (s *scene) aFace() string { return fmt.Sprintf("/face/%d", s.office.Sightings(0, 64)[0].Face) }

// conflictKey returns the key of the first conflict in the inbox.
func (s *scene) conflictKey() string {
	var all []struct{ Key, Kind string }
	fixture.Check(s.t, json.Unmarshal(ask(s.page, "GET", "/api/inbox", "").Body.Bytes(), &all))
	for _, q := range all {
		if q.Kind == "conflict" {
			return q.Key
		}
	}
	s.t.Fatal("there is no conflict")
	return ""
}
