// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/office/journal"
	"github.com/faceauth/faceauth/office/unknown"
	"github.com/faceauth/faceauth/sighting"
	"github.com/fxamacker/cbor/v2"
)

// PastSettings limit a [Past]. A zero field means the default.
type PastSettings struct {
	Sightings   journal.Settings // default: 7 days and 256 MB
	Corrections journal.Settings // default: 90 days and 64 MB
	// Clips holds the limits for clips: the beginnings of sightings as films, about 1 MB at most each. With Bytes 0,
	// the default, no clips are kept, and those of earlier runs are removed.
	Clips journal.Settings
}

// Past stores the sightings of an [Office], so that they can be corrected, and the corrections, so that they can be
// undone. [OpenPast] opens it; close it when the office has ended.
type Past struct {
	seen    *journal.Store[stay]
	said    *journal.Store[statement]
	clips   *journal.Store[clip] // nil if no clips are kept
	numbers *journal.Numbers
}

// OpenPast opens the records in a folder, and makes the folder if it is missing. The error comes from [journal.Open].
func OpenPast(dir string, s PastSettings) (*Past, error) {
	s.Sightings.Lazy = true // losing the last sightings in a failure of the machine is acceptable
	s.Corrections.Age = cmp.Or(s.Corrections.Age, 90*24*time.Hour)
	s.Corrections.Bytes = cmp.Or(s.Corrections.Bytes, 64<<20)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := new(Past)
	var err error
	if p.numbers, err = journal.OpenNumbers(filepath.Join(dir, "numbers")); err != nil {
		return nil, err
	}
	if p.seen, err = journal.Open[stay](filepath.Join(dir, "sightings"), s.Sightings); err == nil {
		if p.said, err = journal.Open[statement](filepath.Join(dir, "corrections"), s.Corrections); err == nil {
			if err = p.openClips(dir, s.Clips); err == nil {
				return p, nil
			}
		}
	}
	p.Close()
	return nil, err
}

// pastInMemory returns a Past in memory with a number of sightings.
func pastInMemory(sightings int) *Past {
	p := new(Past)
	p.numbers, _ = journal.OpenNumbers("") // no error without a file
	p.seen, _ = journal.Open[stay]("", journal.Settings{Records: sightings, Age: 1 << 62})
	p.said, _ = journal.Open[statement]("", journal.Settings{Records: mostRecent, Age: 1 << 62, Bytes: 32 << 20})
	return p
}

// Close closes the files.
func (p *Past) Close() (err error) {
	if p.numbers != nil {
		err = p.numbers.Close()
	}
	if p.seen != nil {
		err = errors.Join(err, p.seen.Close())
	}
	if p.said != nil {
		err = errors.Join(err, p.said.Close())
	}
	if p.clips != nil {
		err = errors.Join(err, p.clips.Close())
	}
	return err
}

// Kinds of reserved numbers.
const (
	faceNumbers     = "face"
	groupNumbers    = "group"
	sightingNumbers = "sighting"
	savedNumber     = "saved" // the last observation in the saved gallery
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
	// Learned are the observations from which the learner learned, in the learner's count. Observations after the last
	// save of the gallery are void after a restart.
	Learned ranges   `json:"learned,omitempty"`
	Group   uint64   `json:"group,omitempty"`
	Faces   []uint64 `json:"faces,omitempty"` // numbers of the kept faces
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
	var faces []unknown.Face
	if cbor.Unmarshal(body, &faces) == nil {
		s.album.Faces = w.sound(faces)
	}
}

// sound returns the faces that fit the feature space.
func (w *Office) sound(faces []unknown.Face) []unknown.Face {
	return slices.DeleteFunc(faces, func(f unknown.Face) bool { return w.gallery.Space().Check(f.Vector) != nil })
}

// store stores a sighting that has ended.
func (w *Office) store(s *visit) {
	if len(s.album.Faces) == 0 || s.Known == "" && !w.unknown.Keeps() || w.unknown.Ignored(s.Group) {
		return
	}
	body, err := encoding.Marshal(s.album.Faces)
	if err == nil {
		s.Faces = s.pictures()
		err = w.o.Past.seen.Put(s.id, s.Last, s.stay, body)
	}
	w.noteUnkept(err)
	if err == nil {
		w.keepClip(s)
	}
	if w.tracks[s.id] = s.track; len(w.tracks) > mostTracks {
		delete(w.tracks, slices.Min(slices.Collect(maps.Keys(w.tracks))))
	}
}

// mostTracks is the number of past sightings whose track is kept: presence needs only the latest.
const mostTracks = 256

// pictures returns the numbers of the faces of a sighting.
func (s *visit) pictures() (ids []uint64) {
	for _, f := range s.album.Faces {
		ids = append(ids, f.ID)
	}
	return ids
}

// noteUnkept records an error of writing the past. The data stays in memory and is written later.
func (w *Office) noteUnkept(err error) {
	if err != nil {
		w.unkept = err
	}
}

// reserve reserves numbers on disk, so that no number is used twice, even after a crash.
func (w *Office) reserve() {
	face, group := w.unknown.Given()
	n := w.o.Past.numbers
	w.noteUnkept(n.Reserve(faceNumbers, face, 10000))
	w.noteUnkept(n.Reserve(groupNumbers, group, 0))
	w.noteUnkept(n.Reserve(sightingNumbers, w.last, 1000))
}

// begin brings the past in line with the gallery and the strangers, after a killed program may have left them
// different.
func (w *Office) begin() {
	p := w.o.Past
	w.unknown.Skip(p.numbers.UpTo(faceNumbers), p.numbers.UpTo(groupNumbers))
	w.last = max(p.numbers.UpTo(sightingNumbers), p.seen.Last())
	w.turn = p.said.Last()
	saved := min(int64(p.numbers.UpTo(savedNumber)), w.gallery.Learner().Counts().Observed)
	heads := make(map[uint64]stay)
	for _, id := range p.seen.Before(0) {
		r, _ := p.seen.Get(id)
		if kept, cut := r.Head.Learned.upTo(saved); cut {
			r.Head.Learned = kept
			heads[id] = r.Head
		}
	}
	w.noteUnkept(p.seen.Change(heads))
	said := make(map[uint64]statement)
	for _, id := range p.said.Before(0) {
		r, _ := p.said.Get(id)
		w.turn = max(w.turn, r.Head.UndoneAt)
		if kept, cut := r.Head.Learned.upTo(saved); cut {
			r.Head.Learned = kept
			said[id] = r.Head
		}
	}
	w.noteUnkept(p.said.Change(said))
	w.noteUnkept(w.unclip())
	w.settle()
}

// expire removes old records.
func (w *Office) expire(now time.Time) {
	w.noteUnkept(errors.Join(w.o.Past.seen.Expire(now), w.o.Past.said.Expire(now), w.unclip()))
}

// recordSaved records that the gallery was saved.
func (w *Office) recordSaved() error {
	if err := w.o.Past.numbers.Set(savedNumber, uint64(w.gallery.Learner().Counts().Observed)); err != nil {
		return fmt.Errorf("recording what the saved gallery contains: %w", err)
	}
	return nil
}
