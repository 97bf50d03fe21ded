// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// mostUnsaved is the number of learned faces that a gallery can learn again on top of another
// program's: 40 MB.
const mostUnsaved = 20000

// New returns an empty gallery in memory, for a feature space. Close it after use. The error comes
// from [online.New].
func New(space face.Space, s online.Settings) (*Gallery, error) { return Create("", space, s) }

// Create makes an empty gallery at path, with its folder. The error wraps [fs.ErrExist] if there is
// one, or comes from [online.New] or the database.
func Create(path string, space face.Space, s online.Settings) (*Gallery, error) {
	l, err := online.New(space, s)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(path, schema, true)
	if err != nil {
		return nil, explained("making", path, err)
	}
	g := made(db, *l)
	err = g.Rows().Write(false, func(t *Tx) error {
		n, err := t.Int("select count(*) from learned")
		if err == nil && n > 0 {
			err = explained("making", path, fs.ErrExist)
		}
		return cmp.Or(err, t.save())
	})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func made(db *store.DB, l online.Learner) *Gallery {
	g := &Gallery{db: db, path: db.Path(), learner: l, labels: make(map[int64]int64)}
	// so that it can be learned again on top of another program's faces
	g.learner.OnLearned(func(t online.Taught) {
		g.unsaved = append(g.unsaved[max(0, len(g.unsaved)+1-mostUnsaved):], t)
	})
	return g
}

// Open opens the gallery at path, which must be of the given space. If the space has measured false
// match rates, they replace the rates stored in the gallery ([online.Learner.SetMeasured]). Close
// it after use.
//
// The error wraps [fs.ErrNotExist], [ErrSpace], or one of the errors above.
func Open(path string, space face.Space) (*Gallery, error) {
	g, err := Read(path)
	if err != nil {
		return nil, err
	}
	if err := g.takes(space); err != nil {
		g.Close()
		return nil, explained("opening", path, err)
	}
	return g, nil
}

// takes gives the learner the rates that were measured of its space. The error is [ErrSpace] for
// another space.
func (g *Gallery) takes(space face.Space) error {
	if g.Space().ID != space.ID {
		return fmt.Errorf("%w: %s", ErrSpace, space.Mismatch(g.Space().ID))
	}
	if space.Stills.Measured() {
		return g.learner.SetMeasured(space)
	}
	return nil
}

// Read opens the gallery at path, of any space. It has the errors of [Open], except [ErrSpace].
func Read(path string) (*Gallery, error) {
	db, err := store.Open(path, schema, false)
	if err != nil {
		return nil, explained("opening", path, err)
	}
	g := made(db, online.Learner{})
	err = db.Read((&Tx{g: g}).load)
	if err != nil {
		return nil, explained("opening", path, errors.Join(err, g.Close()))
	}
	return g, nil
}

// SetKey gives the gallery at path a key of 32 bytes, drawn at random. It encrypts the database and
// its log whenever this process opens or makes it. Without a key, which is nil, they are not
// encrypted. A gallery that exists keeps its key: faceauth backup --new-key makes a copy with
// another one.
func SetKey(path string, key []byte) error { return store.SetKey(path, key) }

// Close closes the database. What was not saved is lost, and changes give [ErrClosed].
func (g *Gallery) Close() error { return g.db.Close() }

// OfficeLock returns the path of the file that the office of a name locks while it runs.
func OfficeLock(gallery, name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-office-%x", gallery, sum[:4])
}
