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

// PastSettings bound a [Past]. The zero value of each field stands for its default.
type PastSettings struct {
	Sightings   journal.Settings // default: 7 days and 256 MB
	Corrections journal.Settings // default: 90 days and 64 MB
	// Clips are the beginnings of sightings as films, a clip 1 MB at most by and large. Default: none are kept, and those
	// of earlier runs are removed; Bytes says how many are.
	Clips journal.Settings
}

// Past keeps what an [Office] has seen, so that it can be corrected, and what was said, so that it can be undone. Get
// one from [OpenPast], and close it when the office has ended.
type Past struct {
	seen    *journal.Store[stay]
	said    *journal.Store[statement]
	clips   *journal.Store[clip] // nil where none are kept
	numbers *journal.Numbers
}

// OpenPast opens what is kept in a folder, and makes it where there is none. The error is that of [journal.Open].
func OpenPast(dir string, s PastSettings) (*Past, error) {
	s.Sightings.Lazy = true // one that a failure of the machine takes away costs little
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

// pastInMemory returns one that ends with the program, with so many sightings.
func pastInMemory(sightings int) *Past {
	p := new(Past)
	p.numbers, _ = journal.OpenNumbers("") // without a file nothing can fail
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

// Kinds of numbers that are reserved.
const (
	faceNumbers     = "face"
	groupNumbers    = "group"
	sightingNumbers = "sighting"
	savedNumber     = "saved" // the last observation that is in the gallery on disk
)

// stay is what is kept of a sighting, but for its faces.
type stay struct {
	Camera string         `json:"camera"`
	First  time.Time      `json:"first"`
	Last   time.Time      `json:"last"`
	Known  string         `json:"known,omitempty"`  // who it was taken for last
	Trust  sighting.Trust `json:"trust,omitempty"`  // the best on which that rested
	Denied []string       `json:"denied,omitempty"` // who it is not, as somebody said
	Wrong  bool           `json:"wrong,omitempty"`  // it was corrected, and nobody has said who it is
	// Learned are the observations that taught something. They count as the learner does: those that the gallery was
	// not saved with mean nothing after a restart.
	Learned ranges   `json:"learned,omitempty"`
	Group   uint64   `json:"group,omitempty"`
	Faces   []uint64 `json:"faces,omitempty"` // numbers of those that are kept
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

// recall gives a past sighting its faces back. One whose faces cannot be read has none.
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

// sound returns the faces that can be of the space.
func (w *Office) sound(faces []unknown.Face) []unknown.Face {
	return slices.DeleteFunc(faces, func(f unknown.Face) bool { return w.gallery.Space().Check(f.Vector) != nil })
}

// store keeps a sighting that has ended.
func (w *Office) store(s *visit) {
	if len(s.album.Faces) == 0 || s.Known == "" && !w.unknown.Keeps() || w.unknown.Ignored(s.Group) {
		return
	}
	body, err := encoding.Marshal(s.album.Faces)
	if err == nil {
		s.Faces = s.pictures()
		err = w.o.Past.seen.Put(s.id, s.Last, s.stay, body)
	}
	w.fail(err)
	if err == nil {
		w.keepClip(s)
	}
	if w.tracks[s.id] = s.track; len(w.tracks) > mostTracks {
		delete(w.tracks, slices.Min(slices.Collect(maps.Keys(w.tracks))))
	}
}

// mostTracks is the number of past sightings whose track is kept: presence asks for the latest alone.
const mostTracks = 256

// pictures returns the numbers of the faces of a sighting.
func (s *visit) pictures() (ids []uint64) {
	for _, f := range s.album.Faces {
		ids = append(ids, f.ID)
	}
	return ids
}

// fail notes what could not be written of the past. It holds in memory, and is tried again.
func (w *Office) fail(err error) {
	if err != nil {
		w.unkept = err
	}
}

// reserve keeps a number from being given twice, also after a crash.
func (w *Office) reserve() {
	face, group := w.unknown.Given()
	n := w.o.Past.numbers
	w.fail(n.Reserve(faceNumbers, face, 10000))
	w.fail(n.Reserve(groupNumbers, group, 0))
	w.fail(n.Reserve(sightingNumbers, w.last, 1000))
}

// begin brings what is kept of the past in line with the gallery and the strangers, which a program that was killed may
// have left a step behind.
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
	w.fail(p.seen.Change(heads))
	said := make(map[uint64]statement)
	for _, id := range p.said.Before(0) {
		r, _ := p.said.Get(id)
		w.turn = max(w.turn, r.Head.UndoneAt)
		if kept, cut := r.Head.Learned.upTo(saved); cut {
			r.Head.Learned = kept
			said[id] = r.Head
		}
	}
	w.fail(p.said.Change(said))
	w.fail(w.unclip())
	w.settle()
}

// expire removes what is too old.
func (w *Office) expire(now time.Time) {
	w.fail(errors.Join(w.o.Past.seen.Expire(now), w.o.Past.said.Expire(now), w.unclip()))
}

// noted says that the gallery was saved.
func (w *Office) noted() error {
	if err := w.o.Past.numbers.Set(savedNumber, uint64(w.gallery.Learner().Counts().Observed)); err != nil {
		return fmt.Errorf("what was learned until now: %w", err)
	}
	return nil
}
