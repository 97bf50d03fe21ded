// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
)

// restored ends a session in which the server shows a signed restoration: the log with this number is another log.
type restored struct{ log uint64 }

func (restored) Error() string {
	return "the fleet's log was put back to an earlier state, signed by its admin key"
}

// aside holds the entries that a device knew when the log was put back, in the order of the old log. The device appends
// those that the new log lacks. Entries keep the signatures of their authors, so a device can append entries of all
// authors.
type aside struct {
	all  []kept
	ids  map[ledger.Ref]int // index in all
	next int                // all entries before this index are done
	done int
	log  uint64 // number of the new log
	// Pause is the longest pause before an entry is given back. It grows while others give back the same entries.
	pause time.Duration
}

// kept is an entry that was set aside.
type kept struct {
	waiting
	done  bool
	until uint64 // the log had taken the entry when it had this many entries; 0 if not known
}

// asideHead is the number of bytes before the entries: the number of the new log, and the hash of the old ledger.
const asideHead = 8 + 32

var asideKind = safefile.Kind{Magic: "faceauth fleet aside", Version: 1}

// add adds an entry, and reports whether it was new.
func (a *aside) add(data []byte) (added bool, err error) {
	e, err := ledger.Parse(data)
	if err != nil {
		return false, err
	}
	id := e.Ref()
	if _, twice := a.ids[id]; twice {
		return false, nil
	}
	a.ids[id] = len(a.all)
	a.all = append(a.all, kept{waiting: waiting{e: e, data: data}})
	return true, nil
}

// left returns the number of entries that the log lacks, as far as the device knows.
func (a *aside) left() int {
	if a == nil {
		return 0
	}
	return len(a.all) - a.done
}

// each calls f with the entries that are left.
func (a *aside) each(f func(data []byte)) {
	if a == nil {
		return
	}
	for i := a.next; i < len(a.all); i++ {
		if !a.all[i].done {
			f(a.all[i].data)
		}
	}
}

// settle records that the log has an entry, or that the entry can have no effect there.
func (a *aside) settle(i int) {
	if !a.all[i].done {
		a.all[i].done = true
		a.done++
	}
	for a.next < len(a.all) && a.all[a.next].done {
		a.next++
	}
}

// openAside reads the entries that were set aside.
func (d *Device) openAside() error {
	path := filepath.Join(d.folder, asideFile)
	body, err := safefile.ReadSealed(path, asideKind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	damaged := func(err error) error {
		return fmt.Errorf("%w: %s: %w; move it away: other devices then give back what the server lost", ErrDamaged,
			path, err)
	}
	if errors.Is(err, safefile.ErrDamaged) || errors.Is(err, safefile.ErrVersion) {
		return damaged(err)
	}
	if err != nil {
		return err
	}
	if len(body) < asideHead {
		return damaged(errors.New("the file is truncated"))
	}
	a := &aside{ids: make(map[ledger.Ref]int), log: binary.BigEndian.Uint64(body)}
	// The program was killed before it emptied the ledger: it must start again.
	if hash := d.base.Hash(); bytes.Equal(hash[:], body[8:asideHead]) {
		a.log = 0
	}
	for body = body[asideHead:]; len(body) > 0; {
		if len(body) < 4 || len(body)-4 < int(binary.BigEndian.Uint32(body)) {
			return damaged(errors.New("the file is truncated"))
		}
		n := int(binary.BigEndian.Uint32(body))
		if _, err := a.add(body[4 : 4+n : 4+n]); err != nil {
			return damaged(err)
		}
		body = body[4+n:]
	}
	for _, k := range a.all {
		if k.e.Device == d.id {
			d.last = max(d.last, k.e.N)
		}
	}
	d.aside, d.follow = a, max(d.follow, a.log)
	return nil
}

// setAside keeps all known entries to give them back, and starts with an empty ledger. After a program was killed here,
// the next session does the same again.
func (d *Device) setAside(log uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &aside{ids: make(map[ledger.Ref]int), log: log}
	hash := d.base.Hash()
	body := append(binary.BigEndian.AppendUint64(nil, log), hash[:]...)
	keep := func(data []byte) error {
		added, err := a.add(data)
		if added {
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(data))), data...)
		}
		return err
	}
	// The ledger comes first: it is a beginning of the last log. Entries that are still set aside come after the
	// entries of their authors in it.
	errs := []error{d.base.EachEntry(func(_ uint64, data []byte) error { return keep(data) })}
	d.aside.each(func(data []byte) { errs = append(errs, keep(data)) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("setting aside the entries of this device: %w", err)
	}
	if err := safefile.WriteSealed(filepath.Join(d.folder, asideFile), asideKind, body); err != nil {
		return fmt.Errorf("setting aside the entries of this device: %w", err)
	}
	d.last = max(d.last, d.base.Last(d.id))
	if err := d.saveOutbox(); err != nil { // it stores the last counter, which the log may have lost
		return err
	}
	d.view, d.names = nil, nil
	if err := d.store.Empty(); err != nil {
		return err
	}
	d.base = d.store.Ledger
	d.aside, d.end, d.put, d.follow = a, 0, 0, log
	d.noteAllMissingKeys()
	d.s.Tell(fmt.Sprintf("%v: reading it again, and giving back the lost ones of the %d entries that this device knows",
		restored{}, len(a.all)))
	return nil
}

// restoration returns the last restoration of the log.
func (d *Device) restoration(ctx context.Context, log Log) (r ledger.Restoration, err error) {
	x, ok := log.(Restorer)
	if !ok {
		return r, nil
	}
	data, err := x.Restored(ctx)
	if err != nil || data == nil {
		return r, err
	}
	if r, err = ledger.ParseRestoration(d.fleet, data); err != nil {
		err = fmt.Errorf("%w: checking the signature that the server shows: %w", ErrRewound, err)
	}
	return r, err
}

// checkContinues returns nil if the log continues the part that this device has read, as far as the device can know. A
// signed restoration returns the error "restored".
func (d *Device) checkContinues(r ledger.Restoration, seq, end uint64) error {
	d.follow = max(d.follow, d.base.Epoch())
	if r.Epoch > d.follow && (r.Before == d.follow && seq <= r.At || seq == 0) {
		d.follow = r.Epoch // this device has read no lost entry
	}
	switch {
	case r.Epoch < d.follow:
		return fmt.Errorf("%w: the server has log %d, and this device has read log %d; %s", ErrRewound, r.Epoch,
			d.follow, askAdmin)
	case r.Epoch > d.follow:
		return restored{r.Epoch}
	case end < seq:
		return fmt.Errorf("%w: the log has %d entries, and this device has read %d; %s", ErrRewound, end, seq, askAdmin)
	}
	return nil
}

const askAdmin = "if a backup of the server was put back, start the server once with: faceauth fleet serve --restored"

// rejoin sends the server the admissions and revocations that this device knows.
func (d *Device) rejoin(ctx context.Context, log Log) error {
	x, ok := log.(Restorer)
	if !ok {
		return errors.ErrUnsupported
	}
	var admissions, revocations [][]byte
	take := func(data []byte) {
		switch e, err := ledger.Parse(data); {
		case err != nil:
		case e.Kind == ledger.Admit:
			admissions = append(admissions, data)
		case e.Kind == ledger.Revoke:
			revocations = append(revocations, data)
		}
	}
	d.mu.Lock()
	err := d.base.EachEntry(func(_ uint64, data []byte) error {
		take(data)
		return nil
	})
	d.aside.each(take)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return x.Rejoin(ctx, append(revocations, admissions...))
}

// nextToReturn returns the next entry that the log has lost.
func (d *Device) nextToReturn() (w waiting, ok bool) {
	a := d.aside
	if a == nil {
		return w, false
	}
	for i := a.next; i < len(a.all); i++ {
		k := &a.all[i]
		if !k.done && d.base.Spent(k.e) {
			a.settle(i)
		}
		if !k.done && !k.stored {
			return k.waiting, true
		}
	}
	if err := d.endAside(); err != nil {
		d.complain(err)
	}
	return w, false
}

// noteReturned records that an entry was read in the log.
func (d *Device) noteReturned(e ledger.Entry, data []byte) {
	if d.aside == nil {
		return
	}
	if i, ok := d.aside.ids[e.Ref()]; ok && bytes.Equal(d.aside.all[i].data, data) {
		if d.aside.all[i].done { // two devices gave it back at the same time
			d.aside.pause = min(2*d.aside.pause+returnTime, returnTime*time.Duration(len(d.base.Devices())))
		}
		d.aside.settle(i)
	}
	if d.aside.left() == 0 {
		if err := d.endAside(); err != nil {
			d.complain(err)
		}
	}
}

// returnTime is the longest pause before an entry is given back, for each device of the fleet: devices that return at
// once find time for one another, and few devices do not wait.
const returnTime = 5 * time.Millisecond

// returnPause returns a random pause before the next entry is given back, so that many devices do not all give back the
// same entries.
func (d *Device) returnPause() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.aside == nil || d.aside.pause == 0 {
		return 0
	}
	d.aside.pause -= d.aside.pause / 8
	return rand.N(d.aside.pause)
}

// settleStored settles entries that the log has taken and that the ledger then ignored: they came twice, and must not
// be appended again. End is the length of the log a short time ago.
func (d *Device) settleStored(end uint64) {
	if d.aside == nil {
		return
	}
	for i := range d.aside.all {
		switch k := &d.aside.all[i]; {
		case k.done || !k.stored:
		case k.until == 0:
			k.until = end
		case d.base.Seq() >= k.until:
			d.aside.settle(i)
		}
	}
	if err := d.endAside(); err != nil {
		d.complain(err)
	}
}

// endAside removes the aside file when the log has all its entries.
func (d *Device) endAside() error {
	if d.aside == nil || d.aside.left() > 0 {
		return nil
	}
	d.s.Tell("the fleet's log has all entries of this device again")
	d.aside, d.view, d.names = nil, nil, nil
	d.updateInStep()
	signal(d.changed)
	if err := os.Remove(filepath.Join(d.folder, asideFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the entries that were set aside: %w", err)
	}
	return nil
}

// resendAll marks all entries as not sent that were not read in the log: a server that died may have lost them.
func (d *Device) resendAll() {
	for i := range d.pending {
		d.pending[i].stored = false
	}
	if d.aside != nil {
		for i := range d.aside.all {
			d.aside.all[i].stored, d.aside.all[i].until = false, 0
		}
	}
}

// noteSent records that the log has confirmed an entry.
func (d *Device) noteSent(w waiting) {
	same := func(o waiting) bool { return o.e.N == w.e.N && &o.data[0] == &w.data[0] }
	if i := slices.IndexFunc(d.pending, same); i >= 0 {
		d.pending[i].stored = true
	}
	if d.aside == nil {
		return
	}
	if i, ok := d.aside.ids[w.e.Ref()]; ok && same(d.aside.all[i].waiting) {
		d.aside.all[i].stored = true
	}
}
