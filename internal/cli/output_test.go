// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
)

// A name cannot send control codes to the terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain text\nin\ttwo lines": "plain text\nin\ttwo lines",
		"Zoë 张伟":                    "Zoë 张伟",
		"\x1b[2Jgone":               `\u001b[2Jgone`,
		"a\rb\x00\x7f":              `a\u000db\u0000\u007f`,
		"\u009b31m":                 `\u009b31m`,
		"\xff\xfe":                  `\xff\xfe`,
		"evil\u202egpj.exe":         `evil\u202egpj.exe`,
		"":                          "",
	} {
		if got := string(Printable([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A reader that does not read the output delays nobody. If the output is read, all lines are
// printed in order.
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
	err := p.End(t.Context(), time.Minute)
	if err != nil || len(got) != 100 || got[99] != 99 || stopped.Load() != nil {
		t.Errorf("%d lines, stopped %v, %v", len(got), stopped.Load(), err)
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
	if err := p.End(t.Context(), time.Millisecond); err == nil {
		t.Error("lines that nobody reads are printed")
	}
	close(release)
	<-p.ended

	// A slow reader gets all, and one that does not read is told of when the program shall end.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, stuck := range []bool{false, true} {
			n, released := 0, make(chan bool)
			p := NewPrinter(stop)
			for range 3 {
				p.Print(func() error {
					if stuck {
						<-released
					}
					time.Sleep(time.Hour)
					n++
					return nil
				})
			}
			time.AfterFunc(2*time.Hour, cancel)
			err := p.End(ctx, 90*time.Minute)
			if stuck != (err != nil) || stuck != (n == 0) {
				t.Errorf("stuck %t: %d lines, %v", stuck, n, err)
			}
			close(released)
			<-p.ended
		}
	})

	stopped.Store(nil)
	closed := errors.New("closed")
	p = NewPrinter(stop)
	p.Print(func() error { return closed })
	fixture.Check(t, p.End(t.Context(), time.Minute))
	if err := stopped.Load(); err == nil || !errors.Is(*err, closed) {
		t.Errorf("stopped %v", err)
	}
}
