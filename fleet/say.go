// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// write runs a change in one transaction. After an error the memory is read again from the disk.
func (d *Device) write(do func() error) error {
	saved, before := d.saved, d.own.Counter
	err := d.db.Write(func() error {
		if err := do(); err != nil {
			return err
		}
		if state := encode(d.own); !bytes.Equal(state, saved) {
			saved = state
			return d.setFact(stateFact, "", state)
		}
		return nil
	})
	if err != nil {
		d.reload()
		return err
	}
	if d.own.Counter != before {
		signal(d.wake)
	}
	d.saved = saved
	return nil
}

// reload reads the memory again after a transaction that was not written.
func (d *Device) reload() {
	d.empty()
	d.own = state{}
	d.members = NewMembers(d.fleet)
	d.invalidateAll()
	if err := d.load(); err != nil {
		d.trouble = fmt.Sprintf("%v: %v", ErrDamaged, err)
	}
	if d.own.Public == nil {
		d.own.newBox()
	}
}

// put keeps a value of this device, for the server. It is called in a transaction.
func (d *Device) put(name string, v value) error {
	d.count()
	v.N = d.own.Counter
	if e := d.said[d.id][name]; e != nil && e.born && v.Born == nil {
		old, _ := d.value(d.id, name)
		v.Born = old.Born
	}
	data := v.seal(d.fleet, d.id, name, d.key)
	if len(data) > MaxValue {
		return fmt.Errorf("%w: it would be %d bytes long, and %d are allowed", ErrTooLong, len(data), MaxValue)
	}
	return d.keep(d.id, name, v, data, false)
}

// count moves the counter. It follows the clock, so that a device whose folder and server were both put back does not
// use counters that others have seen.
func (d *Device) count() {
	d.own.Counter = max(d.own.Counter+1, uint64(d.s.Now().UnixMilli())<<clockBits)
}

// ErrTooLong is returned for words that are too long for one value.
var ErrTooLong = errors.New("too much is said about one person")

// keep writes a value of any device. It is called in a transaction.
func (d *Device) keep(device, name string, v value, data []byte, sent bool) error {
	if err := d.db.Exec("insert or replace into value(device, name, n, forget, sent, data) values(?, ?, ?, ?, ?, ?)",
		device, name, int64(v.N), int64(v.Forget), sent, data); err != nil {
		return err
	}
	d.of(device)[name] = &entry{v.N, v.Forget, len(v.Born) > 0, len(v.Box) > 0, sent}
	if strings.HasPrefix(name, "_") {
		if strings.HasPrefix(name, awayNote) {
			d.invalidateAll()
		}
		return d.note(device).take(name, v.Note)
	}
	if id, _, ok := personOf(name); ok {
		d.invalidate(id)
	}
	return nil
}

func (d *Device) putNote(name string, content any) error {
	return d.put(name, value{Note: encode(content)})
}

// putHead says which values this device has, if that has changed.
func (d *Device) putHead() error {
	h := head{d.sum(d.id)}
	if e := d.said[d.id][headNote]; h == d.note(d.id).head && e != nil && e.n == d.own.Counter {
		return nil
	}
	return d.putNote(headNote, h)
}

// sum returns the sum of the counters of the values that a device has.
func (d *Device) sum(device string) (sum uint64) {
	for name, e := range d.said[device] {
		if name != headNote {
			sum += e.n
		}
	}
	return sum
}

// ownWords returns what this device says about a number.
func (d *Device) ownWords(id ID) (w words, v value, err error) {
	v, there := d.value(d.id, id.String())
	if !there || len(v.Box) == 0 {
		return w, v, nil
	}
	key, have := d.secrets[id]
	if !have {
		return w, v, fmt.Errorf("%w: %s", ErrKeyless, id)
	}
	data, err := key.open(v.Box, placeOf(d.id, id.String()))
	if err != nil {
		return w, v, fmt.Errorf("%w: %s", ErrKeyless, id)
	}
	w, err = openWords(data)
	return w, v, err
}

// say changes what this device says about a number. It is called in a transaction.
func (d *Device) say(id ID, change func(w *words)) error {
	w, v, err := d.ownWords(id)
	if err != nil {
		return err
	}
	change(&w)
	w.trim()
	key := d.secrets[id]
	data := encode(w)
	if len(data) > MaxValue-1000 { // the oldest faces make room
		w.Faces = w.Faces[len(w.Faces)/4:]
		data = encode(w)
	}
	v.Box = key.seal(data, placeOf(d.id, id.String()))
	return d.put(id.String(), v)
}

// writableID returns the number under which this device may write about a person, whose key it has.
func (d *Device) writableID(id ID) (ID, error) {
	if m, known := d.members.Device(d.id); known && m.Revoked {
		return id, ErrRevoked
	}
	if d.forgotten(id) {
		return id, fmt.Errorf("%w: %s", ErrForgotten, id)
	}
	if !d.known(id) {
		return id, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	for _, of := range d.group(id) {
		if d.mayWrite(d.id, of) {
			if of == id || !d.mayWrite(d.id, id) {
				id = of
			}
			if _, have := d.secrets[id]; !have {
				return id, fmt.Errorf("%w: %s", ErrKeyless, id)
			}
			return id, nil
		}
	}
	return id, fmt.Errorf("%w: %s", ErrScope, id)
}

// about changes what this device says about a person.
func (d *Device) about(person ID, change func(id ID) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.aboutLocked(person, change)
}

func (d *Device) aboutLocked(person ID, change func(id ID) error) error {
	id, err := d.writableID(person)
	if err != nil {
		return err
	}
	return d.write(func() error { return change(id) })
}

// checkFaces returns nil for faces that can be said.
func checkFaces(space string, faces []Face) error {
	if len(faces) == 0 {
		return errors.New("no faces are given")
	}
	if space == "" || len(space) > maxSpace {
		return fmt.Errorf("%q cannot be the name of a feature space", space)
	}
	for _, f := range faces {
		if len(f.Vector) == 0 || len(f.Vector) > maxDim || len(f.Vector) != len(faces[0].Vector) {
			return fmt.Errorf("a face has %d values; all need the same number, at least 1", len(f.Vector))
		}
	}
	return nil
}

func (d *Device) sayFaces(person ID, space string, faces []Face, state faceState) error {
	if err := checkFaces(space, faces); err != nil {
		return err
	}
	return d.about(person, func(id ID) error { return d.addFaces(id, space, faces, state) })
}

func (d *Device) addFaces(id ID, space string, faces []Face, state faceState) error {
	return d.say(id, func(w *words) {
		for _, f := range faces {
			w.setFace(w.newFaceWord(space, f, state, d.tick()))
		}
	})
}

// Label adds labelled faces to a person. The errors of this and the next methods wrap [ErrUnknown], [ErrForgotten],
// [ErrScope], [ErrRevoked] or [ErrKeyless], or come from the disk; nothing is said then.
func (d *Device) Label(person ID, space string, faces []Face) error {
	return d.sayFaces(person, space, faces, labelled)
}

// Deny states that faces are not this person's.
func (d *Device) Deny(person ID, space string, faces []Face) error {
	return d.sayFaces(person, space, faces, denied)
}

// Retract takes back labelled faces of a person, under all its numbers.
func (d *Device) Retract(person ID, faces ...FaceID) error {
	return d.without(person, retracted, faces)
}

// Undeny takes back that faces are not this person's.
func (d *Device) Undeny(person ID, faces ...FaceID) error { return d.without(person, allowed, faces) }

func (d *Device) without(person ID, state faceState, faces []FaceID) error {
	return d.about(person, func(id ID) error {
		for _, of := range d.group(id) {
			if _, have := d.secrets[of]; !have || !d.mayWrite(d.id, of) {
				continue
			}
			err := d.say(of, func(w *words) {
				for _, f := range faces {
					w.setFace(faceWord{ID: slices.Clone(f[:]), Clock: d.tick(), State: state})
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Enroll adds a person with a name and faces to the fleet. The error comes from [online.CheckName], or comes from the
// disk, or wraps [ErrRevoked].
func (d *Device) Enroll(name, space string, faces []Face) (ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, b := newID(d.id)
	return id, d.enroll(offer{id: id, born: b, space: space, faces: faces, shared: sharedPerson{Name: name}})
}

func (d *Device) enroll(o offer) error {
	if m, known := d.members.Device(d.id); known && m.Revoked {
		return ErrRevoked
	}
	name := o.shared.Name
	if err := errors.Join(online.CheckName(name), checkFaces(o.space, o.faces)); err != nil {
		return err
	}
	return d.write(func() error {
		key := newSecret()
		if err := d.setFact(keyFact, o.id.String(), key[:]); err != nil {
			return err
		}
		d.secrets[o.id] = key
		w := words{Name: &naming{Clock: d.tick(), Name: name}}
		for _, f := range o.faces {
			w.setFace(w.newFaceWord(o.space, f, labelled, d.tick()))
		}
		for _, f := range o.denied {
			w.setFace(w.newFaceWord(o.space, f, denied, d.tick()))
		}
		w.trim()
		return d.put(o.id.String(), value{Born: o.born[:], Box: key.seal(encode(w), placeOf(d.id, o.id.String()))})
	})
}

// Rename gives a person a new name. The error may also come from [online.CheckName].
func (d *Device) Rename(person ID, name string) error {
	if err := online.CheckName(name); err != nil {
		return err
	}
	return d.about(person, func(id ID) error { return d.rename(id, name) })
}

// rename names a person under its first number, if this device may.
func (d *Device) rename(id ID, name string) error {
	root := d.group(id)[0]
	if _, have := d.secrets[root]; have && d.mayWrite(d.id, root) {
		id = root
	}
	was := d.joined(id).name
	return d.say(id, func(w *words) {
		n := naming{Clock: d.tick(), Name: name, Was: slices.Clone(was.Was)}
		if was.Name != "" && was.Name != name && !slices.Contains(n.Was, was.Name) {
			n.Was = append(n.Was, was.Name)
		}
		n.Was = n.Was[max(0, len(n.Was)-mostNames):]
		w.Name = &n
	})
}

// A Merge is the word that one number is the same person as another.
type Merge struct{ From, Into ID }

// Merge states that other and into are the same person, with the name of into. The error may also wrap [ErrNoEffect].
func (d *Device) Merge(other, into ID) (m Merge, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Into, err = d.writableID(into); err != nil {
		return m, err
	}
	if m.From, err = d.writableID(other); err != nil {
		return m, err
	}
	// The root of the group is merged, so that the name of into stays.
	if root := d.group(m.From)[0]; d.mayWrite(d.id, root) {
		m.From = root
	}
	if root := d.group(m.Into)[0]; root == m.From {
		return m, fmt.Errorf("%w: both are one person", ErrNoEffect)
	}
	return m, d.write(func() error { return d.same(m, false) })
}

func (d *Device) same(m Merge, off bool) error {
	return d.say(m.From, func(w *words) {
		w.Same = slices.DeleteFunc(w.Same, func(s sameWord) bool { return string(s.Into) == string(m.Into[:]) })
		w.Same = append(w.Same, sameWord{Into: slices.Clone(m.Into[:]), Clock: d.tick(), Off: off})
	})
}

// Unmerge takes a merge back: they are two people again. If that was done already, nothing is said.
func (d *Device) Unmerge(m Merge) error {
	if undone, there := d.merged(m); !there {
		return fmt.Errorf("undoing a merge in the fleet: %w", ErrUnknown)
	} else if undone {
		return nil
	}
	return d.about(m.From, func(ID) error { return d.same(m, true) })
}

// Unmerged reports whether a merge was taken back.
func (d *Device) Unmerged(m Merge) bool {
	undone, there := d.merged(m)
	return there && undone
}

func (d *Device) merged(m Merge) (undone, there bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, there := d.joined(m.From).same[m.Into]
	return s.Off, there && !d.forgotten(m.From)
}

// mergedBy returns the merge that made a number a part of another person, if there is one.
func (d *Device) mergedBy(id ID) (m Merge, merged bool) {
	if d.group(id)[0] == id {
		return m, false
	}
	var latest heardSame
	for into, s := range d.joined(id).same {
		if !s.Off && d.group(into)[0] == d.group(id)[0] && later(s.Clock, s.device, latest.Clock, latest.device) {
			m, merged, latest = Merge{id, into}, true, s
		}
	}
	return m, merged
}

// Forget makes all devices forget a person, with all numbers that were merged with it. It is hidden at once; its key is
// destroyed after [Settings.Grace]. If this device has forgotten
// [DailyForgets] others within that time, the others wait until another device or the admin agrees; waits says so.
func (d *Device) Forget(person ID) (waits bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if errors.Is(err, ErrKeyless) {
		err = nil
	}
	if err != nil {
		return false, err
	}
	group := slices.Clone(d.group(id))
	for _, of := range group {
		if !d.mayWrite(d.id, of) {
			return false, fmt.Errorf("%w: %s, who was merged with this person", ErrScope, of)
		}
	}
	err = d.write(func() error {
		for _, of := range group {
			v, _ := d.value(d.id, of.String())
			v.Forget = d.tick()
			if err := d.put(of.String(), v); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil && !d.hidden()[id], err
}

// Teach says what this device has learned about a person, in place of its earlier lessons. It reports whether that is
// new.
func (d *Device) Teach(person ID, lessons []online.Lesson) (taught bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.writableID(person)
	if err != nil {
		return false, err
	}
	before, clock := d.lessonsOf(d.id, id)
	lessons = slices.DeleteFunc(slices.Clone(lessons), func(l online.Lesson) bool { return len(l.Centroids) == 0 })
	data := encodeLessons(lessons)
	if w, _ := d.withdrawal(d.id); bytes.Equal(encodeLessons(before), data) && (len(lessons) == 0 || clock > w.Clock) {
		return false, nil
	}
	parts := max(1, (len(data)+lessonBytes-1)/lessonBytes)
	if parts > mostParts {
		return false, fmt.Errorf("%w: its lessons have %d bytes", ErrTooLong, len(data))
	}
	return true, d.write(func() error {
		key, clock := d.secrets[id], d.tick()
		for part := range mostParts {
			name := id.String() + lessonName(part)
			e := d.said[d.id][name]
			if part >= parts && (e == nil || !e.box) {
				continue
			}
			var v value
			if part < parts {
				p := lessonPart{clock, uint64(parts), data[min(part*lessonBytes, len(data)):min((part+1)*lessonBytes,
					len(data))]}
				v.Box = key.seal(encode(p), placeOf(d.id, name))
			}
			if err := d.put(name, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// Withdraw takes back all lessons of a device. With mute, its later lessons do not count either, until a withdrawal
// without mute.
func (d *Device) Withdraw(device string, mute bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.members.Device(device); !known {
		return fmt.Errorf("withdrawing lessons: %w: %s", ErrNobody, device)
	}
	if !d.full() && device != d.id {
		return fmt.Errorf("withdrawing lessons: this device is limited to some people: %w", ErrScope)
	}
	return d.write(func() error {
		all := make(map[string]withdrawal)
		for id, w := range d.note(d.id).withdrawn {
			all[id] = w
		}
		all[device] = withdrawal{d.tick(), mute}
		if device == d.id {
			for name, e := range d.said[d.id] {
				if _, part, ok := personOf(name); ok && part >= 0 && e.box {
					if err := d.put(name, value{}); err != nil {
						return err
					}
				}
			}
		}
		return d.putNote(awayNote, all)
	})
}

// ErrNobody is returned for a device that never joined, and for a name that is not that of one device.
var ErrNobody = errors.New("no such device")

// unsent returns the names of own values that the server does not have, in the order of their counters.
func (d *Device) unsent() (names []string) {
	for name, e := range d.said[d.id] {
		if !e.sent && name != headNote {
			names = append(names, name)
		}
	}
	mine := d.said[d.id]
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(mine[a].n, mine[b].n) })
	return names
}

// data returns the bytes of an own value, and its counter.
func (d *Device) data(name string) (data []byte, n uint64, err error) {
	err = d.db.Query("select data, n from value where device = ? and name = ?", func(r store.Row) error {
		data, n = r.ColumnBlob(0, nil), uint64(r.ColumnInt64(1))
		return nil
	}, d.id, name)
	return data, n, err
}
