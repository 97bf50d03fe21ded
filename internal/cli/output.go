// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// output passes on printed text. Names of files and texts of servers may hold escape codes, which
// can make a terminal show false text; output prints them as plain characters. It remembers the
// first error of a write.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer]. The number of bytes is that of p.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.Write(Printable(p)); err != nil {
		if o.err == nil {
			o.err = err
		}
		return 0, err
	}
	return len(p), nil
}

// failed returns the first error of a write.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Printable returns a text with visible escapes for control characters, except ends of lines and
// tabs.
func Printable(text []byte) []byte {
	var b bytes.Buffer
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && !bidi(r):
			b.Write(text[:n])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.Bytes()
}

// bidi reports whether a character changes the direction of text.
func bidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// Printer prints events in the background. A stopped terminal, or a program that does not read,
// must not stop the cameras.
type Printer struct {
	lines chan func() error
	ended chan struct{}
	stop  func(error)
	full  atomic.Bool // a line had no room
}

// mostLines is the largest number of waiting lines.
const mostLines = 10000

var errBlocked = errors.New("output blocked: the queue of lines to print is full")

// NewPrinter returns a printer that calls stop if printing fails.
func NewPrinter(stop func(error)) *Printer {
	p := &Printer{lines: make(chan func() error, mostLines), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(p.ended)
		for line := range p.lines {
			if err := line(); err != nil {
				stop(err)
				return
			}
		}
	}()
	return p
}

// Print queues a line. It does not wait until the line is printed.
func (p *Printer) Print(line func() error) {
	select {
	case p.lines <- line:
	default:
		p.full.Store(true)
		p.stop(errBlocked)
	}
}

// End waits until all lines are printed, however slow their reader is. It gives up a reader that
// reads nothing for the given time after the end of ctx, or after the queue was full, and says so.
func (p *Printer) End(ctx context.Context, most time.Duration) error {
	close(p.lines)
	if p.full.Load() {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
	}
	for {
		left := len(p.lines)
		select {
		case <-p.ended:
			return nil
		case <-time.After(most):
			if len(p.lines) == left {
				return fmt.Errorf("output blocked: nobody reads the last %d lines", left+1)
			}
		}
	}
}

// NewProgress begins a bar that shows the progress of long work on a terminal, with a number of
// steps; -1 if it is unknown. A bar of nothing ("") is never shown.
func NewProgress(total int, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions(total,
		progressbar.OptionSetVisibility(what != "" && term.IsTerminal(int(os.Stderr.Fd()))),
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}
