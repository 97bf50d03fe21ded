// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/office/sink"
)

// flaky fails a number of times with the same error.
type flaky struct {
	mu    sync.Mutex
	fails int
	takes time.Duration
	got   int
}

func (f *flaky) Send(ctx context.Context, _ sink.Message) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.takes):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return errors.New("refused")
	}
	f.got++
	return nil
}

// A fault is reported once, and so is its end. Close waits until a working sink has got all events,
// however slow it is.
func TestGroup(t *testing.T) {
	b := book(t, 100)
	var mu sync.Mutex
	var told []string
	g := sink.NewGroup(t.Context(), b, func(err error) { t.Error(err) })
	g.Changed = func(name string, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(name, ": ", err))
	}
	report, deliver := g.Reserve("hook", false)
	report(sink.ErrOffline) // the reason has its own report
	report(errors.New("no route"))
	report(errors.New("no route"))
	if s := g.Status(); len(s) != 1 || s[0] != (sink.Status{Name: "hook", Error: "no route"}) {
		t.Errorf("%+v", s)
	}
	report(nil)
	s := &flaky{takes: 1200 * time.Millisecond}
	deliver(s)
	record(t, b, 1, 2, 3)
	ended := make(chan struct{})
	g.Go(func(ctx context.Context) error {
		<-ctx.Done()
		close(ended)
		return nil
	})
	g.Close()
	<-ended
	if s.got != 3 || g.Status()[0].Waiting != 0 {
		t.Errorf("%d events, %+v", s.got, g.Status())
	}
	if want := []string{"hook: no route", "hook: <nil>"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

// Nothing is sent about those who are quiet, and nothing waits.
func TestQuiet(t *testing.T) {
	b := book(t, 100)
	g := sink.NewGroup(t.Context(), b, func(err error) { t.Error(err) })
	g.Quiet = []string{"alice"}
	_, deliver := g.Reserve("hook", false)
	s := &flaky{}
	deliver(s)
	record(t, b, 1, 2, 3)
	g.Close()
	if s.got != 0 || g.Status()[0].Waiting != 0 {
		t.Errorf("%d events, %+v", s.got, g.Status())
	}
	shown, _ := scenes.Load(b)
	now := shown.(*scene).office.Now()
	quiet := g.Now(now)
	if len(now.Known) != 1 || now.Cameras[0].Last == nil || len(quiet.Known) != 0 ||
		len(quiet.People) != 0 || quiet.Cameras[0].Last != nil {
		t.Errorf("%+v, %+v", now, quiet)
	}
}

// The error of a sink that ends for good is given to the owner.
func TestGroupFailed(t *testing.T) {
	broken := errors.New("broken")
	got := make(chan error, 1)
	g := sink.NewGroup(t.Context(), book(t, 100), func(err error) { got <- err })
	g.Go(func(context.Context) error { return broken })
	if err := <-got; !errors.Is(err, broken) {
		t.Error(err)
	}
	g.Close()
}
