// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/faceauth/faceauth/internal/lines"
	"github.com/faceauth/faceauth/internal/safefile"
	"golang.org/x/crypto/chacha20poly1305"
)

// ErrRing is wrapped by the errors of [OpenRing] for a damaged file, or a file that is not a ring of keys.
var ErrRing = errors.New("not a ring of keys, or a damaged one")

// Key is a key of a person. Each time a device loses the right to read, later entries are sealed with a new key. So a
// person may have several keys.
type Key [32]byte

// KeyID identifies a key and reveals nothing about it: a hash of the person and the key. A key with another hash is
// refused.
type KeyID [16]byte

// String returns 32 hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// NewKey returns a random key.
func NewKey() (k Key) {
	rand.Read(k[:])
	return k
}

// ID returns the number of k as a key of a person.
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

// seal returns a nonce and the sealed text. It opens only with the same "bound".
func (k Key) seal(plain, bound []byte) []byte {
	nonce := make([]byte, chacha20poly1305.NonceSizeX, sealedOverhead+len(plain))
	rand.Read(nonce)
	return k.cipher().Seal(nonce, nonce, plain, bound)
}

// open returns the plain text. Sealed must have at least [sealedOverhead] bytes.
func (k Key) open(sealed, bound []byte) ([]byte, error) {
	return k.cipher().Open(nil, sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:], bound)
}

// Ring holds a device's keys of people. It is not safe for concurrent use.
//
// Each addition of keys adds a line to its file. When keys are destroyed, the whole file is written again, so that
// nothing of them is left in it.
type Ring struct {
	file      *lines.File // nil for a ring in memory
	keys      map[ID][]ringKey
	added     [][]byte // person and key, for each key that is not on disk
	own       bool     // some added keys were made here and exist nowhere else
	destroyed bool     // the file still has keys that the ring has destroyed
}

type ringKey struct {
	id  KeyID
	key Key
}

// ringVersion is the version of the file. Version 1 was one CBOR list with a checksum; it can be read, too.
const ringVersion = 2

var oldRing = safefile.Kind{Magic: "faceauth fleet keys", Version: 1}

// The entries of files of version 1.
type oldRingEntry struct {
	_      struct{} `cbor:",toarray"`
	Person []byte
	Keys   [][]byte
}

// A ringLine is a line of the file. The first line has only the version.
type ringLine struct {
	Version int      `json:"faceauth_fleet_keys,omitempty"`
	Keys    [][]byte `json:"keys,omitempty"` // person and key
}

// mostKeys is the greatest number of keys in a line, to keep lines short enough.
const mostKeys = 10_000

// NewRing returns an empty ring in memory.
func NewRing() *Ring { return &Ring{keys: make(map[ID][]ringKey)} }

// OpenRing reads the ring at path, or makes an empty one there. The error wraps [ErrRing]. The caller closes the ring.
func OpenRing(path string) (*Ring, error) {
	r := NewRing()
	if err := convertRing(path); err != nil {
		return nil, err
	}
	first := true
	file, err := lines.Open(path, lines.Options{Lazy: true}, func(text []byte) error {
		var line ringLine
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("%w: %w", lines.ErrDamaged, err)
		}
		defer clearAll(line.Keys)
		if first && line.Version != ringVersion {
			return fmt.Errorf("%w: it has version %d, and this program reads %d", ErrRing, line.Version, ringVersion)
		}
		first = false
		return r.take(line.Keys)
	})
	if errors.Is(err, lines.ErrDamaged) || errors.Is(err, ErrRing) {
		return nil, fmt.Errorf("opening %s: %w: %w; move it away: this device then asks other devices for the keys",
			path, ErrRing, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the ring of keys: %w", err)
	}
	r.file = file
	if first {
		if err := r.file.Append(ringLine{Version: ringVersion}); err != nil {
			r.Close()
			return nil, fmt.Errorf("making the ring of keys: %w", err)
		}
	}
	return r, nil
}

// convertRing converts a file of version 1 to the present version.
func convertRing(path string) error {
	body, err := safefile.ReadSealed(path, oldRing)
	if err != nil {
		return nil // lines.Open gives a better error
	}
	defer clear(body)
	var all []oldRingEntry
	if err := decoding.Unmarshal(body, &all); err != nil {
		return fmt.Errorf("opening %s: %w: %w", path, ErrRing, err)
	}
	r := NewRing()
	for _, e := range all {
		for _, k := range e.Keys {
			if err := r.take([][]byte{append(slices.Clone(e.Person), k...)}); err != nil {
				return fmt.Errorf("opening %s: %w", path, err)
			}
		}
	}
	temp := path + ".new"
	defer os.Remove(temp)
	if r.file, err = lines.Open(temp, lines.Options{}, func([]byte) error { return nil }); err != nil {
		return fmt.Errorf("converting the ring of keys: %w", err)
	}
	defer r.Close()
	if err := r.rewrite(); err != nil {
		return fmt.Errorf("converting the ring of keys: %w", err)
	}
	if err := safefile.Rename(temp, path); err != nil {
		return fmt.Errorf("converting the ring of keys: %w", err)
	}
	return nil
}

// take adds the keys of a line.
func (r *Ring) take(keys [][]byte) error {
	for _, b := range keys {
		var person ID
		var k Key
		if len(b) != len(person)+len(k) {
			return fmt.Errorf("%w: a key has %d bytes", ErrRing, len(b))
		}
		copy(person[:], b)
		copy(k[:], b[len(person):])
		r.Add(person, k)
	}
	return nil
}

// Save writes the changes of the ring to the file. Keys that were made here exist nowhere else: they are on disk when
// Save returns. Keys of other devices may be lost if the machine fails, and are asked for again. If keys were
// destroyed, the whole file is written again and is on disk. On error the file is unchanged. For a ring in memory Save
// does nothing.
func (r *Ring) Save() error {
	if r.file == nil {
		return nil
	}
	err := r.save()
	if err != nil {
		return fmt.Errorf("saving the ring of keys: %w", err)
	}
	return nil
}

func (r *Ring) save() error {
	if r.destroyed {
		return r.rewrite()
	}
	for len(r.added) > 0 {
		n := min(len(r.added), mostKeys)
		if err := r.file.Append(ringLine{Keys: r.added[:n]}); err != nil {
			return err
		}
		clearAll(r.added[:n])
		r.added = r.added[n:]
	}
	r.added = nil
	if r.own {
		if err := r.file.Sync(); err != nil {
			return err
		}
		r.own = false
	}
	return nil
}

// rewrite replaces the file by one with the present keys.
func (r *Ring) rewrite() error {
	all := []any{ringLine{Version: ringVersion}}
	var keys [][]byte
	for person, some := range r.keys {
		for _, k := range some {
			keys = append(keys, pair(person, k.key))
		}
	}
	defer clearAll(keys)
	for some := range slices.Chunk(keys, mostKeys) {
		all = append(all, ringLine{Keys: some})
	}
	if err := r.file.Rewrite(all...); err != nil {
		return err
	}
	clearAll(r.added)
	r.added, r.own, r.destroyed = nil, false, false
	return nil
}

// Close closes the file and does not save.
func (r *Ring) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func pair(person ID, k Key) []byte { return append(slices.Clone(person[:]), k[:]...) }

func clearAll(keys [][]byte) {
	for _, b := range keys {
		clear(b)
	}
}

// Key returns a key of a person by its number.
func (r *Ring) Key(person ID, id KeyID) (Key, bool) {
	for _, k := range r.keys[person] {
		if k.id == id {
			return k.key, true
		}
	}
	return Key{}, false
}

// Has reports whether the ring has a key of a person.
func (r *Ring) Has(person ID) bool { return len(r.keys[person]) > 0 }

// Len returns the number of people with keys.
func (r *Ring) Len() int { return len(r.keys) }

// People returns the people with keys, in no order.
func (r *Ring) People() []ID {
	all := make([]ID, 0, len(r.keys))
	for id := range r.keys {
		all = append(all, id)
	}
	return all
}

// Add adds a key of a person that another device also has, and returns its number. Save stores it.
func (r *Ring) Add(person ID, k Key) KeyID {
	id := k.ID(person)
	if _, have := r.Key(person, id); have {
		return id
	}
	r.keys[person] = append(slices.Clip(r.keys[person]), ringKey{id, k})
	if r.file != nil {
		r.added = append(r.added, pair(person, k))
	}
	return id
}

// AddOwn does the same as Add for a key that was made here and must not be lost.
func (r *Ring) AddOwn(person ID, k Key) KeyID {
	r.own = true
	return r.Add(person, k)
}

// Destroy removes all keys of a person, and reports whether there were any. Save destroys them on disk.
func (r *Ring) Destroy(person ID) bool {
	_, ok := r.keys[person]
	delete(r.keys, person)
	r.destroyed = r.destroyed || ok
	return ok
}
