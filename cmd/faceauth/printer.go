// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/faceauth/faceauth/office/sink"
)

// asyncPrinter prints events in the background. A stopped terminal, or a program that does not read, must not stop the
// cameras.
type asyncPrinter struct {
	lines chan func() error
	ended chan struct{}
	stop  func(error)
}

// mostLines is the largest number of waiting lines.
const mostLines = 10000

var errBlocked = errors.New("output blocked: the queue of lines to print is full")

// newAsyncPrinter returns a printer that calls stop if printing fails.
func newAsyncPrinter(stop func(error)) *asyncPrinter {
	h := &asyncPrinter{lines: make(chan func() error, mostLines), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(h.ended)
		for line := range h.lines {
			if err := line(); err != nil {
				stop(err)
				return
			}
		}
	}()
	return h
}

// print queues a line. It does not wait until the line is printed.
func (h *asyncPrinter) print(line func() error) {
	select {
	case h.lines <- line:
	default:
		h.stop(errBlocked)
	}
}

// end waits until all lines are printed, but not for a reader that does not read. Later lines are dropped.
func (h *asyncPrinter) end() {
	close(h.lines)
	timer := time.NewTimer(sink.Grace)
	defer timer.Stop()
	select {
	case <-h.ended:
	case <-timer.C:
	}
}
