// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"golang.org/x/crypto/nacl/box"
)

// The key of a person is made by the device that enrols the person. Devices give each other these keys through the
// server, sealed with a key that all full devices have: that of the epoch. A new epoch begins when a full device was
// revoked, and when keys were destroyed, at most once a day. Each device then renews the key with which others seal the
// epoch for it: so nobody can open the epochs of an old backup of the server, and with them the forgotten people.
// A limited device gets single keys, sealed for it.

// Names of the notes of a device. Some are cut into 16 parts, so that each is small.
const (
	headNote  = "_head"      // [head]
	boxNote   = "_box"       // 32 bytes: the public key with which others seal for this device
	awayNote  = "_withdrawn" // withdrawn lessons of devices
	epochNote = "_epoch"     // and a hexadecimal digit of the device it is for: [epochPart]
	ringNote  = "_ring"      // and the first digit of the person: [ringPart]
	lentNote  = "_lent"      // and a digit of the device it is for: [lentPart]s
)

// head says which values a device has: the sum of their counters, without that of the head. A device that misses one
// finds another sum.
type head struct {
	Sum uint64 `cbor:"1,keyasint"`
}

// withdrawal says that earlier lessons of a device do not count; with Mute, later ones do not either.
type withdrawal struct {
	Clock uint64 `cbor:"1,keyasint"`
	Mute  bool   `cbor:"2,keyasint,omitempty"`
}

// epochPart is the key of an epoch, sealed for devices.
type epochPart struct {
	Epoch   uint64      `cbor:"1,keyasint"`
	Hash    [32]byte    `cbor:"2,keyasint"` // of the key
	Revoked uint64      `cbor:"3,keyasint"` // number of revoked devices when it began
	For     []sealedFor `cbor:"4,keyasint,omitempty"`
}

// sealedFor is a secret that is sealed for one device.
type sealedFor struct {
	_      struct{} `cbor:",toarray"`
	Device string
	To     []byte // the public key that it is sealed with
	Box    []byte
}

// ringPart holds keys of people, sealed with the key of an epoch.
type ringPart struct {
	Epoch uint64      `cbor:"1,keyasint"`
	Hash  [32]byte    `cbor:"2,keyasint"`
	Keys  []ringEntry `cbor:"3,keyasint,omitempty"`
}

type ringEntry struct {
	_      struct{} `cbor:",toarray"`
	Person []byte
	Box    []byte
}

// lentPart holds keys of people, sealed for one device.
type lentPart struct {
	Device string   `cbor:"1,keyasint"`
	To     []byte   `cbor:"2,keyasint"`
	People [][]byte `cbor:"3,keyasint"`
	Box    []byte   `cbor:"4,keyasint"` // the keys one after the other
}

// notes are the decoded notes of one device.
type notes struct {
	head      head
	box       []byte
	withdrawn map[string]withdrawal
	epochs    map[string]epochPart // by name of the note
	rings     map[string]ringPart
	lent      map[string][]lentPart
}

func (d *Device) note(device string) *notes {
	if d.notes[device] == nil {
		d.notes[device] = &notes{withdrawn: make(map[string]withdrawal), epochs: make(map[string]epochPart),
			rings: make(map[string]ringPart), lent: make(map[string][]lentPart)}
	}
	return d.notes[device]
}

// take decodes a note. A note of an unknown name, of a newer program, changes nothing.
func (n *notes) take(name string, data []byte) error {
	good := true
	switch base := name[:max(1, len(name)-1)]; {
	case name == headNote:
		good = decoding.Unmarshal(data, &n.head) == nil
	case name == boxNote:
		if good = len(data) == 32; good {
			n.box = data
		}
	case name == awayNote:
		all := make(map[string]withdrawal)
		if good = decoding.Unmarshal(data, &all) == nil; good {
			n.withdrawn = all
		}
	case base == epochNote:
		good = takeNote(n.epochs, name, data, nil)
	case base == ringNote:
		good = takeNote(n.rings, name, data, func(p ringPart) bool {
			return !slices.ContainsFunc(p.Keys, func(e ringEntry) bool { return len(e.Person) != len(ID{}) })
		})
	case base == lentNote:
		good = takeNote(n.lent, name, data, func(all []lentPart) bool {
			return !slices.ContainsFunc(all, func(p lentPart) bool { return !isPeople(p.People) })
		})
	}
	if !good {
		return fmt.Errorf("%w: %s", errValue, name)
	}
	return nil
}

// takeNote decodes one of several notes of a kind, and reports whether it can be used.
func takeNote[T any](all map[string]T, name string, data []byte, usable func(T) bool) bool {
	var p T
	if decoding.Unmarshal(data, &p) != nil || usable != nil && !usable(p) {
		return false
	}
	all[name] = p
	return true
}

func isPeople(all [][]byte) bool {
	return !slices.ContainsFunc(all, func(id []byte) bool { return len(id) != len(ID{}) })
}

func hashOf(what string, data []byte) [32]byte {
	return sha256.Sum256(append([]byte("faceauth fleet "+what+"\x00"), data...))
}

// digit returns the part of a note that is for a device.
func digit(device string) string {
	sum := sha256.Sum256([]byte(device))
	return fmt.Sprintf("%x", sum[0]>>4)
}

// newBox makes a new key with which others seal for this device. The old one is gone.
func (s *state) newBox() {
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		panic("fleet: " + err.Error()) // the system has no random numbers
	}
	s.Public, s.Private = public[:], private[:]
}

// openBox opens what another device has sealed for this one.
func (s *state) openBox(data []byte) ([]byte, bool) {
	if len(s.Public) != 32 || len(s.Private) != 32 {
		return nil, false
	}
	return box.OpenAnonymous(nil, data, (*[32]byte)(s.Public), (*[32]byte)(s.Private))
}

func sealBox(to, data []byte) []byte {
	b, err := box.SealAnonymous(nil, data, (*[32]byte)(to), rand.Reader)
	if err != nil {
		panic("fleet: " + err.Error()) // the system has no random numbers
	}
	return b
}

// epochHash returns the hash of the present epoch's key.
func (s *state) epochHash() [32]byte {
	if s.Epoch == 0 {
		return [32]byte{}
	}
	return hashOf("epoch", s.Secret)
}

// present reports whether an epoch is the present one of this device.
func (s *state) present(epoch uint64, hash [32]byte) bool {
	return epoch == s.Epoch && hash == s.epochHash()
}

// full returns the full members with their notes, in a fixed order.
func (d *Device) fullMembers() (all []string) {
	for _, m := range d.members.Devices() {
		if m.full() {
			all = append(all, m.ID)
		}
	}
	return all
}

// farthestEpoch is how much higher an epoch may be than the own one: a liar cannot end the counting.
const farthestEpoch = 1000

// takeEpoch takes the highest epoch that was sealed for this device: the greater hash decides between two.
func (d *Device) takeEpoch() error {
	taken := false
	for _, device := range d.fullMembers() {
		for _, p := range d.note(device).epochs {
			mine := d.own.epochHash()
			if device == d.id || d.own.Epoch > 0 && p.Epoch > d.own.Epoch+farthestEpoch ||
				cmp.Or(cmp.Compare(p.Epoch, d.own.Epoch), bytes.Compare(p.Hash[:], mine[:])) <= 0 {
				continue
			}
			for _, f := range p.For {
				if f.Device != d.id {
					continue
				}
				key, ok := d.own.openBox(f.Box)
				if ok && len(key) == len(secret{}) && hashOf("epoch", key) == p.Hash {
					d.own.Epoch, d.own.Secret, taken = p.Epoch, key, true
				}
			}
		}
	}
	if !taken {
		return nil
	}
	return d.begin()
}

// begin renews the own key after the epoch has changed, and removes what was sealed in an earlier epoch.
func (d *Device) begin() error {
	d.own.newBox()
	d.own.Begun, d.own.Destroyed = d.s.Now().Unix(), false
	d.turns = make(map[string]time.Time)
	n := d.note(d.id)
	for name := range n.epochs {
		if err := d.putNote(name, epochPart{}); err != nil {
			return err
		}
	}
	for name, p := range n.rings {
		if d.own.present(p.Epoch, p.Hash) {
			continue // this device has shared it, and then an old copy of its folder was put back
		}
		if err := d.putNote(name, ringPart{}); err != nil {
			return err
		}
	}
	return d.putBox()
}

func (d *Device) putBox() error { return d.put(boxNote, value{Note: d.own.Public}) }

// rotate begins an epoch.
func (d *Device) rotate() error {
	d.own.Epoch++
	key := newSecret()
	d.own.Secret = key[:]
	return d.begin()
}

// takeKeys takes the keys of people that others have shared. A key is taken if it opens what the maker of the person
// says, or what anybody says if the maker is gone.
func (d *Device) takeKeys() {
	offer := func(id ID, key []byte) {
		if _, have := d.secrets[id]; have || d.dead[id] || len(key) != len(secret{}) {
			return
		}
		if d.opens(id, secret(key)) {
			d.secrets[id] = secret(key)
			d.invalidate(id)
			if err := d.setFact(keyFact, id.String(), key); err != nil {
				d.complain(err)
			}
		}
	}
	for device, n := range d.notes {
		if m, known := d.members.Device(device); !known || m.Revoked {
			continue
		}
		for _, p := range n.rings {
			if d.own.Epoch == 0 || !d.own.present(p.Epoch, p.Hash) {
				continue
			}
			for _, e := range p.Keys {
				id := ID(e.Person)
				if _, have := d.secrets[id]; have || d.dead[id] {
					continue
				}
				if key, err := secret(d.own.Secret).open(e.Box, id.String()); err == nil {
					offer(id, key)
				}
			}
		}
		for _, parts := range n.lent {
			for _, p := range parts {
				if p.Device != d.id || !d.lacksAny(p.People) {
					continue
				}
				keys, ok := d.own.openBox(p.Box)
				for i, id := range p.People {
					if ok && len(keys) >= (i+1)*len(secret{}) {
						offer(ID(id), keys[i*len(secret{}):(i+1)*len(secret{})])
					}
				}
			}
		}
	}
}

func (d *Device) lacksAny(people [][]byte) bool {
	return slices.ContainsFunc(people, func(id []byte) bool {
		_, have := d.secrets[ID(id)]
		return !have && !d.dead[ID(id)]
	})
}

// opens reports whether a key opens what is said about a person.
func (d *Device) opens(id ID, key secret) bool {
	name := id.String()
	by := func(device string) bool {
		v, there := d.value(device, name)
		if !there || len(v.Box) == 0 {
			return false
		}
		_, err := key.open(v.Box, placeOf(device, name))
		return err == nil
	}
	some := false
	for device, e := range d.sayers(id) {
		if e.born {
			return by(device)
		}
		some = some || by(device)
	}
	return some
}

// turn reports whether this device should do what any of several devices could do and none has done. The first one is
// chosen by a random pause.
func (d *Device) turn(duty string, mine bool) bool {
	now := d.s.Now()
	at, there := d.turns[duty]
	if !there {
		at = now
		if n := len(d.fullMembers()); !mine && n > 1 {
			at = now.Add(mathrand.N(min(d.s.Turn, time.Duration(n)*d.s.Turn/10) + 1))
		}
		d.turns[duty] = at
	}
	return !now.Before(at)
}

// share does what this device owes the others: it begins epochs, and shares keys. It is called when all that is on the
// server has been read.
func (d *Device) share() error {
	if !bytes.Equal(d.note(d.id).box, d.own.Public) {
		if err := d.putBox(); err != nil {
			return err
		}
	}
	m, known := d.members.Device(d.id)
	if !known || m.Revoked {
		return nil
	}
	if !m.Scope.All {
		return d.lendOwn()
	}
	due := make(map[string]bool) // duties that are still open
	ask := func(duty string, mine bool) bool {
		due[duty] = true
		return d.turn(duty, mine)
	}
	defer func() {
		for duty := range d.turns {
			if !due[duty] {
				delete(d.turns, duty)
			}
		}
	}()
	full := d.fullMembers()
	// The epoch.
	var begun bool // somebody has begun one
	revoked := uint64(0)
	for _, device := range full {
		for _, p := range d.note(device).epochs {
			begun = begun || p.Epoch > 0
			if d.own.present(p.Epoch, p.Hash) {
				revoked = max(revoked, p.Revoked)
			}
		}
	}
	day := int64(d.s.Grace / time.Second)
	switch now := d.s.Now().Unix(); {
	case d.own.Epoch == 0 && begun:
		return nil // another device seals it for this one
	case d.own.Epoch == 0 && ask("first epoch", len(full) == 1),
		d.own.Epoch > 0 && begun && revoked < d.members.revocations() && ask("epoch after a revocation", false),
		d.own.Epoch > 0 && d.own.Destroyed && now-d.own.Begun >= day && ask("epoch after forgetting", false):
		if err := d.rotate(); err != nil {
			return err
		}
	}
	if d.own.Epoch == 0 {
		return nil
	}
	if err := d.shareEpoch(full, ask); err != nil {
		return err
	}
	if err := d.shareRing(full, ask); err != nil {
		return err
	}
	for _, m := range d.members.Devices() {
		if m.Revoked || m.Scope.All {
			continue
		}
		var people []ID
		for id := range m.may {
			people = append(people, d.group(id)...)
		}
		if err := d.lend(m.ID, people, ask); err != nil {
			return err
		}
	}
	return nil
}

// shareEpoch seals the epoch for the devices that lack it.
func (d *Device) shareEpoch(full []string, ask func(string, bool) bool) error {
	covered := make(map[string]bool) // devices whose present key the epoch is sealed with
	owner := true                    // no other device shares this epoch
	for _, device := range full {
		for _, p := range d.note(device).epochs {
			if !d.own.present(p.Epoch, p.Hash) {
				continue
			}
			owner = owner && device == d.id
			for _, f := range p.For {
				covered[f.Device] = covered[f.Device] || bytes.Equal(f.To, d.note(f.Device).box)
			}
		}
	}
	stale := make(map[string]bool)
	shared := len(full) > 1
	for _, device := range full {
		if device != d.id && !covered[device] && len(d.note(device).box) == 32 && ask("epoch for "+device, owner) {
			stale[epochNote+digit(device)] = true
		}
	}
	if owner && !shared && d.note(d.id).epochs[epochNote+digit(d.id)].Epoch != d.own.Epoch {
		stale[epochNote+digit(d.id)] = true // others see that there is one
	}
	for name := range stale {
		p := epochPart{Epoch: d.own.Epoch, Hash: d.own.epochHash(), Revoked: d.members.revocations()}
		for _, device := range full {
			to := d.note(device).box
			if device != d.id && len(to) == 32 && epochNote+digit(device) == name {
				p.For = append(p.For, sealedFor{Device: device, To: to, Box: sealBox(to, d.own.Secret)})
			}
		}
		if err := d.putNote(name, p); err != nil {
			return err
		}
	}
	return nil
}

// shareRing puts those keys of people into the own ring that no ring of this epoch has.
func (d *Device) shareRing(full []string, ask func(string, bool) bool) error {
	covered := make(map[ID]bool)
	alone := true // no other device has a ring of this epoch
	for _, device := range full {
		for _, p := range d.note(device).rings {
			if !d.own.present(p.Epoch, p.Hash) {
				continue
			}
			alone = alone && (device == d.id || len(p.Keys) == 0)
			for _, e := range p.Keys {
				covered[ID(e.Person)] = true
			}
		}
	}
	stale := make(map[string]bool)
	more := make(map[string][]ID)
	for id := range d.secrets {
		name := ringNote + id.String()[:1]
		if d.forgotten(id) || covered[id] {
			continue
		}
		e := d.said[d.id][id.String()]
		maker := alone || e != nil && e.born
		if ask("ring "+name, maker) || maker {
			stale[name] = true
			more[name] = append(more[name], id)
		}
	}
	for name, p := range d.note(d.id).rings {
		for _, e := range p.Keys {
			if d.hidden()[ID(e.Person)] {
				stale[name] = true
			}
		}
	}
	for name := range stale {
		p := ringPart{Epoch: d.own.Epoch, Hash: d.own.epochHash()}
		if had := d.note(d.id).rings[name]; d.own.present(had.Epoch, had.Hash) {
			for _, e := range had.Keys {
				if !d.hidden()[ID(e.Person)] {
					p.Keys = append(p.Keys, e)
				}
			}
		}
		for _, id := range more[name] {
			key := d.secrets[id]
			p.Keys = append(p.Keys, ringEntry{Person: bytes.Clone(id[:]),
				Box: secret(d.own.Secret).seal(key[:], id.String())})
		}
		if err := d.putNote(name, p); err != nil {
			return err
		}
	}
	return nil
}

// lentTo returns the people whose keys are sealed for a device with its present key.
func (d *Device) lentTo(device string, to []byte) map[ID]bool {
	all := make(map[ID]bool)
	for by, n := range d.notes {
		if m, known := d.members.Device(by); !known || m.Revoked {
			continue
		}
		for _, parts := range n.lent {
			for _, p := range parts {
				if p.Device == device && bytes.Equal(p.To, to) {
					for _, id := range p.People {
						all[ID(id)] = true
					}
				}
			}
		}
	}
	return all
}

// lend seals the keys of people for one device, in place of what was sealed for it before, if it lacks one of them.
func (d *Device) lend(device string, people []ID, ask func(string, bool) bool) error {
	to := d.note(device).box
	people = slices.DeleteFunc(people, func(id ID) bool {
		_, have := d.secrets[id]
		return !have || d.forgotten(id)
	})
	lent := d.lentTo(device, to)
	if len(to) != 32 || !slices.ContainsFunc(people, func(id ID) bool { return !lent[id] }) ||
		!ask("keys for "+device, false) {
		return nil
	}
	slices.SortFunc(people, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	p := lentPart{Device: device, To: to}
	var keys []byte
	for _, id := range slices.Compact(people) {
		key := d.secrets[id]
		p.People, keys = append(p.People, bytes.Clone(id[:])), append(keys, key[:]...)
	}
	p.Box = sealBox(to, keys)
	name := lentNote + digit(device)
	parts := slices.DeleteFunc(slices.Clone(d.note(d.id).lent[name]), func(x lentPart) bool {
		return x.Device == device
	})
	return d.putNote(name, append(parts, p))
}

// lendOwn seals the keys of the people whom this limited device has enrolled for the full devices, until they are in a
// ring.
func (d *Device) lendOwn() error {
	full := d.fullMembers()
	newest := uint64(0)
	for _, device := range full {
		for _, p := range d.note(device).epochs {
			newest = max(newest, p.Epoch)
		}
	}
	if newest > d.own.Epoch && (d.own.Epoch == 0 || newest <= d.own.Epoch+farthestEpoch) {
		d.own.Epoch = newest
		d.own.newBox()
		if err := d.putBox(); err != nil {
			return err
		}
	}
	inRing := make(map[ID]bool)
	for _, device := range full {
		for _, p := range d.note(device).rings {
			for _, e := range p.Keys {
				inRing[ID(e.Person)] = true
			}
		}
	}
	var people []ID
	for id := range d.secrets {
		e := d.said[d.id][id.String()]
		if e != nil && e.born && !inRing[id] {
			people = append(people, id)
		}
	}
	for _, device := range full {
		if err := d.lend(device, slices.Clone(people), func(string, bool) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}
