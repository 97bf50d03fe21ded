// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
	"golang.org/x/sync/errgroup"
)

// ErrRewound is what a device says in [State] and to [Settings.Tell] where the log is shorter than what it has seen of
// it, and the fleet's admin key has not said that this is right. It takes nothing of such a log.
var ErrRewound = errors.New("the fleet's log was put back to an earlier state")

// The pauses between tries, and how long a device that was asked for keys may take.
const (
	longestRetry = 30 * time.Second
	caughtUp     = 5 * time.Millisecond // between looks whether all was read
	firstAsk     = 100 * time.Millisecond
	longestAsk   = 30 * time.Second
	answerTime   = 3 * time.Second
	fewKeys      = 32 // up to here their authors are asked first; and how many authors are asked at a time
)

// Run takes part in the fleet through a log until ctx ends, when it returns nil, or until that cannot go on: the error
// then wraps [ledger.ErrFuture], [ErrDamaged], [ErrRevoked], or [ErrRefused] for a device that never read in the log that
// it is a member. Where the log fails it tries again, and also where the server refuses a member without the admin key's
// word that the device was revoked: it may have been put back to an earlier state. It is called once at a time.
func (d *Device) Run(ctx context.Context, log Log) error {
	pause := backoff.Pause{First: d.s.Retry, Longest: longestRetry}
	for ctx.Err() == nil {
		begun := time.Now()
		err := d.session(ctx, log)
		refused, revoked := errors.Is(err, ErrRefused), false
		if refused && ctx.Err() == nil {
			switch again := d.rejoinSoon(ctx, log); {
			case again == nil:
				err = errForgotten
			case errors.Is(again, ErrRevoked):
				err, revoked = again, true
			}
		}
		d.mu.Lock()
		d.connected = false
		d.step()
		if err != nil && ctx.Err() == nil {
			d.complain(err)
		}
		d.mu.Unlock()
		if errors.Is(err, ledger.ErrFuture) || errors.Is(err, ErrDamaged) || revoked || refused && !d.admitted() {
			return err
		}
		if time.Since(begun) > longestRetry {
			pause.Reset()
		}
		pause.Wait(ctx)
	}
	return nil
}

// session takes part until something fails.
func (d *Device) session(ctx context.Context, log Log) error {
	if x, ok := log.(Restorer); ok {
		bound, unbind, err := x.Bind(ctx)
		if err != nil {
			return fmt.Errorf("looking at the fleet's log: %w", err)
		}
		defer unbind()
		ctx = bound
	}
	err := d.look(ctx, log)
	var anew restored
	if errors.As(err, &anew) {
		if err := d.setAside(anew.log); err != nil {
			return err
		}
		err = d.look(ctx, log)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	returning := d.aside != nil
	d.mu.Unlock()
	if returning {
		if err := d.rejoinSoon(ctx, log); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("telling the server of the fleet who is a member: %w", err)
		}
	}
	if err := d.catchUp(ctx, log, false); err != nil {
		return err
	}
	d.mu.Lock()
	d.connected, d.trouble = true, ""
	d.unsend()
	seq, end := d.base.Seq(), d.end
	d.moved = time.Now()
	d.step()
	d.mu.Unlock()
	signal(d.wake)
	signal(d.ask)
	bound := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := log.Follow(ctx, seq, d.take)
		if errors.Is(err, ErrTrimmed) {
			err = d.catchUp(ctx, log, true)
		}
		return ended(ctx, err)
	})
	g.Go(func() error { return d.publish(ctx, log, end) })
	g.Go(func() error { return ended(ctx, log.ServeKeys(ctx, d.id, d.answer)) })
	g.Go(func() error { return d.collect(ctx, log) })
	g.Go(func() error { return d.watch(ctx, log) })
	g.Go(func() error { return d.shoot(ctx, log) })
	err = g.Wait()
	if why := context.Cause(bound); why != nil {
		return why // the connection ended, or the program does
	}
	return err
}

// errForgotten ends a session in which the server has not known this device, and was told.
var errForgotten = errors.New("the server of the fleet had lost that it admitted this device; it knows it again")

// admitted reports whether this device is a member, as far as it knows.
func (d *Device) admitted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, known := d.now().Device(d.id)
	return known && !m.Revoked && m.Name != d.id // an id is the name of who has said something before it was admitted
}

// rejoinSoon is rejoin within as long as the log may take.
func (d *Device) rejoinSoon(ctx context.Context, log Log) error {
	ctx, cancel := context.WithTimeout(ctx, d.s.Patience)
	defer cancel()
	return d.rejoin(ctx, log)
}

// errEnded ends a session in which the log ended something without an error.
var errEnded = errors.New("the connection to the fleet's log ended")

func ended(ctx context.Context, err error) error {
	if err == nil && ctx.Err() == nil {
		return errEnded
	}
	return err
}

// look asks how long the log is.
func (d *Device) look(ctx context.Context, log Log) error {
	ctx, cancel := context.WithTimeout(ctx, d.s.Patience)
	defer cancel()
	r, err := d.restoration(ctx, log)
	if err != nil {
		return fmt.Errorf("looking at the fleet's log: %w", err)
	}
	d.mu.Lock()
	seq := d.base.Seq() // before the log is asked, which grows meanwhile
	err = d.damage()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	end, err := log.Last(ctx)
	if err != nil {
		return fmt.Errorf("looking at the fleet's log: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.follows(r, seq, end); err != nil {
		return err
	}
	d.end = max(d.end, end)
	d.settleStored(end)
	d.step()
	return nil
}

// watch looks at the log now and then.
func (d *Device) watch(ctx context.Context, log Log) error {
	for backoff.Wait(ctx, d.s.Look) {
		if err := d.look(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// catchUp takes in the snapshot of the log where that is the shorter way, or where there is no other.
func (d *Device) catchUp(ctx context.Context, log Log, trimmed bool) error {
	d.mu.Lock()
	seq, end := d.base.Seq(), d.end
	d.mu.Unlock()
	if seq > 0 && end-min(seq, end) < d.s.SnapshotEvery && !trimmed {
		return nil
	}
	at, data, err := log.Snapshot(ctx)
	if errors.Is(err, ErrNoSnapshot) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("fetching a snapshot: %w", err)
	}
	defer data.Close()
	if at <= seq {
		return nil
	}
	l, err := d.store.Fetch(data)
	if errors.Is(err, ledger.ErrSnapshot) && !trimmed {
		// The log has everything that the snapshot is made of, or else says that it was trimmed.
		d.mu.Lock()
		d.complain(fmt.Errorf("the fleet's snapshot is not used: %w", err))
		d.mu.Unlock()
		return nil
	}
	if err != nil {
		return fmt.Errorf("fetching a snapshot: %w", err)
	}
	defer l.Abort()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopt(l)
}

// adopt puts a restored ledger in the place of the one that is behind it.
func (d *Device) adopt(l *ledger.Draft) error {
	if l.Seq() <= d.base.Seq() {
		return nil
	}
	if err := d.store.Adopt(l); err != nil {
		return err
	}
	d.base, d.view, d.names = d.store.Ledger, nil, nil
	d.put = max(d.put, l.Seq())
	for _, id := range d.ring.People() {
		if l.Forgotten(id) {
			d.ring.Destroy(id)
			d.ringStale = true
		}
	}
	if err := d.saveRing(); err != nil {
		return err
	}
	seen := l.Last(d.id)
	d.lackAll()
	signal(d.ask)
	signal(d.changed)
	return d.confirm(func(w waiting) bool { return w.e.N <= seen && (w.stored || l.Holds(w.data)) })
}

// publish puts what waits into the log, one after the other. It begins when all has been read that the log had before:
// there may be entries of this device in it that its folder, an old copy, does not know, and their counters are used.
func (d *Device) publish(ctx context.Context, log Log, end uint64) error {
	for seq := uint64(0); ; {
		d.mu.Lock()
		now := d.base.Seq()
		d.mu.Unlock()
		if now >= end {
			break
		}
		if now > seq {
			seq = now
		} else if d.idle(now) {
			break // the last ones are not there any more
		}
		if !backoff.Wait(ctx, caughtUp) {
			return nil
		}
	}
	for {
		w, ok := d.nextToPublish()
		if !ok {
			select {
			case <-ctx.Done():
				return nil
			case <-d.wake:
			}
			continue
		}
		if err := d.append(ctx, log, w); err != nil {
			return err
		}
	}
}

// idle reports whether nothing of the log has come for as long as it may take.
func (d *Device) idle(now uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.Seq() == now && time.Since(d.moved) > d.s.Patience
}

func (d *Device) nextToPublish() (waiting, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// What is said about a person may rest on what was lost: that comes first.
	if w, ok := d.nextToReturn(); ok {
		return w, true
	}
	for _, w := range d.pending {
		if !w.stored {
			return w, true
		}
	}
	return waiting{}, false
}

func (d *Device) append(ctx context.Context, log Log, w waiting) error {
	ctx, cancel := context.WithTimeout(ctx, d.s.Patience)
	defer cancel()
	if err := log.Append(ctx, w.e.Subject(), w.e.MessageID(), w.data); err != nil {
		return fmt.Errorf("adding to the fleet's log: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent(w)
	return nil
}

// answer answers a request for keys.
func (d *Device) answer(request []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, err := d.now().AnswerKeys(request, d.ring, d.key)
	if err != nil {
		d.s.Tell(err.Error())
		return nil
	}
	return answer
}

// collect asks others for the keys that are missing, until all are there, and again when one more is missing.
func (d *Device) collect(ctx context.Context, log Log) error {
	pause := backoff.Pause{First: firstAsk, Longest: longestAsk}
	for {
		before, after := d.askAll(ctx, log)
		if after < before {
			pause.Reset()
		}
		if after == 0 {
			pause.Reset()
			select {
			case <-ctx.Done():
				return nil
			case <-d.ask:
			}
			continue
		}
		// A key that is missing anew is asked for at once; those that nobody has are asked for more and more rarely.
		wait, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			select {
			case <-d.ask:
				cancel()
			case <-wait.Done():
			}
		}()
		woken := !pause.Wait(wait)
		cancel()
		<-stop
		if ctx.Err() != nil {
			return nil
		}
		if woken {
			pause.Reset()
		}
	}
}

// wants returns the keys that are missing.
func (d *Device) wants() []ledger.Want {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []ledger.Want
	for id := range d.lacking {
		d.lacks(id)
		all = append(all, d.base.WantsOf(d.id, id, d.ring)...)
	}
	return all
}

// askAll asks for all keys that are missing, and returns how many that were before and after.
func (d *Device) askAll(ctx context.Context, log Log) (before, after int) {
	all := d.wants()
	before = len(all)
	if before == 0 {
		return 0, 0
	}
	// Few keys come from their authors, which surely have them; many from any device, and what it has not from their
	// authors: any device may be this one.
	if before > fewKeys {
		d.askFor(ctx, log, "", all)
	}
	authors := make(map[string][]ledger.Want)
	for _, w := range d.wants() {
		if _, known := authors[w.Author]; known || len(authors) < fewKeys {
			authors[w.Author] = append(authors[w.Author], w)
		}
	}
	delete(authors, d.id)
	for author, wants := range authors {
		d.askFor(ctx, log, author, wants)
	}
	if before <= fewKeys {
		d.askFor(ctx, log, "", d.wants())
	}
	return before, len(d.wants())
}

// askFor asks one device, or any, for keys, in as many requests as it takes.
func (d *Device) askFor(ctx context.Context, log Log, of string, wants []ledger.Want) {
	for part := range slices.Chunk(wants, ledger.MaxWants) {
		if ctx.Err() == nil {
			d.askKeys(ctx, log, of, part)
		}
	}
}

// askKeys asks one device, or any, and takes in its answer.
func (d *Device) askKeys(ctx context.Context, log Log, of string, wants []ledger.Want) {
	q, err := ledger.NewKeyRequest(d.fleet, d.key, wants)
	if err != nil {
		d.s.Tell(err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := log.AskKeys(ctx, of, q.Bytes())
	if err != nil {
		return // it is off, or busy: another one is asked, or the same later
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	came := ledger.NewRing()
	if _, err = q.Open(answer, came); err != nil {
		d.s.Tell(err.Error())
	}
	for _, w := range wants {
		key, ok := came.Key(w.Person, w.Key)
		if ok && d.now().Known(w.Person) { // it may have been forgotten since it was asked for
			d.ring.Add(w.Person, key)
			d.ringStale = true
		}
	}
	if !d.ringStale {
		return
	}
	if err := d.saveRing(); err != nil {
		d.complain(err)
	}
	d.names = nil
	signal(d.changed)
}

// shoot puts snapshots into the log. The device whose entry makes the log long enough does it.
func (d *Device) shoot(ctx context.Context, log Log) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.snap:
		}
		if err := log.PutSnapshot(ctx, 0, strings.NewReader("")); errors.Is(err, errors.ErrUnsupported) {
			return nil // another program makes them, and fetching the latest one to know its place is a waste
		}
		if err := d.putSnapshot(ctx, log); err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.complain(err) // another device, or the same later, will
			d.mu.Unlock()
		}
	}
}

func (d *Device) putSnapshot(ctx context.Context, log Log) error {
	at, data, err := log.Snapshot(ctx)
	if err == nil {
		data.Close()
	} else if !errors.Is(err, ErrNoSnapshot) {
		return fmt.Errorf("putting a snapshot: %w", err)
	}
	f, err := os.CreateTemp(d.folder, "snapshot-*")
	if err != nil {
		return fmt.Errorf("putting a snapshot: %w", err)
	}
	defer func() {
		f.Close()
		os.Remove(f.Name())
	}()
	d.mu.Lock()
	d.put = max(d.put, at)
	seq := d.base.Seq()
	needed := seq >= d.put+d.s.SnapshotEvery
	if needed {
		err = d.base.Snapshot(f, d.key)
	}
	d.mu.Unlock()
	if err != nil || !needed {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := log.PutSnapshot(ctx, seq, f); err != nil {
		return fmt.Errorf("putting a snapshot: %w", err)
	}
	d.mu.Lock()
	d.put = max(d.put, seq)
	d.mu.Unlock()
	return nil
}

// sweepSnapshots removes what a program that was killed left behind.
func (d *Device) sweepSnapshots() {
	left, err := filepath.Glob(filepath.Join(d.folder, "snapshot-*"))
	for _, path := range left {
		if info, statErr := os.Lstat(path); err == nil && statErr == nil && info.Mode().Type() == fs.FileMode(0) {
			os.Remove(path)
		}
	}
}
