// SPDX-License-Identifier: Apache-2.0

// Package table aligns columns of text by their width on a terminal, where 山 takes two columns and
// an accent none.
package table

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// Table collects lines of cells. A tab ends a cell; what follows the last tab of a line is aligned
// with nothing.
type Table struct {
	w    io.Writer
	gap  int
	text strings.Builder
}

// New returns a table that is printed to w, with this many spaces between columns.
func New(w io.Writer, gap int) *Table { return &Table{w: w, gap: gap} }

// Write implements [io.Writer].
func (t *Table) Write(p []byte) (int, error) { return t.text.Write(p) }

// Flush prints the table, and begins another one.
func (t *Table) Flush() error {
	var widths []int
	lines := strings.SplitAfter(t.text.String(), "\n")
	t.text.Reset()
	for _, line := range lines {
		for i := range strings.Count(line, "\t") {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(strings.SplitN(line, "\t", i+2)[i]))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		for i, c := range cells[:len(cells)-1] {
			b.WriteString(c + strings.Repeat(" ", widths[i]-uniseg.StringWidth(c)+t.gap))
		}
		b.WriteString(cells[len(cells)-1])
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}
