// SPDX-License-Identifier: Apache-2.0

package search

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/fxamacker/cbor/v2"
)

// Recording is the result of scanning a video. It is not valid if the size or time of the file has changed.
type Recording struct {
	Path      string     `cbor:"path"`
	Size      int64      `cbor:"size"`
	Modified  int64      `cbor:"modified"` // in nanoseconds since 1970
	Space     string     `cbor:"space"`
	Sightings []Sighting `cbor:"sightings"`
	Part      *Part      `cbor:"part,omitempty"` // the result so far, if the scan is incomplete; it holds the sightings
}

// Index stores the results of scans, so that each recording is scanned once. They hold faces.
type Index struct {
	cache    *store.Cache // nil: it stores nothing
	Space    face.Space   // of the vectors
	FPS      float64      // scanned frames per second; 0 for all
	Detector string       // name of the detector
	Spare    bool         // detect faces only after movement, or from time to time
}

// kind is the kind of the results in the cache.
const kind = "search"

// saveEvery is the pause between two saves of the result so far.
const saveEvery = 5 * time.Second

// ErrIndex is wrapped if the index cannot be opened or written.
var ErrIndex = errors.New("the index cannot be used")

// Open opens the database of the index at path, and makes it if there is none. The error wraps [ErrIndex]. Close it
// after use.
func (x *Index) Open(path string) (err error) {
	if x.cache, err = store.OpenCache(path); err != nil {
		return fmt.Errorf("opening %s: %w: %w", path, ErrIndex, err)
	}
	return nil
}

// Close closes the index.
func (x *Index) Close() error {
	if x.cache == nil {
		return nil
	}
	return x.cache.Close()
}

// read returns the result of a recording, also an incomplete one. A result that cannot be read, or of another file, is
// none: the recording is scanned again.
func (x *Index) read(key []byte, now Recording) (old Recording, ok bool, err error) {
	body, err := x.cache.Get(key)
	if err != nil {
		return old, false, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	old, ok = decode(body, x.Space)
	return old, ok && old.Path == now.Path && old.Size == now.Size && old.Modified == now.Modified, nil
}

func decode(body []byte, space face.Space) (r Recording, ok bool) {
	if cbor.Unmarshal(body, &r) != nil || r.Space != space.ID {
		return r, false
	}
	for _, s := range r.all() {
		for _, f := range s.Album.Faces {
			if space.Check(f.Vector) != nil {
				return r, false
			}
		}
	}
	return r, true
}

// all returns the sightings, also those of an incomplete scan.
func (r Recording) all() []Sighting {
	if r.Part != nil {
		return append(r.Sightings[:len(r.Sightings):len(r.Sightings)], r.Part.Sightings...)
	}
	return r.Sightings
}

// Recording returns the result for the recording at path. It comes from the index if the file has the same size and
// time as before, and otherwise from scan; then it is stored. Scan gets the result of an interrupted scan, and a
// function that stores the result so far; see [Scan]. The error comes from scan or package fs, or wraps [ErrIndex]. It
// is safe for concurrent use.
func (x *Index) Recording(path string, scan func(from Part, keep func(Part) error) ([]Sighting, error)) (Recording,
	error) {
	r := Recording{Space: x.Space.ID}
	info, err := os.Stat(path)
	if err != nil {
		return r, fmt.Errorf("opening source: %w", err)
	}
	r.Size, r.Modified = info.Size(), info.ModTime().UnixNano()
	if r.Path, err = filepath.Abs(path); err != nil {
		return r, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %g %q %t", r.Path, r.Space, x.FPS, x.Detector, x.Spare))
	key := sum[:]
	var from Part
	var saved time.Time // time of the last saved part
	if x.cache != nil {
		old, ok, err := x.read(key, r)
		switch {
		case err != nil:
			return r, err
		case ok && old.Part == nil:
			old.Path = path
			return old, nil
		case ok:
			from = *old.Part
		}
	}
	r.Sightings, err = scan(from, func(p Part) error {
		if time.Since(saved) < saveEvery {
			return nil
		}
		saved = time.Now()
		so := r
		so.Part = &p
		return x.put(key, so)
	})
	if err == nil {
		err = x.put(key, r)
	}
	r.Path = path
	return r, err
}

func (x *Index) put(key []byte, r Recording) error {
	if x.cache == nil {
		return nil
	}
	body, err := cbor.Marshal(r)
	if err == nil {
		err = x.cache.Put(key, kind, body, time.Now())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return nil
}

// Forget removes from the index the recordings in which somebody looks like one of the faces, because the person is to
// be forgotten. The next search looks through them again. It returns their number. What cannot be read goes, too:
// nobody knows what is in it. Everything else in the database goes in any case.
func (x *Index) Forget(faces [][]float32) (recordings int, err error) {
	_, err = x.cache.Purge(func(of string, body []byte) bool {
		var r Recording
		if of != kind {
			return true // an unfinished replay holds the faces of all its people
		}
		if cbor.Unmarshal(body, &r) == nil && r.Space != x.Space.ID {
			return false // another feature space has no such faces
		}
		r, ok := decode(body, x.Space)
		ok = ok && !r.has(faces, x.Space)
		if !ok {
			recordings++
		}
		return !ok
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return recordings, nil
}

// has reports whether a face of the recording is nearer to one of the faces than to most other people.
func (r Recording) has(faces [][]float32, space face.Space) bool {
	for _, s := range r.all() {
		for _, x := range faces {
			if s.Album.Distance(space, x) < space.ImpostorRadius {
				return true
			}
		}
	}
	return false
}

// Forget removes from the default index of a gallery the recordings in which somebody looks like a person, who is to be
// forgotten, and unfinished replays. It returns the number of these recordings.
func Forget(g *gallery.Gallery, name string) (recordings int, err error) {
	path, err := store.CachePath(g.Path())
	if err != nil { // then nothing has used it either
		return 0, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var faces [][]float32
	for _, l := range g.Learner().Labels() {
		if l.Name == name && !l.Negative {
			faces = append(faces, g.Learner().Vector(l.ID))
		}
	}
	x := Index{Space: g.Space()}
	if err := x.Open(path); err != nil {
		return 0, err
	}
	defer x.Close()
	return x.Forget(faces)
}
