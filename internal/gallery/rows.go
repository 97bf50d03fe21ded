// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"iter"
	"slices"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// Row is a row of a result. The bytes of a blob are valid until the next row.
type Row interface {
	ColumnInt64(column int) int64
	ColumnFloat(column int) float64
	ColumnText(column int) string
	ColumnRawBlob(column int) []byte
}

// Rows is a gallery for those who keep rows of their own beside its people: the office and the
// fleet. The tables are what they agree on (folder schema). It is used as its [Gallery] is.
type Rows Gallery

// Rows returns the rows of g.
func (g *Gallery) Rows() *Rows { return (*Rows)(g) }

// Look calls do, which sees one state of the database, and must not change it.
func (r *Rows) Look(do func(t *Tx) error) error { return (*Gallery)(r).look(do) }

// Change is [Gallery.Change] with the transaction.
func (r *Rows) Change(do func(t *Tx) error) error { return (*Gallery)(r).change(do) }

// Write calls do in a transaction, without what was learned. Lazily does not wait for the disk: the
// end of the program loses nothing, and a failure of the machine may lose the last seconds. Do must
// not change people or labels, unless there is no learner. On error nothing has changed.
func (r *Rows) Write(lazily bool, do func(t *Tx) error) error {
	return (*Gallery)(r).transact(false, lazily, do)
}

// Int returns the number in the one row of a result, or 0.
func (r *Rows) Int(sql string, args ...any) (int64, error) {
	return (&Tx{g: (*Gallery)(r)}).Int(sql, args...)
}

// Turn returns a number that changes with each change of people or labels, whoever made it.
func (r *Rows) Turn() uint64 { return r.turn }

// LabelOf returns the row of the label of a stored face, by the learner's number, or 0 if it has
// none.
func (r *Rows) LabelOf(stored int64) int64 { return r.labels[stored] }

// Path returns the path of the database, or "" for one in memory.
func (r *Rows) Path() string { return r.path }

// Close closes the database.
func (r *Rows) Close() error { return r.db.Close() }

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (t *Tx) Exec(sql string, args ...any) error {
	for range t.Rows(sql, args...) {
	}
	return t.failed
}

// Err returns the first error of this transaction.
func (t *Tx) Err() error { return t.failed }

// Rows runs a statement, and returns the rows of its result. After an error there are no more of
// them: see [Tx.Err].
func (t *Tx) Rows(sql string, args ...any) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		if t.failed != nil {
			return
		}
		err := t.g.db.Query(sql, func(r store.Row) error {
			if !yield(r) {
				return errEnough
			}
			return nil
		}, args...)
		if t.failed == nil && !errors.Is(err, errEnough) {
			t.failed = err
		}
	}
}

// errEnough ends a query whose other rows nobody wants.
var errEnough = errors.New("enough rows")

// Int returns the number in the one row of a result, or 0.
func (t *Tx) Int(sql string, args ...any) (n int64, err error) {
	for r := range t.Rows(sql, args...) {
		n = r.ColumnInt64(0)
	}
	return n, t.failed
}

// Blob returns the bytes in the one row of a result, or nil.
func (t *Tx) Blob(sql string, args ...any) (b []byte, err error) {
	for r := range t.Rows(sql, args...) {
		b = slices.Clone(r.ColumnRawBlob(0))
	}
	return b, t.failed
}

// Ints returns the numbers in the rows of a result.
func (t *Tx) Ints(sql string, args ...any) (all []int64, err error) {
	for r := range t.Rows(sql, args...) {
		all = append(all, r.ColumnInt64(0))
	}
	return all, t.failed
}

// Learner returns the learner for changes beside the labels. They are taken back if the transaction
// fails.
func (t *Tx) Learner() *online.Learner {
	t.ahead = true
	return &t.g.learner
}

// Erase says that something was deleted of which no trace may stay in any file.
func (t *Tx) Erase() { t.gone = true }
