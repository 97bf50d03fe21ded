// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nkeys"
)

// Errors about records.
var (
	ErrRecord = errors.New("not a record of this fleet's admin key, or a damaged one")
	ErrAdmin  = errors.New("unusable admin key")
	ErrName   = errors.New("unusable name of a device")
)

// Scope tells about which people a device may read and write.
type Scope struct {
	All bool `cbor:"1,keyasint,omitempty" json:"all,omitempty"`
	// People lists the people if All is false. A device may always read and write about the people that it enrolled.
	People []ID `cbor:"2,keyasint,omitempty" json:"people,omitempty"`
}

// A Record is a fact that the admin key has signed: who may join, who was revoked, where the server is. Records only
// add up: whoever has more of them is right, in whatever order they came.
type record struct {
	Version uint64 `cbor:"1,keyasint"`
	Body    []byte `cbor:"2,keyasint"`           // [recordBody]
	Sig     []byte `cbor:"3,keyasint"`           // by the admin key
	Join    []byte `cbor:"4,keyasint,omitempty"` // [joinBody], of an admission
	JoinSig []byte `cbor:"5,keyasint,omitempty"` // by the key of the token
}

// recordKind says what a record is.
type recordKind uint64

const (
	invites recordKind = 1 + iota
	revokes
	allows
	moves
)

type recordBody struct {
	Kind    recordKind        `cbor:"1,keyasint"`
	Token   string            `cbor:"2,keyasint,omitempty"` // public key of the token
	Scope   Scope             `cbor:"3,keyasint,omitempty"`
	Expires int64             `cbor:"4,keyasint,omitempty"` // of the token, in seconds since 1970
	Device  string            `cbor:"5,keyasint,omitempty"`
	Keep    map[string]uint64 `cbor:"6,keyasint,omitempty"` // values of a revoked device that stay, by name: counters
	At      int64             `cbor:"7,keyasint,omitempty"` // in milliseconds since 1970
	URL     string            `cbor:"8,keyasint,omitempty"`
}

type joinBody struct {
	Device string `cbor:"1,keyasint"`
	Name   string `cbor:"2,keyasint"`
	At     int64  `cbor:"3,keyasint"`
}

// Version is the version of records and values that this program writes.
const Version = 1

// addressRecord is the name of the record that says where the server is.
const addressRecord = "address"

// mostKept is the greatest number of values of a revoked device that stay.
const mostKept = 5000

// Encoding of records and values. Data from others has no unknown fields, no duplicate keys and no deep nesting.
var (
	encoding, _ = cbor.EncOptions{Sort: cbor.SortCoreDeterministic, ShortestFloat: cbor.ShortestFloat16,
		NaNConvert: cbor.NaNConvert7e00, InfConvert: cbor.InfConvertFloat16, IndefLength: cbor.IndefLengthForbidden,
		Time: cbor.TimeRFC3339NanoUTC}.EncMode()
	decoding, _ = cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels: 8, MaxArrayElements: 20_000, MaxMapPairs: 20_000, IndefLength: cbor.IndefLengthForbidden,
	}.DecMode()
)

// encode returns the CBOR of a value of this package's own types, which always have one.
func encode(v any) []byte {
	b, err := encoding.Marshal(v)
	if err != nil {
		panic("fleet: " + err.Error())
	}
	return b
}

// signed returns the bytes that a key signs: what it is, the fleet, its place, and the payload.
func signed(what, fleet, place string, payload []byte) []byte {
	return append([]byte("faceauth fleet "+what+"\x00"+fleet+"\x00"+place+"\x00"), payload...)
}

// sign returns the signature of a key.
func sign(key nkeys.KeyPair, message []byte) []byte {
	sig, err := key.Sign(message)
	if err != nil {
		panic("fleet: a key without its secret part is asked to sign: " + err.Error())
	}
	return sig
}

// Verify reports whether the key with this public name has signed a message.
func Verify(public string, message, sig []byte) bool {
	key, err := nkeys.FromPublicKey(public)
	return err == nil && key.Verify(message, sig) == nil
}

// CheckName returns nil for a usable name of a device: 1 to 64 printable characters. The error wraps [ErrName].
func CheckName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > 64 || !utf8.ValidString(name) {
		return fmt.Errorf("%w: it needs 1 to 64 characters", ErrName)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: %q has a character that cannot be printed", ErrName, name)
		}
	}
	return nil
}

// AdminKey signs who is a member of a fleet. It is needed for nothing else: keep it away from the server.
type AdminKey struct {
	key   nkeys.KeyPair
	fleet string
}

// NewAdminKey makes a fleet: an admin key in a new file, which only its owner can read.
func NewAdminKey(path string) (*AdminKey, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%w: %s exists already", ErrAdmin, path)
	}
	key, err := nkeys.CreateAccount()
	if err != nil {
		return nil, err
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := safefile.Write(path, seed); err != nil {
		return nil, fmt.Errorf("keeping the admin key: %w", err)
	}
	return OpenAdminKey(path)
}

// OpenAdminKey reads an admin key. The error wraps [ErrAdmin] or [fs.ErrNotExist].
func OpenAdminKey(path string) (*AdminKey, error) {
	seed, err := safefile.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; name its file with --admin-key", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAdmin, err)
	}
	key, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err == nil {
		var fleet string
		if fleet, err = key.PublicKey(); err == nil && nkeys.IsValidPublicAccountKey(fleet) {
			return &AdminKey{key, fleet}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s does not hold one", ErrAdmin, path)
}

// Fleet returns the id of the fleet: the public part of its admin key.
func (a *AdminKey) Fleet() string { return a.fleet }

// Seed returns the 32 secret bytes of the key, for the certificate of a server.
func (a *AdminKey) Seed() []byte {
	seed, err := a.key.Seed()
	if err != nil {
		panic("fleet: " + err.Error())
	}
	_, raw, err := nkeys.DecodeSeed(seed)
	if err != nil {
		panic("fleet: " + err.Error())
	}
	return raw
}

func (a *AdminKey) record(b recordBody) []byte {
	body := encode(b)
	return encode(record{Version: Version, Body: body, Sig: sign(a.key, signed("record", a.fleet, "", body))})
}

// Revoke returns the record that revokes a device. Keep names values of the device that stay, with their counters.
func (a *AdminKey) Revoke(device string, keep map[string]uint64, now time.Time) ([]byte, error) {
	if !nkeys.IsValidPublicUserKey(device) || len(keep) > mostKept {
		return nil, fmt.Errorf("%w: %q is no device, or too many values are kept", ErrRecord, device)
	}
	return a.record(recordBody{Kind: revokes, Device: device, Keep: keep, At: now.UnixMilli()}), nil
}

// Allow returns the record that lets a device forget any number of people, from a day before now to an hour after.
func (a *AdminKey) Allow(device string, now time.Time) ([]byte, error) {
	if !nkeys.IsValidPublicUserKey(device) {
		return nil, fmt.Errorf("%w: %q is no device", ErrRecord, device)
	}
	return a.record(recordBody{Kind: allows, Device: device, At: now.UnixMilli()}), nil
}

// Move returns the record that says where the server is now. The error is that of [CheckURL].
func (a *AdminKey) Move(url string, now time.Time) ([]byte, error) {
	if err := CheckURL(url); err != nil {
		return nil, err
	}
	return a.record(recordBody{Kind: moves, URL: url, At: now.UnixMilli()}), nil
}

// Member is a device of a fleet.
type Member struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Scope    Scope     `json:"scope"`
	Admitted time.Time `json:"admitted"` // by the device's clock
	Revoked  bool      `json:"revoked,omitempty"`

	keep map[string]uint64
	may  map[ID]bool // people of the scope
}

// full reports whether a device is a member that may read and write about all people.
func (m Member) full() bool { return !m.Revoked && m.Scope.All }

// Kept reports whether a value that a device said before it was revoked still counts.
func (m Member) Kept(name string, n uint64) bool { return m.Revoked && n > 0 && m.keep[name] == n }

// Members is who belongs to a fleet, and where its server is: the sum of the records of its admin key. It is not safe
// for concurrent use.
type Members struct {
	fleet   string
	records map[string][]byte // by name
	devices map[string]Member
	admits  map[string]string    // devices by the tokens that admitted them
	allowed map[string]time.Time // when the admin last allowed a device to forget more
	url     string
	moved   int64
}

// NewMembers returns the members of a fleet that nobody has joined.
func NewMembers(fleet string) *Members {
	return &Members{fleet: fleet, records: make(map[string][]byte), devices: make(map[string]Member),
		admits: make(map[string]string), allowed: make(map[string]time.Time)}
}

// open checks the signatures of a record.
func (m *Members) open(data []byte) (b recordBody, j joinBody, err error) {
	var r record
	if err := decoding.Unmarshal(data, &r); err != nil || r.Version != Version {
		return b, j, fmt.Errorf("%w: it cannot be read (version %d)", ErrRecord, r.Version)
	}
	if !Verify(m.fleet, signed("record", m.fleet, "", r.Body), r.Sig) {
		return b, j, fmt.Errorf("%w: wrong signature", ErrRecord)
	}
	if err := decoding.Unmarshal(r.Body, &b); err != nil || len(b.Keep) > mostKept {
		return b, j, fmt.Errorf("%w: wrong content", ErrRecord)
	}
	if b.Kind != invites {
		return b, j, nil
	}
	if !Verify(b.Token, signed("join", m.fleet, "", r.Join), r.JoinSig) {
		return b, j, fmt.Errorf("%w: the token has not signed the device", ErrRecord)
	}
	if err := decoding.Unmarshal(r.Join, &j); err != nil || !nkeys.IsValidPublicUserKey(j.Device) {
		return b, j, fmt.Errorf("%w: wrong content", ErrRecord)
	}
	return b, j, CheckName(j.Name)
}

// Add adds a record, and returns its name, under which the server keeps it. News is false if it changes nothing: it is
// known, or a later one counts, or the token has admitted another device already. The error wraps [ErrRecord].
func (m *Members) Add(data []byte) (name string, news bool, err error) {
	b, j, err := m.open(data)
	if err != nil {
		return "", false, err
	}
	at := time.UnixMilli(b.At)
	switch b.Kind {
	case invites:
		if name = "a" + b.Token; m.records[name] != nil {
			return name, false, nil
		}
		at = time.UnixMilli(j.At)
		x := m.devices[j.Device]
		if x.ID == "" || at.After(x.Admitted) {
			x.ID, x.Name, x.Scope, x.Admitted = j.Device, j.Name, b.Scope, at.UTC()
			x.may = make(map[ID]bool, len(b.Scope.People))
			for _, id := range b.Scope.People {
				x.may[id] = true
			}
		}
		m.devices[j.Device], m.admits[b.Token] = x, j.Device
	case revokes:
		if name = "r" + b.Device; m.records[name] != nil {
			return name, false, nil
		}
		x := m.devices[b.Device]
		x.Revoked, x.keep = true, b.Keep
		m.devices[b.Device] = x
	case allows:
		if name = "w" + b.Device; !at.After(m.allowed[b.Device]) {
			return name, false, nil
		}
		m.allowed[b.Device] = at
	case moves:
		if name = addressRecord; b.At <= m.moved || CheckURL(b.URL) != nil {
			return name, false, nil
		}
		m.url, m.moved = b.URL, b.At
	default:
		return "", false, fmt.Errorf("%w: of a newer version", ErrRecord)
	}
	m.records[name] = data
	return name, true, nil
}

// Records returns the records by name.
func (m *Members) Records() map[string][]byte { return maps.Clone(m.records) }

// admission returns the record that admits a device, or nil.
func (m *Members) admission(device string) (data []byte) {
	for token, id := range m.admits {
		if id == device {
			data = m.records["a"+token]
		}
	}
	return data
}

// Admitted returns the device that a token has admitted, or "".
func (m *Members) Admitted(token string) string { return m.admits[token] }

// Device returns a device, and whether it was ever admitted.
func (m *Members) Device(id string) (Member, bool) {
	x := m.devices[id]
	return x, x.ID != ""
}

// Revoked reports whether a device was revoked, also if its admission is not known.
func (m *Members) Revoked(id string) bool { return m.devices[id].Revoked }

// Devices returns the devices that were ever admitted, in the order of their admission.
func (m *Members) Devices() (all []Member) {
	for _, x := range m.devices {
		if x.ID != "" {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(a.Admitted.Compare(b.Admitted), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// URL returns the address of the server that the admin key has signed, or "".
func (m *Members) URL() string { return m.url }

// revocations returns the number of revoked devices.
func (m *Members) revocations() (n uint64) {
	for _, x := range m.devices {
		if x.Revoked {
			n++
		}
	}
	return n
}

// mayForget reports whether the admin has allowed a device to forget any number of people at this time.
func (m *Members) mayForget(device string, at time.Time) bool {
	given, there := m.allowed[device]
	return there && at.After(given.Add(-24*time.Hour)) && at.Before(given.Add(time.Hour))
}
