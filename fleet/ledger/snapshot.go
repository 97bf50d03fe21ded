// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
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
	Device   string            `cbor:"3,keyasint"` // that made it
	Counters []snapshotCounter `cbor:"4,keyasint"`
	Entries  uint64            `cbor:"5,keyasint"`
}

type snapshotCounter struct {
	_      struct{} `cbor:",toarray"`
	Device string
	Last   uint64
	Gaps   uint64
}

// records returns all entries that make up the state, in the order of the log.
func (l *Ledger) records() []record {
	n := len(l.rules) + len(l.forgets) + len(l.withdrew) + len(l.merges) + len(l.undone)
	for _, p := range l.people {
		n += len(p.records)
	}
	all := make([]record, 0, n)
	all = append(append(all, l.rules...), l.forgets...)
	for _, r := range l.withdrew {
		all = append(all, r)
	}
	for _, p := range l.people {
		all = append(all, p.records...)
	}
	for _, m := range l.merges {
		all = append(all, m.record)
	}
	for _, u := range l.undone {
		all = append(all, u.record)
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// Snapshot writes what l holds, signed with the key of a device.
func (l *Ledger) Snapshot(w io.Writer, key nkeys.KeyPair) error {
	device, err := key.PublicKey()
	if err != nil {
		return fmt.Errorf("making a snapshot: %w", err)
	}
	records := l.records()
	head := snapshotHead{Fleet: l.fleet, Seq: l.seq, Device: device, Entries: uint64(len(records))}
	for _, author := range slices.Sorted(maps.Keys(l.counters)) {
		c := l.counters[author]
		head.Counters = append(head.Counters, snapshotCounter{Device: author, Last: c.last, Gaps: c.gaps})
	}
	sum := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	b.WriteString(snapshotMagic)
	b.Write(binary.BigEndian.AppendUint32(nil, snapshotVersion))
	text := marshal(head)
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
	b.Write(text)
	for _, r := range records {
		b.Write(binary.BigEndian.AppendUint64(nil, r.seq))
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(r.data))))
		b.Write(r.data)
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

// Restore reads a snapshot of a fleet. It folds the entries in it anew, as the log did, and checks each signature;
// nothing is restored on error, which wraps [ErrSnapshot], [ErrFuture], or is that of the reader.
func Restore(fleet string, r io.Reader) (*Ledger, error) { return restore(fleet, r, "") }

// RestoreOwn is Restore, but for a snapshot that the device with that public key made itself, of entries that it had
// checked before, it checks no signature but its own, and not whether the device is a member.
func RestoreOwn(fleet, device string, r io.Reader) (*Ledger, error) { return restore(fleet, r, device) }

// A reader reads a snapshot and sums up what it has read.
type snapshotReader struct {
	r   *bufio.Reader
	sum hash.Hash
}

// take returns the next bytes. It does not believe n before it has read as much.
func (s *snapshotReader) take(n int) ([]byte, error) {
	var b bytes.Buffer
	m, err := io.CopyN(&b, s.r, int64(n))
	if m < int64(n) && (err == nil || errors.Is(err, io.EOF)) {
		return nil, fmt.Errorf("%w: it is cut off", ErrSnapshot)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a snapshot: %w", err)
	}
	s.sum.Write(b.Bytes())
	return b.Bytes(), nil
}

func (s *snapshotReader) uint32() (uint32, error) {
	b, err := s.take(4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b), nil
}

func restore(fleet string, from io.Reader, own string) (*Ledger, error) {
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
		return nil, fmt.Errorf("%w: it does not begin as one", ErrSnapshot)
	}
	version, err := s.uint32()
	if err != nil {
		return nil, err
	}
	if version > snapshotVersion {
		return nil, fmt.Errorf("snapshot of version %d, and this program reads %d: %w", version, snapshotVersion, ErrFuture)
	}
	if version != snapshotVersion {
		return nil, fmt.Errorf("%w: it has version %d", ErrSnapshot, version)
	}
	head, err := s.head(fleet)
	if err != nil {
		return nil, err
	}
	verify := own == "" || head.Device != own
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
	counters := make(map[string]counter, len(head.Counters))
	for _, c := range head.Counters {
		if _, twice := counters[c.Device]; twice || c.Last < l.counters[c.Device].last {
			return nil, fmt.Errorf("%w: the counter of %s is wrong", ErrSnapshot, c.Device)
		}
		counters[c.Device] = counter{c.Last, c.Gaps}
	}
	for author := range l.counters {
		if _, ok := counters[author]; !ok {
			return nil, fmt.Errorf("%w: the counter of %s is missing", ErrSnapshot, author)
		}
	}
	l.counters, l.seq = counters, head.Seq
	return l, nil
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

// end checks what comes after the entries.
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
		return fmt.Errorf("%w: something follows its end", ErrSnapshot)
	}
	key, err := nkeys.FromPublicKey(head.Device)
	if err != nil || key.Verify(signed("snapshot", head.Fleet, snapshotVersion, head.Device, total), sig) != nil {
		return fmt.Errorf("%w: the signature of %q is wrong", ErrSnapshot, head.Device)
	}
	if err := l.admits(head.Device); err != nil && member {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return nil
}
