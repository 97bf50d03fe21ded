// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/sighting"
	"github.com/fxamacker/cbor/v2"
)

// PastSettings limit a [Past]. A zero field means the default.
type PastSettings struct {
	Sightings   Limits // default: 7 days and 256 MB
	Corrections Limits // default: 90 days and 64 MB
	// Clips holds the limits for clips: the beginnings of sightings as films, about 1 MB at most each. With Bytes 0,
	// the default, no clips are kept, and those of earlier runs are removed.
	Clips     Limits
	Events    EventLimits
	Strangers StrangerSettings
}

// Past keeps the sightings of an [Office], so that they can be corrected, the corrections, so that they can be undone,
// the events, and the strangers. [OpenPast] opens it; close it when the office has ended.
type Past struct {
	*journal
	seen      *records[stay]
	said      *records[statement]
	clips     *records[clip] // nil if no clips are kept
	groups    *records[groupHead]
	strangers *groups
}

// OpenPast opens the records of the office with a name in the database of a gallery, which must have a path. From now
// on each save of the gallery writes them. The error wraps [ErrBusy] if another program runs an office of this name, or
// comes from the database.
func OpenPast(g *gallery.Gallery, name string, s PastSettings) (*Past, error) {
	j, err := openJournal(g, name, s.Events)
	if err != nil {
		return nil, err
	}
	s.Corrections.Age = cmp.Or(s.Corrections.Age, 90*24*time.Hour)
	s.Corrections.Bytes = cmp.Or(s.Corrections.Bytes, 64<<20)
	p, err := newPast(j, g.Space(), s)
	if err != nil {
		j.Close()
		return nil, err
	}
	return p, nil
}

// NewPast returns a Past in memory, for faces of a space.
func NewPast(space face.Space, s PastSettings) *Past {
	s.Sightings.Records, s.Sightings.Age = cmp.Or(s.Sightings.Records, mostSightings), 1<<62
	s.Corrections = Limits{Records: mostRecent, Age: 1 << 62, Bytes: 32 << 20}
	s.Events.Events, s.Events.Waiting = cmp.Or(s.Events.Events, mostRecent), cmp.Or(s.Events.Waiting, mostRecent)
	p, _ := newPast(newJournal(s.Events), space, s) // no error without a database
	return p
}

// Numbers of events and of corrections, and of sightings, that are kept in memory.
const (
	mostRecent    = 500
	mostSightings = 64
)

func newPast(j *journal, space face.Space, s PastSettings) (p *Past, err error) {
	p = &Past{journal: j, strangers: newGroups(space, s.Strangers)}
	if p.seen, err = openRecords[stay](j, "sighting", s.Sightings); err != nil {
		return nil, err
	}
	if p.said, err = openRecords[statement](j, "correction", s.Corrections); err != nil {
		return nil, err
	}
	if err := p.openClips(s.Clips); err != nil {
		return nil, err
	}
	// the strangers have limits of their own
	p.groups, err = openRecords[groupHead](j, "stranger", Limits{Age: 1 << 62, Bytes: 1 << 62})
	if err != nil {
		return nil, err
	}
	p.strangers.Keep(j.Keeps())
	return p, p.loadStrangers()
}

// groupHead is the record of a group of unknown faces, without its faces.
type groupHead struct {
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Visits  int       `json:"visits"`
	Ignored bool      `json:"ignored,omitempty"`
	Faces   []uint64  `json:"faces"` // their numbers
}

// Mapped implements head.
func (g groupHead) Mapped(func(string, bool) string, int64) (groupHead, bool) { return g, false }

func (g groupHead) equal(h groupHead) bool {
	return g.First.Equal(h.First) && g.Last.Truncate(time.Minute).Equal(h.Last.Truncate(time.Minute)) &&
		g.Visits == h.Visits && g.Ignored == h.Ignored && slices.Equal(g.Faces, h.Faces)
}

func (p *Past) loadStrangers() error {
	var all []Group
	for _, id := range p.groups.Before(0) {
		r, _ := p.groups.Get(id)
		body, err := p.groups.Body(id)
		if err != nil {
			return err
		}
		h := r.Head
		g := Group{ID: id, First: h.First, Last: h.Last, Visits: h.Visits, Ignored: h.Ignored}
		if err := cbor.Unmarshal(body, &g.Album.Faces); err != nil {
			return fmt.Errorf("opening office: stranger %d: %w", id, err)
		}
		all = append(all, g)
	}
	slices.Reverse(all)
	p.strangers.Load(all)
	return nil
}

// noteStrangers makes the records of strangers what the strangers are.
func (p *Past) noteStrangers() error {
	here := make(map[uint64]bool)
	for _, s := range p.strangers.All() {
		here[s.ID] = true
		now := groupHead{s.First, s.Last, s.Visits, s.Ignored, numbers(s.Album.Faces)}
		r, there := p.groups.Get(s.ID)
		switch {
		case there && slices.Equal(r.Head.Faces, now.Faces):
			if !r.Head.equal(now) { // a new time within the minute is no reason to write
				p.groups.Change(map[uint64]groupHead{s.ID: now})
			}
		default:
			body, err := encoding.Marshal(s.Album.Faces)
			if err != nil {
				return err
			}
			p.groups.Put(s.ID, s.Last, now, body)
		}
	}
	for _, id := range p.groups.Before(0) {
		if !here[id] {
			p.groups.Delete(id)
		}
	}
	p.SetKeeps(p.strangers.Keeps())
	return nil
}

// Kinds of reserved numbers.
const (
	groupNumbers    = "stranger"
	sightingNumbers = "sighting"
	turnNumbers     = "correction"
)

// stay is the record of a sighting, without its faces.
type stay struct {
	Camera string         `json:"camera"`
	First  time.Time      `json:"first"`
	Last   time.Time      `json:"last"`
	Known  string         `json:"known,omitempty"`  // the last recognised name
	Trust  sighting.Trust `json:"trust,omitempty"`  // how the name is known, at best
	Denied []string       `json:"denied,omitempty"` // names that a user denied
	Wrong  bool           `json:"wrong,omitempty"`  // corrected without a new name
	// Learned are the observations from which the learner learned, in the learner's count.
	Learned ranges   `json:"learned,omitempty"`
	Group   uint64   `json:"group,omitempty"`
	Faces   []uint64 `json:"faces,omitempty"` // numbers of the kept faces
}

// Mapped implements head.
func (s stay) Mapped(f func(string, bool) string, observed int64) (_ stay, cut bool) {
	s.Known, s.Denied = f(s.Known, true), mapped(s.Denied, f)
	s.Learned, cut = s.Learned.upTo(observed)
	return s, cut
}

// mapped maps names, and leaves out those of forgotten people.
func mapped(names []string, f func(string, bool) string) (all []string) {
	for _, name := range names {
		if name = f(name, false); name != "" {
			all = append(all, name)
		}
	}
	return all
}

var encoding = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.Time = cbor.TimeRFC3339Nano
	m, err := o.EncMode()
	if err != nil {
		panic("office: " + err.Error()) // constants
	}
	return m
}()

// recall reads the faces of a past sighting. It has none if they cannot be read.
func (w *Office) recall(s *visit) {
	body, err := w.o.Past.seen.Body(s.id)
	if err != nil {
		return
	}
	var faces []Face
	if cbor.Unmarshal(body, &faces) == nil {
		s.album.Faces = w.sound(faces)
	}
}

// sound returns the faces that fit the feature space.
func (w *Office) sound(faces []Face) []Face {
	return slices.DeleteFunc(faces, func(f Face) bool { return w.gallery.Space().Check(f.Vector) != nil })
}

// store stores a sighting that has ended.
func (w *Office) store(s *visit) {
	if len(s.album.Faces) == 0 || s.Known == "" && (s.double || !w.unknown.Keeps()) || w.unknown.Ignored(s.Group) {
		return
	}
	body, err := encoding.Marshal(s.album.Faces)
	if err != nil { // only a time beyond the year 9999 has no text
		w.noteFault(err)
		return
	}
	s.Faces = numbers(s.album.Faces)
	w.o.Past.seen.Put(s.id, s.Last, s.stay, body)
	w.keepClip(s)
	if w.tracks[s.id] = s.track; len(w.tracks) > mostTracks {
		delete(w.tracks, slices.Min(slices.Collect(maps.Keys(w.tracks))))
	}
}

// mostTracks is the number of past sightings whose track is kept: presence needs only the latest.
const mostTracks = 256

// reserve reserves numbers, so that no number is used twice, even after a crash.
func (w *Office) reserve() {
	p := w.o.Past
	more := p.Reserve(groupNumbers, w.unknown.Last(), 0)
	more = p.Reserve(sightingNumbers, w.last, 1000) || more
	if p.Reserve(turnNumbers, w.turn, 0); more {
		w.keep(false)
	}
}

// begin continues from the records.
func (w *Office) begin() {
	p := w.o.Past
	w.unknown.Skip(p.Reserved(groupNumbers))
	w.last = max(p.Reserved(sightingNumbers), p.seen.Last())
	w.turn = max(p.Reserved(turnNumbers), p.said.Last())
	w.unclip()
}

// expire removes old records.
func (w *Office) expire(now time.Time) {
	w.o.Past.seen.Expire(now)
	w.o.Past.said.Expire(now)
	w.unclip()
}
