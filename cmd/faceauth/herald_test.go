package main

import (
	"errors"
	"sync/atomic"
	"testing"
)

// Nobody who says something waits for one who does not read; all is printed in its order where somebody does.
func TestHerald(t *testing.T) {
	var stopped atomic.Pointer[error]
	stop := func(err error) { stopped.CompareAndSwap(nil, &err) }
	h := newHerald(stop)
	var got []int
	for i := range 100 {
		h.say(func() error {
			got = append(got, i)
			return nil
		})
	}
	h.end()
	if len(got) != 100 || got[99] != 99 || stopped.Load() != nil {
		t.Errorf("%d lines, stopped %v", len(got), stopped.Load())
	}

	release := make(chan bool)
	h = newHerald(stop)
	for range mostLines + 2 { // one is being printed
		h.say(func() error {
			<-release
			return nil
		})
	}
	if err := stopped.Load(); err == nil || !errors.Is(*err, errUnread) {
		t.Errorf("stopped %v", err)
	}
	close(release)
	h.end()

	stopped.Store(nil)
	closed := errors.New("closed")
	h = newHerald(stop)
	h.say(func() error { return closed })
	h.end()
	if err := stopped.Load(); err == nil || !errors.Is(*err, closed) {
		t.Errorf("stopped %v", err)
	}
}
