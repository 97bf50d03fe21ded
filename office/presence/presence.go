// SPDX-License-Identifier: Apache-2.0

// Package presence says who is in a room: who has come, who has gone, and that somebody unknown is there, each once and
// with the time at which it happened.
//
// A [Room] is told what is believed of the people in view of each camera, and what time it is. It reads no clock and no
// camera, and [Room.State] is all that it knows: a program that is started again goes on from it.
//
// # Cameras that fail
//
// A camera that is announced with [Room.Watch] must look before its silence says anything. A person has left when the
// camera that saw them last has looked for [Settings].Away without them, or when they were not seen for
// [Settings].Hold. Until then they are there, and [Person].Unsure says that nobody knows. After a restart nobody has
// left before all cameras have looked, but those that have failed.
package presence

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/sighting"
)

// Kind says what has happened.
type Kind string

// Kinds of events.
const (
	Arrived Kind = "arrived"
	Left    Kind = "left"
	Unknown Kind = "unknown" // somebody whom nobody has named is in view
	Mistake Kind = "mistake" // who was said to have arrived was somebody else
)

// Event is something that has happened in a room.
type Event struct {
	ID     uint64 `json:"id"` // counts from 1; a later event has a larger one, also after a restart
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`
	Group  uint64 `json:"group,omitempty"` // of unknown faces, where one is kept
	Camera string `json:"camera"`          // that saw it: of one who left, the last
	// Trust says on what it rests that somebody has arrived: sighting.Confirmed, unless [Settings].Learned is set.
	Trust sighting.Trust `json:"trust,omitempty"`
	At    time.Time      `json:"at"` // when it happened, which is before it was known; of a mistake, the time of the arrival that was none
	// Known is when it was known: the face of one who has arrived is theirs from At on.
	Known time.Time `json:"known,omitzero"`
}

// Settings of a [Room]. The zero value of each field stands for its default.
type Settings struct {
	Away   time.Duration // after which one who is not seen has left. Default 10 s
	Judged float64       // frames of somebody unknown until that is an event. Default 25
	// Hold is the longest time after the last sight in which a person counts as there, while the camera that saw them
	// does not look. Default 5 min.
	Hold time.Duration
	// Learned has people arrive whom nothing but what was learned speaks for. Otherwise they stay, where they are already
	// there, and do not arrive.
	Learned bool
}

// Defaults returns s with defaults filled in.
func (s Settings) Defaults() Settings {
	s.Away = cmp.Or(s.Away, 10*time.Second)
	s.Judged = cmp.Or(s.Judged, 25)
	s.Hold = max(cmp.Or(s.Hold, 5*time.Minute), s.Away)
	return s
}

// Person is one who is in the room.
type Person struct {
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`
	Last   time.Time `json:"last"` // when they were seen last
	Camera string    `json:"camera"`
	// Trust is the best of all that their being there rests on.
	Trust sighting.Trust `json:"trust,omitempty"`
	// Unsure says that nobody knows whether they are still there: the camera that saw them last does not look.
	Unsure bool `json:"unsure,omitempty"`
}

// State is what a [Room] knows.
type State struct {
	Last   uint64   `json:"last"` // ID of the last event
	People []Person `json:"people"`
}

// Seen is what is believed of one track of a camera.
type Seen struct {
	Track int
	sighting.Belief
	Group uint64 // of unknown faces to which they belong; 0 for none
}

// Room is used by one goroutine at a time. Memory is bounded by the number of names, and by who was seen within
// [Settings].Away. Make one with [New].
type Room struct {
	s      Settings
	last   uint64
	people map[string]*Person
	left   map[string]time.Time // when those were last there who are not
	gone   map[string]time.Time // the same, of those who have left
	tracks map[place]*visit
	groups map[uint64]time.Time // when unknown people were seen last

	cameras  map[string]*camera // those that were announced
	restored map[string]bool    // people of an earlier run whom this one has not seen yet
	begun    time.Time          // when this run was told the time first
	now      time.Time          // the latest time that was told
}

// camera is one that was announced.
type camera struct {
	since  time.Time // from when on it has looked without a gap; zero while it does not look
	last   time.Time // when it looked last
	failed bool
}

// looked reports whether a camera has looked for longer than that without a gap after a moment.
func (c *camera) looked(after time.Time, away time.Duration) bool {
	if c.since.IsZero() {
		return false
	}
	if c.since.After(after) {
		after = c.since
	}
	return c.last.Sub(after) > away
}

// place is a track of a camera.
type place struct {
	camera string
	track  int
}

// visit is somebody in view of a camera.
type visit struct {
	first, last time.Time
	name        string // as whom they were seen last
	told        bool   // that they are unknown
	group       uint64 // of unknown faces
}

// New returns a room that goes on from a state; the zero State is that of an empty room.
func New(s Settings, from State) *Room {
	r := &Room{
		s: s.Defaults(), last: from.Last, people: make(map[string]*Person),
		left: make(map[string]time.Time), gone: make(map[string]time.Time),
		tracks: make(map[place]*visit), groups: make(map[uint64]time.Time),
		cameras: make(map[string]*camera), restored: make(map[string]bool),
	}
	for _, p := range from.People {
		p.Unsure = false
		r.people[p.Name], r.restored[p.Name] = &p, true
	}
	return r
}

// Watch announces a camera, which does not look yet. One that was never announced is taken to look all the time.
func (r *Room) Watch(name string) {
	if r.cameras[name] == nil {
		r.cameras[name] = new(camera)
	}
}

// Down says that a camera that was announced has failed. It looks again with the next call of [Room.See].
func (r *Room) Down(name string) {
	if c := r.cameras[name]; c != nil {
		c.since, c.failed = time.Time{}, true
	}
}

// End says that a camera will look no more, as a recording that has ended. Nobody waits for it.
func (r *Room) End(name string) { delete(r.cameras, name) }

// See takes in what a camera sees at a moment, and returns what has happened. Cameras may be told of in any order; a
// time before one that was told of for the same person counts as that one.
func (r *Room) See(camera string, at time.Time, seen []Seen) []Event {
	if c := r.cameras[camera]; c != nil {
		if c.since.IsZero() || at.Sub(c.last) > r.s.Away {
			c.since = at
		}
		if at.After(c.last) {
			c.last = at
		}
		c.failed = false
	}
	events := r.Tick(at)
	for _, b := range seen {
		v := r.visit(place{camera, b.Track}, at)
		switch {
		case b.Name != "" && b.Trust == sighting.Learned && !r.s.Learned && r.people[b.Name] == nil:
			v.name = b.Name // who is said neither to be there nor to be unknown
		case b.Name != "":
			events = append(events, r.present(b.Belief, camera, v, at)...)
		case b.Frames >= r.s.Judged && v.name == "":
			_, there := r.groups[b.Group]
			if b.Group != 0 {
				r.groups[b.Group] = at
			}
			if !v.told && !there {
				e := r.event(Unknown, "", camera, v.first)
				e.Group = b.Group
				events = append(events, e)
			}
			v.told, v.group = true, b.Group
		}
	}
	return events
}

// visit returns what is known of a track, which is in view now.
func (r *Room) visit(p place, at time.Time) *visit {
	v := r.tracks[p]
	if v == nil {
		v = &visit{first: at}
		r.tracks[p] = v
	}
	v.last = at
	return v
}

// present notes that a person is in view.
func (r *Room) present(b sighting.Belief, camera string, v *visit, at time.Time) []Event {
	name := b.Name
	p := r.people[name]
	var events []Event
	if p == nil {
		// They came when the track did, but for one that was somebody else's, or when they were elsewhere, before.
		since := v.first
		if v.name != "" && v.name != name || since.Before(r.left[name]) {
			since = at
		}
		p = &Person{Name: name, Since: since, Trust: b.Trust}
		r.people[name] = p
		e := r.event(Arrived, name, camera, since)
		e.Trust = b.Trust
		events = append(events, e)
	}
	if b.Trust == sighting.Confirmed {
		p.Trust = b.Trust
	}
	v.name = name
	if !at.Before(p.Last) {
		p.Last, p.Camera = at, camera
	}
	delete(r.restored, name)
	return events
}

// Tick says what time it is, and returns who has left, the first first.
func (r *Room) Tick(now time.Time) []Event {
	if r.begun.IsZero() {
		r.begun = now
	}
	if now.After(r.now) {
		r.now = now
	}
	maps.DeleteFunc(r.groups, func(_ uint64, last time.Time) bool { return now.Sub(last) > r.s.Away })
	maps.DeleteFunc(r.tracks, func(_ place, v *visit) bool { return now.Sub(v.last) > r.s.Away })
	return r.leave(func(p *Person) bool { return r.away(p, now) })
}

// away reports whether a person has left.
func (r *Room) away(p *Person, now time.Time) bool {
	if now.Sub(p.Last) <= r.s.Away {
		return false
	}
	held := p.Last
	if r.restored[p.Name] {
		if r.begun.After(held) {
			held = r.begun
		}
		if now.Sub(held) <= r.s.Hold {
			for _, c := range r.cameras { // they may have gone from one to another while nobody looked
				if !c.failed && !c.looked(p.Last, r.s.Away) {
					return false
				}
			}
		}
	}
	c := r.cameras[p.Camera]
	return c == nil || c.looked(p.Last, r.s.Away) || now.Sub(held) > r.s.Hold
}

// Empty says that nobody will be seen any more, and returns who has left.
func (r *Room) Empty() []Event {
	clear(r.tracks)
	clear(r.groups)
	return r.leave(func(*Person) bool { return true })
}

// Retract says that a track was taken for a person by mistake, and returns what is to be said of it: that they are not
// there, unless they are seen elsewhere, as elsewhere says.
func (r *Room) Retract(name, camera string, track int, elsewhere bool) []Event {
	if v := r.tracks[place{camera, track}]; v != nil && v.name == name {
		v.name = ""
	}
	p := r.people[name]
	if p == nil || elsewhere {
		return nil
	}
	delete(r.people, name)
	delete(r.restored, name)
	r.left[name] = p.Last
	return []Event{r.event(Mistake, name, p.Camera, p.Since)}
}

// Leave says that nobody of that name will be seen any more, and returns what is to be said of it.
func (r *Room) Leave(name string) []Event {
	for _, v := range r.tracks {
		if v.name == name {
			v.name = ""
		}
	}
	events := r.leave(func(p *Person) bool { return p.Name == name })
	delete(r.left, name)
	delete(r.gone, name)
	delete(r.restored, name)
	return events
}

// leave has those leave who have gone.
func (r *Room) leave(has func(*Person) bool) []Event {
	var gone []*Person
	for name, p := range r.people {
		if has(p) {
			gone = append(gone, p)
			delete(r.people, name)
			delete(r.restored, name)
			r.left[name], r.gone[name] = p.Last, p.Last
		}
	}
	slices.SortFunc(gone, func(a, b *Person) int { return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Name, b.Name)) })
	var events []Event
	for _, p := range gone {
		events = append(events, r.event(Left, p.Name, p.Camera, p.Last))
	}
	return events
}

func (r *Room) event(k Kind, name, camera string, at time.Time) Event {
	r.last++
	return Event{ID: r.last, Kind: k, Name: name, Camera: camera, At: at, Known: r.now}
}

// Remember says when somebody left, in an earlier run.
func (r *Room) Remember(name string, at time.Time) {
	if at.After(r.gone[name]) {
		r.gone[name] = at
	}
}

// LastSeen returns when those were last there who have left, by name.
func (r *Room) LastSeen() map[string]time.Time {
	all := maps.Clone(r.gone)
	maps.DeleteFunc(all, func(name string, _ time.Time) bool { return r.people[name] != nil })
	return all
}

// Strangers returns how many people are there whom nobody has named, and who were told of.
func (r *Room) Strangers() int {
	n, groups := 0, make(map[uint64]bool)
	for _, v := range r.tracks {
		if v.told && v.name == "" && !groups[v.group] {
			groups[v.group] = v.group != 0
			n++
		}
	}
	return n
}

// moment is how much later than [Settings].Away a camera that looks may say that somebody is not there.
const moment = 2 * time.Second

// People returns who is in the room, in lexical order.
func (r *Room) People() []Person {
	all := r.State().People
	for i := range all {
		all[i].Unsure = r.now.Sub(all[i].Last) > r.s.Away+moment
	}
	return all
}

// State returns what r knows.
func (r *Room) State() State {
	all := make([]Person, 0, len(r.people))
	for _, name := range slices.Sorted(maps.Keys(r.people)) {
		all = append(all, *r.people[name])
	}
	return State{r.last, all}
}
