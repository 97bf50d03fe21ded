// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
	"golang.org/x/sync/errgroup"
)

// ErrRewound is shown in [State] and passed to [Settings.Tell] if the log is shorter than the part that the device has
// read, and no signature of the fleet's admin key explains it. The device takes no entries from such a log.
var ErrRewound = errors.New("the fleet's log was put back to an earlier state")

// Pauses between tries, and limits for the requests of keys.
const (
	longestRetry = 30 * time.Second
	caughtUp     = 5 * time.Millisecond // between two checks whether all entries are read
	firstAsk     = 100 * time.Millisecond
	longestAsk   = 30 * time.Second
	answerTime   = 3 * time.Second
	fewKeys      = 32 // up to this number, the authors are asked first; also the most authors in one round
)

// Run follows the log and appends the device's entries until ctx ends; then it returns nil. It returns an error if it
// cannot continue: the error wraps [ledger.ErrFuture] (the admin key has written a newer version), [ErrDamaged],
// [ErrRevoked], or [ErrRefused] for a device that has never read its own admission in the log. After other errors of
// the log it tries again. It also tries again if the server refuses a member without showing a signed revocation,
// because the server may have been put back to an earlier state. Only one call of Run may be active at a time.
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
		d.updateInStep()
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

// session follows the log over one connection, until something fails.
func (d *Device) session(ctx context.Context, log Log) error {
	if x, ok := log.(Restorer); ok {
		bound, unbind, err := x.Bind(ctx)
		if err != nil {
			return fmt.Errorf("asking the fleet's log for its length: %w", err)
		}
		defer unbind()
		ctx = bound
	}
	err := d.checkLog(ctx, log)
	var anew restored
	if errors.As(err, &anew) {
		if err := d.setAside(anew.log); err != nil {
			return err
		}
		err = d.checkLog(ctx, log)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	returning := d.aside != nil
	d.mu.Unlock()
	if returning {
		if err := d.rejoinSoon(ctx, log); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("sending the fleet's members to its server: %w", err)
		}
	}
	if err := d.catchUp(ctx, log, false); err != nil {
		return err
	}
	d.mu.Lock()
	d.connected, d.trouble = true, ""
	d.resendAll()
	seq, end := d.base.Seq(), d.end
	d.moved = time.Now()
	d.updateInStep()
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
	g.Go(func() error { return d.collectKeys(ctx, log) })
	g.Go(func() error { return d.checkRegularly(ctx, log) })
	g.Go(func() error { return d.putSnapshots(ctx, log) })
	err = g.Wait()
	if why := context.Cause(bound); why != nil {
		return why // the connection ended, or the program does
	}
	return err
}

// errForgotten ends a session if the server had lost this device's admission and was given it again.
var errForgotten = errors.New("the server of the fleet had lost that it admitted this device; it knows it again")

// admitted reports whether this device is a member, as far as it knows.
func (d *Device) admitted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, known := d.current().Device(d.id)
	return known && !m.Revoked && m.Name != d.id // before its admission, a device has its id as its name
}

// rejoinSoon calls rejoin with the time limit [Settings.Patience].
func (d *Device) rejoinSoon(ctx context.Context, log Log) error {
	ctx, cancel := context.WithTimeout(ctx, d.s.Patience)
	defer cancel()
	return d.rejoin(ctx, log)
}

// errEnded ends a session if a method of the log returned too early without an error.
var errEnded = errors.New("the connection to the fleet's log ended")

// ended returns err, or errEnded if a method of the log returned nil before ctx ended.
func ended(ctx context.Context, err error) error {
	if err == nil && ctx.Err() == nil {
		return errEnded
	}
	return err
}

// checkLog asks for the log's length and its last restoration, and checks that the log continues the part that d has
// read.
func (d *Device) checkLog(ctx context.Context, log Log) error {
	ctx, cancel := context.WithTimeout(ctx, d.s.Patience)
	defer cancel()
	r, err := d.restoration(ctx, log)
	if err != nil {
		return fmt.Errorf("asking the fleet's log for its length: %w", err)
	}
	d.mu.Lock()
	seq := d.base.Seq() // read before the log is asked, because the log grows meanwhile
	err = d.damage()
	d.mu.Unlock()
	if err != nil {
		return err
	}
	end, err := log.Last(ctx)
	if err != nil {
		return fmt.Errorf("asking the fleet's log for its length: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkContinues(r, seq, end); err != nil {
		return err
	}
	d.end = max(d.end, end)
	d.settleStored(end)
	d.updateInStep()
	return nil
}

// checkRegularly calls checkLog every [Settings.Look].
func (d *Device) checkRegularly(ctx context.Context, log Log) error {
	for backoff.Wait(ctx, d.s.Look) {
		if err := d.checkLog(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// catchUp loads the snapshot of the log if the device is far behind, or if the log is trimmed.
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
		// The log still has all entries of the snapshot; otherwise Follow returns ErrTrimmed.
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

// adopt replaces the ledger by one from a snapshot, if that is ahead.
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
	d.noteAllMissingKeys()
	signal(d.ask)
	signal(d.changed)
	return d.confirm(func(w waiting) bool { return w.e.N <= seen && (w.stored || l.Holds(w.data)) })
}

// publish appends the waiting entries to the log, one after the other. It first waits until the device has read all
// entries that the log had at the beginning. If the device's folder is an old copy, there are entries of this device
// among them, and their counters are used.
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
			break // the last entries were removed from the log
		}
		if !backoff.Wait(ctx, caughtUp) {
			return nil
		}
	}
	for {
		if !backoff.Wait(ctx, d.returnPause()) {
			return nil
		}
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

// idle reports whether no entry has come for [Settings.Patience].
func (d *Device) idle(now uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.base.Seq() == now && time.Since(d.moved) > d.s.Patience
}

func (d *Device) nextToPublish() (waiting, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// Waiting entries may rest on entries that the log has lost: those come first.
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
	if err := log.Append(ctx, w.e.Subject(), w.data); err != nil {
		return fmt.Errorf("adding to the fleet's log: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteSent(w)
	return nil
}
