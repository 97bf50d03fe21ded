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

// ErrStore is wrapped by the errors of a [Store] for files that are damaged.
var ErrStore = errors.New("damaged ledger on disk")

// The files of a [Store].
const (
	BaseFile  = "ledger" // a snapshot
	TailFile  = "tail"   // entries of the log after it
	indexFile = "index"  // where the entries are in the snapshot
)

// Store is a ledger whose entries are on disk and not in memory. It is not safe for concurrent use; who holds a ledger
// that [Ledger.With] made of it drops that before Save and Adopt. Close it.
//
// The folder has the snapshot "ledger", and "tail": "faceauth fleet tail\n" and a version, then all entries after it
// that have used a counter, each with its place in the log, its length and the CRC-32C of all that as big-endian
// integers before it; one of no length notes the place that the ledger had reached. What a failure of the machine leaves
// half written at the end of the tail is cut off: the log gives it again. "index" says where each entry is in the
// snapshot and of what kind, so that a start need not read all of it; it is signed by the device, which had checked the
// snapshot then. An entry that has gone bad since is found when it is read.
type Store struct {
	*Ledger
	folder, fleet, device string

	key        nkeys.KeyPair
	base, tail *entryFile // base is nil where there is no snapshot
	saved      int64      // bytes of the snapshot
	end        int64      // of the tail
	kept       uint64     // place in the log that the files reach
	hole       error      // why an entry is missing in the tail
}

const (
	tailMagic   = "faceauth fleet tail\n"
	tailVersion = 1
	tailHead    = int64(len(tailMagic) + 4)
	entryHead   = 16
)

// OpenStore opens the ledger in the folder of a device, whose key is given. The error wraps [ErrStore], [ErrFuture], or
// is that of the disk.
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
		return fmt.Errorf("%w: %s: %w; move it away, and the log is read anew", ErrStore, file.Name(), err)
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
		// Also that of an older program: the log gives its entries again.
		return s.emptyTail()
	}
	if v := binary.BigEndian.Uint32(head[len(tailMagic):]); v != tailVersion {
		return fmt.Errorf("%s has version %d, and this program reads %d: %w", file.Name(), v, tailVersion, ErrFuture)
	}
	s.end = tailHead
	for {
		var head [entryHead]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return s.cut(err)
		}
		seq, size := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint32(head[8:])
		if size > MaxEntry {
			return s.cut(nil)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return s.cut(err)
		}
		if crc(head[:12], data) != binary.BigEndian.Uint32(head[12:]) {
			return s.cut(nil)
		}
		if size == 0 { // the end of the program before
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

// cut ends the tail after the last whole entry. The error is that of reading on.
func (s *Store) cut(err error) error {
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

// append keeps an entry that is about to count. Where that fails it stays in memory, and those that come later, too: the
// tail must not go on without it.
func (s *Store) append(seq uint64, data []byte) place {
	if s.hole != nil {
		return inMemory(data)
	}
	b := make([]byte, entryHead, entryHead+len(data))
	binary.BigEndian.PutUint64(b, seq)
	binary.BigEndian.PutUint32(b[8:], uint32(len(data)))
	binary.BigEndian.PutUint32(b[12:], crc(b[:12], data))
	if _, err := s.tail.WriteAt(append(b, data...), s.end); err != nil {
		s.hole = fmt.Errorf("keeping an entry of the log: %w", err)
		return inMemory(data)
	}
	p := placed(s.tail, s.end+entryHead, data)
	s.end += entryHead + int64(len(data))
	s.kept = seq
	return p
}

// Hole returns why entries are missing in the tail, or nil where none is. Save mends it.
func (s *Store) Hole() error { return s.hole }

// Damage returns the first error of reading what is on disk, or nil. What could not be read is missing in what the
// ledger has given since.
func (s *Store) Damage() error {
	for _, f := range []*entryFile{s.base, s.tail} {
		if f != nil && f.fault != nil {
			return fmt.Errorf("%w; move %s and %s away in %s, and the log is read anew", f.fault, BaseFile, TailFile, s.folder)
		}
	}
	return nil
}

// Sizes returns how many bytes the snapshot and the tail have.
func (s *Store) Sizes() (saved, tail int64) { return s.saved, s.end - tailHead }

// Save puts a new snapshot in the place of the old one, without what does not count any more, and empties the tail. On
// error the files are as they were.
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
	return s.fresh()
}

// Empty begins with a ledger that has read nothing. On error it is as it was, or [Store.Damage] says why not.
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
	// Before the snapshot is in its place: entries of the tail must never follow an empty one.
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

// fresh empties the tail after a snapshot was put in its place.
func (s *Store) fresh() error {
	s.hole, s.kept = nil, s.seq
	if err := s.emptyTail(); err != nil {
		s.hole = fmt.Errorf("emptying the tail of the ledger: %w", err)
	}
	return s.hole
}

// replace puts a snapshot in its place, and opens it for reading.
func (s *Store) replace(f *safefile.File, base *entryFile) error {
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if base.File, err = os.Open(f.Name()); err != nil { // by the name that it still has
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

// A Draft is a ledger that was fetched, and is not in its place yet. End it with [Store.Adopt] or Abort.
type Draft struct {
	*Ledger
	file *safefile.File
	base *entryFile
}

// Fetch reads a snapshot as [Restore] does, with its entries on disk. It does not touch the ledger of s, and may be
// called while that is used.
func (s *Store) Fetch(r io.Reader) (*Draft, error) {
	f, err := safefile.Create(s.path(BaseFile))
	if err != nil {
		return nil, fmt.Errorf("keeping a snapshot: %w", err)
	}
	d := &Draft{file: f, base: &entryFile{}}
	w := bufio.NewWriterSize(f, 1<<16)
	if d.Ledger, err = restore(s.fleet, io.TeeReader(r, w), restoring{in: d.base}); err != nil {
		f.Abort()
		return nil, err
	}
	if err := w.Flush(); err != nil {
		f.Abort()
		return nil, fmt.Errorf("keeping a snapshot: %w", err)
	}
	return d, nil
}

// Abort removes a draft. After [Store.Adopt] it does nothing, so it may be deferred.
func (d *Draft) Abort() { d.file.Abort() }

// Adopt puts what was fetched in the place of the ledger. On error the ledger is as it was.
func (s *Store) Adopt(d *Draft) error {
	if err := s.replace(d.file, d.base); err != nil {
		return fmt.Errorf("keeping a snapshot: %w", err)
	}
	s.Ledger.keep = nil
	s.Ledger = d.Ledger
	s.Ledger.keep = s.append
	s.writeIndex()
	_ = s.fresh() // a hole does no harm yet
	return nil
}

// Close closes the files. What they have is not on disk before, where the machine fails.
func (s *Store) Close() error {
	var errs []error
	if s.tail != nil {
		if s.Ledger != nil && s.keep != nil && s.seq > s.kept {
			s.append(s.seq, nil) // what came last used no counter
		}
		errs = append(errs, s.tail.Sync(), s.tail.Close())
	}
	if s.base != nil {
		errs = append(errs, s.base.Close())
	}
	return errors.Join(errs...)
}
