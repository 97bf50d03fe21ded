// SPDX-License-Identifier: Apache-2.0

package gallery

import (
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

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (t *Tx) Exec(sql string, args ...any) error {
	if t.failed == nil {
		t.failed = t.g.db.Exec(sql, args...)
	}
	return t.failed
}

// Err returns the first error of this transaction.
func (t *Tx) Err() error { return t.failed }

// Query runs a statement, and calls each with its rows. An error of each ends it, and is one of the transaction.
func (t *Tx) Query(sql string, each func(Row) error, args ...any) error {
	if t.failed == nil {
		t.failed = t.g.db.Query(sql, func(r store.Row) error { return each(r) }, args...)
	}
	return t.failed
}

// Int returns the number in the first row of a result, or 0.
func (t *Tx) Int(sql string, args ...any) (int64, error) {
	all, err := t.Ints(sql, args...)
	return append(all, 0)[0], err
}

// Int returns the number in the first row of a result, or 0.
func (g *Gallery) Int(sql string, args ...any) (int64, error) {
	if g.db == nil {
		return 0, ErrClosed
	}
	return (&Tx{g: g}).Int(sql, args...)
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
