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

// Exec runs a statement. Arguments are int64, float64, string, []byte, bool or nil.
func (t *Tx) Exec(sql string, args ...any) error {
	for range t.Rows(sql, args...) {
	}
	return t.failed
}

// Err returns the first error of this transaction.
func (t *Tx) Err() error { return t.failed }

// Rows runs a statement, and returns the rows of its result. After an error there are no more of them: see [Tx.Err].
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

// Int returns the number in the one row of a result, or 0.
func (g *Gallery) Int(sql string, args ...any) (int64, error) {
	return (&Tx{g: g}).Int(sql, args...)
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

// Learner returns the learner for changes beside the labels. They are taken back if the transaction fails.
func (t *Tx) Learner() *online.Learner {
	t.ahead = true
	return &t.g.learner
}

// Erase says that something was deleted of which no trace may stay in any file.
func (t *Tx) Erase() { t.gone = true }
