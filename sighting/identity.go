package sighting

import (
	"cmp"
	"math"
	"slices"

	"github.com/faceauth/faceauth/online"
)

// Belief is who somebody in view is taken for.
type Belief struct {
	Name   string  // "" for nobody known
	Share  float64 // of what was seen that speaks for that, in [0,1]
	Frames float64 // that were judged; older ones count less and less
}

// Rules say when somebody in view is taken for a person. The zero value of each field stands for its default.
type Rules struct {
	Frames   float64 // judged frames that it takes. Default 3
	Share    float64 // of them that speak for the person. Default 0.6
	HalfLife float64 // judged frames after which one counts half. Default 50
}

func (r Rules) defaults() Rules {
	r.Frames = cmp.Or(r.Frames, 3)
	r.Share = cmp.Or(r.Share, .6)
	r.HalfLife = cmp.Or(r.HalfLife, 50)
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
	denied []string // whom it is not, whatever verdicts say
}

// NewIdentities returns one that has seen nobody.
func NewIdentities(r Rules) *Identities {
	r = r.defaults()
	return &Identities{rules: r, fade: math.Exp2(-1 / r.HalfLife), people: make(map[int]*evidence)}
}

// Add takes in the verdict on a face of a track.
func (i *Identities) Add(track int, v online.Verdict) {
	e := i.of(track)
	e.frames = i.fade*e.frames + 1
	for name, w := range e.names {
		if e.names[name] = i.fade * w; e.names[name] < 1e-3 {
			delete(e.names, name)
		}
	}
	if v.Label != "" && !slices.Contains(e.denied, v.Label) {
		e.names[v.Label]++
	}
}

func (i *Identities) of(track int) *evidence {
	e := i.people[track]
	if e == nil {
		e = &evidence{names: make(map[string]float64)}
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

// Reset forgets the verdicts on a track: they were made before something was known that changes them.
func (i *Identities) Reset(track int) {
	e := i.of(track)
	e.frames = 0
	clear(e.names)
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

// Who returns what is believed of the tracks that are in view at once. Nobody is two of them: the one for whom more
// speaks is the person, and the other is nobody known.
func (i *Identities) Who(tracks []int) []Belief {
	type claim struct {
		at     int
		name   string
		weight float64
	}
	beliefs := make([]Belief, len(tracks))
	var claims []claim
	for at, id := range tracks {
		e := i.people[id]
		if e == nil || e.frames == 0 {
			continue
		}
		beliefs[at] = Belief{Frames: e.frames, Share: e.nobody() / e.frames}
		if e.frames < i.rules.Frames*.95 { // fading takes a little off the first frames
			continue
		}
		for name, w := range e.names {
			if w >= i.rules.Share*e.frames {
				claims = append(claims, claim{at, name, w})
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
		}
	}
	return beliefs
}
