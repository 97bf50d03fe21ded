// SPDX-License-Identifier: Apache-2.0

package presence_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// as is a track that is believed to be somebody, or nobody known after so many frames.
func as(id int, name string, frames float64) presence.Seen {
	return presence.Seen{Track: id, Belief: sighting.Belief{Name: name, Frames: frames}}
}

// words writes events in short.
func words(events []presence.Event) (all []string) {
	for _, e := range events {
		all = append(all, fmt.Sprintf("%d %s %s %s %g", e.ID, e.Kind, e.Name, e.Camera, e.At.Sub(noon).Seconds()))
	}
	return all
}

func TestRoom(t *testing.T) {
	r := presence.New(presence.Settings{}, presence.State{})
	for i, c := range []struct {
		camera string
		at     float64
		seen   []presence.Seen
		want   []string
	}{
		{"door", 0, nil, nil},
		{"door", 1, []presence.Seen{as(1, "", 1)}, nil},
		{"door", 2, []presence.Seen{as(1, "alice", 9)}, []string{"1 arrived alice door 1"}}, // she came when she was first seen
		{"door", 3, []presence.Seen{as(1, "alice", 20)}, nil},
		{"desk", 4, []presence.Seen{as(1, "alice", 9)}, nil}, // on another camera she is the same
		{"desk", 5, []presence.Seen{as(1, "alice", 9), as(2, "", 24)}, nil},
		{"desk", 6, []presence.Seen{as(1, "", 99), as(2, "", 25)}, []string{"2 unknown  desk 5"}}, // track 1 has a name
		{"desk", 7, []presence.Seen{as(2, "", 40)}, nil},
		{"desk", 15, []presence.Seen{as(2, "", 40)}, nil},                                                                                           // ten seconds
		{"desk", 15.1, []presence.Seen{as(2, "bob", 50)}, []string{"3 left alice desk 5", "4 arrived bob desk 5"}},                                  // the unknown one was bob
		{"desk", 16, []presence.Seen{as(2, "carol", 60)}, []string{"5 arrived carol desk 16"}},                                                      // the track was taken over
		{"door", 15.5, []presence.Seen{as(7, "carol", 60)}, nil},                                                                                    // a camera that is late
		{"door", 26.05, []presence.Seen{as(7, "alice", 9)}, []string{"6 left bob desk 15.1", "7 left carol desk 16", "8 arrived alice door 26.05"}}, // the track had been forgotten
	} {
		if got := words(r.See(c.camera, at(c.at), c.seen)); !slices.Equal(got, c.want) {
			t.Errorf("step %d: %q, want %q", i, got, c.want)
		}
	}
	if p := r.People(); len(p) != 1 || p[0].Name != "alice" || p[0].Since != at(26.05) {
		t.Errorf("%+v", p)
	}
	if got := words(r.Tick(at(36.06))); !slices.Equal(got, []string{"9 left alice door 26.05"}) {
		t.Errorf("%q", got)
	}
	if got := r.Tick(at(1e6)); got != nil {
		t.Errorf("%v", got)
	}
}

// Of somebody who was recognised only by what was learned, it is said neither that they are there nor that they are
// unknown: a known head that turns away is no stranger.
func TestLearnedAlone(t *testing.T) {
	r := presence.New(presence.Settings{}, presence.State{})
	learned := as(1, "alice", 9)
	learned.Trust = sighting.Learned
	var got []presence.Event
	got = append(got, r.See("door", at(1), []presence.Seen{learned})...)
	got = append(got, r.See("door", at(3), []presence.Seen{as(1, "", 60)})...)
	if len(got) != 0 {
		t.Errorf("%q", words(got))
	}
	if got := words(r.See("door", at(4), []presence.Seen{as(1, "alice", 70)})); !slices.Equal(got, []string{"1 arrived alice door 1"}) {
		t.Errorf("%q", got)
	}
}

// After a restart nobody arrives again, who has gone meanwhile leaves when they did, and numbers go on.
func TestRestart(t *testing.T) {
	r := presence.New(presence.Settings{}, presence.State{})
	r.See("door", at(0), []presence.Seen{as(1, "alice", 9), as(2, "bob", 9)})
	r.See("door", at(9), []presence.Seen{as(1, "alice", 9)})
	b, err := json.Marshal(r.State())
	if err != nil {
		t.Fatal(err)
	}
	var s presence.State
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	r = presence.New(presence.Settings{}, s)
	if got, want := words(r.See("desk", at(15), []presence.Seen{as(1, "alice", 9)})), []string{"3 left bob door 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := words(r.Tick(at(100))), []string{"4 left alice desk 15"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// However people come and go, each arrives and leaves by turns, in the order of time, and who is there is who has
// arrived and not left; also where the program is started again in between.
func TestAlternates(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	names := []string{"", "alice", "bob", "carol"}
	for run := range 200 {
		r := presence.New(presence.Settings{}, presence.State{})
		now := 0.
		present := make(map[string]bool)
		last := make(map[string]time.Time)
		var id uint64
		for step := range 300 {
			now += 8 * rnd.Float64() * rnd.Float64()
			var seen []presence.Seen
			for k := range rnd.IntN(3) {
				seen = append(seen, as(k+rnd.IntN(3)*3, names[rnd.IntN(4)], 40*rnd.Float64()))
			}
			camera := []string{"door", "desk"}[rnd.IntN(2)]
			for _, e := range r.See(camera, at(now), seen) {
				if id++; e.ID != id {
					t.Fatalf("run %d, step %d: event %d, want %d", run, step, e.ID, id)
				}
				if e.At.After(at(now)) || e.Kind != presence.Unknown && (present[e.Name] != (e.Kind == presence.Left) || e.At.Before(last[e.Name])) {
					t.Fatalf("run %d, step %d: %+v; present %v, last %v", run, step, e, present, last)
				}
				if e.Kind != presence.Unknown {
					present[e.Name], last[e.Name] = e.Kind == presence.Arrived, e.At
				}
			}
			for _, p := range r.People() {
				if !present[p.Name] || p.Since.After(p.Last) || at(now).Sub(p.Last) > 10*time.Second {
					t.Fatalf("run %d, step %d: %+v is there at %g", run, step, p, now)
				}
			}
			if n := len(r.People()); n != count(present) {
				t.Fatalf("run %d, step %d: %d people, want %d", run, step, n, count(present))
			}
			if rnd.IntN(50) == 0 {
				r = presence.New(presence.Settings{}, r.State())
			}
		}
	}
}

func count(present map[string]bool) (n int) {
	for _, there := range present {
		if there {
			n++
		}
	}
	return n
}

func ExampleRoom() {
	r := presence.New(presence.Settings{}, presence.State{})
	for s := range 3 {
		for _, e := range r.See("door", at(float64(s)), []presence.Seen{as(1, []string{"", "alice", "alice"}[s], 9)}) {
			fmt.Println(e.Kind, e.Name, e.At.Format(time.TimeOnly))
		}
	}
	for _, e := range r.Tick(at(60)) {
		fmt.Println(e.Kind, e.Name, e.At.Format(time.TimeOnly))
	}
	// Output:
	// arrived alice 12:00:00
	// left alice 12:00:02
}
