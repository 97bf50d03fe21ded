// SPDX-License-Identifier: Apache-2.0

// Package presence decides who is in a room from who is in view of its cameras, and makes events of
// it: arrivals, departures and unknown people. It reads no clock, no camera and no database.
package presence

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/sighting"
)

// Seen is a face in the latest frame of a camera.
type Seen struct {
	Sighting uint64 `json:"sighting"`
	Box      [4]int `json:"box"` // left, top, right and bottom, in pixels
	sighting.Who
	Share   float64 `json:"share"`            // of the evidence for the name, in [0,1]
	Group   uint64  `json:"group,omitempty"`  // its group of unknown faces
	Ignored bool    `json:"ignored"`          // a user ignores the group
	Zone    string  `json:"zone,omitempty"`   // the zone of the picture in which it is
	Reason  string  `json:"reason,omitempty"` // why this picture was not used
	// enough was seen to say that it is nobody known
	Unknown bool `json:"-"`
}

// Door says what being seen by a camera means for who is here.
type Door string

// Kinds of doors. The empty one is a camera in a room.
const (
	Entrance Door = "entrance" // it sees the faces of people who come in
	Exit     Door = "exit"     // it sees the faces of people who go out
)

// Settings of a room. A zero field means the default.
type Settings struct {
	// Away is the time after which a person who is not seen is no longer in view. Without an
	// entrance they have left. Default 10 s.
	Away time.Duration
	// HomeFor is how long a person stays here unseen where a camera is an [Entrance], unless they
	// were last seen at an [Exit]. Default 16 h.
	HomeFor time.Duration
	// Hold is the longest time that an unseen person counts as present while the camera that saw
	// them last does not work. Default 5 min.
	Hold time.Duration
}

// Defaults returns s with defaults filled in.
func (s Settings) Defaults() Settings {
	s.Away = cmp.Or(s.Away, 10*time.Second)
	s.HomeFor = max(cmp.Or(s.HomeFor, 16*time.Hour), s.Away)
	s.Hold = max(cmp.Or(s.Hold, 5*time.Minute), s.Away)
	return s
}

// Presence is a person in the room.
type Presence struct {
	sighting.Who           // at best, with the nearest face since they came
	Since        time.Time `json:"since"`
	Last         time.Time `json:"last"` // time of the last sighting
	Camera       string    `json:"camera"`
	Zone         string    `json:"zone,omitempty"` // of its picture, when they were last seen
	// Sighting is the number of the sighting with which they came; 0 if it is not known.
	Sighting uint64 `json:"sighting,omitempty"`
	// Unsure is true if the person may have left: the camera that saw them last does not work.
	Unsure bool `json:"unsure,omitempty"`
	InView bool `json:"in_view"` // a camera sees them, or did a moment ago

	unseen   bool // they were out of view, and were not told to be seen since
	restored bool // they are of an earlier run, and were not seen yet
	absence  absence
}

// State is the whole state of a [Room].
type State struct {
	Last   uint64     `json:"last"` // ID of the last event
	People []Presence `json:"people"`
}

// Room decides who is present, and reports arrivals, departures and unknown people, each once and
// with its time. It gets the beliefs about the people in view of each camera, and the time: it
// reads no clock and no camera. State is its whole state: a restarted program continues from it.
// One goroutine may use it at a time. Memory is limited by the number of people, and by the people
// seen within [Settings].Away. After Watch a camera must deliver a frame before its silence counts.
type Room struct {
	s      Settings
	last   uint64
	people map[int64]*Presence
	left   map[int64]time.Time // last sighting of each absent person
	tracks map[uint64]*tracked // by sighting
	groups map[uint64]*absence // of each group of unknown faces that was in view

	cameras  map[string]*watched // cameras after Watch
	doors    map[string]Door
	entrance bool      // one of them is an entrance
	begun    time.Time // the first time of this run
	now      time.Time // the latest time
}

// tracked is a sighting in view of a camera, or a moment ago.
type tracked struct {
	absence
	first  time.Time
	person int64           // who was recognised last
	told   bool            // an Unknown event was reported
	group  uint64          // group of unknown faces
	before map[uint64]bool // groups that were in view when it began: it may go on with one of them
}

// New returns a room that continues from a state. The zero [State] is an empty room.
func New(s Settings, from State) *Room {
	r := &Room{
		s: s.Defaults(), last: from.Last, people: make(map[int64]*Presence),
		left:   make(map[int64]time.Time),
		tracks: make(map[uint64]*tracked), groups: make(map[uint64]*absence),
		cameras: make(map[string]*watched), doors: make(map[string]Door),
	}
	for _, p := range from.People {
		p.Unsure, p.unseen, p.restored = false, true, true
		r.see(&p.absence, p.Camera, p.Last)
		r.people[p.Person] = &p
	}
	return r
}

// Watch adds a camera, which has not delivered a frame yet. A camera without Watch is assumed to
// work all the time.
func (r *Room) Watch(name string, door Door) {
	r.cameras[name], r.doors[name] = &watched{doubts: make(map[uint64]*doubt)}, door
	r.entrance = r.entrance || door == Entrance
}

// stays reports whether a person who is out of view may still be here.
func (r *Room) stays(p *Presence) bool {
	return r.entrance && r.doors[p.Camera] != Exit
}

// Down records that a camera has failed. The next call of See for it ends the failure.
func (r *Room) Down(name string) {
	if c := r.cameras[name]; c != nil {
		c.since, c.failed = moment{}, true
	}
}

// End removes a camera that has ended, such as a recording. Nobody waits for it.
func (r *Room) End(name string) { delete(r.cameras, name) }

// See processes the people in view of a camera at a moment, and returns the events. Open tells of
// the sightings whose faces are in view whether the camera cannot tell yet whose they are: they may
// be those of people who came into view before, and of whom nobody knows then that they are gone.
// Cameras may come in any order; for each person, a time before an earlier one counts as the
// earlier one.
func (r *Room) See(camera string, at time.Time, seen []Seen, open map[uint64]bool) []Event {
	r.look(camera, at, open)
	events := r.Tick(at)
	for _, b := range seen {
		v := r.tracks[b.Sighting]
		if v == nil {
			v = &tracked{first: at, before: r.unnamed(camera, b.Sighting, at, seen)}
			r.tracks[b.Sighting] = v
		}
		v.first = Earlier(v.first, at)
		r.see(&v.absence, camera, at)
		switch {
		case b.Person != 0 && b.Trust == sighting.Likely && r.people[b.Person] == nil:
			v.person = b.Person // neither present nor unknown
		case b.Person != 0:
			events = append(events, r.present(b, camera, v, at)...)
		case b.Unknown && v.person == 0:
			g := r.groups[b.Group]
			there := g != nil || v.before[b.Group]
			if b.Group != 0 && g == nil {
				g = new(absence)
				r.groups[b.Group] = g
			}
			if g != nil {
				r.see(g, camera, at)
			}
			if !v.told && !there {
				events = append(events, r.event(Event{Kind: Unknown, Camera: camera, At: v.first,
					Group: b.Group, Sighting: b.Sighting, Zone: b.Zone}))
			}
			v.told, v.group, v.before = true, b.Group, nil
		}
	}
	r.settle(camera, open)
	return events
}

// unnamed returns the groups of unknown faces with which a new sighting may go on: those in view,
// and those with which a track may have gone on that the camera has lost a few looks ago.
func (r *Room) unnamed(camera string, of uint64, at time.Time, seen []Seen) map[uint64]bool {
	all := make(map[uint64]bool)
	for g, a := range r.groups {
		if !r.gone(a, at, of) {
			all[g] = true
		}
	}
	c := r.cameras[camera]
	for id, v := range r.tracks {
		inView := slices.ContainsFunc(seen, func(x Seen) bool { return x.Sighting == id })
		if c != nil && v.camera == camera && !inView && c.looks-v.seen.look <= leastLooks {
			maps.Copy(all, v.before)
		}
	}
	return all
}

// present records that a person is in view.
func (r *Room) present(b Seen, camera string, v *tracked, at time.Time) []Event {
	v.before = nil
	p, who := r.people[b.Person], b.Who
	who.Near = sighting.Near{}
	var events []Event
	if p == nil {
		// They arrived when the track began. The exceptions: the track was another person's before,
		// or they were seen elsewhere.
		since := v.first
		if v.person != 0 && v.person != b.Person || since.Before(r.left[b.Person]) {
			since = at
		}
		p = &Presence{Who: b.Who, Since: since, Sighting: b.Sighting}
		r.people[b.Person] = p
		events = append(events, r.event(Event{Kind: Arrived, Who: who, Camera: camera,
			At: since, Sighting: b.Sighting, Zone: b.Zone}))
	}
	if p.unseen && r.stays(p) && b.Trust == sighting.Confirmed {
		since := v.first
		if since.Before(p.Last) {
			since = at
		}
		events = append(events, r.event(Event{Kind: Saw, Who: who, Camera: camera, At: since,
			Sighting: b.Sighting, Zone: b.Zone}))
		p.unseen = false
	}
	if b.Trust == sighting.Confirmed {
		p.Trust = b.Trust
	}
	if b.Near.Distance > 0 && (p.Distance == 0 || b.Near.Distance < p.Distance) {
		p.Near = b.Near
	}
	v.person, p.Since = b.Person, Earlier(p.Since, at)
	if !at.Before(p.Last) {
		p.Last, p.Camera, p.Zone = at, camera, b.Zone
		r.see(&p.absence, camera, at)
	}
	p.restored = false
	return events
}

// Tick sets the time, and returns the departures, the first one first.
func (r *Room) Tick(now time.Time) []Event {
	if r.begun.IsZero() {
		r.begun = now
		// the clock may have been set back before the restart, and may be set from now on
		for _, p := range r.people {
			for _, at := range []*time.Time{&p.Since, &p.Last} {
				d := at.Sub(now)
				if d > r.s.Away {
					d = 0
				}
				*at = now.Add(d)
			}
			r.see(&p.absence, p.Camera, p.Last)
		}
	}
	if now.After(r.now) {
		r.now = now
	}
	maps.DeleteFunc(r.groups, func(_ uint64, g *absence) bool { return r.gone(g, now, 0) })
	maps.DeleteFunc(r.tracks, func(_ uint64, v *tracked) bool { return r.gone(&v.absence, now, 0) })
	for _, p := range r.people {
		p.unseen = p.unseen || r.gone(&p.absence, now, 0)
	}
	return r.leave(func(p *Presence) bool { return r.away(p, now) })
}

// away reports whether a person has left.
func (r *Room) away(p *Presence, now time.Time) bool {
	if now.Sub(p.Last) <= r.s.Away {
		return false
	}
	if r.stays(p) {
		return now.Sub(p.Last) > r.s.HomeFor
	}
	held := p.Last
	if p.restored {
		if r.begun.After(held) {
			held = r.begun
		}
		if now.Sub(held) <= r.s.Hold {
			for _, c := range r.cameras { // they may have moved to a camera that did not work
				if !c.failed && !c.missed(moment{at: p.Last}, r.s.Away, 0) {
					return false
				}
			}
		}
	}
	if held.After(p.Last) { // this run has begun since
		c := r.cameras[p.Camera]
		return c == nil || c.missed(moment{at: p.Last}, r.s.Away, 0) || now.Sub(held) > r.s.Hold
	}
	return r.gone(&p.absence, now, 0)
}

// Empty records that no more people will be seen, and returns the departures: of all who do not
// stay out of view.
func (r *Room) Empty() []Event {
	clear(r.tracks)
	clear(r.groups)
	return r.leave(func(p *Presence) bool { return !r.stays(p) })
}

// Earlier returns the earlier of two times by the clock on the wall, which may have been put back
// between them.
func Earlier(a, b time.Time) time.Time {
	if b.Round(0).Before(a.Round(0)) {
		return b
	}
	return a
}

// Retract records that a sighting was recognised as a person by mistake, and that it is another
// one, or 0. If the person came by it, they are not present, unless they were seen by another
// sighting since: other is its number, or 0. The right person is present instead.
func (r *Room) Retract(person, is int64, sighting, other uint64) {
	if v := r.tracks[sighting]; v != nil && v.person == person {
		v.person = 0
	}
	p := r.people[person]
	switch {
	case p == nil || p.Sighting != sighting:
		return
	case other != 0:
		p.Sighting = other
		return
	}
	delete(r.people, person)
	r.left[person] = p.Last
	if is != 0 && r.people[is] == nil {
		p.Person = is // [Room.Follow] knows the name
		r.people[is] = p
	}
}

// Follow takes in what has changed about people. Now tells who somebody is from now on, and the
// name; who is nobody any more, 0, was never here. Who is another person now arrived when the first
// of the two did.
func (r *Room) Follow(now func(person int64) (is int64, name string)) {
	for _, v := range r.tracks {
		v.person, _ = now(v.person)
	}
	left, people := make(map[int64]time.Time), make(map[int64]*Presence)
	for id, at := range r.left {
		is, _ := now(id)
		if is != 0 && at.After(left[is]) {
			left[is] = at
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.people)) {
		p := r.people[id]
		p.Person, p.Name = now(id)
		if p.Person == 0 {
			continue
		}
		q := people[p.Person]
		if q != nil && q.Last.After(p.Last) {
			p, q = q, p
		}
		if q != nil {
			if q.Since.Before(p.Since) {
				p.Since, p.Sighting = q.Since, q.Sighting
			}
			p.restored = p.restored || q.restored
			if q.Trust == sighting.Confirmed {
				p.Trust = q.Trust
			}
		}
		people[p.Person] = p
	}
	r.left, r.people = left, people
}

// leave returns departures of the people for whom has reports true.
func (r *Room) leave(has func(*Presence) bool) []Event {
	var gone []*Presence
	for person, p := range r.people {
		if has(p) {
			gone = append(gone, p)
			delete(r.people, person)
			r.left[person] = p.Last
		}
	}
	slices.SortFunc(gone, func(a, b *Presence) int {
		return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Person, b.Person))
	})
	var events []Event
	for _, p := range gone {
		events = append(events, r.event(Event{Kind: Left,
			Who: sighting.Who{Name: p.Name, Person: p.Person}, Camera: p.Camera, Zone: p.Zone,
			At: p.Last, Sighting: p.Sighting}))
	}
	return events
}

// Strangers returns the number of present people without a name for whom an event was reported.
func (r *Room) Strangers() int {
	n, groups := 0, make(map[uint64]bool)
	for _, v := range r.tracks {
		if v.told && v.person == 0 && !groups[v.group] {
			groups[v.group] = v.group != 0
			n++
		}
	}
	return n
}

// grace is the delay after [Settings].Away before a working camera proves an absence.
const grace = 2 * time.Second

// People returns the people in the room, by number.
func (r *Room) People() []Presence {
	all := r.State().People
	for i, p := range all {
		all[i].InView = r.now.Sub(p.Last) <= r.s.Away+grace
		all[i].Unsure = !all[i].InView && !r.stays(&p)
	}
	return all
}

// State returns the state of r.
func (r *Room) State() State {
	all := make([]Presence, 0, len(r.people))
	for _, person := range slices.Sorted(maps.Keys(r.people)) {
		all = append(all, *r.people[person])
	}
	return State{r.last, all}
}
