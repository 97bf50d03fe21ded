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
	ErrFuture    = errors.New("newer version: update faceauth on this device")
	ErrTooLarge  = errors.New("entry is too large")
	ErrSignature = errors.New("wrong signature, or an entry of another fleet")
	ErrUnsealed  = errors.New("the key does not open the content: it was altered")
	ErrContent   = errors.New("the content does not fit the kind of its entry")
)

// Version is the version of the entries that this program writes, and the newest that it can read.
const Version = 1

// MaxEntry is the greatest size of an encoded entry in bytes: the default limit of NATS, less room for headers.
const MaxEntry = 1_000_000

// ID is the number of a person in a fleet: 16 random bytes, which reveal nothing about the person.
type ID [16]byte

// NewID returns a new random number.
func NewID() (id ID) {
	rand.Read(id[:])
	return id
}

// ParseID reads the text of [ID.String].
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

// IsZero reports whether id is zero, which is no person's number.
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

// Kind is the kind of an entry.
type Kind uint8

// The kinds whose content is sealed with the key of a person.
const (
	Label   Kind = 1 // the [Faces] are the person's
	Name    Kind = 2 // the person has the name of [Naming]
	Retract Kind = 3 // the faces of [Refs] are no longer the person's labels
	Deny    Kind = 4 // the [Faces] are not the person's
	Confirm Kind = 5 // learned [Faces] are the person's and become labels
	Lessons Kind = 6 // the [Lesson] that the device learned of the person
)

// The kinds whose content is not sealed.
const (
	Merge    Kind = 32 // Other is the same person as Person, and has Person's name
	Undo     Kind = 33 // an entry about Person does not count: [Ref]
	Forget   Kind = 34 // Person, and the people of [Forgetting], are forgotten for ever
	Withdraw Kind = 35 // the lessons of a device do not count: [Withdrawal]
	Admit    Kind = 64 // a device becomes a member: [Admission]. Signed by the admin key
	Revoke   Kind = 65 // a device is no longer a member: [Revocation]. Signed by the admin key
	Restored Kind = 66 // the log was put back to an earlier state: [Restoration]. Signed by the admin key
	Allow    Kind = 67 // devices may forget [DailyForgets] people again: [Allowance]. Signed by the admin key
)

var kinds = map[Kind]string{
	Label: "label", Name: "name", Retract: "retract", Deny: "deny", Confirm: "confirm", Lessons: "lessons",
	Merge: "merge", Undo: "undo", Forget: "forget", Withdraw: "withdraw", Admit: "admit", Revoke: "revoke",
	Restored: "restored", Allow: "allow",
}

// String returns the kind as one word.
func (k Kind) String() string {
	if s, ok := kinds[k]; ok {
		return s
	}
	return "kind " + strconv.Itoa(int(k))
}

// Sealed reports whether the content of this kind is sealed with the key of its person.
func (k Kind) Sealed() bool { return k >= Label && k <= Lessons }

// Ref identifies an entry: the Nth entry of a device.
type Ref struct {
	Device string `cbor:"1,keyasint"`
	N      uint64 `cbor:"2,keyasint"`
}

// Entry is one entry of a fleet's log. To make one, fill in the fields, then call [Entry.Seal] or [Entry.Put], then
// [Entry.Sign]. Do not change a signed or parsed entry.
type Entry struct {
	Version uint64 // 0 means [Version]
	Device  string // public nkey of the author: a device "U…", or the fleet "A…" for its admin key
	N       uint64 // the author's own counter, from 1
	Time    time.Time
	Kind    Kind
	Person  ID
	Other   ID     // of [Merge]
	Part    uint64 // of [Lessons]: part 0 replaces the device's lesson about the person, other parts add to it
	Key     KeyID  // of the key that the content is sealed with
	Body    []byte // the content; sealed if [Kind.Sealed] is true
	Sig     []byte

	payload []byte   // the encoded payload: signed together with version and device
	hash    [16]byte // the result of sum; zero if not computed yet
}

// envelope is the encoded form of an entry. It stays the same in all versions.
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

// marshal returns the deterministic CBOR of a value. The types of this package cannot fail to encode.
func marshal(v any) []byte {
	b, err := encoding.Marshal(v)
	if err != nil {
		panic("ledger: " + err.Error())
	}
	return b
}

// unlessZero returns b, or nil if its value is zero.
func unlessZero(b []byte, zero bool) []byte {
	if zero {
		return nil
	}
	return b
}

// encodePayload returns the payload of e with the given body.
func (e *Entry) encodePayload(body []byte) []byte {
	return marshal(payload{
		N: e.N, Time: e.Time.UnixMilli(), Kind: e.Kind, Part: e.Part, Body: body,
		Person: unlessZero(e.Person[:], e.Person.IsZero()), Other: unlessZero(e.Other[:], e.Other.IsZero()),
		Key: unlessZero(e.Key[:], e.Key == KeyID{}),
	})
}

// signed returns the bytes that a signature covers. Subject is the type of the message, for example "entry".
func signed(subject, fleet string, version uint64, device string, payload []byte) []byte {
	return marshal([]any{"faceauth fleet " + subject, fleet, version, device, payload})
}

// Sign signs e for the fleet with the given public key. It sets e.Device to the public key of "key", and a zero
// e.Version to [Version]. The error wraps [ErrTooLarge], or comes from the key.
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

// Verify returns nil if e's device signed it for this fleet. The error wraps [ErrSignature].
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

// Encode returns the encoded form of a signed entry.
func (e *Entry) Encode() []byte {
	return marshal(envelope{Version: e.Version, Device: e.Device, Payload: e.payload, Sig: e.Sig})
}

// Parse reads an entry; it does not verify the signature. The error wraps [ErrFormat] or [ErrTooLarge]. For a newer
// version the error wraps [ErrFuture]; then the entry has its version, device and signature, and can be verified.
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
		return e, fmt.Errorf("%w: its encoding is not deterministic CBOR", ErrFormat)
	case v.Version == 0:
		return e, fmt.Errorf("%w: it has version 0", ErrFormat)
	case !nkeys.IsValidPublicUserKey(v.Device) && !nkeys.IsValidPublicAccountKey(v.Device):
		return e, fmt.Errorf("%w: its author is not the public key of a device or fleet", ErrFormat)
	}
	e = Entry{Version: v.Version, Device: v.Device, Sig: v.Sig, payload: v.Payload}
	if v.Version > Version {
		return e, fmt.Errorf("%w: an entry of %s has version %d, and this program reads %d",
			ErrFuture, v.Device, v.Version, Version)
	}
	if err := e.decodePayload(); err != nil {
		return e, err
	}
	// Numbers of the wrong length give other bytes here.
	if !bytes.Equal(e.encodePayload(e.Body), v.Payload) {
		return e, fmt.Errorf("%w: its encoding is not deterministic CBOR", ErrFormat)
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

// parseAgain reads an entry that Parse accepted before.
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

// check returns an error if the fields of e do not fit its kind.
func (e *Entry) check() error {
	wrong := func(problem string) error { return fmt.Errorf("%w: %s has %s", ErrFormat, e.Kind, problem) }
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
		return wrong("no second person, or an unexpected one")
	case e.Kind == Merge && e.Other == e.Person:
		return wrong("the same person twice")
	case e.Kind != Lessons && e.Part != 0:
		return wrong("parts")
	case e.Kind.Sealed() == (e.Key == KeyID{}):
		return wrong("no key, or an unexpected one")
	case e.Kind == Merge && len(e.Body) != 0:
		return wrong("a content")
	case e.Kind.Sealed() && len(e.Body) < sealedOverhead:
		return wrong("a truncated content")
	case (e.Kind >= Admit) != nkeys.IsValidPublicAccountKey(e.Device):
		return wrong("an author who may not write this kind")
	}
	return nil
}

// Subject returns the number of e's person as text, or "-".
func (e *Entry) Subject() string {
	if e.Person.IsZero() {
		return "-"
	}
	return e.Person.String()
}

// Ref returns the reference of e.
func (e *Entry) Ref() Ref { return Ref{e.Device, e.N} }

// String describes e without its content.
func (e *Entry) String() string {
	return fmt.Sprintf("%s, entry %d of %s", e.Kind, e.N, e.Device)
}
