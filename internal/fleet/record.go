// SPDX-License-Identifier: Apache-2.0

// Package fleet lets devices share people: who is enrolled on one is known on all, and who is
// forgotten on one is forgotten on all.
//
// [Join] makes a device a member, and [Run] keeps its gallery in step. Package server is the other
// side.
//
// The truth about a person is one record. Each device keeps the records in its gallery's database,
// and the server for all in a key-value bucket of NATS JetStream, sealed with the key of the fleet,
// which it does not have. What a program changes in the gallery is compared with the record, in one
// transaction; what others have changed is joined into the record, and brought into the gallery by
// package gallery. A record is written only over the value that its writer has read (compare and
// set): who comes second joins and tries again. Each session begins with a list of all keys, so an
// absence, an old copy of a device or of the server, and a lost acknowledgement are one case.
package fleet

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/fxamacker/cbor/v2"
	"golang.org/x/crypto/chacha20poly1305"
)

// ID is the number of a person in the fleet: a hash of the face that was enrolled first, so that an
// old copy of a device gives nobody another number.
type ID [16]byte

// idOf returns the number of a person who was enrolled by a face for the nth time.
func idOf(space string, vector []byte, n int) ID {
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s", n, keyOf(space, false, vector)))
	return ID(h[:])
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

func (id ID) compare(other ID) int { return bytes.Compare(id[:], other[:]) }

func parseID(s string) (id ID, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	return ID(b), true
}

// Face is what is known of one face of a person: it is theirs, or not, or was and is no more. Of
// two words about a face the one with the later clock counts.
type Face struct {
	Clock  uint64 `cbor:"1,keyasint"`
	Gone   bool   `cbor:"2,keyasint,omitempty"`
	Not    bool   `cbor:"3,keyasint,omitempty"` // a face that is not this person's
	Space  string `cbor:"4,keyasint,omitempty"`
	Vector []byte `cbor:"5,keyasint,omitempty"` // little-endian float32
}

// faceKey is the number of a face: the same face has it on every device.
type faceKey = cbor.ByteString

// Record is all that the fleet knows of a person. A person who has ended stays as a mark of a few
// bytes: forgotten, or found to be another person, who has the faces now.
type Record struct {
	Name      string           `cbor:"1,keyasint,omitempty"`
	Named     uint64           `cbor:"2,keyasint,omitempty"` // the clock of the name
	Enrolled  int64            `cbor:"3,keyasint,omitempty"` // seconds since 1970
	Faces     map[faceKey]Face `cbor:"4,keyasint,omitempty"`
	Forgotten bool             `cbor:"5,keyasint,omitempty"`
	Into      ID               `cbor:"6,keyasint,omitempty"`
}

func (r Record) ended() bool { return r.Forgotten || r.Into != ID{} }

// clock returns the latest clock of a record. A change gets the next one of all records that its
// device knows: a Lamport clock, so no device needs the time.
func (r Record) clock() uint64 {
	c := r.Named
	for _, f := range r.Faces {
		c = max(c, f.Clock)
	}
	return c
}

// latest is the latest clock that an honest member can reach. A change of what has it keeps it.
const latest = 1 << 62

// sane reports whether a record may be of an honest member. Others would leave a face that nobody
// can take back, a time that no page can write, or a number that leads to itself.
func (r Record) sane(id ID) bool {
	for key, f := range r.Faces {
		if !f.Gone && key != keyOf(f.Space, f.Not, f.Vector) {
			return false
		}
	}
	return r.clock() <= latest && r.Enrolled >= 0 && r.Enrolled < 1<<37 &&
		(r.Into == ID{} || r.Into.compare(id) < 0)
}

func keyOf(space string, not bool, vector []byte) faceKey {
	h := sha256.New()
	fmt.Fprintf(h, "%q %t ", space, not)
	h.Write(vector)
	return faceKey(h.Sum(nil)[:16])
}

// join returns what follows from two records of one person. It is commutative, associative and
// idempotent.
func join(a, b Record) Record {
	r := Record{
		Forgotten: a.Forgotten || b.Forgotten, Into: a.Into, Enrolled: max(a.Enrolled, b.Enrolled),
	}
	if r.Into == (ID{}) || b.Into != (ID{}) && b.Into.compare(r.Into) < 0 {
		r.Into = b.Into
	}
	if r.ended() {
		r.Enrolled = 0
		return r
	}
	r.Name, r.Named = a.Name, a.Named
	if cmp.Or(cmp.Compare(b.Named, a.Named), cmp.Compare(b.Name, a.Name)) > 0 {
		r.Name, r.Named = b.Name, b.Named
	}
	r.Faces = joinFaces(a.Faces, b.Faces)
	return r
}

func joinFaces(all ...map[faceKey]Face) map[faceKey]Face {
	r := make(map[faceKey]Face)
	for _, of := range all {
		for key, f := range of {
			old, there := r[key]
			if !there || f.Clock > old.Clock || f.Clock == old.Clock && f.Gone {
				r[key] = f
			}
		}
	}
	return r
}

// Keys are the keys of a fleet, by number. The highest seals; the others open values until all are
// sealed anew.
type Keys map[uint32][]byte

func (k Keys) now() uint32 { return slices.Max(append(slices.Collect(maps.Keys(k)), 0)) }

func (k Keys) add() {
	b := make([]byte, chacha20poly1305.KeySize)
	rand.Read(b)
	k[k.now()+1] = b
}

// sane reports whether values can be sealed with the keys.
func (k Keys) sane() bool {
	wrong := func(b []byte) bool { return len(b) != chacha20poly1305.KeySize }
	return !slices.ContainsFunc(slices.Collect(maps.Values(k)), wrong)
}

// numberOf returns the number of the key that has sealed a value, or 0: no key has it.
func numberOf(sealed []byte) uint32 {
	if len(sealed) < sealedHead {
		return 0
	}
	return binary.BigEndian.Uint32(sealed)
}

const sealedHead = 4 + chacha20poly1305.NonceSizeX

// seal encrypts the encoding of v for its place: XChaCha20-Poly1305 behind the number of the key.
func (k Keys) seal(place string, v any) []byte {
	n := k.now()
	a, err := chacha20poly1305.NewX(k[n])
	if err != nil {
		panic("fleet: " + err.Error()) // a key of another length is refused when it is read
	}
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	rand.Read(nonce)
	out := append(binary.BigEndian.AppendUint32(nil, n), nonce...)
	return a.Seal(out, nonce, protocol.Encode(v), []byte("faceauth fleet "+place))
}

// open decodes into v what seal has made of its encoding, and reports whether one of the keys has
// sealed it for the place.
func (k Keys) open(place string, sealed []byte, v any) bool {
	a, err := chacha20poly1305.NewX(k[numberOf(sealed)])
	if err != nil || len(sealed) < sealedHead {
		return false
	}
	plain, err := a.Open(nil, sealed[4:sealedHead], sealed[sealedHead:],
		[]byte("faceauth fleet "+place))
	return err == nil && protocol.Decode(plain, v) == nil
}
