// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// ErrRunning is an error of [Open]: another program keeps the gallery in step.
var ErrRunning = errors.New("another program keeps this gallery in step with the fleet")

// Device is a member that keeps its gallery in step. It is not safe for concurrent use.
type Device struct {
	local
	path   string
	tell   func(string)
	lock   *os.File
	m      membership
	unread bool // it was said that a value cannot be read
}

// Open opens the gallery at path for its fleet. Tell gets a sentence for people when something
// changes. Close the device after use. The error wraps [ErrNotMember], [ErrRunning], or comes from
// package gallery.
func Open(path string, tell func(string)) (_ *Device, err error) {
	d := &Device{path: path, tell: tell}
	if d.m, err = readMembership(path); err != nil {
		return nil, err
	}
	if d.lock, err = os.OpenFile(membershipFile(path)+"-lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err = safefile.Lock(d.lock, 2*time.Second); errors.Is(err, safefile.ErrLocked) {
		err = ErrRunning
	}
	if err == nil {
		d.rows, err = gallery.OpenRows(path)
	}
	if err == nil {
		d.space, err = d.rows.Space()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close closes the gallery.
func (d *Device) Close() (err error) {
	if d.rows != nil {
		err = d.rows.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// The bucket: one value for each person, one for each member, and one for the keys.
const (
	stream       = "KV_people"
	place        = "$KV.people."
	keyName      = "key"
	memberPrefix = "member."
)

const (
	every    = 600 * time.Millisecond // after it a program's change of the gallery is seen
	answer   = 20 * time.Second       // for which an acknowledgement is awaited
	fetchers = 32
	portion  = 256 // values that are taken or given at once
)

// errAgain ends a session whose keys are old.
var errAgain = errors.New("the keys are new")

// Run keeps the gallery and the fleet in step until ctx ends. Without a connection the device goes on
// alone, and Run tries again.
func (d *Device) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.refresh(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	pause := backoff.Pause{First: 250 * time.Millisecond, Longest: 30 * time.Second}
	for last := ""; ; {
		err := d.session(ctx, func() {
			pause.Reset()
			if last != "" {
				d.tell("the fleet is connected again")
			}
			last = ""
		})
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errAgain) {
			pause.Reset()
		} else if errors.Is(err, nats.ErrAuthorization) {
			err = fmt.Errorf("the server does not know this device: it was revoked, or the server is an old copy "+
				"(%w)", err)
		}
		if err != nil && !errors.Is(err, errAgain) && err.Error() != last {
			last = err.Error()
			d.tell(last)
		}
		if !pause.Wait(ctx) {
			return nil
		}
	}
}

// refresh lets a learner follow the rows when no other program does: what was removed is then
// nowhere in the file, and other programs open the gallery quickly.
func (d *Device) refresh(ctx context.Context) {
	rows, err := gallery.OpenRows(d.path)
	if err != nil {
		return // the sessions say so
	}
	defer rows.Close()
	for was := int64(0); backoff.Wait(ctx, 20*time.Second); {
		left, err := rows.Int("select count(*) from dropped")
		if err == nil && left > 0 && was > 0 {
			var g *gallery.Gallery
			if g, err = gallery.Open(d.path, d.space); err == nil {
				err = errors.Join(g.Save(), g.Close())
			}
		}
		if was = left; err != nil {
			d.tell(err.Error())
		}
	}
}

// note says that a value was written.
type note struct {
	name, write string
	key         uint32
	last        bool // the list of all ends here
}

// session takes part until the connection ends.
func (d *Device) session(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nc, js, s, err := d.m.stream(ctx, nats.ClosedHandler(func(*nats.Conn) { cancel() }),
		nats.PingInterval(20*time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	m, old, err := d.m.renewed(ctx, s)
	if err == nil && (m.Keys.now() != d.m.Keys.now() || len(m.Keys) != len(d.m.Keys)) {
		err = m.save(d.path)
	}
	if err == nil {
		d.m = m
		err = m.introduce(ctx, js, s)
	}
	if err == nil && old && m.AdminBox != "" {
		err = m.publishKeys(ctx, js, s, m.AdminBox, nil)
	}
	if err != nil {
		return err
	}
	notes, stop, err := listen(ctx, s, cancel)
	if err != nil {
		return fmt.Errorf("listing the values of the fleet: %w", err)
	}
	defer stop()
	err = d.follow(ctx, js, s, notes, connected)
	if ctx.Err() != nil && nc.LastError() != nil {
		err = nc.LastError()
	}
	return err
}

// listen returns the names of all values, and then of those that are written.
func listen(ctx context.Context, s jetstream.Stream, lost func()) (<-chan note, func(), error) {
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true, FilterSubjects: []string{place + ">"},
	})
	if err != nil {
		return nil, nil, err
	}
	notes := make(chan note, 4096)
	listening, err := c.Consume(func(m jetstream.Msg) {
		n := note{name: strings.TrimPrefix(m.Subject(), place), write: m.Headers().Get("Write")}
		key, _ := strconv.ParseUint(m.Headers().Get("Key"), 10, 32) // without one it counts as old
		n.key = uint32(key)
		if info, err := m.Metadata(); err == nil {
			n.last = info.NumPending == 0
		}
		select {
		case notes <- n:
		case <-ctx.Done():
		}
	}, jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		if errors.Is(err, jetstream.ErrOrderedConsumerReset) || errors.Is(err, jetstream.ErrNoHeartbeat) {
			lost()
		}
	}))
	if err != nil {
		return nil, nil, err
	}
	return notes, listening.Stop, nil
}

// follow takes what others write and gives what changes here. It begins with the list of all names:
// who was away, has an old gallery, or finds a server from an old copy learns the same way what
// differs. There is at least the introduction of this device, so the list ends.
func (d *Device) follow(ctx context.Context, js jetstream.JetStream, s jetstream.Stream,
	notes <-chan note, inStep func()) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	seen, version := make(map[ID]bool), int64(-1)
	met := meeting{others: make(map[string]presence)}
	var told []note
	listed, more, stale := false, false, len(d.m.Keys) > 1
	for {
		var batch []note
		select {
		case <-ctx.Done():
			return errors.New("the connection to the server of the fleet has ended")
		case n := <-notes:
			for batch = append(batch, n); len(batch) < portion && len(notes) > 0; {
				batch = append(batch, <-notes)
			}
		case <-tick.C:
		}
		ended := false
		for _, n := range batch {
			id, person := parseID(n.name)
			if person && !listed {
				seen[id] = true
			}
			if n.name == keyName && listed {
				return errAgain
			}
			stale, ended = stale || person && n.key < d.m.Keys.now(), ended || n.last
		}
		if err := d.pull(ctx, s, batch); err != nil {
			return err
		}
		if ended && !listed {
			n, err := d.missing(seen)
			if err != nil {
				return err
			}
			if n > 0 {
				d.tell(fmt.Sprintf("the server lacks %d people whom it had: they are given back", n))
			}
			listed, version, seen = true, -1, nil
		}
		if told = append(told, batch...); !listed || len(notes) > 0 {
			continue
		}
		now, err := d.rows.Version()
		if err != nil {
			return err
		}
		if now != version || len(told) > 0 || time.Since(met.at) > time.Minute {
			if err := d.meet(ctx, js, s, &met, told); err != nil {
				return err
			}
			met.at, told = time.Now(), nil
		}
		if now == version && len(batch) == 0 && !more && !stale {
			continue
		}
		version = now
		if err := d.look(); err != nil {
			return err
		}
		if more, err = d.push(ctx, js, s); err != nil {
			return err
		}
		inStep()
		if stale && !more && d.m.AdminBox != "" {
			if stale, err = d.retire(ctx, js, s); err != nil {
				return err
			}
		}
	}
}

// pull fetches values that this device has not seen, and takes them.
func (d *Device) pull(ctx context.Context, s jetstream.Stream, batch []note) error {
	want := make(map[ID]bool)
	for _, n := range batch {
		id, ok := parseID(n.name)
		if !ok {
			continue
		}
		lacks, err := d.lacks(id, n.write)
		if err != nil {
			return err
		}
		if delete(want, id); lacks {
			want[id] = true
		}
	}
	var mu sync.Mutex // guards got and failed
	var got []kept
	var failed error
	var work sync.WaitGroup
	slots := make(chan struct{}, fetchers)
	for id := range want {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			k, readable, err := d.value(ctx, s, id)
			mu.Lock()
			defer mu.Unlock()
			if failed = errors.Join(failed, err); readable {
				got = append(got, k)
			} else if err == nil && !d.unread {
				d.unread = true
				d.tell("a value of the fleet is of a newer program, or sealed with a key that this device lacks")
			}
		})
	}
	work.Wait()
	if failed != nil || len(got) == 0 {
		return failed
	}
	return d.take(got)
}

// value reads a value. Garbage counts as a record of which nothing is known, so that a device that
// knows more writes over it.
func (d *Device) value(ctx context.Context, s jetstream.Stream, id ID) (k kept, readable bool, err error) {
	m, err := s.GetLastMsgForSubject(ctx, place+id.String())
	if err != nil {
		return k, false, fmt.Errorf("reading from the fleet: %w", err)
	}
	k = kept{id: id, write: m.Header.Get("Write"), rev: m.Sequence}
	b, key, err := d.m.Keys.open(id.String(), m.Data)
	if err == nil {
		err = decoding.Unmarshal(b, &k.rec)
	}
	ring := k.rec.Into != ID{} && bytes.Compare(k.rec.Into[:], id[:]) >= 0 // a lie that would never end
	if k.key = key; err != nil || ring {
		k.rec = Record{}
	}
	return k, err == nil || key == 0, nil
}

// push gives the server what it lacks, and reports whether something is left.
func (d *Device) push(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) (more bool, err error) {
	for {
		all, err := d.unsent()
		if err != nil || len(all) == 0 {
			return false, err
		}
		won, lost, err := d.put(ctx, js, all)
		if err = errors.Join(err, d.written(won)); err != nil {
			return true, err
		}
		if err := d.pull(ctx, s, lost); err != nil { // others were faster: join, and try again
			return true, err
		}
		if len(won) == 0 {
			return true, nil // after the next tick
		}
	}
}

// put writes records over the values that they are made of. Lost are those that others have written.
func (d *Device) put(ctx context.Context, js jetstream.JetStream, all []*state) (won []*state, lost []note,
	err error) {
	futures := make([]jetstream.PubAckFuture, len(all))
	for i, p := range all {
		p.write, p.key = nuid.Next(), d.m.Keys.now()
		m := nats.NewMsg(place + p.id.String())
		m.Header.Set("Write", p.write)
		m.Header.Set("Key", strconv.FormatUint(uint64(p.key), 10))
		m.Data = d.m.Keys.seal(p.id.String(), encode(p.rec))
		futures[i], err = js.PublishMsgAsync(m, jetstream.WithExpectLastSequencePerSubject(p.rev))
		if err != nil {
			return nil, nil, fmt.Errorf("giving people to the fleet: %w", err)
		}
	}
	late := time.After(answer)
	for i, p := range all {
		select {
		case ack := <-futures[i].Ok():
			p.rev = ack.Sequence
			won = append(won, p)
		case failed := <-futures[i].Err():
			var api *jetstream.APIError
			if !errors.As(failed, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence &&
				api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
				return won, nil, fmt.Errorf("giving people to the fleet: %w", failed)
			}
			lost = append(lost, note{name: p.id.String(), write: "of another device"})
		case <-late:
			return won, nil, errors.New("the server of the fleet does not answer: its disk may be full")
		case <-ctx.Done():
			return won, nil, ctx.Err()
		}
	}
	return won, lost, nil
}

// Waiting returns the number of people with changes that the server does not have yet.
func Waiting(path string) (n int64, err error) {
	rows, err := gallery.OpenRows(path)
	if err != nil {
		return 0, err
	}
	n, err = rows.Int("select (select count(*) from shared where not sent) + (select count(*) from touched)")
	return n, errors.Join(err, rows.Close())
}
