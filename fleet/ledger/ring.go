// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/faceauth/faceauth/internal/safefile"
	"golang.org/x/crypto/chacha20poly1305"
)

// ErrRing is wrapped by the errors of [OpenRing] for a file that is no ring of keys, or a damaged one.
var ErrRing = errors.New("not a ring of keys, or a damaged one")

// Key is a key of a person. A person has one key for each time that somebody lost the right to read: what is written
// after a device was revoked is sealed with a new one.
type Key [32]byte

// KeyID names a key and says nothing about it: a hash of the person and the key. A key of another number is not taken.
type KeyID [16]byte

// String returns 32 hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// NewKey returns a random key.
func NewKey() (k Key) {
	rand.Read(k[:])
	return k
}

// ID returns the number that k has as a key of that person.
func (k Key) ID(person ID) (id KeyID) {
	h := sha256.New()
	h.Write([]byte("faceauth fleet key\x00"))
	h.Write(person[:])
	h.Write(k[:])
	copy(id[:], h.Sum(nil))
	return id
}

// String hides the key.
func (k Key) String() string { return "a key" }

// GoString hides the key.
func (k Key) GoString() string { return "ledger.Key{…}" }

func (k Key) cipher() cipher.AEAD {
	aead, err := chacha20poly1305.NewX(k[:])
	if err != nil {
		panic("ledger: " + err.Error()) // only for a key of another length
	}
	return aead
}

// seal returns a nonce and the sealed text, which opens with the same bound alone.
func (k Key) seal(plain, bound []byte) []byte {
	nonce := make([]byte, chacha20poly1305.NonceSizeX, sealedOverhead+len(plain))
	rand.Read(nonce)
	return k.cipher().Seal(nonce, nonce, plain, bound)
}

// open returns what was sealed. Sealed has [sealedOverhead] bytes at least.
func (k Key) open(sealed, bound []byte) ([]byte, error) {
	return k.cipher().Open(nil, sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:], bound)
}

// Ring holds the keys of people that a device has. It is not safe for concurrent use.
type Ring struct {
	path string
	keys map[ID]map[KeyID]Key
}

var ringKind = safefile.Kind{Magic: "faceauth fleet keys", Version: 1}

type ringEntry struct {
	_      struct{} `cbor:",toarray"`
	Person []byte
	Keys   [][]byte
}

// NewRing returns an empty ring in memory.
func NewRing() *Ring { return &Ring{keys: make(map[ID]map[KeyID]Key)} }

// OpenRing reads the ring at path, or returns an empty one that [Ring.Save] will put there. The error wraps [ErrRing].
func OpenRing(path string) (*Ring, error) {
	r := NewRing()
	r.path = path
	body, err := safefile.ReadSealed(path, ringKind)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if errors.Is(err, safefile.ErrDamaged) || errors.Is(err, safefile.ErrVersion) {
		return nil, fmt.Errorf("opening %s: %w: %w; move it away, and the keys are asked of other devices", path, ErrRing, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the ring of keys: %w", err)
	}
	defer clear(body)
	var all []ringEntry
	if err := decoding.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("opening %s: %w: %w", path, ErrRing, err)
	}
	for _, e := range all {
		var person ID
		if copy(person[:], e.Person); len(e.Person) != len(person) {
			return nil, fmt.Errorf("opening %s: %w: a person's number has %d bytes", path, ErrRing, len(e.Person))
		}
		for _, b := range e.Keys {
			var k Key
			if copy(k[:], b); len(b) != len(k) {
				return nil, fmt.Errorf("opening %s: %w: a key has %d bytes", path, ErrRing, len(b))
			}
			r.Add(person, k)
		}
	}
	return r, nil
}

// Save writes the ring anew, on disk when it returns. On error the file is as it was. A ring in memory does nothing.
func (r *Ring) Save() error {
	if r.path == "" {
		return nil
	}
	all := make([]ringEntry, 0, len(r.keys))
	for person, keys := range r.keys {
		e := ringEntry{Person: slices.Clone(person[:])}
		for _, k := range keys {
			e.Keys = append(e.Keys, slices.Clone(k[:]))
		}
		all = append(all, e)
	}
	body := marshal(all)
	defer clear(body)
	if err := safefile.WriteSealed(r.path, ringKind, body); err != nil {
		return fmt.Errorf("saving the ring of keys: %w", err)
	}
	return nil
}

// Key returns a key of a person by its number.
func (r *Ring) Key(person ID, id KeyID) (Key, bool) {
	k, ok := r.keys[person][id]
	return k, ok
}

// Has reports whether there is any key of a person.
func (r *Ring) Has(person ID) bool { return len(r.keys[person]) > 0 }

// Len returns how many people there are keys of.
func (r *Ring) Len() int { return len(r.keys) }

// People returns the people there are keys of, in no order.
func (r *Ring) People() []ID {
	all := make([]ID, 0, len(r.keys))
	for id := range r.keys {
		all = append(all, id)
	}
	return all
}

// Add takes in a key of a person, and returns its number.
func (r *Ring) Add(person ID, k Key) KeyID {
	if r.keys[person] == nil {
		r.keys[person] = make(map[KeyID]Key, 1)
	}
	id := k.ID(person)
	r.keys[person][id] = k
	return id
}

// Destroy removes all keys of a person, and reports whether there were any. Save it to destroy them on disk.
func (r *Ring) Destroy(person ID) bool {
	_, ok := r.keys[person]
	delete(r.keys, person)
	return ok
}
