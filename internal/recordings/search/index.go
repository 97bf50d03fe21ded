// SPDX-License-Identifier: Apache-2.0

package search

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/fxamacker/cbor/v2"
)

// Recording is the result of scanning a film, or the pictures of a folder.
type Recording struct {
	Path      string     `cbor:"path"`
	Space     string     `cbor:"space"`
	Stills    int        `cbor:"stills,omitempty"` // photographs in it
	Count     face.Count `cbor:"count"`            // how reading it ended
	Sightings []Sighting `cbor:"sightings"`
}

// Index stores the results of scans, so that each recording is scanned once. They hold faces.
type Index struct {
	mu     sync.Mutex // guards db
	db     *store.DB  // nil: it stores nothing
	Space  face.Space // of the vectors
	Vision eye.Vision // what finds and compares the faces
}

// keeps is how long a result is kept.
const keeps = 366 * 24 * time.Hour

// ErrIndex is wrapped if the index cannot be opened or written.
var ErrIndex = errors.New("the index cannot be used")

// Path returns the path of the default index of a gallery: faceauth/cache.db below $XDG_CACHE_HOME or ~/.cache. It has
// the key of the gallery, if there is one.
func Path(gallery string) (string, error) {
	dir, err := xdg.Cache()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "faceauth", "cache.db")
	if key := store.Key(gallery); key != nil {
		sum := sha256.Sum256(key)
		path = filepath.Join(dir, "faceauth", fmt.Sprintf("cache-%x.db", sum[:4]))
		err = store.SetKey(path, key)
	}
	return path, err
}

// schema of the database of an index.
var schema = store.Schema{Version: 9, Tables: `create table cache(
	key blob primary key,
	at integer not null, -- seconds since 1970
	body blob not null -- CBOR
) strict;`}

// Open opens the database of the index at path, and makes it if there is none, or one of an older version. The error
// wraps [ErrIndex]. Close it after use.
func (x *Index) Open(path string) (err error) {
	x.db, err = store.Open(path, schema, true)
	if errors.Is(err, store.ErrOld) {
		err = os.Remove(path)
		if err == nil {
			x.db, err = store.Open(path, schema, true)
		}
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w: %w", path, ErrIndex, err)
	}
	// A file that changes gets another key, and nobody asks for the old one again.
	return x.with(func() error {
		return x.db.Exec("delete from cache where at < ?", time.Now().Add(-keeps).Unix())
	})
}

// with calls do while no other goroutine uses the database.
func (x *Index) with(do func() error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := do(); err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return nil
}

// Close closes the index.
func (x *Index) Close() error {
	if x.db == nil {
		return nil
	}
	return x.with(x.db.Close)
}

// key returns the key of the result for an item with options: a hash of all on which the result depends.
func (x *Index) key(item footage.Item, o eye.Options) ([]byte, error) {
	type file struct {
		Path           string
		Size, Modified int64
	}
	var files []file
	for _, path := range append(item.Files[:len(item.Files):len(item.Files)], item.Path) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("opening source: %w", err)
		}
		f := file{Path: path}
		f.Path, err = filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			f.Size, f.Modified = info.Size(), info.ModTime().UnixNano()
		}
		files = append(files, f)
	}
	b, err := cbor.Marshal([]any{x.Space.ID, x.Vision, o, files})
	sum := sha256.Sum256(b)
	return sum[:], err
}

// read returns the result for an item. A result that cannot be read is none: the recording is scanned again.
func (x *Index) read(item footage.Item, o eye.Options) (old Recording, ok bool, err error) {
	key, err := x.key(item, o)
	if err != nil || x.db == nil {
		return old, false, err
	}
	err = x.with(func() error {
		return x.db.Query("select body from cache where key = ?", func(r store.Row) error {
			old, ok = decode(r.ColumnRawBlob(0), x.Space)
			return nil
		}, key)
	})
	old.Path = item.Path
	return old, ok, err
}

func decode(body []byte, space face.Space) (r Recording, ok bool) {
	if cbor.Unmarshal(body, &r) != nil || r.Space != space.ID {
		return r, false
	}
	for _, s := range r.Sightings {
		for _, f := range s.Album.Faces {
			if space.Check(f.Vector) != nil {
				return r, false
			}
		}
	}
	return r, true
}

// Recording returns the result for a recording that is looked at with options. It comes from the index if its files, with
// their sizes and times, are in it with the same options, or with all frames, and otherwise from scan; then it is
// stored. The error comes from scan or package fs, or wraps [ErrIndex]. It is safe for concurrent use.
func (x *Index) Recording(item footage.Item, o eye.Options, scan func() (Recording, error)) (Recording, error) {
	r, ok, err := x.read(item, o)
	if err == nil && !ok && o.FPS != 0 {
		all := o
		all.FPS = 0
		r, ok, err = x.read(item, all)
	}
	if err != nil || ok {
		return r, err
	}
	r, err = scan()
	if err != nil {
		return r, err
	}
	r.Path, r.Space = item.Path, x.Space.ID
	return r, x.Keep(item, o, r)
}

// Keep stores the result for a recording that another program than a search has looked at with options. The error wraps
// [ErrIndex], or comes from package fs.
func (x *Index) Keep(item footage.Item, o eye.Options, r Recording) error {
	key, err := x.key(item, o)
	if err != nil || x.db == nil {
		return err
	}
	r.Path, r.Space = item.Path, x.Space.ID
	body, err := cbor.Marshal(r)
	if err != nil {
		return err
	}
	return x.with(func() error {
		return x.db.Exec("insert or replace into cache values(?, ?, ?)", key, time.Now().Unix(), body)
	})
}

// Forget removes from the index the recordings in which somebody looks like one of the faces, because the person is to
// be forgotten. The next search looks through them again. It returns their number. What cannot be read goes, too:
// nobody knows what is in it.
func (x *Index) Forget(faces [][]float32) (recordings int, err error) {
	err = x.with(func() error {
		err := x.db.Write(func() error {
			var keys [][]byte
			err := x.db.Query("select key, body from cache", func(row store.Row) error {
				r, ok := decode(row.ColumnRawBlob(1), x.Space)
				another := r.Space != "" && r.Space != x.Space.ID // another feature space has no such faces
				if !another && (!ok || r.has(faces, x.Space)) {
					keys = append(keys, bytes.Clone(row.ColumnRawBlob(0)))
				}
				return nil
			})
			for _, key := range keys {
				err = errors.Join(err, x.db.Exec("delete from cache where key = ?", key))
			}
			recordings = len(keys)
			if recordings > 0 {
				err = errors.Join(err, x.db.Erasing())
			}
			return err
		})
		if err == nil && recordings > 0 {
			err = x.db.Erase()
			if errors.Is(err, store.ErrBusy) {
				err = nil // another program reads; the next start does it
			}
		}
		return err
	})
	return recordings, err
}

// has reports whether a face of the recording is nearer to one of the faces than to most other people.
func (r Recording) has(faces [][]float32, space face.Space) bool {
	for _, s := range r.Sightings {
		for _, x := range faces {
			if s.Album.Distance(space, x) < space.ImpostorRadius {
				return true
			}
		}
	}
	return false
}

// Forget removes from the default index of a gallery the recordings in which somebody looks like a person, who is to be
// forgotten. It returns the number of these recordings.
func Forget(g *gallery.Gallery, name string) (recordings int, err error) {
	path, err := Path(g.Path())
	if err != nil { // then nothing has used it either
		return 0, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var faces [][]float32
	person := g.Number(name)
	for _, l := range g.Learner().Labels() {
		if l.Person == person && !l.Negative {
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
