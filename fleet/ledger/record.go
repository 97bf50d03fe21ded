// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"os"
)

// A record is an entry that counts. Its bytes may be on disk.
type record struct {
	seq  uint64
	ref  Ref
	part uint64
	key  KeyID
	sum  [16]byte // of the signed bytes
	place
	kind Kind
}

// A place tells where the bytes of an entry are.
type place struct {
	in   source
	at   int64
	size uint32
	crc  uint32 // CRC-32C of the bytes
}

// A source holds the bytes of entries. They never change.
type source interface{ read(p place) ([]byte, error) }

// memory holds the bytes of one entry.
type memory []byte

func (m memory) read(place) ([]byte, error) { return m, nil }

func placed(in source, at int64, data []byte) place {
	return place{in, at, uint32(len(data)), crc32.Checksum(data, castagnoli)}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func inMemory(data []byte) place { return placed(memory(bytes.Clone(data)), 0, data) }

// entryFile is a file with entries.
type entryFile struct {
	*os.File
	fault error // the first error of reading
}

func (f *entryFile) fail(err error) error {
	if f.fault == nil {
		f.fault = err
	}
	return err
}

// read returns the entry at a place. It returns an error, and remembers the first one, if the bytes are not the same
// any more.
func (f *entryFile) read(p place) ([]byte, error) {
	data := make([]byte, p.size)
	if _, err := f.ReadAt(data, p.at); err != nil {
		return nil, f.fail(fmt.Errorf("%w: reading an entry: %w", ErrStore, err))
	}
	if crc32.Checksum(data, castagnoli) != p.crc {
		return nil, f.fail(fmt.Errorf("%w: %s: the entry at byte %d has a wrong checksum", ErrStore, f.Name(), p.at))
	}
	return data, nil
}

func newRecord(seq uint64, e Entry, p place) record {
	return record{seq: seq, ref: e.Ref(), kind: e.Kind, part: e.Part, key: e.Key, sum: e.sum(), place: p}
}

// sum returns a hash of the signed bytes.
func (e *Entry) sum() (sum [16]byte) {
	if e.hash != sum {
		return e.hash
	}
	all := sha256.Sum256(signed("sum", "", e.Version, e.Device, e.payload))
	copy(sum[:], all[:])
	return sum
}

// bytes returns the encoded entry. The error comes from the disk, or wraps [ErrStore].
func (r *record) bytes() ([]byte, error) { return r.in.read(r.place) }

func bySeq(a, b record) int { return cmp.Compare(a.seq, b.seq) }
