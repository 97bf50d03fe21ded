// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/fxamacker/cbor/v2"
)

// Rows are the people and labels of a gallery, for a program that brings them in line with other
// devices and needs no learner. Programs with a learner follow: at once if they have the gallery
// open, and otherwise when they open it: until one saves, dropped has the labels that are gone and may
// be in its snapshot. The tables shared and touched belong to that program; touched
// has the people whose name or labels have changed, and those who were removed.
// Rows are not safe for concurrent use.
type Rows struct{ g *Gallery }

// OpenRows opens the gallery at path. The error wraps [fs.ErrNotExist] or one of the package.
func OpenRows(path string) (*Rows, error) {
	db, err := store.Open(path, false)
	if err != nil {
		return nil, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	// The learner finds the vectors of the labels in its snapshot, until it has followed.
	err = db.Exec(`create temp trigger kept after delete on label begin
		insert into dropped values(old.id, old.person, old.number, old.rejected, old.vector);
	end`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Rows{&Gallery{db: db, path: path}}, nil
}

// Close closes the database.
func (r *Rows) Close() error { return r.g.Close() }

// Version returns a number that changes when another program has changed the database.
func (r *Rows) Version() (int64, error) { return r.g.db.Version() }

// Int returns the number in the first row of a result, or 0.
func (r *Rows) Int(sql string, args ...any) (int64, error) { return (&Tx{g: r.g}).Int(sql, args...) }

// Look calls do, which sees one state of the database and must not change it.
func (r *Rows) Look(do func(t *Tx) error) error { return r.g.Look(do) }

// Change calls do in one transaction. On error nothing has changed.
func (r *Rows) Change(do func(t *Tx) error) error {
	return r.g.Records(false, func(t *Tx) error {
		err := do(t)
		if err != nil || !t.whole && !t.named {
			return err
		}
		return t.Exec(`insert into meta values('rows', 1) on conflict(key) do update set value = value + 1`)
	})
}

// Space returns the feature space of the gallery, as its last snapshot has it.
func (r *Rows) Space() (space face.Space, err error) {
	err = (&Tx{g: r.g}).Query("select snapshot from learned", func(r Row) error {
		var s struct {
			Space face.Space `cbor:"space"`
		}
		err := cbor.Unmarshal(r.ColumnRawBlob(0), &s)
		space = s.Space
		return err
	})
	if err == nil && space.ID == "" {
		err = fmt.Errorf("gallery %s: nothing was written into it yet", r.g.path)
	}
	return space, err
}

// beside reports whether a program without a learner has removed labels or given names.
func (g *Gallery) beside() (bool, error) {
	was := g.rows
	now, err := (&Tx{g: g}).Int("select value from meta where key = 'rows'")
	if err == nil {
		g.rows = now
	}
	return now != was, err
}

// Away is a person whom another device of the fleet sees.
type Away struct {
	Person int64     `cbor:"person" json:"-"`
	Place  string    `json:"place"` // name of the device
	Since  time.Time `json:"since"`
	Until  time.Time `cbor:"until" json:"-"` // afterwards nothing is known, unless the device has said it again
}

// Elsewhere sets who is at other devices.
func (t *Tx) Elsewhere(all []Away) error {
	b, err := cbor.Marshal(all)
	if err != nil {
		return err
	}
	return t.Exec("insert into meta values('elsewhere', ?) on conflict(key) do update set value = excluded.value", b)
}

// Elsewhere returns who is at another device at the moment at, by number.
func (g *Gallery) Elsewhere(at time.Time) (map[int64]Away, error) {
	there := make(map[int64]Away)
	err := g.Look(func(t *Tx) error {
		return t.Query("select value from meta where key = 'elsewhere'", func(r Row) error {
			var all []Away
			err := cbor.Unmarshal(r.ColumnRawBlob(0), &all)
			for _, a := range all {
				if at.Before(a.Until) && a.Since.After(there[a.Person].Since) {
					there[a.Person] = a
				}
			}
			return err
		})
	})
	return there, err
}

// Known is a person and the faces that are labelled now.
type Known struct {
	Name     string
	Enrolled int64 // seconds since 1970
	Faces    []KnownFace
}

// KnownFace is a label. Its Vector is little-endian float32, the lowest dimension first.
type KnownFace struct {
	Row      int64
	Rejected bool // it is not this person's
	Vector   []byte
}

// Known returns a person, or no name if there is none of the number.
func (t *Tx) Known(person int64) (k Known) {
	t.Query("select name, enrolled from person where id = ?", func(r Row) error {
		k.Name, k.Enrolled = r.ColumnText(0), r.ColumnInt64(1)
		return nil
	}, person)
	t.Query("select id, rejected, vector from label where person = ? and valid order by id", func(r Row) error {
		k.Faces = append(k.Faces, KnownFace{r.ColumnInt64(0), r.ColumnInt64(1) == 1, bytes.Clone(r.ColumnRawBlob(2))})
		return nil
	}, person)
	return k
}

// all runs statements with those of the arguments that they name.
func (t *Tx) all(args []any, statements ...string) error {
	t.whole, t.named, t.gone = true, true, true
	for _, sql := range statements {
		n := len(args)
		for ; n > 0 && !strings.Contains(sql, fmt.Sprint("?", n)); n-- {
		}
		t.Exec(sql, args[:n]...)
	}
	return t.failed
}

// Call gives a person a name that no statement can take back.
func (t *Tx) Call(person int64, name string) error {
	t.all([]any{person}, unnamed...)
	return t.all([]any{person, name}, "update person set name = ?2 where id = ?1")
}

var unnamed = []string{"delete from statement where person = ?1 and kind = 'renamed' and other is null",
	"delete from said where what = 'name' and of = ?1"}

// Held returns the label by which a face is another person's, and that person, or 0.
func (t *Tx) Held(vector []byte, person int64) (row, other int64) {
	t.Query(`select id, person from label where substr(vector, 1, 16) = substr(?1, 1, 16) and not rejected
		and valid and vector = ?1 and person <> ?2`, func(r Row) error {
		row, other = r.ColumnInt64(0), r.ColumnInt64(1)
		return nil
	}, vector, person)
	return row, other
}

// Drop removes labels that another device has taken back, also where an undo would make them valid.
func (t *Tx) Drop(rows ...int64) error {
	const gone = `(select id from label where id = ?1 or not valid and (number, rejected) =
		(select number, rejected from label where id = ?1))`
	for _, row := range rows {
		t.all([]any{row}, "delete from said where what = 'label' and of in "+gone, "delete from label where id in "+gone)
	}
	return t.failed
}

// Merge makes a person another one, whom the events, sightings and labels belong to from now on,
// with what users said of them. It cannot be undone.
func (t *Tx) Merge(from, to int64) error {
	rows, _ := t.Ints("select id from label where person = ? order by id", from)
	for _, row := range rows {
		twice, _ := t.Int(`select 1 from label old join label l on l.person = ? and l.rejected = old.rejected and
			l.vector = old.vector where old.id = ? and old.valid and l.valid`, to, row)
		if twice == 0 {
			t.Exec(`insert into label(number, person, rejected, vector, valid)
				select number, ?, rejected, vector, valid from label where id = ?`, to, row)
			t.Exec("update said set of = ? where what = 'label' and of = ?", t.Last(), row)
		}
		t.all([]any{row}, "delete from said where what = 'label' and of = ?1", "delete from label where id = ?1")
	}
	t.all([]any{from}, unnamed...)
	return t.all([]any{from, to},
		"update sighting set person = ?2 where person = ?1", "update event set person = ?2 where person = ?1",
		"update or ignore present set person = ?2 where person = ?1",
		"update statement set person = ?2 where person = ?1", "update statement set other = ?2 where other = ?1",
		"update said set person = ?2 where person = ?1",
		"update person set enrolled = max(enrolled, (select p.enrolled from person p where p.id = ?1)) where id = ?2",
		"delete from person where id = ?1")
}
