// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats.go"
)

// A device's broadcast reaches the other devices that listen, and not the device itself. No device can broadcast in the
// name of another device.
func TestRadio(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	one, two := h.device(t), h.device(t)
	isUp(t, one)
	isUp(t, two)
	heard := make(chan []byte, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for _, c := range []*hub.Conn{one, two} {
		go func() { done <- c.Listen(ctx, func(data []byte) { heard <- bytes.Clone(append(data, c.ID()...)) }) }()
	}
	end := time.After(10 * time.Second)
	for said := false; !said; {
		if err := one.Broadcast(t.Context(), []byte("here ")); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-heard:
			if want := "here " + two.ID(); string(got) != want {
				t.Errorf("%s", got)
			}
			said = true
		case <-time.After(50 * time.Millisecond): // two does not listen yet: repeat
		case <-end:
			t.Fatal("nothing was heard")
		}
	}
	raw := h.raw(t)
	refused := make(chan error, 10)
	raw.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })
	if err := raw.Publish("faceauth."+h.fleet+".room."+one.ID(), []byte("false ")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Error(err)
		}
	case <-end:
		t.Error("a device may tell in the name of another")
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	for len(heard) > 0 {
		if got := <-heard; bytes.HasPrefix(got, []byte("false")) {
			t.Errorf("%s", got)
		}
	}
}
