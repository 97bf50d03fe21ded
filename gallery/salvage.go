// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

// Salvaged says what [Salvage] has read.
type Salvaged struct {
	Pages    int  `json:"pages"`   // of the damaged gallery
	Damaged  int  `json:"damaged"` // pages that cannot be read, or are empty
	People   int  `json:"people"`
	Faces    int  `json:"faces"`    // labelled and rejected ones
	Nameless int  `json:"nameless"` // faces that are lost because the name of their person is
	Nobody   int  `json:"nobody"`   // people who are lost because all their faces are
	Learned  bool `json:"learned"`  // learned faces and settings came over, too
}

// lost is a face or a person in a damaged gallery.
type lost struct {
	number   int64
	person   int64
	rejected bool
	vector   []byte
	entry
}

// Salvage reads the people and the faces that can be read in the damaged gallery from, and writes them into a new
// gallery at to. It takes in what was learned if all of it can be read. The space is that of the faces, if the damaged
// gallery does not say so. The key of to encrypts it ([SetKey]). From is never changed, and no program may use it
// meanwhile. On error there is no file at to; if there was one, the error wraps [fs.ErrExist].
func Salvage(from, to string, space face.Space) (s Salvaged, err error) {
	if _, err := os.Lstat(to); err == nil {
		return s, fmt.Errorf("%s exists (%w); name another file", to, fs.ErrExist)
	}
	people, faces := make(map[int64]lost), make(map[int64]lost)
	var learned []any
	s.Pages, s.Damaged, err = store.Salvage(from, func(row int64, v []any) {
		kind := ""
		for _, x := range v {
			kind += fmt.Sprintf("%T ", x)
		}
		switch kind {
		case "<nil> string int64 int64 <nil> ": // columns of table person, of face, and of learned
			people[row] = lost{entry: entry{name: v[1].(string), enrolled: v[2].(int64), upright: v[3].(int64)}}
		case "<nil> int64 int64 int64 []uint8 ":
			if b := v[4].([]byte); len(b) > 0 && len(b)%4 == 0 && v[3].(int64)>>1 == 0 {
				faces[row] = lost{number: v[1].(int64), person: v[2].(int64), rejected: v[3] == int64(1), vector: b}
			}
		case "<nil> int64 []uint8 []uint8 ":
			if row == 1 {
				learned = v
			}
		}
	})
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", from, err)
	}
	for id, f := range faces {
		if _, there := people[f.person]; !there {
			s.Nameless++
			delete(faces, id)
		}
	}
	if len(faces) == 0 {
		return s, fmt.Errorf("reading %s: no face of a person can be read in its %d pages, of which %d are damaged or "+
			"empty", from, s.Pages, s.Damaged)
	}
	made, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+"-new-") // mode 0700
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(made)
	path := filepath.Join(made, "gallery")
	if err := store.SetKey(path, store.Key(to)); err != nil {
		return s, err
	}
	if learned != nil {
		s.Learned = revive(path, people, faces, learned) == nil
	}
	if !s.Learned {
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return s, err
			}
		}
		if err := begin(path, people, faces, learned, space); err != nil {
			return s, err
		}
	}
	g, err := Read(path)
	if err != nil {
		return s, err
	}
	defer g.Close()
	s.People, s.Faces = len(g.People()), len(g.Learner().Labels())
	s.Nobody = len(people) - s.People
	return s, g.db.Backup(to)
}

// revive writes all records into a new gallery, as they were.
func revive(path string, people, faces map[int64]lost, learned []any) error {
	d, err := store.Open(path, true)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Write(func() error {
		for id, p := range people {
			if err := d.Exec("insert into person(id, name, enrolled, upright) values(?, ?, ?, ?)", id, p.name,
				p.enrolled, p.upright); err != nil {
				return err
			}
		}
		for id, f := range faces {
			if err := d.Exec("insert into face(id, number, person, rejected, vector) values(?, ?, ?, ?, ?)", id,
				f.number, f.person, f.rejected, f.vector); err != nil {
				return err
			}
		}
		if err := d.Exec("insert into number select 'face', max(number) from face"); err != nil {
			return err
		}
		return d.Exec("insert into learned values(1, ?, ?, ?)", learned[1:]...)
	})
	if err != nil {
		return err
	}
	g, err := Read(path)
	if err != nil {
		return err
	}
	return g.Close()
}

// begin makes a new gallery of people and faces. If it can, it takes the space and the settings from what was learned.
func begin(path string, people, faces map[int64]lost, learned []any, space face.Space) error {
	var settings online.Settings
	if learned != nil {
		var l online.Learner
		some := func(int64) []float32 { // only the space and the settings are wanted
			for _, f := range faces {
				return vector.Floats(f.vector)
			}
			return nil
		}
		if l.UnmarshalLearned(learned[3].([]byte), some) == nil {
			space, settings = l.Space(), l.Settings()
		}
	}
	g, err := New(space, settings)
	if err != nil {
		return err
	}
	defer g.Close()
	for _, rejected := range []bool{false, true} {
		for _, row := range slices.Sorted(maps.Keys(faces)) {
			f := faces[row]
			p := people[f.person]
			if f.rejected != rejected {
				continue
			}
			x := vector.Floats(f.vector)
			if space.Check(x) != nil {
				continue
			}
			if rejected {
				if !g.learner.Knows(p.name) {
					continue
				}
				err = g.learner.Reject(x, p.name)
			} else {
				err = g.Label(p.name, [][]float32{x}, time.Unix(p.enrolled, 0))
			}
			if err != nil {
				return err
			}
		}
	}
	for _, p := range people {
		if now := g.person(p.name); now != nil {
			p.date(now)
		}
	}
	return g.Save(path)
}
