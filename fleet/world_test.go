// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
)

// memServer is the server of a fleet in memory.
type memServer struct {
	mu      sync.Mutex
	members *fleet.Members
	streams map[string]*memStream
	down    bool
	conns   map[*memConn]bool
}

type memStream struct {
	last uint64
	at   map[string]memValue
}

type memValue struct {
	place uint64
	data  []byte
}

func newMemServer(id string) *memServer {
	return &memServer{members: fleet.NewMembers(id), streams: make(map[string]*memStream),
		conns: make(map[*memConn]bool)}
}

func (s *memServer) stream(device string) *memStream {
	if s.streams[device] == nil {
		s.streams[device] = &memStream{at: make(map[string]memValue)}
	}
	return s.streams[device]
}

// backup returns a copy of all that is stored.
func (s *memServer) backup() map[string]*memStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]*memStream)
	for device, x := range s.streams {
		all[device] = &memStream{x.last, maps.Clone(x.at)}
	}
	return all
}

// restore puts a backup back, and ends all connections.
func (s *memServer) restore(t testing.TB, id string, backup map[string]*memStream) {
	s.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams, s.members = make(map[string]*memStream), fleet.NewMembers(id)
	for device, x := range backup {
		s.streams[device] = &memStream{x.last, maps.Clone(x.at)}
	}
	for _, v := range s.stream("admin").at {
		if _, _, err := s.members.Add(v.data); err != nil {
			t.Fatal(err)
		}
	}
}

// cut ends all connections.
func (s *memServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.end()
	}
	clear(s.conns)
}

func (s *memServer) put(device, name string, data []byte) {
	st := s.stream(device)
	st.last++
	st.at[name] = memValue{st.last, bytes.Clone(data)}
	for c := range s.conns {
		c.send(device, name, data)
	}
}

// give takes a record, as the server does.
func (s *memServer) give(record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, news, err := s.members.Add(record)
	if err != nil || !news {
		return err
	}
	s.put("admin", name, record)
	for device, st := range s.streams {
		m, _ := s.members.Device(device)
		for name, v := range st.at {
			if m.Revoked && !m.Kept(name, fleet.ValueCounter(v.data)) {
				delete(st.at, name)
			}
		}
	}
	return nil
}

type memConn struct {
	s      *memServer
	device string
	live   chan [3]string
	done   chan struct{}
	once   sync.Once
}

func (c *memConn) end() { c.once.Do(func() { close(c.done) }) }

func (c *memConn) send(device, name string, data []byte) {
	select {
	case c.live <- [3]string{device, name, string(data)}:
	case <-c.done:
	}
}

func (s *memServer) dial(device string) func(context.Context) (fleet.Server, error) {
	return func(context.Context) (fleet.Server, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.down {
			return nil, fleet.ErrOffline
		}
		return &memConn{s: s, device: device, live: make(chan [3]string, 1<<16), done: make(chan struct{})}, nil
	}
}

func (c *memConn) Pull(_ context.Context, device string, from uint64, take func(string, uint64, []byte)) error {
	c.s.mu.Lock()
	st := c.s.stream(device)
	names := slices.SortedFunc(maps.Keys(st.at), func(a, b string) int {
		return cmp.Compare(st.at[a].place,
			st.at[b].place)
	})
	all := maps.Clone(st.at)
	c.s.mu.Unlock()
	for _, name := range names {
		if v := all[name]; v.place >= from {
			take(name, v.place, bytes.Clone(v.data))
		}
	}
	return nil
}

func (c *memConn) Put(_ context.Context, name string, data []byte) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	select {
	case <-c.done:
		return fleet.ErrOffline
	default:
	}
	if c.s.down || c.s.members.Revoked(c.device) {
		return fleet.ErrOffline
	}
	c.s.put(c.device, name, data)
	return nil
}

func (c *memConn) Give(_ context.Context, record []byte) error { return c.s.give(record) }

func (c *memConn) Live(ctx context.Context, ready func(), take func(device, name string, data []byte)) error {
	c.s.mu.Lock()
	c.s.conns[c] = true
	c.s.mu.Unlock()
	ready()
	for {
		select {
		case x := <-c.live:
			take(x[0], x[1], []byte(x[2]))
		case <-c.done:
			return fleet.ErrOffline
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *memConn) Tell(context.Context, fleet.Status) error           { return nil }
func (c *memConn) Clock(context.Context) (time.Duration, error)       { return 0, nil }
func (c *memConn) Broadcast(context.Context, []byte) error            { return nil }
func (c *memConn) Listen(context.Context, func(string, []byte)) error { return nil }
func (c *memConn) Done() <-chan struct{}                              { return c.done }
func (c *memConn) Close() error {
	c.end()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.s.conns, c)
	return nil
}

// world is a fleet with a server in memory.
type world struct {
	t       testing.TB
	admin   *fleet.AdminKey
	server  *memServer
	devices []*member

	settings fleet.Settings
}

// member is a device of a world, on or off.
type member struct {
	w      *world
	folder string
	d      *fleet.Device
	skew   atomic.Int64 // of its clock, in nanoseconds
	stop   context.CancelFunc
	ended  chan error
}

func newWorld(t testing.TB, devices int) *world {
	t.Helper()
	admin, err := fleet.NewAdminKey(filepath.Join(t.TempDir(), "admin.nk"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, admin: admin, server: newMemServer(admin.Fleet())}
	for range devices {
		w.join(fleet.Scope{All: true})
	}
	return w
}

// join adds a device.
func (w *world) join(scope fleet.Scope) *member {
	w.t.Helper()
	m := &member{w: w, folder: w.t.TempDir()}
	token, err := w.admin.Invite("tls://server:4222", scope, time.Now().Add(time.Hour))
	if err == nil {
		err = fleet.JoinBy(m.folder, token, fmt.Sprint("d", len(w.devices)+1), w.server.give)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.devices = append(w.devices, m)
	m.start()
	return m
}

func (m *member) open() {
	m.w.t.Helper()
	s := m.w.settings
	s.Now = func() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) }
	s.Tell = func(s string) {
		if s != fleet.ErrOffline.Error() {
			m.w.t.Log(filepath.Base(m.folder), s)
		}
	}
	d, err := fleet.Open(m.folder, s)
	if err != nil {
		m.w.t.Fatal(err)
	}
	m.d = d
}

// start connects the device.
func (m *member) start() {
	if m.d == nil {
		m.open()
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop, m.ended = cancel, make(chan error, 1)
	go func() { m.ended <- m.d.Run(ctx, m.w.server.dial(m.d.ID())) }()
}

// pauseRun disconnects the device.
func (m *member) pauseRun() {
	m.stop()
	<-m.ended
	m.stop = nil
}

// end disconnects and closes the device.
func (m *member) end() {
	m.w.t.Helper()
	if m.stop != nil {
		m.stop()
		<-m.ended
		m.stop = nil
	}
	if m.d != nil {
		if err := m.d.Close(); err != nil {
			m.w.t.Error(err)
		}
		m.d = nil
	}
}

func (w *world) close() {
	for _, m := range w.devices {
		m.end()
	}
}

// copyFolder returns a copy of the folder of a device that is off.
func (m *member) copyFolder() string {
	to := m.w.t.TempDir()
	if err := os.CopyFS(to, os.DirFS(m.folder)); err != nil {
		m.w.t.Fatal(err)
	}
	return to
}

// vector returns a vector that tells its number.
func vector(n int) []float32 { return []float32{float32(n), 1, float32(n % 7), 0.5} }

func faces(numbers ...int) (all []fleet.Face) {
	for _, n := range numbers {
		all = append(all, fleet.Face{Vector: vector(n)})
	}
	return all
}

const space = "test space"
