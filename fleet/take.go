// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
)

// mostValues is the greatest number of values of one device that others keep.
const mostValues = 100_000

// item is a value or a record as it came from the server.
type item struct {
	device, name string
	data         []byte
}

// accept takes what has come from the server: it keeps what counts, and notes the reason why it skips the rest. A
// skipped value changes nothing: what was known under its name stays.
func (d *Device) accept(items []item) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(items) == 0 {
		return nil
	}
	return d.write(func() error {
		for _, x := range items {
			var err error
			if x.device == AdminWriter {
				err = d.acceptRecord(x.data)
			} else if m, known := d.members.Device(x.device); !known || len(d.of(x.device)) > mostValues {
				continue // its admission has not come yet, or is no more; when it comes, its values are read again
			} else if m.Revoked && !m.Kept(x.name, ValueCounter(x.data)) {
				continue
			} else {
				err = d.acceptValue(x)
			}
			place := placeOf(x.device, x.name)
			switch {
			case err == nil:
				delete(d.refused, place)
			case errors.Is(err, errValue), errors.Is(err, errNewer), errors.Is(err, errSignature),
				errors.Is(err, ErrRecord), errors.Is(err, ErrScope):
				d.refuse(place, err)
			default:
				return err
			}
		}
		return nil
	})
}

// refuse notes that a value is skipped.
func (d *Device) refuse(place string, why error) {
	device, _, _ := strings.Cut(place, ".")
	n := 0
	for other := range d.refused {
		if strings.HasPrefix(other, device) {
			n++
		}
	}
	if n == 0 {
		name := device
		if m, known := d.members.Device(device); known {
			name = m.Name
		}
		d.s.Tell(fmt.Sprintf("what %s says is skipped: %v", name, why))
	}
	if n < 10 {
		d.refused[place] = why.Error()
	}
}

func (d *Device) acceptRecord(data []byte) error {
	name, news, err := d.members.Add(data)
	if err != nil || !news {
		return err
	}
	if err := d.setFact(recordFact, name, data); err != nil {
		return err
	}
	if device, _, _, err := CheckAdmission(d.fleet, data); name == addressRecord ||
		err == nil && len(d.said[device]) == 0 { // nothing that is known changes
		return nil
	}
	d.invalidateAll()
	for device, values := range d.said { // what a revoked device said does not count any more
		m, known := d.members.Device(device)
		if !known || !m.Revoked || device == d.id {
			continue
		}
		for name, e := range values {
			if m.Kept(name, e.n) {
				continue
			}
			if err := d.db.Exec("delete from value where device = ? and name = ?", device, name); err != nil {
				return err
			}
			delete(values, name)
		}
		delete(d.notes, device)
	}
	return nil
}

func (d *Device) acceptValue(x item) error {
	v, err := openValue(d.fleet, x.device, x.name, x.data)
	if err != nil {
		return err
	}
	id, _, person := personOf(x.name)
	if !person && !strings.HasPrefix(x.name, "_") {
		return fmt.Errorf("%w: the name %.60q", errValue, x.name)
	}
	if person && len(v.Born) > 0 && (len(v.Born) != len(born{}) || born(v.Born).id(x.device) != id) {
		return fmt.Errorf("%w: it did not make this person", errValue)
	}
	if m, known := d.members.Device(x.device); person && known && !m.Scope.All && !m.may[id] && len(v.Born) == 0 {
		return ErrScope
	}
	if x.device == d.id {
		return d.acceptOwn(x, v)
	}
	if e := d.said[x.device][x.name]; e != nil && e.n >= v.N {
		return nil
	}
	if d.dead[id] && person {
		v.Box = nil // nobody opens it any more
		x.data = encode(wireValue{Version: Version, Payload: encode(v)})
	}
	d.follow(v.Forget)
	return d.keep(x.device, x.name, v, x.data, true)
}

// acceptOwn takes a value of this device that the server has. The server knows a later one if an old copy of the
// device's folder was put back: then both are joined. If that happens while the device is connected, another program
// uses a copy of its folder.
func (d *Device) acceptOwn(x item, v value) error {
	e := d.said[d.id][x.name]
	mine, n, err := d.data(x.name)
	switch {
	case err != nil:
		return err
	case e != nil && n == v.N && bytes.Equal(mine, x.data):
		return d.markSent(x.name, v.N)
	case e != nil && v.N < n:
		return nil // it is replaced soon
	}
	if d.caughtUp {
		d.cloned()
		if x.name == headNote && !d.takesNote(x.name, v.Note) {
			return nil // two copies must not answer each other for ever
		}
	}
	d.own.Counter = max(d.own.Counter, v.N)
	id, part, person := personOf(x.name)
	if e == nil || person && part >= 0 || x.name == awayNote {
		if err := d.keep(d.id, x.name, v, x.data, true); err != nil {
			return err
		}
		return d.renumber()
	}
	if !person {
		if d.takesNote(x.name, v.Note) {
			err = d.keep(d.id, x.name, v, x.data, true)
		} else if !d.caughtUp { // this device knows better what it shares
			again, _ := d.value(d.id, x.name)
			err = d.put(x.name, again)
		}
		return errors.Join(err, d.renumber())
	}
	joined, err := d.joinOwn(id, v)
	if err != nil {
		return err
	}
	if joined == nil {
		err = d.keep(d.id, x.name, v, x.data, true)
	} else {
		err = d.put(x.name, *joined)
	}
	return errors.Join(err, d.renumber())
}

// takesNote reports whether a later note of this device that the server has counts as it is. The keys of people in it
// may be nowhere else. What this device adds to them is shared again.
func (d *Device) takesNote(name string, data []byte) bool {
	n := notes{rings: make(map[string]ringPart), lent: make(map[string][]lentPart)}
	switch base := name[:max(1, len(name)-1)]; {
	case name == headNote:
		return n.take(name, data) == nil && n.head.Sum == d.sum(d.id)
	case base == ringNote:
		// A copy of the folder that runs, too, may have begun another epoch: both would overwrite each other for ever.
		return n.take(name, data) == nil && (!d.caughtUp ||
			d.own.present(n.rings[name].Epoch, n.rings[name].Hash))
	case base == lentNote:
		return n.take(name, data) == nil
	}
	return false
}

// joinOwn joins what this device says about a number with a later value that the server has. It returns nil if the
// server has it all.
func (d *Device) joinOwn(id ID, v value) (*value, error) {
	mine, old, err := d.ownWords(id)
	key, have := d.secrets[id]
	if err != nil || !have {
		return nil, nil // without the key nothing can be joined
	}
	var w words
	if len(v.Box) > 0 {
		data, err := key.open(v.Box, placeOf(d.id, id.String()))
		if err == nil {
			w, err = openWords(data)
		}
		if err != nil {
			return nil, nil
		}
	}
	before := encode(w)
	w.join(mine)
	w.trim()
	if bytes.Equal(before, encode(w)) && v.Forget >= old.Forget && len(v.Born) == len(old.Born) {
		return nil, nil
	}
	return &value{Forget: max(v.Forget, old.Forget), Born: old.Born,
		Box: key.seal(encode(w), placeOf(d.id, id.String()))}, nil
}

// renumber gives the values that the server does not have counters above those that it has.
func (d *Device) renumber() error {
	high := uint64(0)
	for _, e := range d.said[d.id] {
		if e.sent {
			high = max(high, e.n)
		}
	}
	if d.own.Counter > high {
		high = d.own.Counter
	}
	for _, name := range d.unsent() {
		if e := d.said[d.id][name]; e.n <= high {
			v, _ := d.value(d.id, name)
			if err := d.put(name, v); err != nil {
				return err
			}
			high = d.own.Counter
		}
	}
	return nil
}

func (d *Device) cloned() {
	if d.trouble == "" {
		d.s.Tell(clonedText)
	}
	d.trouble = clonedText
}

const clonedText = "another program speaks with the key of this device: its folder was copied; revoke this device, " +
	"and let each copy join again"

func (d *Device) markSent(name string, n uint64) error {
	e := d.said[d.id][name]
	if e == nil || e.n != n || e.sent {
		return nil
	}
	e.sent = true
	return d.db.Exec("update value set sent = 1 where device = ? and name = ? and n = ?", d.id, name, int64(n))
}

// sent notes that the server has a value.
func (d *Device) sent(name string, n uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.db.Write(func() error { return d.markSent(name, n) })
}

// missing notes that the server lacks own values: those whose counters are not in have.
func (d *Device) missing(have map[string]uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(func() error {
		for name, e := range d.said[d.id] {
			if e.sent && have[name] < e.n {
				e.sent = false
				if err := d.db.Exec("update value set sent = 0 where device = ? and name = ?", d.id, name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// settle draws the conclusions from what was taken: epochs, keys of people, and who is forgotten for ever. Online
// means that all that is on the server was read.
func (d *Device) settle(online bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	erase := false
	err := d.write(func() error {
		if err := d.takeEpoch(); err != nil {
			return err
		}
		d.takeKeys()
		var err error
		if erase, err = d.destroy(); err != nil {
			return err
		}
		if online {
			if err := d.share(); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && erase {
		err = d.db.Erase()
	}
	return err
}

// destroy destroys the keys of the people who were forgotten long enough ago, and says so.
func (d *Device) destroy() (erase bool, err error) {
	if d.late {
		d.late = false
		d.invalidateAll()
	}
	hidden := d.hidden()
	for id := range d.seen {
		if !hidden[id] { // taken back, or its device was revoked
			delete(d.seen, id)
			if err := d.setFact(seenFact, id.String(), nil); err != nil {
				return false, err
			}
		}
	}
	for id := range hidden {
		if d.dead[id] {
			continue
		}
		if _, there := d.seen[id]; !there {
			d.seen[id] = d.s.Now()
			if err := d.setFact(seenFact, id.String(), bytesOf(uint64(d.s.Now().Unix()))); err != nil {
				return false, err
			}
		}
		if d.age(id) < d.s.Grace {
			continue
		}
		if err := d.kill(id); err != nil {
			return false, err
		}
		erase = true
	}
	if erase {
		d.own.Destroyed = true
		if err := d.db.Erasing(); err != nil {
			return false, err
		}
	}
	return erase, nil
}

// kill destroys the key of a person, says that the person is forgotten, and removes all that anybody said.
func (d *Device) kill(id ID) error {
	d.dead[id] = true
	delete(d.secrets, id)
	for kind, data := range map[string][]byte{keyFact: nil, seenFact: nil, deadFact: {1}} {
		if err := d.setFact(kind, id.String(), data); err != nil {
			return err
		}
	}
	delete(d.seen, id)
	name := id.String()
	for device, values := range d.said {
		for of, e := range values {
			if !strings.HasPrefix(of, name) || !e.box {
				continue
			}
			if device == d.id {
				if of != name {
					if err := d.put(of, value{}); err != nil {
						return err
					}
				}
				continue
			}
			v := value{N: e.n, Forget: e.forget}
			if old, there := d.value(device, of); there {
				v.Born = old.Born
			}
			if err := d.keep(device, of, v, encode(wireValue{Version: Version, Payload: encode(v)}), true); err != nil {
				return err
			}
		}
	}
	m, known := d.members.Device(d.id)
	if known && !m.Revoked && d.mayWrite(d.id, id) {
		v := value{Forget: d.tick()}
		if e := d.said[d.id][name]; e != nil && e.forget > 0 {
			v.Forget = e.forget
		}
		if err := d.put(name, v); err != nil {
			return err
		}
	}
	d.invalidate(id)
	return nil
}

func (d *Device) complain(err error) {
	if s := err.Error(); s != d.trouble {
		d.trouble = s
		d.s.Tell(s)
	}
}

// place returns the place up to which the stream of a device was read.
func (d *Device) place(device string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at[device]
}

func (d *Device) setPlace(device string, seq uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at[device] == seq {
		return nil
	}
	d.at[device] = seq
	return d.db.Write(func() error { return d.setFact(placeFact, device, bytesOf(seq)) })
}

// hasAll reports whether all values are known that a device says it has.
func (d *Device) hasAll(device string) bool {
	e := d.said[device][headNote]
	if e == nil {
		return true
	}
	for name, x := range d.said[device] {
		if x.n > e.n && name != headNote {
			return true // a newer head follows
		}
	}
	return d.sum(device) == d.note(device).head.Sum
}

// unsay forgets what a device does not say any more: its folder and the server were both put back, so that its newest
// head does not have it. Have holds the counters of all its values at the server.
func (d *Device) unsay(device string, have map[string]uint64) (changed bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := uint64(0)
	for name, n := range have {
		if name != headNote {
			sum += n
		}
	}
	e := d.said[device][headNote]
	if e == nil || e.n != have[headNote] || sum != d.note(device).head.Sum {
		return false, nil
	}
	return true, d.write(func() error {
		for name, e := range d.said[device] {
			if have[name] == e.n {
				continue
			}
			if err := d.db.Exec("delete from value where device = ? and name = ?", device, name); err != nil {
				return err
			}
			delete(d.said[device], name)
		}
		delete(d.notes, device)
		d.reload()
		return nil
	})
}

// wait returns how long nothing happens by itself: no turn comes, no key is due to be destroyed, and no epoch to begin.
func (d *Device) wait() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.s.Now()
	next := time.Hour
	if d.late {
		next = time.Minute
	}
	if left := time.Unix(d.own.Begun, 0).Add(d.s.Grace).Sub(now); d.own.Destroyed && left > 0 {
		next = min(next, left)
	}
	for _, at := range d.turns {
		next = min(next, at.Sub(now))
	}
	for id := range d.seen {
		next = min(next, d.s.Grace-d.age(id))
	}
	return max(next, 10*time.Millisecond)
}
