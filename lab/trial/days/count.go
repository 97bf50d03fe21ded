// SPDX-License-Identifier: Apache-2.0

package days

import (
	"cmp"
	"image"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// counter compares the output of an office with the truth.
type counter struct {
	r      *Report
	d      day
	known  map[string]bool
	cams   map[string]int
	tracks map[uint64]*tracked
	events []presence.Event
}

// tracked holds the true and the given names of a sighting.
type tracked struct {
	last    string
	people  map[string]int
	names   map[string]int
	unnamed []string // who the faces are that have no name yet
}

func newCounter(r *Report, d day, known map[string]bool) *counter {
	c := &counter{r: r, d: d, known: known, cams: make(map[string]int),
		tracks: make(map[uint64]*tracked)}
	for i := range d.frames {
		c.cams[cameraName(i)] = i
	}
	return c
}

// frame counts the result for a frame.
func (c *counter) frame(camera string, at time.Time, seen []presence.Seen) {
	i, cam := int(at.Sub(noon)/frameTime), c.cams[camera]
	c.r.Frames++
	if len(seen) > 1 {
		c.r.Crowded++
	}
	for _, s := range seen {
		truth := c.d.truth[cam][place{i, image.Rect(s.Box[0], s.Box[1], s.Box[2], s.Box[3])}]
		c.r.Faces.add(truth, s.Name, c.known[truth])
		confirmed := ""
		if s.Trust == sighting.Confirmed {
			confirmed = s.Name
		}
		c.r.Confirmed.add(truth, confirmed, c.known[truth])
		t := c.tracks[s.Sighting]
		if t == nil {
			t = &tracked{people: make(map[string]int), names: make(map[string]int)}
			c.tracks[s.Sighting] = t
		}
		t.unnamed = append(t.unnamed, truth)
		if s.Name != "" {
			c.later(t, s.Name)
		}
		if t.last != "" && t.last != truth {
			c.r.Switches++
		}
		t.last = truth
		t.people[truth]++
		t.names[s.Name]++
	}
}

// later gives a name to the faces of a sighting that had none.
func (c *counter) later(t *tracked, name string) {
	for _, truth := range t.unnamed {
		c.r.Later.add(truth, name, c.known[truth])
	}
	t.unnamed = nil
}

// most returns the key with the largest count.
func most(counts map[string]int) string {
	return slices.MaxFunc(slices.Sorted(maps.Keys(counts)),
		func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
}

// stay is a time in which a person is present, from the first face to the last.
type stay struct {
	person   string
	from, to time.Time
	arrived  bool
	left     bool
	unknown  bool
	faces    int // that can be judged
}

// stays returns the stays of a day.
func (c *counter) stays(away time.Duration) (all []*stay) {
	seen := make(map[string][]int)
	for _, truth := range c.d.truth {
		for p, person := range truth {
			seen[person] = append(seen[person], p.frame)
		}
	}
	for _, person := range slices.Sorted(maps.Keys(seen)) {
		frames := slices.Compact(slices.Sorted(slices.Values(seen[person])))
		var s *stay
		for _, f := range frames {
			at := noon.Add(time.Duration(f) * frameTime)
			if s == nil || at.Sub(s.to) > away {
				s = &stay{person: person, from: at}
				all = append(all, s)
			}
			s.to = at
			s.faces += c.d.judged[when{person, f}]
		}
	}
	return all
}

// end counts the results at the end of a day.
func (c *counter) end(o Options) {
	r := c.r
	for _, id := range slices.Sorted(maps.Keys(c.tracks)) {
		t := c.tracks[id]
		c.later(t, "")
		truth, name := most(t.people), ""
		if delete(t.names, ""); len(t.names) > 0 {
			name = most(t.names)
		}
		r.Tracks.add(truth, name, c.known[truth])
	}
	r.Visits += len(c.d.visits)
	r.Parts += len(c.tracks) - len(c.d.visits)
	stays := c.stays(o.Away)
	at := func(person string, when time.Time, slack time.Duration) *stay {
		for _, s := range stays {
			if (person == "" || s.person == person) && !when.Before(s.from.Add(-slack)) &&
				!when.After(s.to.Add(slack)) {
				return s
			}
		}
		return nil
	}
	for _, e := range c.events {
		switch e.Kind {
		case presence.Arrived:
			switch s := at(e.Name, e.At, 0); {
			case s == nil:
				r.Comings.Wrong++
			case s.arrived:
				r.Comings.Repeated++
			default:
				s.arrived = true
			}
		case presence.Left:
			if s := at(e.Name, e.At, 0); s != nil && s.to.Sub(e.At) <= time.Second {
				s.left = true
			} else {
				r.Comings.Early++
			}
		case presence.Unknown:
			c.unknown(e, stays)
		}
	}
	for _, s := range stays {
		switch {
		case !c.known[s.person]:
			r.Comings.Visitors++
			switch {
			case s.unknown:
				r.Comings.Unknown++
			case s.faces < 3 || s.to.Sub(s.from) < 1500*time.Millisecond: // as an office asks for
				r.Comings.Short++
			}
			continue
		case s.arrived:
			r.Comings.Told++
			if s.left {
				r.Comings.LeftTold++
			}
		}
		r.Comings.Stays++
	}
}

// unknown finds the stranger of an Unknown event: one in the view of its camera at that time,
// preferably without an earlier event.
func (c *counter) unknown(e presence.Event, stays []*stay) {
	frame := int(e.At.Sub(noon) / frameTime)
	var there []*stay
	for p, person := range c.d.truth[c.cams[e.Camera]] {
		if p.frame != frame || c.known[person] {
			continue
		}
		for _, s := range stays {
			if s.person == person && !e.At.Before(s.from) && !e.At.After(s.to) {
				there = append(there, s)
			}
		}
	}
	slices.SortFunc(there, func(a, b *stay) int { return cmp.Compare(a.person, b.person) })
	if len(there) == 0 {
		c.r.Comings.Mistaken++
		return
	}
	for _, s := range there {
		if !s.unknown {
			s.unknown = true
			return
		}
	}
}
