// SPDX-License-Identifier: Apache-2.0

package presence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func moment(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// people, by number
var called = []string{"", "alice", "bob", "carol", "dave", "eve", "ann", "anna"}

// person returns the number of a person.
func person(name string) int64 {
	n := slices.Index(called, name)
	if n < 0 {
		panic(name)
	}
	return int64(n)
}

// room numbers sightings by camera and track.
type room struct{ *presence.Room }

func newRoom(s presence.Settings, from presence.State) *room {
	return &room{presence.New(s, from)}
}

func (r *room) See(camera string, at time.Time, tracks []presence.Seen) []presence.Event {
	seen := slices.Clone(tracks)
	for i := range seen {
		for _, c := range camera {
			seen[i].Sighting += 100 * uint64(c)
		}
	}
	return r.Room.See(camera, at, seen, nil)
}

// tracked is a track with a name, or without a known name after so many frames, of which 25 are
// enough.
func tracked(id int, name string, frames int) presence.Seen {
	return presence.Seen{Sighting: uint64(id), Who: sighting.Who{Person: person(name)},
		Unknown: frames >= 25}
}

// words describes events in short form.
func described(events []presence.Event) (all []string) {
	for _, e := range events {
		all = append(all, fmt.Sprintf("%d %s %s %s %g", e.ID, e.Kind, called[e.Person], e.Camera,
			e.At.Sub(noon).Seconds()))
	}
	return all
}

func TestRoom(t *testing.T) {
	r := newRoom(presence.Settings{}, presence.State{})
	for i, c := range []struct {
		camera string
		at     float64
		seen   []presence.Seen
		want   []string
	}{
		{"door", 0, nil, nil},
		{"door", 1, []presence.Seen{tracked(1, "", 1)}, nil},
		// She came when she was first seen.
		{"door", 2, []presence.Seen{tracked(1, "alice", 9)}, []string{"1 arrived alice door 1"}},
		{"door", 3, []presence.Seen{tracked(1, "alice", 20)}, nil},
		// on another camera she is the same
		{"desk", 4, []presence.Seen{tracked(1, "alice", 9)}, nil},
		{"desk", 5, []presence.Seen{tracked(1, "alice", 9), tracked(2, "", 24)}, nil},
		{"desk", 6, []presence.Seen{tracked(1, "", 99), tracked(2, "", 25)},
			[]string{"2 unknown  desk 5"}}, // track 1 has a name
		{"desk", 7, []presence.Seen{tracked(2, "", 40)}, nil},
		// Ten seconds.
		{"desk", 15, []presence.Seen{tracked(2, "", 40)}, nil},
		// The unknown one was bob.
		{"desk", 15.1, []presence.Seen{tracked(2, "bob", 50)},
			[]string{"3 left alice desk 5", "4 arrived bob desk 5"}},
		// The track was taken over.
		{"desk", 16, []presence.Seen{tracked(2, "carol", 60)}, []string{"5 arrived carol desk 16"}},
		// A camera that is late.
		{"door", 15.5, []presence.Seen{tracked(7, "carol", 60)}, nil},
		// The track had been forgotten.
		{"door", 26.05, []presence.Seen{tracked(7, "alice", 9)}, []string{"6 left bob desk 15.1",
			"7 left carol desk 16", "8 arrived alice door 26.05"}},
	} {
		if got := described(r.See(c.camera, moment(c.at), c.seen)); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %q, want %q", i, got, c.want)
		}
	}
	if p := r.People(); len(p) != 1 || p[0].Person != person("alice") ||
		p[0].Since != moment(26.05) {
		t.Errorf("%+v", p)
	}
	if got := described(r.Tick(moment(36.06))); !slices.Equal(got,
		[]string{"9 left alice door 26.05"}) {
		t.Errorf("%q", got)
	}
	if got := r.Tick(moment(1e6)); got != nil {
		t.Errorf("%v", got)
	}
}

// looks makes a camera look every second of an interval, and see the given people or nobody.
func watches(r *room, camera string, from, to float64,
	seen ...presence.Seen) (events []presence.Event) {
	for s := from; s <= to; s++ {
		events = append(events, r.See(camera, moment(s), seen)...)
	}
	return events
}

// If the camera that saw a person last fails, the person has not left. The camera must look again
// first, or the time for which the person is held must pass.
func TestCameraDown(t *testing.T) {
	begin := func() *room {
		r := newRoom(presence.Settings{Hold: time.Minute}, presence.State{})
		r.Watch("door", "")
		r.Watch("desk", "")
		watches(r, "door", 0, 3, tracked(1, "alice", 9))
		watches(r, "desk", 0, 3, tracked(1, "bob", 9))
		return r
	}
	expect := func(what string, events []presence.Event, want ...string) {
		t.Helper()
		if got := described(events); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	unsure := func(r *room) (all []string) {
		for _, p := range r.People() {
			if p.Unsure {
				all = append(all, called[p.Person])
			}
		}
		return all
	}

	r := begin()
	r.Down("door")
	expect("the desk looks on", watches(r, "desk", 4, 20, tracked(1, "bob", 9)))
	if got := unsure(r); !slices.Equal(got, []string{"alice"}) {
		t.Errorf("unsure of %q", got)
	}
	if s := r.State(); s.People[0].Unsure || s.People[1].Unsure {
		t.Errorf("what is unsure now is in the state: %+v", s)
	}
	expect("the door is back and has not looked long", watches(r, "door", 21, 31))
	expect("it has", r.See("door", moment(31.1), nil), "3 left alice door 3")
	expect("the desk is well", watches(r, "desk", 21, 30))

	r = begin()
	r.Down("door")
	expect("she is there when it is back",
		append(watches(r, "door", 30, 32), watches(r, "door", 33, 60, tracked(2, "alice", 9))...))
	// the desk gives no frames; no fault is known
	if got := unsure(r); !slices.Equal(got, []string{"bob"}) {
		t.Errorf("unsure of %q", got)
	}

	r = begin()
	r.Down("door")
	expect("another camera sees her meanwhile",
		watches(r, "desk", 20, 22, tracked(3, "alice", 9), tracked(1, "bob", 9)))
	expect("and then no more", watches(r, "desk", 23, 33, tracked(1, "bob", 9)),
		"3 left alice desk 22")

	r = begin()
	r.Down("door")
	expect("not yet", r.Tick(moment(63)))
	expect("it stays away too long", r.Tick(moment(63.1)), "3 left alice door 3",
		"4 left bob desk 3")

	r = begin()
	expect("a camera that hangs", r.Tick(moment(30)))
	expect("and goes on", watches(r, "door", 30, 40))
	expect("has looked again", r.See("door", moment(40.1), nil), "3 left alice door 3")

	r = begin()
	r.End("door") // a recording: no more frames will come
	expect("the end of a recording", r.Tick(moment(13.1)), "3 left alice door 3")
}

// After a restart nobody leaves before all cameras have looked again. A camera that has failed
// delays only the people whom it saw last.
func TestGrace(t *testing.T) {
	state := presence.State{Last: 7, People: []presence.Presence{
		{Who: sighting.Who{Person: person("alice")}, Since: moment(-99), Last: moment(0),
			Camera: "door"},
		{Who: sighting.Who{Person: person("bob")}, Since: moment(-99), Last: moment(-1),
			Camera: "desk"},
		{Who: sighting.Who{Person: person("carol")}, Since: moment(-99), Last: moment(-2),
			Camera: "a camera that is no more"},
	}}
	begin := func(now float64) *room {
		r := newRoom(presence.Settings{Hold: time.Minute}, state)
		r.Watch("door", "")
		r.Watch("desk", "")
		if got := r.Tick(moment(now)); got != nil {
			t.Errorf("at the start: %q", described(got))
		}
		return r
	}
	r := begin(1000)
	if got := watches(r, "door", 1005, 1030, tracked(1, "alice", 9)); got != nil {
		t.Errorf("the desk has not looked yet: %q", described(got))
	}
	if got := watches(r, "desk", 1006, 1016); got != nil {
		t.Errorf("it has not looked for long: %q", described(got))
	}
	// They left while the program was not running: at the time at which they were last seen.
	if got, want := described(r.See("desk", moment(1016.1), nil)),
		[]string{"8 left carol a camera that is no more -2",
			"9 left bob desk -1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	r = begin(1000)
	r.Down("desk")
	if got, want := described(watches(r, "door", 1001, 1012)),
		[]string{"8 left carol a camera that is no more -2",
			"9 left alice door 0"}; !slices.Equal(got, want) {
		t.Errorf("a dead desk: %q, want %q", got, want)
	}
	if got, want := described(r.Tick(moment(1060.1))),
		[]string{"10 left bob desk -1"}; !slices.Equal(got, want) {
		t.Errorf("after a minute: %q, want %q", got, want)
	}
}

// Cameras fail and come back, and the program is restarted at random, also hours later, or with a
// clock that was set back, in the night in which daylight saving begins. Each person arrives and
// leaves by turns. Nobody leaves whom a working camera has just seen, and nobody is held for too
// long.
func TestHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	names, cameras := []string{"", "alice", "bob", "carol"}, []string{"door", "desk"}
	held, left, back := 0, 0, 0
	berlin, err := time.LoadLocation("Europe/Berlin")
	fixture.Check(t, err)
	moment := func(s float64) time.Time {
		return time.Date(2026, 3, 29, 1, 55, 0, 0,
			berlin).Add(time.Duration(s * float64(time.Second)))
	}
	for run := range 200 {
		s := presence.Settings{Hold: time.Minute}
		start := func(from presence.State) *room {
			r := newRoom(s, from)
			for _, c := range cameras {
				r.Watch(c, "")
			}
			return r
		}
		r := start(presence.State{})
		now, begun := 0., 0.
		present := make(map[string]bool)
		seen := make(map[string]time.Time)
		for step := range 400 {
			now += 6 * rnd.Float64() * rnd.Float64()
			camera := cameras[rnd.IntN(2)]
			var events []presence.Event
			switch n := rnd.IntN(60); {
			case n == 0:
				if rnd.IntN(2) == 0 {
					now += 7200 * (2*rnd.Float64() - 1)
				}
				r, begun = start(r.State()), now
				events = r.Tick(moment(now))
				for name, last := range seen {
					if last.Sub(moment(now)) > 10*time.Second {
						seen[name] = moment(now)
						back++
					}
				}
			case n < 4:
				r.Down(camera)
			case n < 10:
				events = r.Tick(moment(now))
			default:
				var shown []presence.Seen
				if k := rnd.IntN(8); k < 4 {
					shown = append(shown, tracked(k, names[k], 40))
					seen[names[k]] = moment(now)
				}
				events = r.See(camera, moment(now), shown)
			}
			for _, e := range events {
				if e.Kind == presence.Unknown {
					continue
				}
				if e.At.After(moment(now)) || present[called[e.Person]] != (e.Kind == presence.Left) {
					t.Fatalf("run %d, step %d: %+v; present %v", run, step, e, present)
				}
				present[called[e.Person]] = e.Kind == presence.Arrived
				if e.Kind == presence.Left {
					left++
					if moment(now).Sub(e.At) <= 10*time.Second {
						t.Fatalf("run %d, step %d: %+v at %g is too early", run, step, e, now)
					}
				}
			}
			for _, p := range r.People() {
				if p.Unsure {
					held++
				}
				since := p.Last
				if moment(begun).After(since) {
					since = moment(begun)
				}
				if !present[called[p.Person]] || !p.Last.Equal(seen[called[p.Person]]) ||
					moment(now).Sub(since) > s.Hold+6*time.Second {
					t.Fatalf("run %d, step %d: %+v is there at %g", run, step, p, now)
				}
			}
		}
	}
	if held < 1000 || left < 1000 || back < 100 {
		t.Errorf("it proves little: %d held, %d left, %d times seen in the future", held, left,
			back)
	}
}

// Where a camera is an entrance, people stay here out of view, also over a restart, until they are
// seen at an exit, or for too long. Who comes into view again is seen, and does not arrive.
func TestEntrance(t *testing.T) {
	begin := func(from presence.State) *room {
		r := newRoom(presence.Settings{HomeFor: time.Hour}, from)
		r.Watch("door", presence.Entrance)
		r.Watch("kitchen", "")
		r.Watch("porch", presence.Exit)
		return r
	}
	r := begin(presence.State{})
	likely := tracked(3, "alice", 9)
	likely.Trust = sighting.Likely
	certain := tracked(3, "alice", 9)
	certain.Trust = sighting.Confirmed
	now, events := 0., []presence.Event(nil)
	for i, c := range []struct {
		camera string
		at     float64
		seen   []presence.Seen
		want   []string
	}{
		{"door", 0, []presence.Seen{tracked(1, "alice", 9), tracked(2, "bob", 9)},
			[]string{"1 arrived alice door 0", "2 arrived bob door 0"}},
		{"door", 60, nil, nil},
		{"porch", 60, nil, nil},
		{"kitchen", 70, []presence.Seen{likely}, nil}, // what is only likely announces nothing
		{"kitchen", 71, []presence.Seen{certain}, []string{"3 seen alice kitchen 70"}},
		{"kitchen", 75, []presence.Seen{certain}, nil},
		{"porch", 100, []presence.Seen{certain}, []string{"4 seen alice porch 100"}},
		{"porch", 109, nil, nil},
		{"porch", 110.1, nil, []string{"5 left alice porch 100"}},
		{"porch", 3600, nil, nil},
		{"porch", 3600.1, nil, []string{"6 left bob door 0"}},
		{"door", 4000, []presence.Seen{certain}, []string{"7 arrived alice door 4000"}},
	} {
		for ; now+1 < c.at; now++ { // meanwhile the cameras look on
			for _, camera := range []string{"door", "kitchen", "porch"} {
				events = append(events, r.See(camera, moment(now+1), nil)...)
			}
		}
		got := described(append(events, r.See(c.camera, moment(c.at), c.seen)...))
		events = nil
		if !slices.Equal(got, c.want) {
			t.Errorf("step %d: %q, want %q", i, got, c.want)
		}
		for _, p := range r.People() {
			if p.Unsure || p.InView != (moment(c.at).Sub(p.Last) <= 12*time.Second) {
				t.Errorf("step %d: %+v", i, p)
			}
		}
	}
	r = begin(r.State())
	if got := described(r.See("kitchen", moment(5000),
		[]presence.Seen{certain})); !slices.Equal(got,
		[]string{"8 seen alice kitchen 5000"}) {
		t.Errorf("after a restart: %q", got)
	}
	if got := r.Empty(); got != nil {
		t.Errorf("at the end of recordings: %q", described(got))
	}
}

// A camera that looks too seldom to give a name, that did not look, or that has a face in view of
// which it cannot tell whose it is, has not said that somebody is gone. Nobody leaves, and no
// stranger is told again.
func TestSlowCamera(t *testing.T) {
	stranger := tracked(2, "", 30)
	stranger.Group = 7
	for name, c := range map[string]struct {
		looks     []float64 // after they were seen at 0
		undecided float64   // until when a face is in view of which nobody can tell whose it is
		decided   float64   // when it can be told; 0 for never
		since     float64   // when that face came
		gone      float64   // when they are; 0 for not
	}{
		"it looks on":               {[]float64{1, 2, 3, 6, 9, 10, 10.1}, 0, 0, 1, 10.1},
		"it looks too seldom":       {[]float64{5, 10.1}, 0, 0, 1, 0},
		"it looks seldom":           {[]float64{5, 10, 15}, 0, 0, 1, 15},
		"it did not look":           {[]float64{1, 2, 3, 14, 15, 20, 24}, 0, 0, 1, 0},
		"it did not look, and does": {[]float64{1, 2, 3, 14, 15, 20, 24.1}, 0, 0, 1, 24.1},
		"it cannot tell": {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
			15, 16, 17, 18}, 8, 0, 1, 0},
		"it could not tell": {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
			15, 16, 17, 18.1}, 8, 0, 1, 18.1},
		"it could not tell, and stops": {[]float64{1, 2, 3, 4, 18.1, 19, 20, 21}, 4, 0, 1, 0},
		"it is another's": {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.1}, 8, 9, 1,
			10.1},
		"it is another's, late": {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 11, 12, 1,
			13},
		"it was beside them": {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10.1}, 10.1, 0, 0, 10.1},
	} {
		t.Run(name, func(t *testing.T) {
			r := presence.New(presence.Settings{}, presence.State{})
			r.Watch("door", "")
			r.See("door", moment(0), []presence.Seen{tracked(1, "alice", 9), stranger},
				map[uint64]bool{1: false, 2: false, 9: c.since == 0})
			gone := 0.
			for _, at := range c.looks {
				open := make(map[uint64]bool)
				if at <= c.undecided || at == c.decided {
					open[9] = at != c.decided
				}
				for _, e := range r.See("door", moment(at), nil, open) {
					if gone = at; e.Kind != presence.Left {
						t.Errorf("%+v", e)
					}
				}
			}
			if gone != c.gone {
				t.Errorf("gone at %g, want %g", gone, c.gone)
			}
			again := stranger
			again.Sighting = 3
			told := r.See("door", moment(c.looks[len(c.looks)-1]+.1), []presence.Seen{again}, nil)
			if (len(told) == 1) != (c.gone != 0) || r.Strangers() != 1 {
				t.Errorf("the stranger is told by %v; %d are there", told, r.Strangers())
			}
		})
	}
}

// After a pause everybody has a new sighting. When it can be told whose it is, they have not left,
// and are not told again.
func TestAfterPause(t *testing.T) {
	alice, stranger := tracked(1, "alice", 9), tracked(2, "", 30)
	stranger.Group = 7
	r := presence.New(presence.Settings{}, presence.State{})
	r.Watch("door", "")
	r.See("door", moment(0), []presence.Seen{alice, stranger}, nil)
	for at := 20.; at < 35; at++ {
		if told := r.See("door", moment(at), nil, map[uint64]bool{3: true, 4: true}); told != nil {
			t.Error(described(told))
		}
	}
	alice.Sighting, stranger.Sighting = 3, 4
	told := r.See("door", moment(35), []presence.Seen{alice, stranger},
		map[uint64]bool{3: false, 4: false})
	if told != nil {
		t.Error(described(told))
	}
}

// Of somebody unknown it takes a while to tell so. Whose face came into view while they were there,
// or when one that came then went away, has been there since; others are told again.
func TestUnknownAfterPause(t *testing.T) {
	for name, c := range map[string]struct {
		tracks [][2]float64 // from when to when
		beside bool         // of somebody else, who came at 25, it is told only at 55 who they are
		again  bool
	}{
		"at once":                {[][2]float64{{20, 60}}, false, false},
		"after others":           {[][2]float64{{20, 33}, {33, 46}, {46, 60}}, false, false},
		"after they left":        {[][2]float64{{50, 60}}, false, true},
		"at once, beside":        {[][2]float64{{20, 60}}, true, false},
		"after they left beside": {[][2]float64{{50, 60}}, true, true},
		"long after another":     {[][2]float64{{20, 22}, {50, 60}}, true, true},
	} {
		r := presence.New(presence.Settings{}, presence.State{})
		r.Watch("door", "")
		stranger := tracked(1, "", 30)
		stranger.Group = 7
		r.See("door", moment(0), []presence.Seen{stranger}, nil)
		stranger.Unknown = false
		for at := 20.; at < 60; at++ {
			seen := []presence.Seen{}
			for i, when := range c.tracks {
				if at >= when[0] && at < when[1] {
					stranger.Sighting = uint64(2 + i)
					seen = append(seen, stranger)
				}
			}
			open := map[uint64]bool{}
			if c.beside && at >= 25 {
				open[9] = at < 55
			}
			if told := r.See("door", moment(at), seen, open); told != nil {
				t.Errorf("%s: %q at %g", name, described(told), at)
			}
		}
		stranger.Unknown = true
		told := r.See("door", moment(60), []presence.Seen{stranger}, nil)
		if (told != nil) != c.again {
			t.Errorf("%s: %q", name, described(told))
		}
	}
}

// A face may be in view for long before it has a name. Its person came when they were first seen
// there, unless another camera has seen them meanwhile.
func TestSeenElsewhere(t *testing.T) {
	for _, c := range []struct {
		elsewhere float64 // until when she is at the desk
		want      string
	}{{2, "3 arrived alice door 3"}, {5, "3 arrived alice door 20"}} {
		r := newRoom(presence.Settings{}, presence.State{})
		watches(r, "desk", 0, c.elsewhere, tracked(1, "alice", 9))
		watches(r, "door", 3, 19, tracked(1, "", 1))
		all := described(r.See("door", moment(20), []presence.Seen{tracked(1, "alice", 9)}))
		if !slices.Equal(all, []string{c.want}) {
			t.Errorf("%q, want %q", all, c.want)
		}
	}
}

// Strangers are counted once for each group.
func TestCounts(t *testing.T) {
	r := newRoom(presence.Settings{}, presence.State{})
	stranger := func(track int, group uint64) presence.Seen {
		s := tracked(track, "", 30)
		s.Group = group
		return s
	}
	r.See("door", moment(0), []presence.Seen{tracked(1, "alice", 9), stranger(2, 0), stranger(3, 7),
		tracked(4, "", 3)})
	r.See("desk", moment(1), []presence.Seen{stranger(1, 7), stranger(2, 8)})
	if got := r.Strangers(); got != 3 {
		t.Errorf("%d strangers, want 3", got)
	}
	r.Tick(moment(30))
	if r.Strangers() != 0 {
		t.Errorf("%d strangers", r.Strangers())
	}
}

// People who change take along what is known of them: who was found to be another person came when
// the first of the two did, and who is nobody any more was never there.
func TestFollow(t *testing.T) {
	r := newRoom(presence.Settings{}, presence.State{})
	see := func(at float64, names ...string) []presence.Event {
		var seen []presence.Seen
		for i, name := range names {
			seen = append(seen, presence.Seen{Sighting: uint64(i), Who: sighting.Who{
				Name: name, Person: person(name), Trust: sighting.Confirmed}})
		}
		return r.See("door", moment(at), seen)
	}
	see(0, "ann", "bob")
	all := see(4, "ann", "bob", "anna", "carol")
	want := []string{"3 arrived anna door 4", "4 arrived carol door 4"}
	if got := described(all); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	now := func(id int64) (int64, string) {
		switch name := called[id]; name {
		case "ann":
			return person("anna"), "anna"
		case "bob":
			return 0, ""
		default:
			return id, name
		}
	}
	r.Follow(now)
	p := r.People()
	if len(p) != 2 || p[0].Person != person("carol") || p[1].Person != person("anna") ||
		p[1].Name != "anna" ||
		p[1].Since != moment(0) || p[1].Last != moment(4) {
		t.Errorf("%+v", p)
	}
	if got := described(see(5, "anna", "", "anna", "carol")); got != nil {
		t.Errorf("%q", got)
	}
}
