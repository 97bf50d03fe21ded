// SPDX-License-Identifier: Apache-2.0

package search_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/recordings/search"
	"github.com/faceauth/faceauth/online"
)

var space = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93}

// play makes a frame of each word, a fifth of a second apart. Letters are people, who drift a
// little from frame to frame.
type play struct {
	words []string
	at    int
	drift float32
}

func (p *play) Next(context.Context) (face.Frame, error) {
	if p.at == len(p.words) {
		return face.Frame{}, io.EOF
	}
	f := face.Frame{Time: time.Duration(p.at) * time.Second / 5}
	for _, c := range strings.Trim(p.words[p.at], "-") {
		s := face.Sample{Box: image.Rect(int(c)*10, 0, int(c)*10+8, 8), JPEG: []byte{byte(c)}}
		switch c {
		case 'a', 'b', 's':
			s.Vector = []float32{2 * float32(c-'a'), p.drift * float32(p.at)}
		case 'q': // a poor picture of alice
			s.Vector, s.Reason = []float32{0, 0}, face.Blurred
		}
		f.Samples = append(f.Samples, s)
	}
	p.at++
	return f, nil
}

func (p *play) Count() face.Count { return face.Count{Read: p.at} }

func scan(t *testing.T, script string, drift float32) search.Recording {
	t.Helper()
	s := fixture.Must(search.Scan(t.Context(), &play{words: strings.Fields(script), drift: drift},
		space))(t)
	s.Path = "day.avi"
	return s
}

func query(t *testing.T, name string) *search.Query {
	t.Helper()
	return queryBy(t, name, online.Settings{})
}

func queryBy(t *testing.T, name string, s online.Settings) *search.Query {
	t.Helper()
	l := fixture.Must(online.New(space, s))(t)
	for i := range 2 {
		fixture.Check(t, l.Label([]float32{2 * float32(i), 0}, online.Person(i+1)))
	}
	return fixture.Must(search.NewQuery(l, map[string]online.Person{"alice": 1, "bob": 2}[name],
		name))(t)
}

func n(k int, word string) string { return strings.Repeat(word+" ", k) }

func hits(t *testing.T, q *search.Query, r search.Recording) (all []string) {
	t.Helper()
	found, _, err := q.Find(r)
	fixture.Check(t, err)
	for _, h := range found {
		all = append(all,
			fmt.Sprintf("%g-%g %d %.2f %s", h.From.Seconds(), h.To.Seconds(), h.Frames, h.Distance,
				h.JPEG))
	}
	return all
}

func TestFind(t *testing.T) {
	away := n(12, "-") // longer than a track may be out of view
	for _, c := range []struct {
		name, script string
		drift        float32
		want         []string
	}{
		{"nobody", "- -", 0, nil},
		{"alice", n(5, "a"), 0, []string{"0-0.8 5 0.00 a"}},
		{"twice", n(5, "a") + away + n(5, "ab"), 0, []string{"0-0.8 5 0.00 a", "3.4-4.2 5 0.00 a"}},
		{"others", n(5, "bs"), 0, nil},
		{"she passes by", "a a", 0, []string{"0-0.2 2 0.00 a"}},
		{"poor pictures", n(9, "q"), 0, nil},
		{"no vectors", n(9, "x"), 0, nil},
		{"she turns away little by little", n(30, "a"), .1, []string{"0-5.8 30 0.00 a"}},
		{"nobody can be followed so far so fast", n(30, "s"), .1, nil},
	} {
		if got := hits(t, query(t, "alice"), scan(t, c.script, c.drift)); !reflect.DeepEqual(got,
			c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Somebody who turned away most of the time is found, and a name for few of many faces is none.
func TestTurnedAway(t *testing.T) {
	for script, want := range map[string]bool{"aaaa": true, "aassssss": false, "aasss": true,
		"asss": false,
		"aaab": true, "aaabbb": false, "ssss": false} {
		r := scan(t, "a", 0)
		first := r.Sightings[0].Album.Faces[0]
		r.Sightings[0].Album.Faces = nil
		for _, c := range script {
			f := first
			f.Vector = []float32{map[rune]float32{'a': 0, 'b': 2, 's': 40}[c], 0}
			r.Sightings[0].Album.Faces = append(r.Sightings[0].Album.Faces, f)
		}
		if got := hits(t, query(t, "alice"), r); (len(got) == 1) != want {
			t.Errorf("%s: %q", script, got)
		}
	}
}

// The results of one recording do not depend on others, and a query does not learn.
func TestFindForgets(t *testing.T) {
	q := query(t, "alice")
	turned := scan(t, n(30, "a"), .1)
	late := turned
	late.Sightings = append([]search.Sighting{}, turned.Sightings...)
	// only the end of the track
	late.Sightings[0].Album.Faces = turned.Sightings[0].Album.Faces[12:]
	if got := hits(t, q, late); got != nil {
		t.Fatalf("before: %q", got)
	}
	if got := hits(t, q, turned); len(got) != 1 {
		t.Fatalf("%q", got)
	}
	if got := hits(t, q, late); got != nil {
		t.Errorf("after: %q", got)
	}
}

// A photograph is looked at alone: one look names, and the hit has its file. Nobody is in it twice.
func TestPhotographs(t *testing.T) {
	q := query(t, "alice")
	var got []string
	for i, x := range []float32{0, 2, .1, 40} { // alice, bob, alice, a stranger
		f := face.Frame{Size: image.Pt(40, 30)}
		f.Samples = []face.Sample{{Box: image.Rect(0, 0, 8, 8), Vector: []float32{x, 0}}}
		if i == 2 {
			f.Samples = append(f.Samples, face.Sample{Box: image.Rect(20, 0, 28, 8),
				Vector: []float32{.2, 0}},
				face.Sample{Reason: face.NoVector})
		}
		hits, nearest, err := q.Find(search.Photograph(space, "album/"+string(rune('a'+i))+".jpg",
			f))
		fixture.Check(t, err)
		if nearest == nil {
			t.Fatal("no nearest face")
		}
		for _, h := range hits {
			got = append(got, fmt.Sprintf("%s %s %v %.1f", h.Recording, h.File, h.Box, h.Distance))
		}
	}
	if want := []string{"album album/a.jpg (0,0)-(8,8) 0.0",
		"album album/c.jpg (0,0)-(8,8) 0.1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// If nobody is found, the distance of the nearest face is known.
func TestClosest(t *testing.T) {
	q := query(t, "alice")
	if _, h, err := q.Find(scan(t, "- -", 0)); h != nil || err != nil {
		t.Errorf("of nobody: %+v, %v", h, err)
	}
	// A stranger far away, and bob at a distance of 2.
	_, h, err := q.Find(scan(t, n(12, "s")+n(12, "-")+n(5, "bs"), 0))
	if err != nil || h.Recording != "day.avi" || h.Distance != 2 || h.Share != 0 ||
		string(h.JPEG) != "b" {
		t.Errorf("%+v, %v", h, err)
	}
}

// What only the more generous of two queries finds is perhaps the person.
func TestPerhaps(t *testing.T) {
	q := query(t, "alice")
	q.Sure = queryBy(t, "alice", online.Settings{Accept: .99})
	for x, want := range map[float32]string{.1: "sure", .8: "perhaps", 1.5: "none"} {
		film := scan(t, "a", 0)
		film.Sightings[0].Album.Faces[0].Vector = []float32{0, x}
		photograph := film
		photograph.Stills = 1
		for _, r := range []search.Recording{film, photograph} {
			all, _, err := q.Find(r)
			fixture.Check(t, err)
			got := "none"
			if len(all) == 1 {
				got = map[bool]string{true: "perhaps", false: "sure"}[all[0].Perhaps]
			}
			if got != want {
				t.Errorf("at %g, %d photographs: %s, want %s", x, r.Stills, got, want)
			}
		}
	}
}

// If two people are in view at once, only the better match gets the name.
func TestFindOnce(t *testing.T) {
	r := scan(t, n(9, "a"), 0)
	twin := r.Sightings[0]
	twin.Album.Faces = append(twin.Album.Faces[:0:0], twin.Album.Faces...)
	for i := range twin.Album.Faces {
		twin.Album.Faces[i].Vector = []float32{.3, 0}
	}
	r.Sightings = append(r.Sightings, twin)
	if got := hits(t, query(t, "alice"), r); len(got) != 1 || !strings.Contains(got[0], "0.00") {
		t.Errorf("%q", got)
	}
}

func TestErrors(t *testing.T) {
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	if _, err := search.NewQuery(l, 1, "alice"); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
}
