// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nkeys"
)

// ErrStore is wrapped by the errors of a [Store] about damaged files.
var ErrStore = errors.New("damaged ledger on disk")

// The files of a [Store].
const (
	BaseFile  = "ledger" // a snapshot
	TailFile  = "tail"   // the entries of the log after the snapshot
	indexFile = "index"  // the places of the entries in the snapshot
)

// Store is a ledger whose entries are on disk and not in memory. It is not safe for concurrent use. Drop every ledger
// that [Ledger.With] made from it before Save and Adopt. The caller closes it.
//
// The folder holds the snapshot "ledger", the "tail" and the "index". The tail begins with "faceauth fleet tail\n" and
// a version. Then come all later entries that have used a counter. Before each entry stand its place in the log, its
// length and the CRC-32C of all this, as big-endian integers. An entry of length 0 records the place that the ledger
// had reached. A half-written entry at the end, after a failure of the machine, is removed: the log delivers it again.
// The index holds the place and kind of each entry in the snapshot, so a start need not read the whole snapshot. The
// device signs the index after it has checked the snapshot. An entry that is damaged later is noticed when it is read.
type Store struct {
	*Ledger
	folder, fleet, device string

	key        nkeys.KeyPair
	base, tail *entryFile // base is nil without a snapshot
	saved      int64      // bytes of the snapshot
	end        int64      // of the tail, in bytes
	kept       uint64     // place in the log up to which the files reach
	hole       error      // why an entry is missing in the tail; nil: none is
}

const (
	tailMagic   = "faceauth fleet tail\n"
	tailVersion = 1
	tailHead    = int64(len(tailMagic) + 4)
	entryHead   = 16
)

// OpenStore opens the ledger in the folder of the device with this key. The error wraps [ErrStore] or [ErrFuture], or
// comes from the disk.
func OpenStore(folder, fleet string, key nkeys.KeyPair) (*Store, error) {
	s := &Store{folder: folder, fleet: fleet, key: key}
	err := s.open()
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	return s, nil
}

func (s *Store) path(name string) string { return filepath.Join(s.folder, name) }

func (s *Store) open() (err error) {
	if s.device, err = s.key.PublicKey(); err != nil {
		return err
	}
	for _, name := range []string{BaseFile, indexFile} {
		safefile.Sweep(s.path(name))
	}
	if err := s.openBase(); err != nil {
		return err
	}
	if err := s.openTail(); err != nil {
		return err
	}
	s.Ledger.keep, s.kept = s.append, s.seq
	return nil
}

func (s *Store) openBase() error {
	file, err := safefile.Open(s.path(BaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		s.Ledger, err = New(s.fleet)
		return err
	}
	if err != nil {
		return err
	}
	s.base = &entryFile{File: file}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	s.saved = info.Size()
	if s.Ledger = s.openIndex(); s.Ledger != nil {
		return nil
	}
	if s.Ledger, err = restore(s.fleet, file, restoring{own: s.device, in: s.base}); err != nil {
		return fmt.Errorf("%w: %s: %w; move it away: faceauth then reads the log again", ErrStore, file.Name(), err)
	}
	s.writeIndex()
	return nil
}

func (s *Store) openTail() error {
	file, err := os.OpenFile(s.path(TailFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.tail = &entryFile{File: file}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", file.Name(), safefile.ErrNotRegular)
	}
	r := bufio.NewReaderSize(file, 1<<16)
	head := make([]byte, tailHead)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(tailMagic)]) != tailMagic {
		// This may be the tail of an older program: the log delivers its entries again.
		return s.emptyTail()
	}
	if v := binary.BigEndian.Uint32(head[len(tailMagic):]); v != tailVersion {
		return fmt.Errorf("%s has version %d, and this program reads %d: %w", file.Name(), v, tailVersion, ErrFuture)
	}
	s.end = tailHead
	for {
		var head [entryHead]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return s.truncateTail(err)
		}
		seq, size := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint32(head[8:])
		if size > MaxEntry {
			return s.truncateTail(nil)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return s.truncateTail(err)
		}
		if crc(head[:12], data) != binary.BigEndian.Uint32(head[12:]) {
			return s.truncateTail(nil)
		}
		if size == 0 { // written by Close
			s.seq = max(s.seq, seq)
			s.end += entryHead
			continue
		}
		s.Ledger.keep = func(uint64, []byte) place { return placed(s.tail, s.end+entryHead, data) }
		if _, err := s.apply(seq, data, false); err != nil {
			return err
		}
		s.end += entryHead + int64(size)
	}
}

// truncateTail removes everything after the last whole entry. Err is the error of reading the next one.
func (s *Store) truncateTail(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return s.tail.Truncate(s.end)
}

func (s *Store) emptyTail() error {
	if err := s.tail.Truncate(0); err != nil {
		return err
	}
	if _, err := s.tail.WriteAt(binary.BigEndian.AppendUint32([]byte(tailMagic), tailVersion), 0); err != nil {
		return err
	}
	s.end = tailHead
	return nil
}

func crc(head, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, data)
}

// append stores an entry that is about to count. After a failure this entry and all later ones stay in memory: the tail
// must not have a gap.
func (s *Store) append(seq uint64, data []byte) place {
	if s.hole != nil {
		return inMemory(data)
	}
	b := make([]byte, entryHead, entryHead+len(data))
	binary.BigEndian.PutUint64(b, seq)
	binary.BigEndian.PutUint32(b[8:], uint32(len(data)))
	binary.BigEndian.PutUint32(b[12:], crc(b[:12], data))
	if _, err := s.tail.WriteAt(append(b, data...), s.end); err != nil {
		s.hole = fmt.Errorf("storing an entry of the log: %w", err)
		return inMemory(data)
	}
	p := placed(s.tail, s.end+entryHead, data)
	s.end += entryHead + int64(len(data))
	s.kept = seq
	return p
}

// Hole returns why entries are missing in the tail, or nil. Save repairs it.
func (s *Store) Hole() error { return s.hole }

// Damage returns the first error of reading the files, or nil. Entries that could not be read are missing in later
// results of the ledger.
func (s *Store) Damage() error {
	for _, f := range []*entryFile{s.base, s.tail} {
		if f != nil && f.fault != nil {
			return fmt.Errorf("%w; move %s and %s away in %s: faceauth then reads the log again", f.fault, BaseFile,
				TailFile, s.folder)
		}
	}
	return nil
}

// Sizes returns the sizes of the snapshot and the tail in bytes.
func (s *Store) Sizes() (saved, tail int64) { return s.saved, s.end - tailHead }

// Save replaces the snapshot by a new one, without entries that no longer count, and empties the tail. On error the
// files are unchanged.
func (s *Store) Save() error {
	f, err := safefile.Create(s.path(BaseFile))
	if err != nil {
		return fmt.Errorf("saving the ledger: %w", err)
	}
	defer f.Abort()
	moved := make(map[uint64]int64)
	if err := s.snapshot(f, s.key, func(seq uint64, at int64) { moved[seq] = at }); err != nil {
		return fmt.Errorf("saving the ledger: %w", err)
	}
	base := &entryFile{}
	if err := s.replace(f, base); err != nil {
		return fmt.Errorf("saving the ledger: %w", err)
	}
	s.eachRecord(func(_ ID, r *record) { r.in, r.at = base, moved[r.seq] })
	s.writeIndex()
	return s.restartTail()
}

// Empty replaces the ledger by an empty one. On error it is unchanged, or [Store.Damage] returns an error.
func (s *Store) Empty() error {
	l, err := New(s.fleet)
	if err != nil {
		return err
	}
	f, err := safefile.Create(s.path(BaseFile))
	if err != nil {
		return fmt.Errorf("emptying the ledger: %w", err)
	}
	defer f.Abort()
	if err := l.Snapshot(f, s.key); err != nil {
		return fmt.Errorf("emptying the ledger: %w", err)
	}
	// The tail is emptied first: its entries must never follow an empty snapshot.
	if err := s.emptyTail(); err != nil {
		return fmt.Errorf("emptying the ledger: %w", err)
	}
	if err := s.replace(f, &entryFile{}); err != nil {
		return fmt.Errorf("emptying the ledger: %w", err)
	}
	s.Ledger.keep, s.hole = nil, nil
	s.Ledger = l
	s.Ledger.keep = s.append
	return nil
}

// restartTail empties the tail after a new snapshot.
func (s *Store) restartTail() error {
	s.hole, s.kept = nil, s.seq
	if err := s.emptyTail(); err != nil {
		s.hole = fmt.Errorf("emptying the tail of the ledger: %w", err)
	}
	return s.hole
}

// replace puts a new snapshot in place and opens it for reading.
func (s *Store) replace(f *safefile.File, base *entryFile) error {
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if base.File, err = os.Open(f.Name()); err != nil { // the temporary name
		return err
	}
	if err := f.Commit(); err != nil {
		base.Close()
		return err
	}
	if s.base != nil {
		s.base.Close()
	}
	s.base, s.saved = base, size
	return nil
}

// A Draft is a fetched ledger that does not replace the old one yet. End it with [Store.Adopt] or Abort.
type Draft struct {
	*Ledger
	file *safefile.File
	base *entryFile
}

// Fetch reads a snapshot as [Restore] does, and keeps its entries on disk. It does not touch the ledger of s, and may
// be called while that is in use.
func (s *Store) Fetch(r io.Reader) (*Draft, error) {
	f, err := safefile.Create(s.path(BaseFile))
	if err != nil {
		return nil, fmt.Errorf("storing a snapshot: %w", err)
	}
	d := &Draft{file: f, base: &entryFile{}}
	w := bufio.NewWriterSize(f, 1<<16)
	if d.Ledger, err = restore(s.fleet, io.TeeReader(r, w), restoring{in: d.base}); err != nil {
		f.Abort()
		return nil, err
	}
	if err := w.Flush(); err != nil {
		f.Abort()
		return nil, fmt.Errorf("storing a snapshot: %w", err)
	}
	return d, nil
}

// Abort removes a draft. After [Store.Adopt] it does nothing, so it may be deferred.
func (d *Draft) Abort() { d.file.Abort() }

// Adopt replaces the ledger by a draft. On error the ledger is unchanged.
func (s *Store) Adopt(d *Draft) error {
	if err := s.replace(d.file, d.base); err != nil {
		return fmt.Errorf("storing a snapshot: %w", err)
	}
	s.Ledger.keep = nil
	s.Ledger = d.Ledger
	s.Ledger.keep = s.append
	s.writeIndex()
	_ = s.restartTail() // the new snapshot holds all entries, so a hole does no harm yet
	return nil
}

// Close closes the files. After a failure of the machine before Close, their last entries may be lost.
func (s *Store) Close() error {
	var errs []error
	if s.tail != nil {
		if s.Ledger != nil && s.keep != nil && s.seq > s.kept {
			s.append(s.seq, nil) // the last entries used no counter
		}
		errs = append(errs, s.tail.Sync(), s.tail.Close())
	}
	if s.base != nil {
		errs = append(errs, s.base.Close())
	}
	return errors.Join(errs...)
}
