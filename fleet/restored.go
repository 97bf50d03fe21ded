// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
)

// restored ends a session in which the log became another one, with that number.
type restored struct{ log uint64 }

func (restored) Error() string {
	return "the fleet's log was put back to an earlier state, by the word of its admin key"
}

// aside is what a device knows of a log that was put back, in the order of that log. It goes into the log again where
// the log has lost it. Entries keep the signatures of their authors, so any device can give back those of all.
type aside struct {
	all  []kept
	ids  map[string]int // places in all, by the ids of messages
	next int            // all before this are done
	done int
	log  uint64 // number of the log that is read anew
}

// kept is an entry that was set aside.
type kept struct {
	waiting
	done  bool
	until uint64 // the log has taken it and had this many entries then; 0 where that is not known
}

// asideHead is how many bytes come before the entries: the number of the log that is read anew, and the hash of the
// ledger before that.
const asideHead = 8 + 32

var asideKind = safefile.Kind{Magic: "faceauth fleet aside", Version: 1}

// add adds an entry that is not there yet, and reports whether it was not.
func (a *aside) add(data []byte) (added bool, err error) {
	e, err := ledger.Parse(data)
	if err != nil {
		return false, err
	}
	id := e.MessageID()
	if _, twice := a.ids[id]; twice {
		return false, nil
	}
	a.ids[id] = len(a.all)
	a.all = append(a.all, kept{waiting: waiting{e: e, data: data}})
	return true, nil
}

// left returns how many entries are not in the log, as far as it is known.
func (a *aside) left() int {
	if a == nil {
		return 0
	}
	return len(a.all) - a.done
}

// each gives f the entries that are left.
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

// settle notes that an entry is in the log, or can do nothing there.
func (a *aside) settle(i int) {
	if !a.all[i].done {
		a.all[i].done = true
		a.done++
	}
	for a.next < len(a.all) && a.all[a.next].done {
		a.next++
	}
}

// openAside reads what was set aside.
func (d *Device) openAside() error {
	path := filepath.Join(d.folder, asideFile)
	body, err := safefile.ReadSealed(path, asideKind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	damaged := func(err error) error {
		return fmt.Errorf("%w: %s: %w; move it away: other devices then give back what the server lost", ErrDamaged, path, err)
	}
	if errors.Is(err, safefile.ErrDamaged) || errors.Is(err, safefile.ErrVersion) {
		return damaged(err)
	}
	if err != nil {
		return err
	}
	if len(body) < asideHead {
		return damaged(errors.New("it is cut off"))
	}
	a := &aside{ids: make(map[string]int), log: binary.BigEndian.Uint64(body)}
	// The program was killed before the ledger was emptied: it begins again.
	if hash := d.base.Hash(); bytes.Equal(hash[:], body[8:asideHead]) {
		a.log = 0
	}
	for body = body[asideHead:]; len(body) > 0; {
		if len(body) < 4 || len(body)-4 < int(binary.BigEndian.Uint32(body)) {
			return damaged(errors.New("it is cut off"))
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

// setAside begins with an empty ledger, and keeps all that this device knows to give it back. A program that is killed
// meanwhile does the same again.
func (d *Device) setAside(log uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &aside{ids: make(map[string]int), log: log}
	hash := d.base.Hash()
	body := append(binary.BigEndian.AppendUint64(nil, log), hash[:]...)
	keep := func(data []byte) error {
		added, err := a.add(data)
		if added {
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(data))), data...)
		}
		return err
	}
	// The ledger first: it is a beginning of the log that was read last, and the entries that are still set aside come
	// after those of their authors in it.
	errs := []error{d.base.EachEntry(func(_ uint64, data []byte) error { return keep(data) })}
	d.aside.each(func(data []byte) { errs = append(errs, keep(data)) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("setting aside what this device knows: %w", err)
	}
	if err := safefile.WriteSealed(filepath.Join(d.folder, asideFile), asideKind, body); err != nil {
		return fmt.Errorf("setting aside what this device knows: %w", err)
	}
	d.last = max(d.last, d.base.Last(d.id))
	if err := d.saveOutbox(); err != nil { // with the last counter, which the log may have lost
		return err
	}
	d.view, d.names = nil, nil
	if err := d.store.Empty(); err != nil {
		return err
	}
	d.base = d.store.Ledger
	d.aside, d.end, d.put, d.follow = a, 0, 0, log
	d.lackAll()
	d.s.Tell(fmt.Sprintf("%v: it is read anew, and gets back what it has lost of the %d entries that this device knows",
		restored{}, len(a.all)))
	return nil
}

// restoration returns how the log was put back last.
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
		err = fmt.Errorf("%w: what the server says of that: %w", ErrRewound, err)
	}
	return r, err
}

// follows returns nil where the log goes on from what this device has read, as far as that can be known.
func (d *Device) follows(r ledger.Restoration, seq, end uint64) error {
	d.follow = max(d.follow, d.base.Epoch())
	if r.Epoch > d.follow && (r.Before == d.follow && seq <= r.At || seq == 0) {
		d.follow = r.Epoch // it has read nothing that was lost
	}
	switch {
	case r.Epoch < d.follow:
		return fmt.Errorf("%w: it is log %d, and this device has read log %d; %s", ErrRewound, r.Epoch, d.follow, askAdmin)
	case r.Epoch > d.follow:
		return restored{r.Epoch}
	case end < seq:
		return fmt.Errorf("%w: it has %d entries, and this device has seen %d; %s", ErrRewound, end, seq, askAdmin)
	}
	return nil
}

const askAdmin = "if a backup of the server was put back, start it once by: faceauth fleet serve --restored"

// rejoin gives the server what this device knows of who is a member.
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

// returned notes that an entry was seen in the log.
func (d *Device) returned(e ledger.Entry, data []byte) {
	if d.aside == nil {
		return
	}
	if i, ok := d.aside.ids[e.MessageID()]; ok && bytes.Equal(d.aside.all[i].data, data) {
		d.aside.settle(i)
	}
	if d.aside.left() == 0 {
		if err := d.endAside(); err != nil {
			d.complain(err)
		}
	}
}

// settleStored notes which entries the log has taken and all devices passed over: it was given them before, and does
// not give them again. End is how long the log was some time ago.
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

// endAside removes what was set aside once all of it is in the log.
func (d *Device) endAside() error {
	if d.aside == nil || d.aside.left() > 0 {
		return nil
	}
	d.s.Tell("the fleet's log has all again that this device knew")
	d.aside, d.view, d.names = nil, nil, nil
	d.step()
	signal(d.changed)
	if err := os.Remove(filepath.Join(d.folder, asideFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what was set aside: %w", err)
	}
	return nil
}

// unsend has all be given to the log again that was not seen in it: a server that died may have lost it.
func (d *Device) unsend() {
	for i := range d.pending {
		d.pending[i].stored = false
	}
	if d.aside != nil {
		for i := range d.aside.all {
			d.aside.all[i].stored, d.aside.all[i].until = false, 0
		}
	}
}

// sent notes that the log has an entry.
func (d *Device) sent(w waiting) {
	same := func(o waiting) bool { return o.e.N == w.e.N && &o.data[0] == &w.data[0] }
	if i := slices.IndexFunc(d.pending, same); i >= 0 {
		d.pending[i].stored = true
	}
	if d.aside == nil {
		return
	}
	if i, ok := d.aside.ids[w.e.MessageID()]; ok && same(d.aside.all[i].waiting) {
		d.aside.all[i].stored = true
	}
}
