// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"errors"
	"time"

	"github.com/faceauth/faceauth/office/sink"
)

// asyncPrinter prints what happens without holding up those who see it happen: a terminal that is stopped, or a program
// that does not read, would stop the cameras otherwise.
type asyncPrinter struct {
	lines chan func() error
	ended chan struct{}
	stop  func(error)
}

// mostLines is how many lines wait to be printed.
const mostLines = 10000

var errBlocked = errors.New("output blocked: the queue of lines to print is full")

// newAsyncPrinter returns one that calls stop where nothing can be printed any more.
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

// print has a line printed as soon as those before it are. It does not wait for that.
func (h *asyncPrinter) print(line func() error) {
	select {
	case h.lines <- line:
	default:
		h.stop(errBlocked)
	}
}

// end waits until all is printed, but not for a reader that does not read. Nothing is printed afterwards.
func (h *asyncPrinter) end() {
	close(h.lines)
	timer := time.NewTimer(sink.Grace)
	defer timer.Stop()
	select {
	case <-h.ended:
	case <-timer.C:
	}
}
