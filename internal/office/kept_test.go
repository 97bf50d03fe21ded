// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
)

// pictured is a recording, with pictures, of a person who moves away from a place in small steps.
func pictured(n int, step ...float32) office.Camera {
	all := frames(strings.Repeat("a ", n))
	for i := range all {
		all[i].Samples[0].Vector, all[i].Samples[0].JPEG = []float32{float32(i) * step[0],
			float32(i) * step[1]}, []byte("a picture")
	}
	return film(all, nil)
}

// A person's page has the enrolled and the learned faces, each with a picture that shows it, and
// for a learned face the chain of faces that led to it.
func TestProfile(t *testing.T) {
	k := new(recorded)
	w, err := run(t.Context(), t, people(t), k.options(), pictured(60, .02, .01))
	nothing(t, err)
	p, err := w.Profile("alice")
	if err != nil || p.Name != "alice" || !known(w, "alice").Enrolled.Equal(noon) {
		t.Fatalf("%+v, %v", p, err)
	}
	if len(p.Faces) < 5 || p.Faces[0].Learned || p.Faces[0].Portrait != (office.Portrait{}) {
		t.Fatalf("%+v", p.Faces)
	}
	longest := p.Faces[0]
	for _, f := range p.Faces[1:] {
		if !f.Learned || f.At.IsZero() || f.Points < 1 {
			t.Errorf("%+v", f)
		}
		if f.Portrait.Learned != f.ID || w.Learned(f.ID) == nil {
			t.Errorf("there is no picture of %+v", f)
		}
		if f.Hops > longest.Hops {
			longest = f
		}
	}
	way, err := w.Way(longest.ID)
	if err != nil || !way.Whole || len(way.Steps) != longest.Hops+1 || len(way.Steps) < 3 {
		t.Fatalf("%+v, %v", way, err)
	}
	for i, s := range way.Steps {
		if s.Distance > way.Link || (i == 0) != (s.Distance == 0) ||
			(s.Name == "alice") != (i == len(way.Steps)-1) {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	if _, err := w.Profile("nobody"); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	if _, err := w.Way(999); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	// Bob was never there.
	if p, err := w.Profile("bob"); err != nil || len(p.Faces) != 1 ||
		p.Faces[0].Portrait != (office.Portrait{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// The picture of a person who has gone comes from the past. It follows corrections of its sighting,
// and is forgotten with the person.
func TestLastPicture(t *testing.T) {
	h := enter(t, t.TempDir(), office.Options{})
	var w *office.Office
	for range 2 {
		w = office.New(h.past, h.o)
		nothing(t, w.Run(t.Context(), []office.Camera{pictured(40, .001, 0)}))
	}
	last := known(w, "alice")
	if w.Face(last.Face) == nil || known(w, "bob").Face != 0 || last.Trust != "confirmed" {
		t.Fatalf("%+v", last)
	}
	wrong := w.Sightings(0, 64)[0]
	nothing(t, refusal(w.Correct(wrong.ID, "")))
	before := known(w, "alice")
	if before.Face == wrong.Face || w.Face(before.Face) == nil {
		t.Errorf("the sighting before is hers: %+v", before)
	}
	nothing(t, refusal(w.Forget("alice")))
	if w.Face(before.Face) != nil {
		t.Error("somebody who is forgotten has a picture")
	}
}

// The picture of a stranger, and of a visit, is the clearest one of the sighting so far that shows
// the face from the front, and not that of the first frame. There is none of somebody who has a
// name, and none at all if strangers are not kept.
func TestShot(t *testing.T) {
	g := people(t)
	var e presence.Event
	all := frames(n(40, "s"))
	for i := range all {
		all[i].Samples[0].JPEG = fmt.Append(nil, "picture ", i)
		all[i].Samples[0].Quality.Sharpness = 4
		switch {
		case i == 2:
			all[i].Samples[0].Quality.Sharpness = 900
		case i >= 30:
			all[i].Samples[0].Quality = face.Quality{Sharpness: 1800, Turn: .9}
		}
		all[i].Samples[0].Vector = []float32{float32(i%4) * .02, 2}
	}
	var w *office.Office
	k := new(recorded)
	o := k.options()
	o.Event = func(x presence.Event) { e = x }
	clear := func(when string, want bool) {
		t.Helper()
		f := w.Shot(e)
		if want != (f.JPEG != nil) || want &&
			(f.Clear() < 5 || !bytes.Equal(w.Face(f.ID), f.JPEG)) {
			t.Errorf("%s: face %d, clear %g", when, f.ID, f.Clear())
		}
		if v := w.Visits(office.Wanted{})[0]; string(w.Face(v.Face)) != "picture 2" {
			t.Errorf("%s: the visit shows %s", when, w.Face(v.Face))
		}
	}
	w = office.New(passing(t, g), o)
	nothing(t, w.Run(t.Context(), []office.Camera{film(all, map[int]func(){35: func() {
		if e.Kind != presence.Unknown {
			t.Fatalf("%+v", e)
		}
		clear("in view", true)
	}})}))
	clear("afterwards", true)
	if f := w.Shot(presence.Event{Kind: presence.Unknown,
		Sighting: e.Sighting + 1}); f.JPEG != nil {
		t.Errorf("another sighting: %d", f.ID)
	}
	nothing(t, refusal(w.Name(e.Group, "sue", false)))
	clear("named", false)
}

// filmed is a camera that plays a script. It makes a picture of each frame for which the office
// wants one.
type filmed struct {
	stream
	wanted func() bool
	made   int
	first  []byte
}

func (f *filmed) Next(ctx context.Context) (face.Frame, error) {
	x, err := f.stream.Next(ctx)
	if err == nil && f.wanted() {
		f.made++
		var b bytes.Buffer
		img := image.NewGray(image.Rect(0, 0, 32, 24))
		for i := range img.Pix {
			img.Pix[i] = uint8(8 * f.made)
		}
		if err := jpeg.Encode(&b, img, nil); err != nil {
			return x, err
		}
		x.JPEG = b.Bytes()
		if f.first == nil {
			f.first = x.JPEG
		}
	}
	return x, err
}

// enterWithClips is enter with room for so many bytes of clips.
func enterWithClips(t *testing.T, dir string, bytes int64) *home {
	t.Helper()
	return enterWith(t, dir, office.Options{}, office.PastSettings{Clips: bytes})
}

// films runs an office with a camera that makes pictures, and returns the number of pictures that
// it made.
func (h *home) films(script string) (w *office.Office, made int) {
	h.t.Helper()
	w = office.New(h.past, h.o)
	return w, h.filmsWith(w, script, nil)
}

// filmsWith is films with something that is done before some frames, with the first picture.
func (h *home) filmsWith(w *office.Office, script string, do map[int]func([]byte)) (made int) {
	h.t.Helper()
	s := &filmed{stream: stream{frames: frames(script), end: io.EOF, do: make(map[int]func())}}
	for at, f := range do {
		s.do[at] = func() { f(s.first) }
	}
	nothing(h.t, w.Run(h.t.Context(), []office.Camera{{Name: "door", Ends: true,
		Open: func(_ context.Context, wanted func() bool) (office.Stream, error) {
			s.wanted = wanted
			return s, nil
		}}}))
	return s.made
}

// pictures returns the number of pictures in the clip of a sighting, and reads each of them.
func pictures(t *testing.T, w *office.Office, sighting uint64) (n int) {
	t.Helper()
	for ; ; n++ {
		picture := w.ClipPicture(sighting, uint64(n))
		if picture == nil {
			return n
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(picture)); err != nil || c.Width != 32 ||
			c.Height != 24 {
			t.Fatalf("picture %d: %v", n, err)
		}
	}
}

// The first eight seconds of a sighting are kept as a film if clips are wanted, and otherwise
// nothing is kept.
func TestClip(t *testing.T) {
	dir := t.TempDir()
	h := enterWithClips(t, dir, 0)
	if w, made := h.films(n(60, "a") + n(60, "-")); made > 0 || pictures(t, w, 1) > 0 ||
		w.Sightings(0, 64)[0].Clip > 0 {
		t.Errorf("%d pictures where no clips are wanted", made)
	}
	h.leave()
	h = enterWithClips(t, dir, 1<<20)
	w, made := h.films(n(20, "-") + n(100, "a") + n(60, "-") + n(10, "b") + n(60, "-"))
	s := w.Sightings(0, 64)
	if len(s) < 2 || s[0].Clip == 0 || s[1].Clip != 16 || pictures(t, w, s[1].ID) != 16 ||
		pictures(t, w, s[0].ID) > 5 {
		t.Errorf("%+v", s)
	}
	if made > 25 {
		t.Errorf("%d pictures were made for two clips", made)
	}
	if pictures(t, w, 99) > 0 {
		t.Error("a clip of nobody")
	}
	id := s[1].ID
	h.leave()
	h = enterWithClips(t, dir, 1<<20)
	if w = office.New(h.past, h.o); pictures(t, w, id) != 16 {
		t.Error("after a restart the clip has gone")
	}
	// A run without clips removes the clips of earlier runs.
	h.leave()
	enterWithClips(t, dir, 0).leave()
	h = enterWithClips(t, dir, 1<<20)
	if n := pictures(t, office.New(h.past, h.o), id); n > 0 {
		t.Errorf("%d pictures are still there", n)
	}
}

// A forgotten person is removed from all clips, also from clips of other people. If strangers are
// not kept, no clip that shows a stranger is kept.
func TestClipForgotten(t *testing.T) {
	h := enterWithClips(t, t.TempDir(), 1<<20)
	w, _ := h.films(n(30, "a") + n(60, "-") + n(30, "ab") + n(60, "-") + n(30, "a") + n(60, "-"))
	clips := func() (all string) {
		for _, s := range w.Sightings(0, 64) {
			if s.Clip > 0 && pictures(t, w, s.ID) == s.Clip {
				all += s.Name + " "
			}
		}
		return all
	}
	if got := clips(); strings.Count(got, "alice") != 3 || strings.Count(got, "bob") != 1 {
		t.Fatalf("clips of %s", got)
	}
	nothing(t, refusal(w.Forget("bob")))
	if got := clips(); got != "alice alice " {
		t.Errorf("after bob was forgotten there are clips of %s", got)
	}
	nothing(t, refusal(w.Forget("alice")))
	if clips() != "" {
		t.Errorf("after all were forgotten there are clips of %s", clips())
	}

	h = enterWithClips(t, t.TempDir(), 1<<20)
	nothing(t, office.New(h.past, h.o).KeepUnknown(false))
	w, _ = h.films(n(30, "as") + n(60, "-") + n(30, "a") + n(60, "-") + n(30, "s") + n(60, "-"))
	if got := clips(); got != "alice " {
		t.Errorf("without strangers there are clips of %s", got)
	}
}

// Who is forgotten while others are in view is in no picture of their films from before.
func TestForgottenWhileFilmed(t *testing.T) {
	h := enterWithClips(t, t.TempDir(), 1<<20)
	w := office.New(h.past, h.o)
	var before []byte
	h.filmsWith(w, n(60, "ab")+n(60, "-"), map[int]func([]byte){15: func(first []byte) {
		before = first
		nothing(t, refusal(w.Forget("bob")))
	}})
	all := w.Sightings(0, 64)
	i := slices.IndexFunc(all, func(s office.Sighting) bool { return s.Name == "alice" })
	if i < 0 || before == nil {
		t.Fatalf("%+v", all)
	}
	for n := range uint64(all[i].Clip) {
		if bytes.Equal(w.ClipPicture(all[i].ID, n), before) {
			t.Errorf("picture %d of %d shows bob", n, all[i].Clip)
		}
	}
}

var (
	plane = face.Space{ID: "plane", Dim: 2, Scale: 1, ImpostorRadius: 1} // Near is .75, Apart .25
)

var faceNumbers uint64

// faceAt returns a face at a point, seen so many minutes after noon.
func faceAt(minute int, x, y float32) album.Face {
	faceNumbers++
	return album.Face{ID: faceNumbers, Vector: []float32{x, y},
		At: noon.Add(time.Duration(minute) * time.Minute)}
}

// begin makes a group of faces near a point.
func beginGroup(g *office.Groups, minute int, x, y float32) uint64 {
	faceNumbers++
	id := faceNumbers
	g.Begin(id, noon.Add(time.Duration(minute)*time.Minute))
	for i := range 4 {
		g.Add(g.Get(id), faceAt(minute, x+.01*float32(i), y))
	}
	return id
}

func TestFind(t *testing.T) {
	g := office.NewGroups(plane, time.Hour)
	a, b := beginGroup(g, 0, 0, 0), beginGroup(g, 0, 3, 0)
	for _, c := range []struct {
		x    []float32
		want uint64
	}{{[]float32{.5}, a}, {[]float32{2.5}, b}, {[]float32{1.5}, 0}, {[]float32{.5, .4, 2.9}, a},
		{[]float32{.5, 2.9}, 0}, {nil, 0}} {
		var faces []album.Face
		for _, x := range c.x {
			faces = append(faces, faceAt(1, x, 0))
		}
		if got := g.Find(faces); got != c.want {
			t.Errorf("%v: group %d, want %d", c.x, got, c.want)
		}
	}
	blind := office.NewGroups(face.Space{ID: "blind", Dim: 2, Scale: 1}, time.Hour)
	beginGroup(blind, 0, 0, 0)
	if got := blind.Find([]album.Face{faceAt(0, 0, 0)}); got != 0 {
		t.Errorf("a space that tells nobody apart: group %d", got)
	}
}

// For any number of strangers the file and the memory stay below their limits.
func TestGroupBounds(t *testing.T) {
	g := office.NewGroups(plane, time.Hour)
	rnd := rand.New(rand.NewPCG(1, 2))
	poster := beginGroup(g, 0, -9, -9)
	g.SetIgnored(poster)
	for i := range 200 {
		id := beginGroup(g, i, float32(9*i), 0)
		for range 60 {
			g.Add(g.Get(id), faceAt(i, float32(9*i)+2*rnd.Float32(), 2*rnd.Float32()))
		}
		p := g.Get(id)
		if len(p.Faces) > 24 {
			t.Fatalf("%d faces", len(p.Faces))
		}
		for k, f := range p.Faces[:4] { // the first four stay
			if f.Vector[0] != float32(9*i)+.01*float32(k) {
				t.Fatalf("face %d is at %g", k, f.Vector[0])
			}
		}
	}
	all := g.All()
	if len(all) != 51 || all[0].Last.Before(all[1].Last) {
		t.Fatalf("%d groups", len(all))
	}
	if g.Get(poster) == nil {
		t.Error("a poster is no longer ignored")
	}
	for i := range 60 {
		id := beginGroup(g, 300+i, -9, float32(9*i))
		g.SetIgnored(id)
	}
	ignored := 0
	for _, p := range g.All() {
		if g.Ignored(p.ID) {
			ignored++
		}
	}
	if ignored != 50 {
		t.Errorf("%d are ignored", ignored)
	}
}

func TestRetention(t *testing.T) {
	g := office.NewGroups(plane, time.Hour)
	a, b := beginGroup(g, 0, 0, 0), beginGroup(g, 0, 9, 9)
	g.SetIgnored(b)
	g.Expire(noon.Add(time.Hour))
	if g.Get(a) == nil {
		t.Error("a group went too early")
	}
	g.Expire(noon.Add(time.Hour + time.Second))
	if all := g.All(); len(all) != 1 || all[0].ID != b {
		t.Errorf("%+v", all)
	}
}

// Who was enrolled from pictures has one, also before any camera has seen them.
func TestEnrolledPicture(t *testing.T) {
	g := people(t)
	how := gallery.Enrolment{Pictures: [][]byte{nil, []byte("from the front")}}
	fixture.Must(g.Enroll("carl", [][]float32{looks['k'], looks['k']}, noon, how))(t)
	w := office.New(passing(t, g), office.Options{})
	for i, p := range w.Now().Known {
		picture := string(w.Face(p.Face))
		if want := []string{"", "", "from the front"}[i]; picture != want {
			t.Errorf("%s: %q, want %q", p.Name, picture, want)
		}
	}
	shown := fixture.Must(w.Profile("carl"))(t).Faces
	if shown[0].Portrait.Face != 0 || shown[1].Portrait.Face == 0 {
		t.Errorf("%+v", shown)
	}
	fixture.Must(w.Choose("carl", shown[1].Portrait.Face))(t)
}
