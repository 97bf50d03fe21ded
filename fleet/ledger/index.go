// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/faceauth/faceauth/internal/safefile"
)

const (
	indexMagic   = "faceauth fleet index\n"
	indexVersion = 1
	indexed      = 8 + 8 + 4 + 4 + 4 + 8 + 8 + 1 + 16 + 16 + 16 // bytes of an entry in the index

	signatureSize = 64
	trailer       = sha256.Size + signatureSize // bytes at the end of a snapshot: they identify it
)

// indexHead is the part of the index before the entries.
type indexHead struct {
	Trailer  []byte            `cbor:"1,keyasint"` // of the snapshot
	Seq      uint64            `cbor:"2,keyasint"`
	Counters []snapshotCounter `cbor:"3,keyasint"`
	Devices  []string          `cbor:"4,keyasint"` // authors; the entries give their positions in this list
}

// indexText returns the signed part of an index: the magic, the version, the length of the head, the head, and the
// entries in the order of the log, each of the same length.
func (l *Ledger) indexText(trailer []byte) []byte {
	type owned struct {
		record
		person ID
	}
	var all []owned
	authors := make(map[string]int)
	h := indexHead{Trailer: trailer, Seq: l.seq}
	l.eachRecord(func(person ID, r *record) {
		all = append(all, owned{*r, person})
		if _, known := authors[r.ref.Device]; !known {
			authors[r.ref.Device] = len(h.Devices)
			h.Devices = append(h.Devices, r.ref.Device)
		}
	})
	slices.SortFunc(all, func(a, b owned) int { return bySeq(a.record, b.record) })
	h.Counters = l.counterList()
	head := marshal(h)
	b := make([]byte, 0, len(indexMagic)+8+len(head)+indexed*len(all)+signatureSize)
	b = append(b, indexMagic...)
	b = binary.BigEndian.AppendUint32(b, indexVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = append(b, head...)
	for _, r := range all {
		b = binary.BigEndian.AppendUint64(b, r.seq)
		b = binary.BigEndian.AppendUint64(b, uint64(r.at))
		b = binary.BigEndian.AppendUint32(b, r.size)
		b = binary.BigEndian.AppendUint32(b, r.crc)
		b = binary.BigEndian.AppendUint32(b, uint32(authors[r.ref.Device]))
		b = binary.BigEndian.AppendUint64(b, r.ref.N)
		b = binary.BigEndian.AppendUint64(b, r.part)
		b = append(b, byte(r.kind))
		b = append(append(append(b, r.person[:]...), r.key[:]...), r.sum[:]...)
	}
	return b
}

var errIndex = errors.New("not the index of this snapshot, or a damaged one")

// readIndex returns the ledger of a snapshot from its index. It does not read entries of sealed kinds.
func readIndex(fleet string, text []byte, base *entryFile, last []byte) (*Ledger, error) {
	rest, ok := bytes.CutPrefix(text, []byte(indexMagic))
	if !ok || len(rest) < 8 || binary.BigEndian.Uint32(rest) != indexVersion {
		return nil, errIndex
	}
	n := int(binary.BigEndian.Uint32(rest[4:]))
	if rest = rest[8:]; n > len(rest) || (len(rest)-n)%indexed != 0 {
		return nil, errIndex
	}
	var h indexHead
	if err := decoding.Unmarshal(rest[:n], &h); err != nil || !bytes.Equal(h.Trailer, last) {
		return nil, errIndex
	}
	l, err := New(fleet)
	if err != nil {
		return nil, err
	}
	for b := range slices.Chunk(rest[n:], indexed) {
		r := record{seq: binary.BigEndian.Uint64(b), part: binary.BigEndian.Uint64(b[36:]), kind: Kind(b[44])}
		r.in, r.at = base, int64(binary.BigEndian.Uint64(b[8:]))
		r.size, r.crc = binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
		author := int(binary.BigEndian.Uint32(b[24:]))
		if author >= len(h.Devices) || r.seq <= l.seq || r.size > MaxEntry {
			return nil, errIndex
		}
		r.ref = Ref{h.Devices[author], binary.BigEndian.Uint64(b[28:])}
		e := Entry{Version: Version, Device: r.ref.Device, N: r.ref.N, Kind: r.kind, Part: r.part}
		copy(e.Person[:], b[45:])
		copy(e.Key[:], b[61:])
		copy(e.hash[:], b[77:])
		if !r.kind.Sealed() {
			data, err := r.bytes()
			if err != nil {
				return nil, err
			}
			if e, err = parseAgain(data); err != nil {
				return nil, err
			}
		}
		l.seq = r.seq
		if o := l.take(r.seq, e, r.place); !o.Accepted {
			return nil, errIndex
		}
	}
	if l.counters, err = countersOf(h.Counters, l.counters); err != nil {
		return nil, err
	}
	l.seq = h.Seq
	return l, nil
}

// counterList returns the counters of all authors.
func (l *Ledger) counterList() (all []snapshotCounter) {
	for _, author := range slices.Sorted(maps.Keys(l.counters)) {
		c := l.counters[author]
		all = append(all, snapshotCounter{Device: author, Last: c.last, Gaps: c.gaps})
	}
	return all
}

// trailer returns the bytes at the end of the snapshot on disk.
func (s *Store) trailer() ([]byte, error) {
	last := make([]byte, trailer)
	if s.saved < trailer {
		return nil, errIndex
	}
	_, err := s.base.ReadAt(last, s.saved-trailer)
	return last, err
}

// openIndex returns the ledger of the snapshot on disk from its index, or nil if the whole snapshot must be read.
func (s *Store) openIndex() *Ledger {
	text, err := safefile.ReadBytes(s.path(indexFile))
	if err != nil || len(text) < signatureSize {
		return nil
	}
	text, sig := text[:len(text)-signatureSize], text[len(text)-signatureSize:]
	sum := sha256.Sum256(text)
	last, err := s.trailer()
	if err != nil || s.key.Verify(signed("index", s.fleet, indexVersion, s.device, sum[:]), sig) != nil {
		return nil
	}
	l, err := readIndex(s.fleet, text, s.base, last)
	if err != nil {
		s.base.fault = nil // the whole snapshot is read next; that finds the damage
		return nil
	}
	return l
}

// writeIndex writes the index of a snapshot that was checked or made here. Without an index the next start reads the
// whole snapshot.
func (s *Store) writeIndex() {
	last, err := s.trailer()
	if err != nil {
		return
	}
	text := s.indexText(last)
	sum := sha256.Sum256(text)
	if sig, err := s.key.Sign(signed("index", s.fleet, indexVersion, s.device, sum[:])); err == nil {
		_ = safefile.Write(s.path(indexFile), append(text, sig...))
	}
}
