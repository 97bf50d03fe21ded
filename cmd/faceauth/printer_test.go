// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"sync/atomic"
	"testing"
)

// A reader that does not read the output delays nobody. If the output is read, all lines are printed in order.
func TestAsyncPrinter(t *testing.T) {
	var stopped atomic.Pointer[error]
	stop := func(err error) { stopped.CompareAndSwap(nil, &err) }
	h := newAsyncPrinter(stop)
	var got []int
	for i := range 100 {
		h.print(func() error {
			got = append(got, i)
			return nil
		})
	}
	h.end()
	if len(got) != 100 || got[99] != 99 || stopped.Load() != nil {
		t.Errorf("%d lines, stopped %v", len(got), stopped.Load())
	}

	release := make(chan bool)
	h = newAsyncPrinter(stop)
	for range mostLines + 2 { // one is being printed
		h.print(func() error {
			<-release
			return nil
		})
	}
	if err := stopped.Load(); err == nil || !errors.Is(*err, errBlocked) {
		t.Errorf("stopped %v", err)
	}
	close(release)
	h.end()

	stopped.Store(nil)
	closed := errors.New("closed")
	h = newAsyncPrinter(stop)
	h.print(func() error { return closed })
	h.end()
	if err := stopped.Load(); err == nil || !errors.Is(*err, closed) {
		t.Errorf("stopped %v", err)
	}
}
