// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
)

// Server is a connection to the server of a fleet. [Dial] makes one over NATS. Its methods may be called at once.
type Server interface {
	// Pull calls take with the last values of a device from a place on, in the order of their places.
	Pull(ctx context.Context, device string, from uint64, take func(name string, place uint64, data []byte)) error
	// Put stores a value of this device. It is on the server's disk when Put returns.
	Put(ctx context.Context, name string, data []byte) error
	// Give gives the server a record that it lacks.
	Give(ctx context.Context, record []byte) error
	// Live calls take with values that are stored from now on, until ctx or the connection ends. It calls ready when it
	// listens.
	Live(ctx context.Context, ready func(), take func(device, name string, data []byte)) error
	// Tell tells the server how this device is. It is stored nowhere.
	Tell(ctx context.Context, s Status) error
	// Clock returns how far the clock of this device is ahead of the server's.
	Clock(ctx context.Context) (time.Duration, error)
	// Broadcast sends data to all other devices that listen now. It is stored nowhere.
	Broadcast(ctx context.Context, data []byte) error
	// Listen calls take with what other devices broadcast, until ctx or the connection ends.
	Listen(ctx context.Context, take func(device string, data []byte)) error
	// Done is closed when the connection has ended.
	Done() <-chan struct{}
	Close() error
}

// Errors of a [Server].
var (
	ErrOffline = errors.New("there is no connection to the server of the fleet")
	ErrFull    = errors.New("the server has no room left for what this device says; allow more with faceauth fleet " +
		"serve --quota")
	ErrRefused = errors.New("the server of the fleet refuses this device")
)

// Times of a session.
const (
	lookEvery = 10 * time.Minute // how often all streams are looked at again
	tellEvery = 30 * time.Second
	mostLive  = 10_000 // items that wait
	putAtOnce = 16
	pullers   = 8
	batchSize = 500 // items of one transaction
)

// Run keeps this device and the server in step until ctx ends. After a failure it tries again. The error wraps
// [ErrRevoked] if the device was revoked.
func (d *Device) Run(ctx context.Context, dial func(ctx context.Context) (Server, error)) error {
	pause := backoff.Pause{First: d.s.Retry, Longest: 30 * time.Second}
	for ctx.Err() == nil {
		server, err := dial(ctx)
		if err == nil {
			err = d.session(ctx, server, pause.Reset)
			server.Close()
		}
		d.mu.Lock()
		d.connected, d.caughtUp, d.server = false, false, nil
		d.state()
		if d.members.Revoked(d.id) {
			d.mu.Unlock()
			return ErrRevoked
		}
		if ctx.Err() == nil && err != nil {
			d.complain(err)
		}
		d.mu.Unlock()
		signal(d.changed)
		pause.Wait(ctx)
	}
	return nil
}

func (d *Device) revoked() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members.Revoked(d.id)
}

// session is one connection.
type session struct {
	d       *Device
	server  Server
	live    chan item
	streams map[string]reading // of devices
	pullers chan struct{}      // has room for the streams that are read at once
	pulled  chan pulled
	work    *sync.WaitGroup
	blocked map[string]bool // own values for which the server has no room
}

// reading says whether a stream was read in this session.
type reading int

const (
	unread reading = iota
	isRead
	reads
	readsAgain // it is being read, and must be read again then
)

// pulled is the end of reading a stream.
type pulled struct {
	device string
	err    error
}

func (d *Device) session(ctx context.Context, server Server, works func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	s := session{d: d, server: server, live: make(chan item, mostLive), streams: make(map[string]reading),
		pullers: make(chan struct{}, pullers), pulled: make(chan pulled), work: &work, blocked: make(map[string]bool)}
	defer work.Wait()
	defer cancel()
	// A revoked device may read nothing else than that it was revoked.
	if err := s.pull(ctx, AdminWriter, d.place(AdminWriter), func(string, uint64) {}); err != nil {
		return fmt.Errorf("reading who is a member: %w", err)
	}
	if d.revoked() {
		return ErrRevoked
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	work.Go(func() {
		ended <- server.Live(ctx, func() { close(ready) }, func(device, name string, data []byte) {
			select {
			case s.live <- item{device, name, data}:
			case <-ctx.Done():
			}
		})
	})
	select {
	case <-ready:
	case err := <-ended:
		return cmp.Or(err, ErrOffline)
	case <-ctx.Done():
		return nil
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	works()
	return s.follow(ctx, ended)
}

// patient bounds one request.
func (s *session) patient(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.d.s.Patience)
	defer cancel()
	return do(ctx)
}

// catchUp reads what is on the server, and finds what of this device it lacks.
func (s *session) catchUp(ctx context.Context) error {
	d := s.d
	d.mu.Lock()
	d.connected, d.server = true, s.server
	d.trouble = ""
	d.mu.Unlock()
	err := s.patient(ctx, func(ctx context.Context) error {
		skew, err := s.server.Clock(ctx)
		if err == nil && skew.Abs() > ahead/2 {
			d.s.Tell(fmt.Sprintf("the clock of this device is %v ahead of the server's (behind, if negative): set it; "+
				"what it says counts late or less", skew.Round(time.Minute)))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("asking the server for its time: %w", err)
	}
	there := make(map[string]bool)
	err = s.pull(ctx, AdminWriter, 0, func(name string, _ uint64) { there[name] = true })
	if err != nil {
		return fmt.Errorf("reading who is a member: %w", err)
	}
	d.mu.Lock()
	records := d.members.Records()
	d.mu.Unlock()
	for name, r := range records {
		if !there[name] {
			if err := s.patient(ctx, func(ctx context.Context) error { return s.server.Give(ctx, r) }); err != nil {
				return fmt.Errorf("giving the server a lost record: %w", err)
			}
		}
	}
	for n := s.pullUnread(ctx); n > 0; n-- {
		select {
		case x := <-s.pulled:
			if err := s.took(ctx, x); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.pullOwn(ctx); err != nil {
		return err
	}
	if err := d.settle(true); err != nil {
		return err
	}
	d.mu.Lock()
	d.caughtUp = true
	d.mu.Unlock()
	signal(d.changed)
	return nil
}

// pullUnread begins to read the streams that were not read in this session, and returns their number.
func (s *session) pullUnread(ctx context.Context) (n int) {
	s.d.mu.Lock()
	members := s.d.members.Devices()
	s.d.mu.Unlock()
	for _, m := range members {
		if m.ID != s.d.id && s.streams[m.ID] == unread && (!m.Revoked || len(m.keep) > 0) {
			s.pullBeside(ctx, m.ID)
			n++
		}
	}
	return n
}

// pullBeside reads the stream of a device while what others say comes in: a stream may be slow, or its author a liar.
func (s *session) pullBeside(ctx context.Context, device string) {
	if s.streams[device] >= reads {
		s.streams[device] = readsAgain
		return
	}
	s.streams[device] = reads
	s.work.Go(func() {
		select {
		case s.pullers <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := s.pullDevice(ctx, device)
		<-s.pullers
		select {
		case s.pulled <- pulled{device, err}:
		case <-ctx.Done():
		}
	})
}

// took notes that a stream was read.
func (s *session) took(ctx context.Context, x pulled) error {
	if x.err != nil {
		return fmt.Errorf("reading what a device says: %w", x.err)
	}
	again := s.streams[x.device] == readsAgain
	if s.streams[x.device] = isRead; again {
		s.pullBeside(ctx, x.device)
	}
	return nil
}

// pull reads a stream from a place on, and calls each with every name.
func (s *session) pull(ctx context.Context, device string, from uint64, each func(name string, n uint64)) error {
	var items []item
	var failed error
	last := uint64(0)
	err := s.patientPull(ctx, device, from, func(name string, place uint64, data []byte) {
		each(name, ValueCounter(data))
		items = append(items, item{device: device, name: name, data: data})
		last = max(last, place)
		if len(items) >= batchSize && failed == nil {
			failed = s.d.accept(items)
			items = nil
		}
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	if err := s.d.accept(items); err != nil || last == 0 {
		return err
	}
	return s.d.setPlace(device, last)
}

// patientPull ends when nothing has come for the time of [Settings.Patience].
func (s *session) patientPull(ctx context.Context, device string, from uint64,
	take func(string, uint64, []byte)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(s.d.s.Patience, func() { cancel(ErrOffline) })
	defer timer.Stop()
	err := s.server.Pull(ctx, device, from, func(name string, place uint64, data []byte) {
		timer.Reset(s.d.s.Patience)
		take(name, place, data)
	})
	if why := context.Cause(ctx); err != nil && why != nil {
		return why
	}
	return err
}

// pullDevice reads what a device has said since the stream was read last. The message at the last place is read again:
// if the stream does not have it, an old copy of the server was put back, and all is read.
func (s *session) pullDevice(ctx context.Context, device string) error {
	have := make(map[string]uint64)
	note := func(name string, n uint64) { have[name] = n }
	from := s.d.place(device)
	if err := s.pull(ctx, device, from, note); err != nil {
		return err
	}
	if from > 0 && (len(have) == 0 || !s.d.complete(device)) {
		clear(have)
		if err := s.pull(ctx, device, 0, note); err != nil {
			return err
		}
		from = 0
	}
	if from == 0 && !s.d.complete(device) {
		again, err := s.d.unsay(device, have)
		if err == nil && again {
			err = s.pull(ctx, device, 0, note)
		}
		if err != nil {
			return err
		}
	}
	if !s.d.complete(device) {
		s.d.mu.Lock()
		defer s.d.mu.Unlock()
		s.d.refused[placeOf(device, headNote)] = withheld
	}
	return nil
}

const withheld = "the server does not have all that this device has said"

// complete reports whether all is known that a device says it has said.
func (d *Device) complete(device string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hasAll(device) {
		return false
	}
	if place := placeOf(device, headNote); d.refused[place] == withheld {
		delete(d.refused, place)
	}
	return true
}

// pullOwn reads what the server has of this device, and notes what it lacks.
func (s *session) pullOwn(ctx context.Context) error {
	d := s.d
	have := make(map[string]uint64)
	note := func(name string, n uint64) { have[name] = n }
	from := d.place(d.id)
	if err := s.pull(ctx, d.id, from, note); err != nil {
		return err
	}
	d.mu.Lock()
	head := d.said[d.id][headNote]
	same := head != nil && head.sent && have[headNote] == head.n
	d.mu.Unlock()
	if same {
		return nil
	}
	if from > 0 {
		clear(have)
		if err := s.pull(ctx, d.id, 0, note); err != nil {
			return err
		}
	}
	return d.missing(have)
}

// follow takes what comes and gives what is new, until the connection ends.
func (s *session) follow(ctx context.Context, ended <-chan error) error {
	d := s.d
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	told, toldAt := Status{}, time.Time{}
	for {
		if err := s.publish(ctx); err != nil {
			return err
		}
		st := d.State()
		if now := time.Now(); st.InStep != told.InStep || st.Keys != told.Keys || st.Trouble != told.Trouble ||
			len(st.Refused) != len(told.Refused) || now.Sub(toldAt) > tellEvery {
			told, toldAt = st.Status, now
			s.patient(ctx, func(ctx context.Context) error { return s.server.Tell(ctx, told) }) // it is repeated
		}
		wait := d.wait()
		timer, due := time.NewTimer(min(wait, tellEvery)), wait <= tellEvery
		var items []item
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case err := <-ended:
			timer.Stop()
			return cmp.Or(err, ErrOffline)
		case <-s.server.Done():
			timer.Stop()
			return ErrOffline
		case <-look.C:
			maps.DeleteFunc(s.streams, func(_ string, r reading) bool { return r == isRead })
		case <-d.wake:
		case x := <-s.pulled:
			if err := s.took(ctx, x); err != nil {
				return err
			}
		case x := <-s.live:
			items = append(items, x)
			for more := true; more && len(items) < batchSize; {
				select {
				case x := <-s.live:
					items = append(items, x)
				default:
					more = false
				}
			}
		case <-timer.C:
			if !due { // it is only time to tell again
				continue
			}
		}
		timer.Stop()
		if err := d.accept(items); err != nil {
			return err
		}
		for _, x := range items {
			if x.name == headNote && x.device != d.id && !d.complete(x.device) {
				s.pullBeside(ctx, x.device)
			}
		}
		s.pullUnread(ctx)
		if d.revoked() {
			return ErrRevoked
		}
		if err := d.settle(true); err != nil {
			return err
		}
	}
}

// publish gives the server what it lacks, and last the head.
func (s *session) publish(ctx context.Context) error {
	d := s.d
	d.mu.Lock()
	names := d.unsent()
	head := d.said[d.id][headNote]
	headDue := head == nil || !head.sent || head.n != d.own.Counter // this program may have been killed before it
	d.mu.Unlock()
	names = slices.DeleteFunc(names, func(name string) bool { return s.blocked[name] })
	for part := range slices.Chunk(names, putAtOnce) {
		var work sync.WaitGroup
		failed := make([]error, len(part))
		for i, name := range part {
			work.Go(func() { failed[i] = s.putOne(ctx, name) })
		}
		work.Wait()
		for i, err := range failed {
			if errors.Is(err, ErrFull) {
				s.blocked[part[i]] = true // until the next session
				d.mu.Lock()
				d.complain(err)
				d.mu.Unlock()
			} else if err != nil {
				return err
			}
		}
	}
	if len(names) > 0 || headDue {
		d.mu.Lock()
		err := d.write(d.putHead)
		d.mu.Unlock()
		if err != nil {
			return err
		}
		if err := s.putOne(ctx, headNote); err != nil && !errors.Is(err, ErrFull) {
			return err
		}
		signal(d.changed)
	}
	return nil
}

func (s *session) putOne(ctx context.Context, name string) error {
	s.d.mu.Lock()
	data, n, err := s.d.data(name)
	s.d.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.patient(ctx, func(ctx context.Context) error { return s.server.Put(ctx, name, data) }); err != nil {
		return err
	}
	return s.d.sent(name, n)
}
