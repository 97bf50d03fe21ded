// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"encoding/json"
	"io"
)

// Log writes events as JSON, one to a line. The same events give the same bytes.
type Log struct {
	w   *bufio.Writer
	enc *json.Encoder
}

// NewLog returns a log that writes to w.
func NewLog(w io.Writer) *Log {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return &Log{b, enc}
}

// Write appends an event.
func (l *Log) Write(e Event) error { return l.enc.Encode(e) }

// Flush writes buffered events.
func (l *Log) Flush() error { return l.w.Flush() }
