// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A reader that does not read the output delays nobody. If the output is read, all lines are printed in order.
func TestPrinter(t *testing.T) {
	var stopped atomic.Pointer[error]
	stop := func(err error) { stopped.CompareAndSwap(nil, &err) }
	p := NewPrinter(stop)
	var got []int
	for i := range 100 {
		p.Print(func() error {
			got = append(got, i)
			return nil
		})
	}
	p.End(5 * time.Second)
	if len(got) != 100 || got[99] != 99 || stopped.Load() != nil {
		t.Errorf("%d lines, stopped %v", len(got), stopped.Load())
	}

	release := make(chan bool)
	p = NewPrinter(stop)
	for range mostLines + 2 { // one is being printed
		p.Print(func() error {
			<-release
			return nil
		})
	}
	if err := stopped.Load(); err == nil || !errors.Is(*err, errBlocked) {
		t.Errorf("stopped %v", err)
	}
	close(release)
	p.End(5 * time.Second)

	stopped.Store(nil)
	closed := errors.New("closed")
	p = NewPrinter(stop)
	p.Print(func() error { return closed })
	p.End(5 * time.Second)
	if err := stopped.Load(); err == nil || !errors.Is(*err, closed) {
		t.Errorf("stopped %v", err)
	}
}
