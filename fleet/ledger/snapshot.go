// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/nats-io/nkeys"
)

// ErrSnapshot is wrapped by the errors of [Restore].
var ErrSnapshot = errors.New("not a snapshot of this fleet, or a damaged one")

const (
	snapshotMagic   = "faceauth fleet snapshot\n"
	snapshotVersion = 1
	maxHead         = 64 << 20 // bytes of the head of a snapshot
)

type snapshotHead struct {
	Fleet    string            `cbor:"1,keyasint"`
	Seq      uint64            `cbor:"2,keyasint"`
	Device   string            `cbor:"3,keyasint"` // the maker
	Counters []snapshotCounter `cbor:"4,keyasint"`
	Entries  uint64            `cbor:"5,keyasint"`
}

type snapshotCounter struct {
	_      struct{} `cbor:",toarray"`
	Device string
	Last   uint64
	Gaps   uint64
}

// eachRecord calls f with all entries that make up the state, in no order. Person is set for sealed kinds.
func (l *Ledger) eachRecord(f func(person ID, r *record)) {
	for _, records := range [][]record{l.adminEntries, l.forgets} {
		for i := range records {
			f(ID{}, &records[i])
		}
	}
	for id, r := range l.withdrew {
		f(ID{}, &r)
		l.withdrew[id] = r
	}
	for id, p := range l.people {
		for i := range p.records {
			f(id, &p.records[i])
		}
	}
	for i := range l.merges {
		f(ID{}, &l.merges[i].record)
	}
	for ref, u := range l.undone {
		f(ID{}, &u.record)
		l.undone[ref] = u
	}
}

// records returns all entries that make up the state, in the order of the log.
func (l *Ledger) records() (all []record) {
	l.eachRecord(func(_ ID, r *record) { all = append(all, *r) })
	slices.SortFunc(all, bySeq)
	return all
}

// Snapshot writes the state of l, signed with the key of a device. The error comes from w, from the key or from the
// disk.
func (l *Ledger) Snapshot(w io.Writer, key nkeys.KeyPair) error {
	return l.snapshot(w, key, func(uint64, int64) {})
}

// snapshot does the same as Snapshot, and calls put with the place of each entry in the snapshot.
func (l *Ledger) snapshot(w io.Writer, key nkeys.KeyPair, put func(seq uint64, at int64)) error {
	device, err := key.PublicKey()
	if err != nil {
		return fmt.Errorf("making a snapshot: %w", err)
	}
	records := l.records()
	head := snapshotHead{Fleet: l.fleet, Seq: l.seq, Device: device, Entries: uint64(len(records))}
	head.Counters = l.counterList()
	sum := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	b.WriteString(snapshotMagic)
	b.Write(binary.BigEndian.AppendUint32(nil, snapshotVersion))
	text := marshal(head)
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
	b.Write(text)
	at := int64(len(snapshotMagic) + 8 + len(text))
	for _, r := range records {
		data, err := r.bytes()
		if err != nil {
			return fmt.Errorf("making a snapshot: %w", err)
		}
		b.Write(binary.BigEndian.AppendUint64(nil, r.seq))
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
		b.Write(data)
		put(r.seq, at+12)
		at += 12 + int64(len(data))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("making a snapshot: %w", err)
	}
	total := sum.Sum(nil)
	sig, err := key.Sign(signed("snapshot", l.fleet, snapshotVersion, device, total))
	if err != nil {
		return fmt.Errorf("making a snapshot: %w", err)
	}
	if _, err := w.Write(append(total, sig...)); err != nil {
		return fmt.Errorf("making a snapshot: %w", err)
	}
	return nil
}

// Restore reads a snapshot of a fleet. It folds the entries again, as the log did, and checks each signature. On error
// it returns no ledger. The error wraps [ErrSnapshot] or [ErrFuture], or comes from the reader.
func Restore(fleet string, r io.Reader) (*Ledger, error) { return RestoreOwn(fleet, "", r) }

// RestoreOwn does the same as [Restore]. If the given device made the snapshot itself, it had checked the entries
// before: then only the signature of the snapshot is checked, and not whether the device is a member.
func RestoreOwn(fleet, device string, r io.Reader) (*Ledger, error) {
	return restore(fleet, r, restoring{own: device})
}

// restoring holds the settings of restore.
type restoring struct {
	own string     // entries in a snapshot of this device are not verified again
	in  *entryFile // the file of the snapshot; nil: keep the entries in memory
}

// A snapshotReader reads a snapshot and hashes all bytes that it has read.
type snapshotReader struct {
	r   *bufio.Reader
	sum hash.Hash
	at  int64
	b   bytes.Buffer
}

// take returns the next n bytes; they are valid until the next call. Memory grows with the bytes that come and not with
// n, because n comes from the file.
func (s *snapshotReader) take(n int) ([]byte, error) {
	s.b.Reset()
	m, err := io.CopyN(&s.b, s.r, int64(n))
	if m < int64(n) && (err == nil || errors.Is(err, io.EOF)) {
		return nil, fmt.Errorf("%w: it is truncated", ErrSnapshot)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a snapshot: %w", err)
	}
	s.sum.Write(s.b.Bytes())
	s.at += m
	return s.b.Bytes(), nil
}

func (s *snapshotReader) uint32() (uint32, error) {
	b, err := s.take(4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b), nil
}

func restore(fleet string, from io.Reader, how restoring) (*Ledger, error) {
	l, err := New(fleet)
	if err != nil {
		return nil, err
	}
	s := &snapshotReader{r: bufio.NewReaderSize(from, 1<<16), sum: sha256.New()}
	magic, err := s.take(len(snapshotMagic))
	if err != nil {
		return nil, err
	}
	if string(magic) != snapshotMagic {
		return nil, fmt.Errorf("%w: it does not begin with the words of a snapshot", ErrSnapshot)
	}
	version, err := s.uint32()
	if err != nil {
		return nil, err
	}
	if version > snapshotVersion {
		return nil, fmt.Errorf("snapshot has version %d, and this program reads %d: %w", version, snapshotVersion,
			ErrFuture)
	}
	if version != snapshotVersion {
		return nil, fmt.Errorf("%w: it has version %d", ErrSnapshot, version)
	}
	head, err := s.head(fleet)
	if err != nil {
		return nil, err
	}
	verify := how.own == "" || head.Device != how.own
	if how.in != nil {
		l.keep = func(_ uint64, data []byte) place {
			return placed(how.in, s.at-int64(len(data)), data)
		}
	}
	for range head.Entries {
		b, err := s.take(12)
		if err != nil {
			return nil, err
		}
		seq, n := binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
		if seq <= l.seq || seq > head.Seq || n > MaxEntry {
			return nil, fmt.Errorf("%w: entry %d has %d bytes, after entry %d", ErrSnapshot, seq, n, l.seq)
		}
		data, err := s.take(int(n))
		if err != nil {
			return nil, err
		}
		o, err := l.apply(seq, data, verify)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
		}
		if !o.Accepted {
			return nil, fmt.Errorf("%w: %w", ErrSnapshot, o.Reason)
		}
	}
	if err := s.end(l, head, verify); err != nil {
		return nil, err
	}
	if l.counters, err = countersOf(head.Counters, l.counters); err != nil {
		return nil, err
	}
	l.seq, l.keep = head.Seq, nil
	return l, nil
}

// countersOf returns the counters of a snapshot. They must be at least the counters of its entries.
func countersOf(all []snapshotCounter, least map[string]counter) (map[string]counter, error) {
	counters := make(map[string]counter, len(all))
	for _, c := range all {
		if _, twice := counters[c.Device]; twice || c.Last < least[c.Device].last {
			return nil, fmt.Errorf("%w: the counter of %s is wrong", ErrSnapshot, c.Device)
		}
		counters[c.Device] = counter{c.Last, c.Gaps}
	}
	for author := range least {
		if _, ok := counters[author]; !ok {
			return nil, fmt.Errorf("%w: the counter of %s is missing", ErrSnapshot, author)
		}
	}
	return counters, nil
}

func (s *snapshotReader) head(fleet string) (h snapshotHead, err error) {
	n, err := s.uint32()
	if err != nil {
		return h, err
	}
	if n > maxHead {
		return h, fmt.Errorf("%w: its head has %d bytes", ErrSnapshot, n)
	}
	text, err := s.take(int(n))
	if err != nil {
		return h, err
	}
	if err := decoding.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if h.Fleet != fleet {
		return h, fmt.Errorf("%w: it is of fleet %q, and this device belongs to %s", ErrSnapshot, h.Fleet, fleet)
	}
	return h, nil
}

// end checks everything after the entries.
func (s *snapshotReader) end(l *Ledger, head snapshotHead, member bool) error {
	total := s.sum.Sum(nil)
	sum, err := s.take(sha256.Size)
	if err != nil {
		return err
	}
	if !bytes.Equal(sum, total) {
		return fmt.Errorf("%w: its checksum is wrong", ErrSnapshot)
	}
	sig, err := s.take(64)
	if err != nil {
		return err
	}
	if _, err := s.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: there are bytes after its end", ErrSnapshot)
	}
	key, err := nkeys.FromPublicKey(head.Device)
	if err != nil || key.Verify(signed("snapshot", head.Fleet, snapshotVersion, head.Device, total), sig) != nil {
		return fmt.Errorf("%w: the signature of %q is wrong", ErrSnapshot, head.Device)
	}
	if err := l.checkMember(head.Device); err != nil && member {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return nil
}
