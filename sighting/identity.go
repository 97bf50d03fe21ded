// SPDX-License-Identifier: Apache-2.0

package sighting

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/online"
)

// Belief is who somebody in view is taken for.
type Belief struct {
	Name   string  // "" for nobody known
	Share  float64 // of what was seen that speaks for that, in [0,1]
	Frames float64 // that were judged; older ones count less and less
	Trust  Trust   // on what the name rests
}

// Rules say when somebody in view is taken for a person. The zero value of each field stands for its default.
type Rules struct {
	Frames   float64 // judged frames that it takes. Default 3
	Share    float64 // of them that speak for the person. Default 0.6
	HalfLife float64 // judged frames after which one counts half. Default 50
	Anchors  int     // faces near an enrolled one that confirm a person. Default 2
	// Own is how many faces of a sighting the learner must name by itself before what others have learned names it so,
	// too (package online, "Lessons"). It is for a fleet in which a device may lie. Default 0, none
	Own int
	// Lapse is how long a person stays confirmed without another such face. Default 10 s
	Lapse time.Duration
}

func (r Rules) defaults() Rules {
	r.Frames = cmp.Or(r.Frames, 3)
	r.Share = cmp.Or(r.Share, .6)
	r.HalfLife = cmp.Or(r.HalfLife, 50)
	r.Anchors = cmp.Or(r.Anchors, 2)
	r.Lapse = cmp.Or(r.Lapse, 10*time.Second)
	return r
}

// Identities gathers the verdicts on the people in view of one camera. It is used by one goroutine at a time. Make one
// with [NewIdentities].
type Identities struct {
	rules  Rules
	fade   float64
	people map[int]*evidence
}

// evidence is what the verdicts on one track sum up to.
type evidence struct {
	frames float64
	names  map[string]float64
	own    map[string]int // faces of these that the learner named without lessons
	near   map[string]*anchors
	denied []string // whom it is not, whatever verdicts say

	judged   time.Duration // when the last face was judged
	anchored string        // the person to whom that face was anchored, or ""
}

// anchors are the faces of a track that lie near a face which a person was enrolled with.
type anchors struct {
	faces int
	last  time.Duration // when the last of them was seen
}

// NewIdentities returns Identities that have seen nobody.
func NewIdentities(r Rules) *Identities {
	r = r.defaults()
	return &Identities{rules: r, fade: math.Exp2(-1 / r.HalfLife), people: make(map[int]*evidence)}
}

// Add takes in the verdict on a face of a track in a frame of that time.
func (i *Identities) Add(track int, at time.Duration, v online.Verdict) {
	e := i.of(track)
	e.judged, e.anchored = at, ""
	e.frames = i.fade*e.frames + 1
	for name, w := range e.names {
		if e.names[name] = i.fade * w; e.names[name] < 1e-3 {
			delete(e.names, name)
			delete(e.own, name)
		}
	}
	if v.Label != "" && !slices.Contains(e.denied, v.Label) {
		e.names[v.Label]++
		if !v.Lent {
			e.own[v.Label]++
		}
		if v.Anchored {
			a := e.near[v.Label]
			if a == nil {
				a = &anchors{}
				e.near[v.Label] = a
			}
			a.faces, a.last = a.faces+1, at
			e.anchored = v.Label
		}
	}
}

// longestHold is for how long a face stands for those after it that look the same. Who holds faces looks closely more
// often than that.
const longestHold = 30 * time.Second

// Hold says that a face of a track is still in view at that time and looks as it did when it was judged last. That is
// no new evidence. A person whom that face confirmed stays confirmed, at most 30 seconds long.
func (i *Identities) Hold(track int, at time.Duration) {
	e := i.people[track]
	if e == nil || e.anchored == "" || at-e.judged > longestHold {
		return
	}
	e.near[e.anchored].last = at
}

// trust returns on what a name rests.
func (i *Identities) trust(e *evidence, name string, at time.Duration) Trust {
	if a := e.near[name]; a != nil && a.faces >= i.rules.Anchors && at-a.last <= i.rules.Lapse {
		return Confirmed
	}
	return Learned
}

// confirmed returns the only person as whom a track is confirmed, or "".
func (i *Identities) confirmed(track int, at time.Duration) (name string) {
	e := i.people[track]
	if e == nil {
		return ""
	}
	for n := range e.near {
		if i.trust(e, n, at) != Confirmed {
			continue
		}
		if name != "" {
			return ""
		}
		name = n
	}
	return name
}

func (i *Identities) of(track int) *evidence {
	e := i.people[track]
	if e == nil {
		e = &evidence{names: make(map[string]float64), own: make(map[string]int), near: make(map[string]*anchors)}
		i.people[track] = e
	}
	return e
}

// Deny says that a track is not a person, for as long as it lasts.
func (i *Identities) Deny(track int, name string) {
	e := i.of(track)
	e.denied = append(e.denied, name)
	i.Reset(track)
}

// Allow takes back what [Identities.Deny] said.
func (i *Identities) Allow(track int, name string) {
	e := i.of(track)
	e.denied = slices.DeleteFunc(e.denied, func(n string) bool { return n == name })
	i.Reset(track)
}

// Reset forgets the verdicts on a track: they were made before something was known that changes them.
func (i *Identities) Reset(track int) {
	e := i.of(track)
	e.frames, e.anchored = 0, ""
	clear(e.names)
	clear(e.own)
	clear(e.near)
}

// nobody returns the weight of the frames in which nobody was recognised.
func (e *evidence) nobody() float64 {
	rest := e.frames
	for _, w := range e.names {
		rest -= w
	}
	return max(0, rest)
}

// Keep forgets all tracks but these.
func (i *Identities) Keep(tracks []int) {
	for id := range i.people {
		if !slices.Contains(tracks, id) {
			delete(i.people, id)
		}
	}
}

// Who returns what is believed of the tracks that are in view at once, at that time. Nobody is two of them: the one for
// whom more speaks is the person, and the other is nobody known.
func (i *Identities) Who(at time.Duration, tracks []int) []Belief {
	type claim struct {
		at     int
		name   string
		weight float64
	}
	beliefs := make([]Belief, len(tracks))
	var claims []claim
	for place, id := range tracks {
		e := i.people[id]
		if e == nil || e.frames == 0 {
			continue
		}
		beliefs[place] = Belief{Frames: e.frames, Share: e.nobody() / e.frames}
		if e.frames < i.rules.Frames*.95 { // fading takes a little off the first frames
			continue
		}
		for name, w := range e.names {
			if w >= i.rules.Share*e.frames && e.own[name] >= i.rules.Own {
				claims = append(claims, claim{place, name, w})
			}
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name))
	})
	taken := make(map[string]bool)
	for _, c := range claims {
		if b := &beliefs[c.at]; b.Name == "" && !taken[c.name] {
			taken[c.name] = true
			b.Name, b.Share = c.name, c.weight/b.Frames
			b.Trust = i.trust(i.people[tracks[c.at]], c.name, at)
		}
	}
	return beliefs
}
