// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

// Tx is a transaction on the rows of a gallery. The learner follows the rows at [Tx.Follow], and before the commit. After
// an error of the database its methods do nothing and return that error, and it is not committed: a caller may do
// several steps and look at the last error only.
type Tx struct {
	g         *Gallery
	changed   bool    // labels have changed otherwise than by new ones, or names
	gone      bool    // something was deleted of which no trace may stay
	ahead     bool    // the learner is ahead of the database
	anew      bool    // what was learned must be written, even if it has not changed
	saved     saved   // what is written of the learner; no generation: nothing
	made      []int64 // new labels
	withdrawn []int64 // rejected faces that they have made wrong
	failed    error   // the first error of the database
}

// Row is a row of a result. The bytes of a blob are valid until the next row.
type Row interface {
	ColumnInt64(column int) int64
	ColumnFloat(column int) float64
	ColumnText(column int) string
	ColumnRawBlob(column int) []byte
}

// Change brings g in line with the database, calls do, lets the learner follow the rows, and commits: other programs
// see all of it or nothing. What was learned until then is saved, too. On error nothing has changed; the error is that
// of do, or comes from the database. Within do, other changes of g are part of the same transaction.
func (g *Gallery) Change(do func(t *Tx) error) error { return g.transact(true, false, do) }

// Records calls do in a transaction, without what was learned. Lazily does not wait for the disk: the end of the program
// loses nothing, and a failure of the machine may lose the last seconds. Do must not change people or labels.
func (g *Gallery) Records(lazily bool, do func(t *Tx) error) error {
	return g.transact(false, lazily, do)
}

func (g *Gallery) transact(learned, lazily bool, do func(t *Tx) error) error {
	switch {
	case g.tx != nil:
		return do(g.tx)
	case g.db == nil:
		return ErrClosed
	}
	write := g.db.Write
	if lazily {
		write = g.db.WriteLazily
	}
	t := &Tx{g: g}
	var said error // by do: other errors come from the database
	err := write(func() error {
		if learned {
			if err := g.align(); err != nil {
				return err
			}
		}
		g.tx = t
		said = cmp.Or(do(t), t.failed)
		g.tx = nil
		if said != nil {
			return said
		}
		if !learned && t.changed { // other programs' learners follow
			t.Exec("insert into meta values('rows', 1) on conflict(key) do update set value = value + 1")
		}
		if learned && t.Follow() == nil {
			t.failed = t.save()
		}
		if t.failed == nil && t.gone {
			t.failed = g.db.Erasing()
		}
		return t.failed
	})
	if err != nil {
		if t.ahead && g.db.Read(g.again) != nil {
			g.saved.generation = -1 // the next transaction tries once more
		}
		return cmp.Or(said, explained("changing", g.path, err))
	}
	if t.saved.generation != 0 {
		g.saved, g.unsaved = t.saved, nil
	}
	if t.gone && !g.bare {
		err = g.db.Erase()
	}
	if err != nil {
		err = fmt.Errorf("what was removed is still in the file: %w", err)
	}
	return explained("changing", g.path, err)
}

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (t *Tx) Exec(sql string, args ...any) error {
	if t.failed == nil {
		t.failed = t.g.db.Exec(sql, args...)
	}
	return t.failed
}

// Err returns the first error of the database in this transaction.
func (t *Tx) Err() error { return t.failed }

// Query runs a statement, and calls each with its rows.
func (t *Tx) Query(sql string, each func(Row) error, args ...any) error {
	if t.failed != nil {
		return t.failed
	}
	var stopped error
	err := t.g.db.Query(sql, func(r store.Row) error {
		stopped = each(r)
		return stopped
	}, args...)
	if stopped == nil {
		t.failed = err
	}
	return err
}

// Int returns the number in the first row of a result, or 0.
func (t *Tx) Int(sql string, args ...any) (n int64, err error) {
	err = t.Query(sql, func(r Row) error {
		n = r.ColumnInt64(0)
		return nil
	}, args...)
	return n, err
}

// Blob returns the bytes in the first row of a result, or nil.
func (t *Tx) Blob(sql string, args ...any) (b []byte, err error) {
	err = t.Query(sql, func(r Row) error {
		b = slices.Clone(r.ColumnRawBlob(0))
		return nil
	}, args...)
	return b, err
}

// Ints returns the numbers in the rows of a result.
func (t *Tx) Ints(sql string, args ...any) (all []int64, err error) {
	err = t.Query(sql, func(r Row) error {
		all = append(all, r.ColumnInt64(0))
		return nil
	}, args...)
	return all, err
}

// Last returns the number of the row that was inserted last.
func (t *Tx) Last() int64 { return t.g.db.Last() }

// Learner returns the learner for changes beside the labels. They are taken back if the transaction fails.
func (t *Tx) Learner() *online.Learner {
	t.ahead = true
	return &t.g.learner
}

// Erase says that something was deleted of which no trace may stay in any file.
func (t *Tx) Erase() { t.gone = true }

// Follow lets the learner follow the rows as they are now.
func (t *Tx) Follow() error {
	t.anew = t.anew || t.changed
	if t.failed != nil {
		return t.failed
	}
	t.failed = t.g.follow(t.changed)
	t.ahead, t.changed = true, false
	return t.failed
}

// Person returns the number of the person with a name, and makes one if there is none.
func (t *Tx) Person(name string) (int64, error) {
	if id := t.g.Number(name); id != 0 {
		return id, nil
	}
	if err := face.CheckName(name); err != nil {
		return 0, err
	}
	err := t.Exec("insert into person(name, enrolled) values(?, 0)", name)
	return t.Last(), err
}

// Label adds labelled faces of a person, or faces that are not this person's. Numbers are the numbers of the faces;
// without them they get new ones.
func (t *Tx) Label(person int64, rejected bool, faces [][]float32, numbers []uint64) error {
	for i, x := range faces {
		number := int64(0)
		if i < len(numbers) {
			number = int64(numbers[i])
		}
		if number == 0 {
			number, _ = t.Next("face", 1)
		}
		t.Exec("insert into label(number, person, rejected, vector) values(?, ?, ?, ?)", number, person, rejected,
			vector.Bytes(x))
		t.made = append(t.made, t.Last())
		if rejected {
			continue
		}
		// A face of this person is nobody else's: that it is not another's needs no label.
		needless, _ := t.Ints(`update label set valid = 0 where rejected and valid and vector = ? and person <> ?
			returning id`, vector.Bytes(x), person)
		// The learner withdraws them itself when it is shown the face.
		t.withdrawn, t.anew = append(t.withdrawn, needless...), t.anew || len(needless) > 0
	}
	return t.failed
}

// Next reserves n numbers of a kind, and returns the last of them. Nobody else gets them.
func (t *Tx) Next(kind string, n int) (int64, error) {
	return t.Int(`insert into number values(?1, ?2) on conflict(kind) do update set last = last + ?2 returning last`, kind,
		int64(n))
}

// Forget removes a person and everything that is known about the person. What users said about the person can no longer
// be undone.
func (t *Tx) Forget(person int64) error {
	// Who was found to be this person, as far as it was not undone, is this person.
	them, _ := t.Ints(`with recursive them(id) as (select ?1 union select s.other from statement s join them on
		s.person = them.id where s.kind = 'renamed' and s.other is not null and not s.undone) select id from them`, person)
	t.changed, t.gone = true, true
	for _, id := range them {
		said, _ := t.Ints("select id from statement where person = ?1 or other = ?1 order by id", id)
		t.Settle(said...)
		for _, sql := range []string{
			`update said set person = null, text = '' where person = ?1 and what = 'sighting'`,
			`update said set person = null where person = ?1 and what = 'event'`,
			`delete from face where sighting in (select id from sighting where person = ?1)`,
			`delete from face where stranger = 0 and number in (select number from label where person = ?1 and not rejected)`,
			`delete from person where id = ?1`,
		} {
			t.Exec(sql, id)
		}
	}
	return t.failed
}

// Sweep removes people without faces whom nothing mentions.
func (t *Tx) Sweep() error {
	return t.Exec(`delete from person where not exists (select 1 from label where person = person.id) and
		not exists (select 1 from sighting where person = person.id) and
		not exists (select 1 from event where person = person.id) and
		not exists (select 1 from present where person = person.id) and
		not exists (select 1 from said where person = person.id) and
		not exists (select 1 from statement where person = person.id or other = person.id)`)
}

// Join makes a person another one: it adds the labels of the first as labels of the second, and returns the rows of the
// first, which the statement takes back.
func (t *Tx) Join(from, to int64) (gone []int64) {
	gone, _ = t.Ints("select id from label where person = ? and valid order by id", from)
	made, _ := t.Ints(`insert into label(number, person, rejected, vector) select number, ?2, rejected, vector from label
		where person = ?1 and valid order by id returning id`, from, to)
	t.made = append(t.made, made...)
	return gone
}
