// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fsnotify/fsnotify"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// syncer is a member that keeps its gallery in step.
type syncer struct {
	local
	path    string
	tell    func(string)
	trouble string // what people were told that keeps it from being in step
	lock    *os.File
	m       Membership
	said    gallery.There // who is here, as the others know it
}

// Run keeps the gallery at path and its fleet in step until ctx ends. While another program does,
// it waits. Without a connection the device goes on alone, and Run tries again. Tell gets a
// sentence for people when something changes. The error wraps [ErrNotMember], or comes from package
// gallery.
func Run(ctx context.Context, path string, tell func(string)) error {
	d, err := open(path, tell)
	if errors.Is(err, safefile.ErrLocked) {
		tell("another program keeps this gallery in step with the fleet")
	}
	for errors.Is(err, safefile.ErrLocked) && backoff.Wait(ctx, 5*time.Second) {
		d, err = open(path, tell)
	}
	if err != nil {
		return err
	}
	d.sessions(ctx)
	return d.close()
}

func open(path string, tell func(string)) (_ *syncer, err error) {
	d := &syncer{path: path, tell: tell}
	d.m, err = readMembership(path)
	if err != nil {
		return nil, err
	}
	d.own = protocol.Here + protocol.Public(d.m.Seed)
	d.lock, err = safefile.OpenLocked(membershipFile(path)+"-lock", 0)
	if err != nil {
		return nil, err
	}
	d.rows, d.space, err = gallery.OpenRows(path)
	if err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

func (d *syncer) close() error { return errors.Join(d.rows.Close(), d.lock.Close()) }

// soon after a write to the gallery it is looked at, and then after longer pauses.
const soon = 50 * time.Millisecond

// sessions takes part until ctx ends.
func (d *syncer) sessions(ctx context.Context) {
	pause := backoff.Pause{First: 250 * time.Millisecond, Longest: 30 * time.Second}
	for more := true; more; more = pause.Wait(ctx) {
		err := d.session(ctx)
		if d.trouble == "" { // it was in step
			pause.Reset()
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if err.Error() != d.trouble {
			d.trouble = err.Error()
			d.tell(d.trouble)
		}
	}
}

// refresh lets a learner follow the rows if nobody writes who does: what was removed is then
// nowhere in the file, and other programs open the gallery quickly.
func (d *syncer) refresh() error {
	left, err := d.rows.Int(
		"select (select count(*) from dropped) + (select count(*) from meta where key = 'erase')")
	if err != nil || left == 0 {
		return err
	}
	g, err := gallery.Open(d.path, d.space)
	if err != nil {
		return err
	}
	return errors.Join(g.Save(), g.Close())
}

// session is one connection of a device.
type session struct {
	*syncer
	*bucket
	notes   <-chan note
	log     *fsnotify.Watcher // of writes to the gallery
	there   map[string]bool   // the names on the list of all
	listed  bool              // that list has ended
	version int64             // of the gallery, when it was looked at; -1: look again
	next    *time.Timer       // the next look
	pause   time.Duration     // before it
	longest time.Duration     // that it becomes
}

// session takes part until the connection ends, or until the server is an old copy: then the error
// is nil.
func (d *syncer) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b, err := d.m.open(ctx, nats.ClosedHandler(func(*nats.Conn) { cancel() }),
		nats.PingInterval(30*time.Second))
	if err != nil {
		return err
	}
	defer b.nc.Close()
	old, err := d.m.renewed(ctx, b, d.path)
	if err != nil {
		return err
	}
	if old && d.m.Ring.AdminBox != "" {
		err = d.m.again(ctx, b)
		if errors.Is(err, errFaster) {
			err = nil
		}
		return err
	}
	err = d.begin(ctx, b)
	if err != nil {
		return err
	}
	notes, stop, err := b.listen(ctx)
	if err != nil {
		return err
	}
	defer stop()
	s := &session{syncer: d, bucket: b, notes: notes, there: make(map[string]bool), version: -1,
		next: time.NewTimer(soon), pause: soon}
	err = s.follow(ctx)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("the connection to the server of the fleet has ended: %w",
			cmp.Or(b.nc.LastError(), nats.ErrConnectionClosed))
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the server of the fleet does not answer: its disk may be full, or the "+
			"line too slow (%w)", err)
	}
	return err
}

// begin introduces this device, and says whom it sees.
func (d *syncer) begin(ctx context.Context, b *bucket) error {
	err := d.m.introduce(ctx, b)
	if err != nil {
		return err
	}
	said, err := b.get(ctx, protocol.Values+d.own, 0)
	if err != nil {
		return err
	}
	d.said = gallery.There{}
	d.m.Ring.Keys.open(d.own, said.Data, &d.said) // otherwise the others know of nobody here
	return d.say(ctx, b)
}

// follow takes what others write and gives what changes here. It begins with the list of all names:
// who was away, has an old gallery, or finds a server from an old copy learns the same way what
// differs.
func (s *session) follow(ctx context.Context) error {
	s.longest = 20 * time.Second
	log, err := fsnotify.NewWatcher()
	if err == nil {
		defer log.Close()
		err = log.Add(s.rows.Path() + "-wal")
	} else {
		log = new(fsnotify.Watcher) // its channels tell nothing
	}
	if err != nil { // the user's programs watch as many files as the system allows
		s.longest = time.Second
	}
	s.log = log
	for {
		batch, err := s.wait(ctx)
		if err != nil {
			return err
		}
		old, err := s.hear(ctx, batch)
		if err != nil || old {
			return err
		}
		if s.listed && len(s.notes) == 0 {
			err = s.tend(ctx, len(batch) > 0)
		}
		if errors.Is(err, errFaster) {
			err = nil // its keys are among the next notes
		}
		if err != nil {
			return err
		}
	}
}

// wait waits for something to do, and returns what others have written.
func (s *session) wait(ctx context.Context) (batch []note, err error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case n := <-s.notes:
			size := n.size
			for batch = append(batch, n); size < portion && len(batch) < atOnce &&
				len(s.notes) > 0; size += n.size {
				n = <-s.notes
				batch = append(batch, n)
			}
			return batch, nil
		case <-s.log.Events: // the commit, which is no event, follows
			s.hurry()
		case <-s.log.Errors: // too many events
			return nil, nil
		case <-s.next.C:
			s.pause = min(2*s.pause, s.longest)
			s.next.Reset(s.pause)
			return nil, nil
		}
	}
}

// hurry has the gallery looked at soon.
func (s *session) hurry() {
	if s.pause > soon {
		s.pause = soon
		s.next.Reset(soon)
	}
}

// hear takes new keys, and then the values that others have written: those come after the key that
// has sealed them. Old says that the server has older keys than this device.
func (s *session) hear(ctx context.Context, batch []note) (old bool, err error) {
	for _, n := range batch {
		s.there[n.name] = true
		if n.name == keysName && n.rev > s.m.rev {
			old, err = s.m.renewed(ctx, s.bucket, s.path)
		}
		if err != nil || old {
			return old, err
		}
	}
	err = s.pull(ctx, s.bucket, batch)
	if err == nil && !s.listed && len(batch) > 0 && batch[len(batch)-1].last {
		s.listed = true
		err = s.missing(s.there)
	}
	return false, err
}

// tend gives what has changed in the gallery.
func (s *session) tend(ctx context.Context, heard bool) error {
	// changes when another program changes the gallery
	now, err := s.rows.Int("pragma data_version")
	if err != nil {
		return err
	}
	if now == s.version && !heard && s.pause < s.longest {
		return nil
	}
	s.version = now
	more, err := s.give(ctx, s.bucket)
	if err != nil {
		return err
	}
	if s.trouble != "" {
		s.tell("the fleet is connected again")
	}
	s.trouble = ""
	switch {
	case more:
		s.version, s.pause = -1, soon
		s.next.Reset(soon)
	case s.pause == s.longest:
		return s.refresh()
	}
	return nil
}

// give tells the others what has changed here, and reports whether something is left.
func (d *syncer) give(ctx context.Context, b *bucket) (more bool, err error) {
	err = errors.Join(d.say(ctx, b), d.look())
	if err == nil {
		more, err = d.push(ctx, b, unsent)
	}
	if err != nil || more {
		return true, err
	}
	return d.retire(ctx, b)
}

// pull fetches values that this device has not seen, and takes them.
func (d *syncer) pull(ctx context.Context, b *bucket, batch []note) error {
	lacking, err := d.lacking(batch)
	if err != nil || len(lacking) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.Patience)
	defer cancel()
	got := make([]kept, len(lacking))
	var work errgroup.Group
	for i, n := range lacking {
		work.Go(func() (err error) {
			got[i], err = d.value(ctx, b, n)
			return err
		})
	}
	err = work.Wait()
	if err != nil {
		return err
	}
	return d.take(got)
}

// value reads a value. What this device cannot read, or what no honest member would write, counts
// as a record of which nothing is known, so that a device that knows more writes over it.
func (d *syncer) value(ctx context.Context, b *bucket, n note) (k kept, err error) {
	m, err := b.get(ctx, protocol.Values+n.name, n.rev)
	if err != nil {
		return k, err
	}
	if strings.HasPrefix(n.name, protocol.Here) {
		var there gallery.There
		// otherwise it was revoked
		if d.m.Ring.Keys.open(n.name, m.Data, &there) && face.CheckName(there.Place) == nil {
			there.At = min(there.At, time.Now().Unix()) // a clock that is wrong lets nobody stay
			k.there = there
		}
		k.here = n.name
		return k, nil
	}
	k = kept{write: m.Header.Get("Write"), rev: m.Sequence, key: numberOf(m.Data)}
	k.id, _ = parseID(n.name)
	if !d.m.Ring.Keys.open(n.name, m.Data, &k.rec) || !k.rec.sane(k.id) {
		k.rec, k.write = Record{}, "" // each session asks for it again: there may be a key
	}
	return k, nil
}

// push gives the server the records that a statement finds, and reports whether some are left.
func (d *syncer) push(ctx context.Context, b *bucket, statement string,
	args ...any) (more bool, err error) {
	for {
		all, err := d.some(statement, args...)
		if err != nil || len(all) == 0 {
			return false, err
		}
		won, lost, err := d.put(ctx, b, all)
		// others were faster: join, and try again
		err = errors.Join(err, d.written(won), d.pull(ctx, b, lost))
		if err != nil || len(won) == 0 {
			return true, err // after the next tick
		}
	}
}

// put writes records over the values that they are made of. Lost are those that others have
// written. Who has more faces than a value can hold stays as the others know them. What is only
// sealed anew stays the same write, which nobody fetches who knows it.
func (d *syncer) put(ctx context.Context, b *bucket,
	all []*state) (won []*state, lost []note, err error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.Patience)
	defer cancel()
	var mu sync.Mutex // guards won and lost
	var work errgroup.Group
	for _, p := range all {
		work.Go(func() error {
			p.key = d.m.Ring.Keys.now()
			m := message(protocol.Values+p.id.String(), d.m.Ring.Keys.seal(p.id.String(), p.rec))
			if p.sent {
				m.Header.Set("Write", p.write)
			}
			ack, err := b.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(p.rev))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, nats.ErrMaxPayload):
				d.tell(p.rec.Name + " has too many faces for the fleet; remove some, and the " +
					"others learn what has changed")
				won = append(won, p) // until the next change
			case err == nil:
				p.write, p.rev = m.Header.Get("Write"), ack.Sequence
				won = append(won, p)
			case wasFaster(err):
				lost = append(lost, note{name: p.id.String(), write: "of another device"})
			default:
				return fmt.Errorf("giving people to the server of the fleet: %w", err)
			}
			return nil
		})
	}
	err = work.Wait()
	return won, lost, err
}

// say tells the others whom the offices see that run with this gallery.
func (d *syncer) say(ctx context.Context, b *bucket) error {
	mine, err := d.rows.Here(d.m.Name, time.Now())
	if err != nil {
		return err
	}
	fresh := mine.At-d.said.At < int64(gallery.Lasting/time.Second)/3 || len(mine.Since) == 0
	if fresh && maps.Equal(mine.Since, d.said.Since) {
		return nil
	}
	d.said = mine
	return b.put(ctx, protocol.Values+d.own, d.m.Ring.Keys.seal(d.own, mine))
}
