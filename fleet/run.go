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
// cannot continue: the error wraps [ledger.ErrFuture], [ErrDamaged], [ErrRevoked], or [ErrRefused] for a device that
// has never read its own admission in the log. After other errors of the log it tries again. It also tries again if the
// server refuses a member without showing a signed revocation, because the server may have been put back to an earlier
// state. Only one call of Run may be active at a time.
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

// checkLog asks for the log's length and its last restoration, and checks that the log continues what d has read.
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
	if err := log.Append(ctx, w.e.Subject(), w.e.MessageID(), w.data); err != nil {
		return fmt.Errorf("adding to the fleet's log: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteSent(w)
	return nil
}

// answer returns the answer to a request for keys.
func (d *Device) answer(request []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, err := d.current().AnswerKeys(request, d.ring, d.key)
	if err != nil {
		d.s.Tell(err.Error())
		return nil
	}
	return answer
}

// collectKeys asks other devices for the missing keys, and starts again when one more key is missing.
func (d *Device) collectKeys(ctx context.Context, log Log) error {
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
		// A newly missing key is asked for at once. Keys that nobody has are asked for more and more rarely.
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

// wants returns the missing keys.
func (d *Device) wants() []ledger.Want {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []ledger.Want
	for id := range d.lacking {
		d.noteMissingKeys(id)
		all = append(all, d.base.WantsOf(d.id, id, d.ring)...)
	}
	return all
}

// askAll asks for all missing keys. It returns the numbers of missing keys before and after.
func (d *Device) askAll(ctx context.Context, log Log) (before, after int) {
	all := d.wants()
	before = len(all)
	if before == 0 {
		return 0, 0
	}
	// A few keys are asked from their authors first, because an author surely has its key. Many keys are asked from any
	// device first, and the rest from their authors: "any device" may be this device itself.
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

// askFor asks one device, or any device if "of" is empty, for keys, in as many requests as are needed.
func (d *Device) askFor(ctx context.Context, log Log, of string, wants []ledger.Want) {
	for part := range slices.Chunk(wants, ledger.MaxWants) {
		if ctx.Err() == nil {
			d.askKeys(ctx, log, of, part)
		}
	}
}

// askKeys sends one request for keys and keeps the keys of the answer.
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
		return // the device is off or busy: another device is asked, or the same one later
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	came := ledger.NewRing()
	if _, err = q.Open(answer, came); err != nil {
		d.s.Tell(err.Error())
	}
	for _, w := range wants {
		key, ok := came.Key(w.Person, w.Key)
		if ok && d.current().Known(w.Person) { // the person may have been forgotten meanwhile
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

// putSnapshots puts a snapshot into the log whenever one of this device's entries makes the log long enough.
func (d *Device) putSnapshots(ctx context.Context, log Log) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.snap:
		}
		if err := log.PutSnapshot(ctx, 0, strings.NewReader("")); errors.Is(err, errors.ErrUnsupported) {
			return nil // another program makes the snapshots
		}
		if err := d.putSnapshot(ctx, log); err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.complain(err) // another device makes the snapshot, or this device later
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

// sweepSnapshots removes unfinished snapshots of a killed program.
func (d *Device) sweepSnapshots() {
	left, err := filepath.Glob(filepath.Join(d.folder, "snapshot-*"))
	for _, path := range left {
		if info, statErr := os.Lstat(path); err == nil && statErr == nil && info.Mode().Type() == fs.FileMode(0) {
			os.Remove(path)
		}
	}
}
