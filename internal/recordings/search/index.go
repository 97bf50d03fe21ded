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
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/fxamacker/cbor/v2"
)

// Recording is the result of scanning a film, a series of pictures, or one photograph.
type Recording struct {
	Path      string
	Stills    int        // 1 for a photograph
	Film      bool       // that holds a film, too: see [face.Frame]
	Count     face.Count // how reading it ended
	Sightings []Sighting
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

// Path returns the path of the default index of a gallery: faceauth/cache.db below $XDG_CACHE_HOME
// or ~/.cache. It has the key of the gallery, if there is one.
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
var schema = store.Schema{Version: 11, Tables: `create table cache(
	key blob primary key,
	at integer not null, -- seconds since 1970
	body blob not null -- CBOR
) strict;`}

// Open opens the database of the index at path, and makes it if there is none, or one of an older
// version. The error wraps [ErrIndex]. Close it after use.
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

// keys returns a function that returns the key of the result for files that are looked at with
// options: a hash of all on which the result depends. The folder of a file is not in it, so that a
// folder may be renamed. The error comes from package fs.
func (x *Index) keys(o eye.Options) func(files ...string) ([]byte, error) {
	o.Roots, o.Files, o.From = nil, nil, 0
	how, failed := cbor.Marshal([]any{x.Space.ID, x.Vision, o})
	return func(files ...string) ([]byte, error) {
		sum := sha256.New()
		sum.Write(how)
		for _, path := range files {
			info, err := os.Stat(path)
			if err != nil {
				return nil, input.Unopened(path, err)
			}
			at := info.ModTime().UnixNano()
			fmt.Fprintf(sum, "%q %d %d\n", filepath.Base(path), info.Size(), at)
			if info.ModTime().Nanosecond() == 0 {
				sum.Write(part(path, info.Size()))
			}
		}
		return sum.Sum(nil), failed
	}
}

// part returns bytes from the middle of a file. Archives and some disks round times to seconds:
// then pictures of several folders that have one size and one name, as those of data sets, are told
// apart by what is in them.
func part(path string, size int64) []byte {
	f, err := safefile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, max(0, size/2-int64(len(b))/2))
	return b[:n]
}

// filesOf returns the files of a film, or of a series.
func filesOf(item footage.Item) []string {
	if item.Files == nil {
		return []string{item.Path}
	}
	return item.Files
}

// read returns the results for keys, nil where there is none. One that cannot be read is none: it
// is looked at again.
func (x *Index) read(keys ...[]byte) ([]*Recording, error) {
	all := make([]*Recording, len(keys))
	if x.db == nil {
		return all, nil
	}
	bodies := make([][]byte, len(keys))
	err := x.with(func() error {
		for i, key := range keys {
			err := x.db.Query("select body from cache where key = ?", func(r store.Row) error {
				bodies[i] = bytes.Clone(r.ColumnRawBlob(0))
				return nil
			}, key)
			if err != nil {
				return err
			}
		}
		return nil
	})
	for i, b := range bodies {
		old, err := decode(b, x.Space)
		if err == nil {
			all[i] = &old
		}
	}
	return all, err
}

// Recording returns the result for a film or a series that is looked at with options. It comes from
// the index if its files, with their sizes and times, are in it with the same options, or with all
// frames, and otherwise from scan; then it is stored. The error comes from scan or package fs, or
// wraps [ErrIndex]. It is safe for concurrent use.
func (x *Index) Recording(item footage.Item, o eye.Options,
	scan func() (Recording, error)) (Recording, error) {
	whole := o
	whole.FPS = 0
	var keys [][]byte
	for _, o := range []eye.Options{o, whole} {
		key, err := x.keys(o)(filesOf(item)...)
		if err != nil {
			return Recording{}, err
		}
		keys = append(keys, key)
	}
	known, err := x.read(keys...)
	if err != nil {
		return Recording{}, err
	}
	for _, r := range known {
		if r != nil {
			r.Path = item.Path
			return *r, nil
		}
	}
	r, err := scan()
	if err != nil {
		return r, err
	}
	r.Path = item.Path
	return r, x.write(keys[:1], []Recording{r})
}

// Keep stores the result for a film or a series that another program than a search has looked at
// with options. The error wraps [ErrIndex], or comes from package fs.
func (x *Index) Keep(item footage.Item, o eye.Options, r Recording) error {
	key, err := x.keys(o)(filesOf(item)...)
	if err != nil {
		return err
	}
	r.Path = item.Path
	return x.write([][]byte{key}, []Recording{r})
}

// Photographs are what the index knows of pictures that are looked at one by one.
type Photographs struct {
	Known map[string]Recording // by path
	Rest  []string             // the others, in order

	index *Index
	keys  map[string][]byte // of the others
}

// Photographs returns what the index knows of pictures that are looked at with options. The error
// wraps [ErrIndex]. It is safe for concurrent use.
func (x *Index) Photographs(files []string, o eye.Options) (Photographs, error) {
	o.FPS, o.Spare = 0, false // each is looked at as it is
	p := Photographs{Known: map[string]Recording{}, index: x, keys: map[string][]byte{}}
	keys, key := make([][]byte, len(files)), x.keys(o)
	for i, f := range files {
		keys[i], _ = key(f) // opening a file that is gone says why
	}
	known, err := x.read(keys...)
	if err != nil {
		return p, err
	}
	for i, r := range known {
		if r == nil {
			p.Rest, p.keys[files[i]] = append(p.Rest, files[i]), keys[i]
			continue
		}
		r.Path = files[i]
		p.Known[r.Path] = *r
	}
	return p, nil
}

// Keep stores the results for pictures of which nothing was known. The error wraps [ErrIndex].
func (p Photographs) Keep(found []Recording) error {
	var keys [][]byte
	var all []Recording
	for _, r := range found {
		key := p.keys[r.Path]
		if key != nil {
			keys, all = append(keys, key), append(all, r)
		}
	}
	return p.index.write(keys, all)
}

// write stores results by their keys.
func (x *Index) write(keys [][]byte, all []Recording) error {
	if x.db == nil || len(all) == 0 {
		return nil
	}
	var bodies [][]byte
	for _, r := range all {
		b, err := encode(r, x.Space)
		if err != nil {
			return err
		}
		bodies = append(bodies, b)
	}
	return x.with(func() error {
		return x.db.Write(func() error {
			for i, b := range bodies {
				err := x.db.Exec("insert or replace into cache values(?, ?, ?)", keys[i],
					time.Now().Unix(), b)
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Forget removes from the index the recordings in which somebody looks like one of the faces,
// because the person is to be forgotten. The next search looks through them again. It returns their
// number. What cannot be read goes, too: nobody knows what is in it.
func (x *Index) Forget(faces [][]float32) (recordings int, err error) {
	err = x.with(func() error {
		err := x.db.Write(func() error {
			var keys [][]byte
			err := x.db.Query("select key, body from cache", func(row store.Row) error {
				r, err := decode(row.ColumnRawBlob(1), x.Space)
				// another feature space has no such faces
				if err != errSpace && (err != nil || r.has(faces, x.Space)) {
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

// has reports whether a face of the recording is nearer to one of the faces than to most other
// people.
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

// Forget removes from the default index of a gallery the recordings in which somebody looks like a
// person, who is to be forgotten. It returns the number of these recordings.
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
