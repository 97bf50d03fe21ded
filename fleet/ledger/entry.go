// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nkeys"
)

// Errors of [Parse], [Entry.Verify], [Entry.Open] and [Ledger.Apply].
var (
	ErrFormat    = errors.New("not an entry of a fleet's log, or a damaged one")
	ErrFuture    = errors.New("this fleet speaks a newer version: update this device")
	ErrTooLarge  = errors.New("entry that is too large")
	ErrSignature = errors.New("wrong signature, or an entry of another fleet")
	ErrUnsealed  = errors.New("content that its key does not open: it was altered")
	ErrContent   = errors.New("content that cannot be of an entry of its kind")
)

// Version is the version of the entries that this program writes, and the newest that it reads.
const Version = 1

// MaxEntry is how many bytes an encoded entry may have: what NATS takes by default, without room for its headers.
const MaxEntry = 1_000_000

// ID is the number of a person in a fleet: 16 random bytes, which say nothing about the person.
type ID [16]byte

// NewID returns a number that nobody has.
func NewID() (id ID) {
	rand.Read(id[:])
	return id
}

// ParseID reads what [ID.String] wrote.
func ParseID(s string) (id ID, err error) {
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("%q is not the number of a person: it has 32 hexadecimal digits", s)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("%q is not the number of a person: %w", s, err)
	}
	return id, nil
}

// String returns 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id is nobody's.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText returns [ID.String].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is [ParseID].
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// MarshalBinary returns the 16 bytes.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary takes 16 bytes.
func (id *ID) UnmarshalBinary(data []byte) error {
	if len(data) != len(id) {
		return fmt.Errorf("the number of a person has %d bytes, not %d", len(id), len(data))
	}
	copy(id[:], data)
	return nil
}

// Kind says what an entry does.
type Kind uint8

// The kinds whose content is sealed with the key of a person.
const (
	Label   Kind = 1 // [Faces] are the person's
	Name    Kind = 2 // the person has this [Naming]
	Retract Kind = 3 // the faces of [Refs] are not to be the person's label any more
	Deny    Kind = 4 // [Faces] are not the person's
	Confirm Kind = 5 // it is still this person: [Faces], which were learned, become labelled ones
	Lessons Kind = 6 // a [Lesson]: what the device learned of the person
)

// The kinds without secrets.
const (
	Merge    Kind = 32 // Other is the same person as Person, and has Person's name
	Undo     Kind = 33 // an entry about Person does not count: [Ref]
	Forget   Kind = 34 // Person, and those of [Forgetting], are forgotten for ever
	Withdraw Kind = 35 // the lessons of a device do not count: [Withdrawal]
	Admit    Kind = 64 // a device may take part: [Admission]. By the fleet's admin key
	Revoke   Kind = 65 // a device may take part no longer: [Revocation]. By the fleet's admin key
	Restored Kind = 66 // the log was put back to an earlier state: [Restoration]. By the fleet's admin key
)

var kinds = map[Kind]string{
	Label: "label", Name: "name", Retract: "retract", Deny: "deny", Confirm: "confirm", Lessons: "lessons",
	Merge: "merge", Undo: "undo", Forget: "forget", Withdraw: "withdraw", Admit: "admit", Revoke: "revoke",
	Restored: "restored",
}

// String returns one word.
func (k Kind) String() string {
	if s, ok := kinds[k]; ok {
		return s
	}
	return "kind " + strconv.Itoa(int(k))
}

// Sealed reports whether the content of such an entry is sealed with the key of its person.
func (k Kind) Sealed() bool { return k >= Label && k <= Lessons }

// Ref names an entry: the Nth of a device.
type Ref struct {
	Device string `cbor:"1,keyasint"`
	N      uint64 `cbor:"2,keyasint"`
}

// Entry is one entry of a fleet's log. Make it by filling in the fields, then [Entry.Seal] or [Entry.Put], then
// [Entry.Sign]. One that was signed or parsed must not be changed.
type Entry struct {
	Version uint64 // [Version] where it is 0
	Device  string // public nkey of the author: a user "U…", or the fleet "A…" in entries of its admin key
	N       uint64 // the author's own counter, from 1
	Time    time.Time
	Kind    Kind
	Person  ID
	Other   ID     // of [Merge]
	Part    uint64 // of [Lessons]: part 0 replaces all that the device taught of the person, another adds to that
	Key     KeyID  // of the key that the content is sealed with
	Body    []byte // the content, sealed where [Kind.Sealed]
	Sig     []byte

	payload []byte   // what is signed, with version and device
	hash    [16]byte // its sum, where that is known
}

// envelope is an entry as it travels. It stays as it is in all versions.
type envelope struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	Device  string
	Payload []byte
	Sig     []byte
}

// payload is the rest of an entry of version 1.
type payload struct {
	N      uint64 `cbor:"1,keyasint"`
	Time   int64  `cbor:"2,keyasint"` // milliseconds since 1970
	Kind   Kind   `cbor:"3,keyasint"`
	Person []byte `cbor:"4,keyasint,omitempty"`
	Other  []byte `cbor:"5,keyasint,omitempty"`
	Part   uint64 `cbor:"6,keyasint,omitempty"`
	Key    []byte `cbor:"7,keyasint,omitempty"`
	Body   []byte `cbor:"8,keyasint,omitempty"`
}

var (
	encoding = func() cbor.EncMode {
		m, err := cbor.CoreDetEncOptions().EncMode()
		if err != nil {
			panic("ledger: " + err.Error())
		}
		return m
	}()
	decoding = func() cbor.DecMode {
		m, err := cbor.DecOptions{
			DupMapKey:         cbor.DupMapKeyEnforcedAPF,
			IndefLength:       cbor.IndefLengthForbidden,
			TagsMd:            cbor.TagsForbidden,
			ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
			MaxNestedLevels:   8,
			MaxArrayElements:  1 << 20,
			MaxMapPairs:       1 << 10,
		}.DecMode()
		if err != nil {
			panic("ledger: " + err.Error())
		}
		return m
	}()
)

// marshal returns the deterministic CBOR of a value of this package, none of which can fail.
func marshal(v any) []byte {
	b, err := encoding.Marshal(v)
	if err != nil {
		panic("ledger: " + err.Error())
	}
	return b
}

func some(b []byte, zero bool) []byte {
	if zero {
		return nil
	}
	return b
}

// encodePayload returns the payload with that body.
func (e *Entry) encodePayload(body []byte) []byte {
	return marshal(payload{
		N: e.N, Time: e.Time.UnixMilli(), Kind: e.Kind, Part: e.Part, Body: body,
		Person: some(e.Person[:], e.Person.IsZero()), Other: some(e.Other[:], e.Other.IsZero()),
		Key: some(e.Key[:], e.Key == KeyID{}),
	})
}

// signed returns the bytes that are signed.
func signed(what, fleet string, version uint64, device string, payload []byte) []byte {
	return marshal([]any{"faceauth fleet " + what, fleet, version, device, payload})
}

// Sign signs e as an entry of a fleet, whose public key is given. The device of e becomes that of the key, and its
// version [Version] where it has none. The error wraps [ErrTooLarge], or is that of the key.
func (e *Entry) Sign(fleet string, key nkeys.KeyPair) error {
	device, err := key.PublicKey()
	if err != nil {
		return fmt.Errorf("signing an entry: %w", err)
	}
	if e.Version == 0 {
		e.Version = Version
	}
	e.Device = device
	e.payload = e.encodePayload(e.Body)
	if e.Sig, err = key.Sign(signed("entry", fleet, e.Version, e.Device, e.payload)); err != nil {
		return fmt.Errorf("signing an entry: %w", err)
	}
	if n := len(e.Encode()); n > MaxEntry {
		return fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrTooLarge, n, MaxEntry)
	}
	return nil
}

// Verify returns nil where e was signed by its device for this fleet. The error wraps [ErrSignature].
func (e *Entry) Verify(fleet string) error {
	key, err := nkeys.FromPublicKey(e.Device)
	if err != nil {
		return fmt.Errorf("%w: %s is not the key of a device", ErrSignature, e.Device)
	}
	if key.Verify(signed("entry", fleet, e.Version, e.Device, e.payload), e.Sig) != nil {
		return fmt.Errorf("%w: %s", ErrSignature, e)
	}
	return nil
}

// Encode returns a signed entry as it travels.
func (e *Entry) Encode() []byte {
	return marshal(envelope{Version: e.Version, Device: e.Device, Payload: e.payload, Sig: e.Sig})
}

// Parse reads an entry, and does not verify its signature. The error wraps [ErrFormat], [ErrTooLarge] or, for a version
// that this program does not know, [ErrFuture]; the entry then has its version, device and signature, and can be
// verified.
func Parse(data []byte) (Entry, error) {
	var e Entry
	if len(data) > MaxEntry {
		return e, fmt.Errorf("%w: it has %d bytes, and %d are allowed", ErrTooLarge, len(data), MaxEntry)
	}
	var v envelope
	if err := decoding.Unmarshal(data, &v); err != nil {
		return e, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	switch {
	case !bytes.Equal(marshal(v), data):
		return e, fmt.Errorf("%w: it is not encoded in the one way that is allowed", ErrFormat)
	case v.Version == 0:
		return e, fmt.Errorf("%w: it has version 0", ErrFormat)
	case !nkeys.IsValidPublicUserKey(v.Device) && !nkeys.IsValidPublicAccountKey(v.Device):
		return e, fmt.Errorf("%w: its author has no key of a device", ErrFormat)
	}
	e = Entry{Version: v.Version, Device: v.Device, Sig: v.Sig, payload: v.Payload}
	if v.Version > Version {
		return e, fmt.Errorf("%w: an entry of %s has version %d, and this program reads %d",
			ErrFuture, v.Device, v.Version, Version)
	}
	if err := e.decodePayload(); err != nil {
		return e, err
	}
	// What was too long or too short gives other bytes.
	if !bytes.Equal(e.encodePayload(e.Body), v.Payload) {
		return e, fmt.Errorf("%w: it is not encoded in the one way that is allowed", ErrFormat)
	}
	if err := e.check(); err != nil {
		return e, err
	}
	return e, nil
}

func (e *Entry) decodePayload() error {
	var p payload
	if err := decoding.Unmarshal(e.payload, &p); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	e.N, e.Time, e.Kind, e.Part, e.Body = p.N, time.UnixMilli(p.Time).UTC(), p.Kind, p.Part, p.Body
	copy(e.Person[:], p.Person)
	copy(e.Other[:], p.Other)
	copy(e.Key[:], p.Key)
	return nil
}

// parseAgain reads an entry that Parse has read before.
func parseAgain(data []byte) (Entry, error) {
	var v envelope
	if err := decoding.Unmarshal(data, &v); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	e := Entry{Version: v.Version, Device: v.Device, Sig: v.Sig, payload: v.Payload}
	if v.Version > Version {
		return e, fmt.Errorf("%w: an entry of %s has version %d, and this program reads %d",
			ErrFuture, v.Device, v.Version, Version)
	}
	return e, e.decodePayload()
}

// check returns an error where the fields of e do not go with its kind.
func (e *Entry) check() error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s has %s", ErrFormat, e.Kind, what) }
	if _, known := kinds[e.Kind]; !known {
		return fmt.Errorf("%w: %s is unknown", ErrFormat, e.Kind)
	}
	about := e.Kind.Sealed() || e.Kind == Merge || e.Kind == Undo || e.Kind == Forget
	switch {
	case e.N == 0:
		return wrong("no counter")
	case about && e.Person.IsZero():
		return wrong("no person")
	case !about && !e.Person.IsZero():
		return wrong("a person")
	case (e.Kind == Merge) == e.Other.IsZero():
		return wrong("another person, or none where there must be one")
	case e.Kind == Merge && e.Other == e.Person:
		return wrong("the same person twice")
	case e.Kind != Lessons && e.Part != 0:
		return wrong("parts")
	case e.Kind.Sealed() == (e.Key == KeyID{}):
		return wrong("a key, or none where there must be one")
	case e.Kind == Merge && len(e.Body) != 0:
		return wrong("a content")
	case e.Kind.Sealed() && len(e.Body) < sealedOverhead:
		return wrong("a content that is cut off")
	case (e.Kind == Admit || e.Kind == Revoke || e.Kind == Restored) != nkeys.IsValidPublicAccountKey(e.Device):
		return wrong("an author who may not say that")
	}
	return nil
}

// MessageID returns a text that no other entry has, by which a log knows an entry that it is given twice.
func (e *Entry) MessageID() string { return e.Device + "-" + strconv.FormatUint(e.N, 10) }

// Subject returns the number of the person that e is about, or "-".
func (e *Entry) Subject() string {
	if e.Person.IsZero() {
		return "-"
	}
	return e.Person.String()
}

// Ref returns the name of e.
func (e *Entry) Ref() Ref { return Ref{e.Device, e.N} }

// String names e without its content.
func (e *Entry) String() string {
	return fmt.Sprintf("%s, entry %d of %s", e.Kind, e.N, e.Device)
}
