// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
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
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
)

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	space = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
		ImpostorRadius: .93}
	// alice, bob, a stranger, carl
	looks = map[byte][]float32{'a': {0, 0}, 'b': {2, 0}, 's': {0, 2}, 'k': {1, 0}}
)

// people returns a gallery in memory that knows alice and bob.
func people(t testing.TB) *gallery.Gallery {
	t.Helper()
	return enrolled(t, fixture.Must(gallery.New(space, online.Settings{}))(t))
}

// peopleAt returns a gallery at a path that knows alice and bob.
func peopleAt(t testing.TB, path string) *gallery.Gallery {
	t.Helper()
	return enrolled(t, fixture.Must(gallery.Create(path, space, online.Settings{}))(t))
}

func enrolled(t testing.TB, g *gallery.Gallery) *gallery.Gallery {
	t.Helper()
	t.Cleanup(func() { g.Close() })
	for _, name := range []string{"alice", "bob"} {
		fixture.Must(g.Enroll(name, [][]float32{looks[name[0]]}, noon, gallery.Enrolment{}))(t)
	}
	return g
}

// run makes an office and runs it.
func run(ctx context.Context, t testing.TB, g *gallery.Gallery, o office.Options,
	cameras ...office.Camera) (
	*office.Office, error) {
	t.Helper()
	w := office.New(passing(t, g), o)
	return w, w.Run(ctx, cameras)
}

// passing opens what is kept of an office without a name.
func passing(t testing.TB, g *gallery.Gallery) *office.Past {
	t.Helper()
	return fixture.Must(office.OpenPast(g, "", office.PastSettings{}))(t)
}

// past opens what is kept of an office in a gallery.
func past(t testing.TB, g *gallery.Gallery) *office.Past {
	t.Helper()
	p := fixture.Must(office.OpenPast(g, "office", office.PastSettings{}))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// frames makes a frame of each word of a script, a fifth of a second apart. The letters of a word
// are the people in view, each in their own place.
func frames(script string) (all []face.Frame) {
	for i, word := range strings.Fields(script) {
		f := face.Frame{Index: i, Time: time.Duration(i) * time.Second / 5}
		for _, c := range []byte(strings.Trim(word, "-")) {
			x := int(c) * 10
			f.Samples = append(f.Samples, face.Sample{Box: image.Rect(x, 0, x+8, 8),
				Vector: looks[c]})
		}
		all = append(all, f)
	}
	return all
}

// stream returns frames, and then its end. Before the frame of a given index it does something.
type stream struct {
	frames []face.Frame
	end    error
	hang   bool
	do     map[int]func()
	at     int
}

func (s *stream) Next(ctx context.Context) (face.Frame, error) {
	if do := s.do[s.at]; do != nil {
		do()
	}
	s.at++
	if len(s.frames) > 0 {
		f := s.frames[0]
		s.frames = s.frames[1:]
		return f, nil
	}
	if s.hang {
		<-ctx.Done()
		return face.Frame{}, ctx.Err()
	}
	return face.Frame{}, s.end
}
func (s *stream) Close() error { return nil }
func (s *stream) Dropped() int { return 0 }

// film is a recording of frames, at the door.
func film(all []face.Frame, do map[int]func()) office.Camera {
	return office.Camera{Name: "door", Ends: true,
		Open: func(context.Context, func() bool) (office.Stream, error) {
			return &stream{frames: slices.Clone(all), end: io.EOF, do: do}, nil
		}}
}

// recording is a camera that plays a script once.
func recording(name, script string) office.Camera { return acted(name, script, nil) }

// acted is a recording with a correction before the frame of a given index.
func acted(name, script string, do map[int]func()) office.Camera {
	c := film(frames(script), do)
	c.Name = name
	return c
}

// recorded keeps the events that an office reports.
type recorded struct {
	mu     sync.Mutex
	events []string
	health []string
}

func (k *recorded) options() office.Options {
	return office.Options{
		Clock:   func(f face.Frame) time.Time { return noon.Add(f.Time) },
		Now:     func() time.Time { return noon.Add(time.Second) },
		Backoff: time.Millisecond,
		Event: func(e presence.Event) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.events = append(k.events, fmt.Sprintf("%s %s %s %g", e.Kind, e.Name, e.Camera,
				e.At.Sub(noon).Seconds()))
		},
		Health: func(h office.Health) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.health = append(k.health, fmt.Sprintf("%s %t %s", h.Camera, h.Up, h.Error))
		},
	}
}

func (k *recorded) has(what string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.events, what) || slices.Contains(k.health, what)
}

// pastCopy returns the records in the state that a kill of the program leaves.
func pastCopy(t testing.TB, path string) *office.Past {
	t.Helper()
	g := fixture.Must(gallery.Read(filepath.Join(copied(t, filepath.Dir(path)),
		filepath.Base(path))))(t)
	t.Cleanup(func() { g.Close() })
	return past(t, g)
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         []string
	}{
		{"nobody", "- - - -", nil},
		{"alice comes and goes", "- a a a a -",
			[]string{"arrived alice door 0.2", "left alice door 0.8"}},
		{"two frames are not enough", "a a", nil},
		{"two people", "ab ab ab b b",
			[]string{"arrived alice door 0", "arrived bob door 0", "left alice door 0.4",
				"left bob door 0.8"}},
		{"a stranger", strings.Repeat("s ", 40), []string{"unknown  door 0"}},
		{"she is away for a moment", "a a a - - - - - a a a",
			[]string{"arrived alice door 0", "left alice door 2"}},
	} {
		k := new(recorded)
		w, err := run(t.Context(), t, people(t), k.options(), recording("door", c.script))
		if err != nil || !slices.Equal(k.events, c.want) || len(w.Now().People) != 0 {
			t.Errorf("%s: %q, %+v, %v; want %q", c.name, k.events, w.Now(), err, c.want)
		}
	}
}

// The office learns from the faces that it sees, unless this is switched off.
func TestLearns(t *testing.T) {
	for _, freeze := range []bool{false, true} {
		g := people(t)
		o := new(recorded).options()
		o.Freeze = freeze
		fixture.Must(run(t.Context(), t, g, o, recording("door", "a a a b")))(t)
		if n := g.Learner().Counts(); n.Observed != 4 || (n.Learned == 0) != freeze {
			t.Errorf("frozen %t: %+v", freeze, n)
		}
	}
}

// A camera that fails is opened again, and the other cameras go on. A person who was there does not
// arrive again, and is still there at the end.
func TestCameraFails(t *testing.T) {
	k := new(recorded)
	opened := 0
	bad := office.Camera{Name: "desk",
		Open: func(context.Context, func() bool) (office.Stream, error) {
			switch opened++; opened {
			case 1, 3:
				return nil, errors.New("unplugged")
			case 2:
				return &stream{frames: frames("a a a"), end: io.EOF}, nil // a camera does not end
			}
			return &stream{frames: frames("a a a"), hang: true}, nil
		}}
	never := office.Camera{Name: "attic",
		Open: func(ctx context.Context, _ func() bool) (office.Stream, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	ctx, cancel := context.WithCancel(t.Context())
	o := k.options()
	g := people(t)
	p := past(t, g)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := office.New(p, o)
		if err := w.Run(ctx, []office.Camera{never, bad,
			recording("door", "b b b b")}); err != nil {
			t.Error(err)
		}
	}()
	want := []string{"desk false unplugged", "desk true ", "desk false it has ended",
		"desk false unplugged", "desk true "}
	for !k.has("arrived bob door 0") || !k.has("arrived alice desk 0") ||
		len(k.of("desk")) < len(want) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	s := p.State()
	if got := k.of("desk"); !slices.Equal(got, want) {
		t.Errorf("health %q, want %q", got, want)
	}
	if len(k.events) != 2 || len(s.People) != 2 || s.Last != 2 {
		t.Errorf("events %q, state %+v", k.events, s)
	}
	if got := k.of("attic"); len(got) > 0 {
		t.Errorf("health %q", got)
	}
}

// of returns the health reports of a camera.
func (k *recorded) of(camera string) (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.health {
		if strings.HasPrefix(h, camera) {
			all = append(all, h)
		}
	}
	return all
}

func TestRunErrors(t *testing.T) {
	bad := office.Camera{Name: "door",
		Open: func(context.Context, func() bool) (office.Stream, error) {
			return &stream{frames: []face.Frame{{Samples: []face.Sample{{Vector: []float32{1}}}}}},
				nil
		}}
	if _, err := run(t.Context(), t, people(t), office.Options{}, bad); !errors.Is(err,
		face.ErrVector) {
		t.Error(err)
	}
	gone := office.Camera{Name: "door", Ends: true,
		Open: func(context.Context, func() bool) (office.Stream, error) {
			return nil, io.ErrUnexpectedEOF
		}}
	never := office.Camera{Name: "attic", Open: func(ctx context.Context, _ func() bool,
	) (office.Stream, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if _, err := run(t.Context(), t, people(t), office.Options{}, never, gone); !errors.Is(err,
		io.ErrUnexpectedEOF) ||
		err.Error() != "door: unexpected EOF" {
		t.Error(err)
	}
}

// If there is no room to learn, the owner is told once, and everybody is still recognised.
func TestNoRoom(t *testing.T) {
	g := people(t)
	s := g.Learner().Settings()
	s.K = 1
	nothing(t, g.Learner().Configure(s))
	// alice and bob at two places each: there is no room for the second place.
	far := map[byte][]float32{'c': {.7, 0}, 'd': {2.7, 0}}
	script := frames("ab ab ab ab ab ab")
	for _, f := range script[3:] {
		f.Samples[0].Vector, f.Samples[1].Vector = far['c'], far['d']
	}
	k := new(recorded)
	o := k.options()
	var told []online.Room
	o.Room = func(r online.Room) { told = append(told, r) }
	w, err := run(t.Context(), t, g, o, film(script, nil))
	nothing(t, err)
	if len(told) != 1 || !told[0].Full || told[0].K != 1 {
		t.Errorf("told %+v, and not once that k = 1 is full", told)
	}
	if now := w.Now().Room; !now.Full || now.PassedOver < 3 {
		t.Errorf("now %+v", now)
	}
	if !k.has("arrived alice door 0") || !k.has("arrived bob door 0") || len(k.events) != 4 {
		t.Errorf("%q", k.events)
	}
}

// refusal returns the error of a correction.
func refusal(_ office.Correction, err error) error { return err }

// An event, and who is there, say in which zone of the picture the face was.
func TestZones(t *testing.T) {
	all := frames("- a a a s s s")
	for i := range all {
		all[i].Size = image.Pt(2000, 100) // alice is at 970, the stranger at 1150
	}
	quarter := func(from float32) face.Polygon {
		return face.Polygon{{X: from}, {X: from + .25}, {X: from + .25, Y: 1}, {X: from, Y: 1}}
	}
	var got []string
	o := new(recorded).options()
	o.Event = func(e presence.Event) { got = append(got, string(e.Kind)+" "+e.Zone) }
	camera := film(all, nil)
	camera.Zones = []face.Zone{{Name: "till", Area: quarter(.25)}, {Name: "all", Area: quarter(0)}}
	g := people(t)
	w := office.New(past(t, g), o)
	fixture.Check(t, w.Run(t.Context(), []office.Camera{camera}))
	if want := []string{"arrived till", "left till"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if all := w.Events(0, 9, nil); len(all) != 2 || all[0].Zone != "till" {
		t.Errorf("%+v", all)
	}
}

// A face is found again among strangers and past visits, written or not; the nearest comes first.
func TestBefore(t *testing.T) {
	w := office.New(past(t, people(t)), new(recorded).options())
	run := func(script string) {
		fixture.Check(t, w.Run(t.Context(), []office.Camera{recording("door", script)}))
	}
	run("a a a a - - - " + strings.Repeat("s ", 12))
	for _, c := range []struct {
		name string
		at   []float32
		want string
	}{
		{"alice", []float32{.1, 0}, "alice 0.1 door"},
		{"the stranger", []float32{0, 2.2}, " 0.2 door"},
		{"nobody", []float32{9, 9}, ""},
		{"between", []float32{0, 1.1}, " 0.9 door"}, // alice is beyond the radius
	} {
		var got []string
		for _, s := range w.Before(c.at) {
			got = append(got, fmt.Sprintf("%s %g %s", s.Name, s.Distance, s.Camera))
			if s.ID == 0 || w.CameraOf(s.Face) != "door" || s.First.Before(noon) {
				t.Errorf("%s: %+v", c.name, s)
			}
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	fixture.Must(w.Name(w.Strangers()[0].ID, "sue", false))(t)
	if all := w.Before([]float32{0, 2}); len(all) != 1 || all[0].Name != "sue" {
		t.Errorf("%+v", all)
	}
}

// Who was lost behind somebody else, and is then seen from another side at the same place, is
// announced once; a sighting that begins elsewhere is another person.
func TestCrossed(t *testing.T) {
	for _, c := range []struct{ moved, want int }{{0, 1}, {500, 2}} {
		all := frames(strings.Repeat("s ", 10) + strings.Repeat("- ", 20) +
			strings.Repeat("s ", 20))
		for i := 30; i < len(all); i++ {
			s := &all[i].Samples[0]
			s.Box, s.Vector = s.Box.Add(image.Pt(c.moved, 0)), []float32{.8, 2} // another group
			if i >= 40 {
				s.Vector = []float32{.4, 2}
			}
		}
		told := 0
		o := new(recorded).options()
		o.Event = func(e presence.Event) {
			if e.Kind == presence.Unknown {
				told++
			}
		}
		w := office.New(past(t, people(t)), o)
		fixture.Check(t, w.Run(t.Context(), []office.Camera{film(all, nil)}))
		if told != c.want || len(w.Strangers()) != c.want {
			t.Errorf("%d pixels away: %d events, %d strangers, want %d", c.moved, told,
				len(w.Strangers()), c.want)
		}
	}
}
