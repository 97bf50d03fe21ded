// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
)

// lossy is a connection that can become bad: of what others say only the heads come live, and it holds back what this
// device says, and what one other device says, until these channels are closed.
type lossy struct {
	fleet.Server
	bad           *atomic.Bool
	slow          string
	put, pull     chan struct{}
	puts, reading *atomic.Bool // it holds something back
}

func (l lossy) wait(ctx context.Context, c chan struct{}, waits *atomic.Bool) {
	waits.Store(true)
	select {
	case <-c:
	case <-ctx.Done():
	}
}

func (l lossy) Pull(ctx context.Context, device string, from uint64, take func(string, uint64, []byte)) error {
	if device == l.slow && l.bad.Load() {
		l.wait(ctx, l.pull, l.reading)
	}
	return l.Server.Pull(ctx, device, from, take)
}

func (l lossy) Put(ctx context.Context, name string, data []byte) error {
	if l.bad.Load() {
		l.wait(ctx, l.put, l.puts)
	}
	return l.Server.Put(ctx, name, data)
}

func (l lossy) Live(ctx context.Context, ready func(), take func(device, name string, data []byte)) error {
	return l.Server.Live(ctx, ready, func(device, name string, data []byte) {
		if name == "_head" || !l.bad.Load() {
			take(device, name, data)
		}
	})
}

// The stream of a device is read again as soon as needed, however slow the stream of another one is whose reading began
// at the same moment.
func TestSlowStream(t *testing.T) {
	w := newWorld(t, 3)
	defer w.close()
	w.settings.Patience = time.Hour
	one, slow, other := w.devices[0], w.devices[1], w.devices[2]
	allInStep(t, w.devices...)
	one.end()
	one.open()
	l := lossy{bad: new(atomic.Bool), slow: slow.d.ID(), put: make(chan struct{}), pull: make(chan struct{}),
		puts: new(atomic.Bool), reading: new(atomic.Bool)}
	ctx, cancel := context.WithCancel(t.Context())
	ended, dial := make(chan error, 1), w.server.dial(one.d.ID())
	go func() {
		ended <- one.d.Run(ctx, func(ctx context.Context) (_ fleet.Server, err error) {
			bad := l
			bad.Server, err = dial(ctx)
			return bad, err
		})
	}()
	defer func() { cancel(); <-ended }()
	allInStep(t, w.devices...)

	l.bad.Store(true)
	enrol := func(m *member, n int) func() bool {
		t.Helper()
		id, err := m.d.Enroll("alice", space, faces(n))
		if err != nil {
			t.Fatal(err)
		}
		return func() bool { _, known := one.d.Person(id); return known }
	}
	enrol(one, 1)
	until(t, "it waits with what it says", l.puts.Load)
	delayed, first := enrol(slow, 2), enrol(other, 3)
	until(t, "the server has both", func() bool { return slow.d.State().InStep && other.d.State().InStep })
	close(l.put)
	until(t, "the slow stream is being read", l.reading.Load)
	until(t, "the first word of the other is read", first)
	second := enrol(other, 4)
	until(t, "the second word of the other is read", second)
	if delayed() {
		t.Error("the slow stream was read")
	}
	close(l.pull)
	until(t, "the slow stream is read", delayed)
}
