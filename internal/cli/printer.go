// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"time"
)

// Printer prints events in the background. A stopped terminal, or a program that does not read, must not stop the
// cameras.
type Printer struct {
	lines chan func() error
	ended chan struct{}
	stop  func(error)
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
		p.stop(errBlocked)
	}
}

// End waits until all lines are printed, and at most for the given time, as a reader may not read. Later lines are
// dropped.
func (p *Printer) End(most time.Duration) {
	close(p.lines)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	}
}
