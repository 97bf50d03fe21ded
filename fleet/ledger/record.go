// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
)

// A record is an entry that counts. Its bytes may be on disk.
type record struct {
	seq  uint64
	ref  Ref
	part uint64
	key  KeyID
	sum  [16]byte // of what was signed
	place
	kind Kind
}

// A place is where the bytes of an entry are.
type place struct {
	in   source
	at   int64
	size uint32
}

// A source has the bytes of entries. They are never changed in it.
type source interface {
	read(at int64, size uint32) ([]byte, error)
	// damaged notes that the bytes at a place are not those that were put there, and returns the error.
	damaged(at int64) error
}

// memory is the bytes of one entry.
type memory []byte

func (m memory) read(int64, uint32) ([]byte, error) { return m, nil }

func (m memory) damaged(int64) error { return ErrFormat }

func inMemory(data []byte) place {
	return place{in: memory(bytes.Clone(data)), size: uint32(len(data))}
}

// entryFile is a file that has entries.
type entryFile struct {
	*os.File
	fault error // the first
}

func (f *entryFile) fail(err error) error {
	if f.fault == nil {
		f.fault = err
	}
	return err
}

func (f *entryFile) read(at int64, size uint32) ([]byte, error) {
	data := make([]byte, size)
	if _, err := f.ReadAt(data, at); err != nil {
		return nil, f.fail(fmt.Errorf("%w: reading an entry: %w", ErrStore, err))
	}
	return data, nil
}

func (f *entryFile) damaged(at int64) error {
	return f.fail(fmt.Errorf("%w: %s: the entry at byte %d is another one", ErrStore, f.Name(), at))
}

func newRecord(seq uint64, e Entry, p place) record {
	return record{seq: seq, ref: e.Ref(), kind: e.Kind, part: e.Part, key: e.Key, sum: e.sum(), place: p}
}

// sum returns a hash of what was signed.
func (e *Entry) sum() (sum [16]byte) {
	all := sha256.Sum256(signed("sum", "", e.Version, e.Device, e.payload))
	copy(sum[:], all[:])
	return sum
}

// bytes returns the entry as it came. The error is that of the disk.
func (r *record) bytes() ([]byte, error) { return r.in.read(r.at, r.size) }

// checked returns the entry as it came, and an error where that is not so any more.
func (r *record) checked() ([]byte, error) {
	data, err := r.bytes()
	if err != nil {
		return nil, err
	}
	if e, err := parseAgain(data); err != nil || e.sum() != r.sum {
		return nil, r.in.damaged(r.at)
	}
	return data, nil
}
