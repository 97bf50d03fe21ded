package main

import (
	"errors"
	"time"
)

// herald prints what happens without holding up those who see it happen: a terminal that is stopped, or a program that
// does not read, would stop the cameras otherwise.
type herald struct {
	lines chan func() error
	ended chan struct{}
	stop  func(error)
}

// mostLines is how many lines wait to be printed.
const mostLines = 10000

var errUnread = errors.New("nobody reads what is printed, and there is no room to keep more of it")

// newHerald returns one that calls stop where nothing can be printed any more.
func newHerald(stop func(error)) *herald {
	h := &herald{lines: make(chan func() error, mostLines), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(h.ended)
		for print := range h.lines {
			if err := print(); err != nil {
				stop(err)
				return
			}
		}
	}()
	return h
}

// say has something printed, by and by.
func (h *herald) say(print func() error) {
	select {
	case h.lines <- print:
	default:
		h.stop(errUnread)
	}
}

// end waits until all is printed, but not for a reader that does not read. Nothing is said afterwards.
func (h *herald) end() {
	close(h.lines)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-h.ended:
	case <-timer.C:
	}
}
