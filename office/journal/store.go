// SPDX-License-Identifier: Apache-2.0

// Package journal keeps numbered records on disk: the corrections of users, and the sightings in a room.
//
// [Open] opens a [Store]. A record has a head, which is in memory and can change, and a body, such as faces, which is
// read from disk and never changes. [OpenNumbers] opens [Numbers], which are never given twice, even after a crash.
//
// The age, the size and the number of records are limited: the oldest records are removed first.
//
// # Files
//
// A store is a folder that only its owner can read. The file "index" has a line for each change of the heads (package
// lines). Each body is a separate file, named by the number of the record: the 16 bytes "faceauth journal", the version
// as a big-endian uint32, the body, and the SHA-256 of all this. A body is written before the line with its record, and
// removed after the line that deletes its record; the next start removes bodies without a line. [Store.Delete] writes
// the index again, so that no file keeps anything of a deleted record.
package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/lines"
	"github.com/faceauth/faceauth/internal/safefile"
)

// Errors of [Open], [OpenNumbers] and the methods of [Store].
var (
	ErrVersion  = lines.ErrVersion
	ErrDamaged  = lines.ErrDamaged
	ErrBusy     = lines.ErrBusy
	ErrNoRecord = errors.New("no such record")
)

const version = 1

var kind = safefile.Kind{Magic: "faceauth journal", Version: version}

// Settings of a [Store]. A zero field means the default.
type Settings struct {
	Age     time.Duration // greatest age of a record. Default 7 days
	Bytes   int64         // greatest size of all bodies, plus 1 KB for each head. Default 256 MB
	Records int           // greatest number of records. Default 20,000
	// Lazy does not wait for the disk. A killed program loses nothing; if the machine fails, the last records may be
	// lost.
	Lazy bool
}

func (s Settings) defaults() Settings {
	s.Age = cmp.Or(s.Age, 7*24*time.Hour)
	s.Bytes = cmp.Or(s.Bytes, 256<<20)
	s.Records = cmp.Or(s.Records, 20000)
	return s
}

// Record is a numbered record without its body.
type Record[H any] struct {
	ID   uint64    `json:"id"`
	At   time.Time `json:"at"`
	Size int64     `json:"size"` // of the body in bytes
	Head H         `json:"head"`
}

// Store is an open folder of records, or a set in memory. One goroutine may use it at a time. The caller closes it.
//
// A change that cannot be written holds in memory, and the next change writes it, too. The error tells of the failure.
type Store[H any] struct {
	s    Settings
	dir  string // "" for none
	file *lines.File

	last   uint64
	ids    []uint64 // ascending
	all    map[uint64]*Record[H]
	bodies map[uint64][]byte // bodies that are not on disk
	bytes  int64
	turns  uint64 // number of changes in memory
	stale  bool   // the index on disk is behind the memory
}

// entry is a line of the index.
type entry[H any] struct {
	Version int         `json:"version,omitempty"` // in the first line
	Last    uint64      `json:"last,omitempty"`
	Put     []Record[H] `json:"put,omitempty"`
	Gone    []uint64    `json:"gone,omitempty"`
}

// Open opens the store in a folder, and makes a missing one. With an empty folder name the store is in memory. The
// error wraps [ErrVersion], [ErrDamaged] or [ErrBusy].
func Open[H any](dir string, s Settings) (*Store[H], error) {
	st := &Store[H]{s: s.defaults(), dir: dir, all: make(map[uint64]*Record[H]), bodies: make(map[uint64][]byte)}
	if dir == "" {
		return st, nil
	}
	if err := st.open(); err != nil {
		if st.file != nil {
			st.file.Close()
		}
		return nil, fmt.Errorf("opening journal %s: %w", dir, err)
	}
	return st, nil
}

func (st *Store[H]) open() (err error) {
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return err
	}
	o := lines.Options{Lazy: st.s.Lazy, Lenient: st.s.Lazy, Version: version}
	st.file, err = lines.Open(filepath.Join(st.dir, "index"), o, func(line []byte) error {
		var e entry[H]
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		for _, r := range e.Put {
			if r.ID == 0 || r.Size < 0 {
				return fmt.Errorf("%w: record %d has %d bytes", ErrDamaged, r.ID, r.Size)
			}
		}
		st.apply(e)
		return nil
	})
	if err != nil {
		return err
	}
	return st.sweep()
}

// sweep removes bodies without a record, and unfinished files of a killed program.
func (st *Store[H]) sweep() error {
	files, err := os.ReadDir(st.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		number := f.Name()
		if rest, ok := strings.CutPrefix(number, "."); ok {
			number, _, _ = strings.Cut(rest, "-")
			if _, err := strconv.ParseUint(number, 10, 64); err == nil {
				os.Remove(filepath.Join(st.dir, f.Name()))
			}
			continue
		}
		id, err := strconv.ParseUint(number, 10, 64)
		if err == nil && (st.all[id] == nil || st.all[id].Size == 0) {
			if err := os.Remove(filepath.Join(st.dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply applies a line of the index.
func (st *Store[H]) apply(e entry[H]) {
	st.last = max(st.last, e.Last)
	for _, r := range e.Put {
		st.put(r)
	}
	for _, id := range e.Gone {
		st.drop(id)
	}
}

func (st *Store[H]) put(r Record[H]) {
	st.turns++
	st.last = max(st.last, r.ID)
	if old := st.all[r.ID]; old != nil {
		st.bytes -= cost(*old)
	} else if at, there := slices.BinarySearch(st.ids, r.ID); !there {
		st.ids = slices.Insert(st.ids, at, r.ID)
	}
	st.all[r.ID] = &r
	st.bytes += cost(r)
}

func (st *Store[H]) drop(id uint64) {
	r := st.all[id]
	if r == nil {
		return
	}
	st.turns++
	st.bytes -= cost(*r)
	delete(st.all, id)
	delete(st.bodies, id)
	if at, there := slices.BinarySearch(st.ids, id); there {
		st.ids = slices.Delete(st.ids, at, at+1)
	}
}

// cost returns the number of bytes that count for a record.
func cost[H any](r Record[H]) int64 { return r.Size + 1024 }

func (st *Store[H]) path(id uint64) string {
	return filepath.Join(st.dir, strconv.FormatUint(id, 10))
}

// writeBody puts a body on disk.
func (st *Store[H]) writeBody(id uint64, body []byte) error {
	data := safefile.Seal(kind, body)
	if !st.s.Lazy {
		return safefile.Write(st.path(id), data)
	}
	err := os.WriteFile(st.path(id), data, 0o600)
	if err != nil {
		os.Remove(st.path(id))
	}
	return err
}

// write appends a change to the index. It writes the whole index if the file is long or behind the memory.
func (st *Store[H]) write(e entry[H]) error {
	if st.dir == "" {
		return nil
	}
	if st.stale || st.file.Lines() > 4*len(st.ids)+1000 {
		return st.rewrite()
	}
	if err := st.file.Append(e); err != nil {
		st.stale = true
		return fmt.Errorf("writing journal: %w", err)
	}
	return nil
}

// rewrite writes the whole index, and bodies that could not be written before.
func (st *Store[H]) rewrite() error {
	st.stale = true
	for id, body := range st.bodies {
		if err := st.writeBody(id, body); err != nil {
			return fmt.Errorf("writing journal: %w", err)
		}
		delete(st.bodies, id)
	}
	all := []any{entry[H]{Version: version, Last: st.last}}
	for ids := range slices.Chunk(st.ids, 64) {
		var e entry[H]
		for _, id := range ids {
			e.Put = append(e.Put, *st.all[id])
		}
		all = append(all, e)
	}
	if err := st.file.Rewrite(all...); err != nil {
		return fmt.Errorf("writing journal: %w", err)
	}
	st.stale = false
	return nil
}

// Put adds a record with a new number. It is on disk when Put returns, unless the store is lazy.
func (st *Store[H]) Put(id uint64, at time.Time, head H, body []byte) error {
	r := Record[H]{ID: id, At: at, Size: int64(len(body)), Head: head}
	st.put(r)
	var err error
	switch {
	case len(body) == 0:
	case st.dir == "":
		st.bodies[id] = body
	default:
		if err = st.writeBody(id, body); err != nil {
			err = fmt.Errorf("writing journal: %w", err)
			st.bodies[id], st.stale = body, true
			st.shedLoose()
		}
	}
	if err == nil {
		err = st.write(entry[H]{Put: []Record[H]{r}})
	}
	return errors.Join(err, st.Expire(at))
}

// mostLoose is the greatest number of records whose bodies are only in memory.
const mostLoose = 64

func (st *Store[H]) shedLoose() {
	for len(st.bodies) > mostLoose {
		st.drop(slices.Min(slices.Collect(maps.Keys(st.bodies))))
	}
}

// Change replaces the heads of some records, all or none. It skips numbers without a record.
func (st *Store[H]) Change(heads map[uint64]H) error {
	var e entry[H]
	for _, id := range slices.Sorted(maps.Keys(heads)) {
		if r := st.all[id]; r != nil {
			st.turns++
			r.Head = heads[id]
			e.Put = append(e.Put, *r)
		}
	}
	if len(e.Put) == 0 {
		return nil
	}
	return st.write(e)
}

// Expire removes the records that are too many or too old.
func (st *Store[H]) Expire(now time.Time) error {
	n, bytes := 0, st.bytes
	for _, id := range st.ids {
		r := st.all[id]
		if len(st.ids)-n <= st.s.Records && bytes <= st.s.Bytes && now.Sub(r.At) <= st.s.Age {
			break
		}
		bytes -= cost(*r)
		n++
	}
	if n == 0 {
		return nil
	}
	return st.remove(slices.Clone(st.ids[:n]), st.write)
}

// Delete removes records from memory and from all files.
func (st *Store[H]) Delete(ids ...uint64) error {
	if len(ids) == 0 {
		return nil
	}
	return st.remove(ids, func(entry[H]) error {
		if st.dir == "" {
			return nil
		}
		return st.rewrite()
	})
}

// Purge writes the whole index, so that the file keeps no old heads.
func (st *Store[H]) Purge() error {
	if st.dir == "" {
		return nil
	}
	return st.rewrite()
}

func (st *Store[H]) remove(ids []uint64, write func(entry[H]) error) error {
	for _, id := range ids {
		st.drop(id)
	}
	err := write(entry[H]{Last: st.last, Gone: ids})
	if st.dir == "" {
		return err
	}
	for _, id := range ids {
		if e := os.Remove(st.path(id)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("writing journal: %w", e))
		}
	}
	return err
}

// Last returns the largest number that any record had.
func (st *Store[H]) Last() uint64 { return st.last }

// Turns returns a number that changes with each change of a record. A cache is valid while it stays the same.
func (st *Store[H]) Turns() uint64 { return st.turns }

// Len returns the number of records.
func (st *Store[H]) Len() int { return len(st.ids) }

// Get returns a record, if there is one. Its head may share memory with the store: do not change it.
func (st *Store[H]) Get(id uint64) (Record[H], bool) {
	if r := st.all[id]; r != nil {
		return *r, true
	}
	return Record[H]{}, false
}

// Before returns the numbers of the records below id (0: all), the largest first.
func (st *Store[H]) Before(id uint64) []uint64 {
	at := len(st.ids)
	if id > 0 {
		at, _ = slices.BinarySearch(st.ids, id)
	}
	ids := slices.Clone(st.ids[:at])
	slices.Reverse(ids)
	return ids
}

// Body returns the body of a record, or nil for none. The error wraps [ErrNoRecord], [ErrDamaged] or fs.ErrNotExist.
func (st *Store[H]) Body(id uint64) ([]byte, error) {
	r := st.all[id]
	switch {
	case r == nil:
		return nil, fmt.Errorf("%w: %d", ErrNoRecord, id)
	case r.Size == 0:
		return nil, nil
	case st.bodies[id] != nil:
		return st.bodies[id], nil
	}
	body, err := safefile.ReadSealed(st.path(id), kind)
	if err != nil {
		return nil, fmt.Errorf("reading journal: %w", err)
	}
	return body, nil
}

// Close closes the files.
func (st *Store[H]) Close() error {
	if st.file == nil {
		return nil
	}
	return st.file.Close()
}
