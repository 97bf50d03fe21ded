// SPDX-License-Identifier: Apache-2.0

// Package logbook keeps on disk what has happened in a room, who is there, and what has not been delivered yet to those
// who want to know: a program that is killed and started again goes on from it.
//
// [Open] opens a [Book], [Book.Record] writes events and what the room came to as one, and [Book.Queue] gives the
// events for one sink in their order. All of it is bounded.
//
// # File format
//
// Lines of the CRC-32C of the rest as eight hexadecimal digits, a space, and JSON: the first has the version, each
// other one what has changed, who is there, events, and how far sinks have come. A line is written with one call and
// synced; a last line that is not whole was never said to be written, and is cut off. When the lines are many, the file
// is written anew with what still counts and put in the place of the old one. It has names and times, and no faces. The
// owner alone can read it.
//
// The file beside it, with ".seen" after its name, has when people were seen since: see [Book.Note].
package logbook

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/office/presence"
)

// Errors of [Open] and of the methods of [Book].
var (
	ErrVersion = errors.New("logbook of another version")
	ErrDamaged = errors.New("damaged logbook")
	ErrBusy    = errors.New("logbook that another program is using")
)

const version = 1

// patience is how long [Open] waits for another program to let go of the file.
const patience = 2 * time.Second

// Settings of a [Book]. The zero value of each field stands for its default.
type Settings struct {
	Events  int // kept, the newest. Default 5,000
	Waiting int // kept for a sink that does not take them, the newest. Default 10,000
	Lines   int // of the file, after which it is written anew. Default 20,000
}

// entry is a line: what has changed.
type entry struct {
	Version int                 `json:"version,omitempty"` // in the first line
	State   *presence.State     `json:"state,omitempty"`
	Events  []presence.Event    `json:"events,omitempty"`
	Queues  map[string]progress `json:"queues,omitempty"`
}

// progress is how far a sink has come.
type progress struct {
	Done uint64 `json:"done"` // number of the last event that it has got, or that there was no room for
	Lost int    `json:"lost"` // of the latter
}

// Book is an open logbook. It is safe for concurrent use. Close it.
type Book struct {
	s    Settings
	path string

	mu     sync.Mutex
	file   *os.File
	size   int64
	lines  int
	notes  notes
	hold   hold
	state  presence.State
	events []presence.Event // the oldest first
	queues map[string]progress
	more   map[string]chan struct{} // of the sinks of this run
}

// Open opens the logbook at path and makes one where there is none. The error wraps [ErrVersion], [ErrDamaged], or
// [ErrBusy] when another program does not let go of the file for two seconds.
func Open(path string, s Settings) (*Book, error) {
	s.Events, s.Waiting, s.Lines = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000), cmp.Or(s.Lines, 20000)
	b := &Book{s: s, path: path, queues: make(map[string]progress), more: make(map[string]chan struct{})}
	if err := b.open(); err != nil {
		if b.file != nil {
			b.file.Close()
		}
		return nil, fmt.Errorf("opening logbook %s: %w", path, err)
	}
	return b, nil
}

func (b *Book) open() (err error) {
	if f, err := safefile.Open(b.path); err == nil { // what is no file would be waited for
		f.Close()
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if b.file, err = os.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := lock(b.file); err != nil {
		return err
	}
	if err := b.read(); err != nil {
		return fmt.Errorf("%w; move it away to begin anew", err)
	}
	if err := b.notes.open(b.path+".seen", b.state.People); err != nil {
		return err
	}
	if n := len(b.events); n > 0 {
		b.hold.written = b.events[n-1].ID
	}
	if b.lines > 0 {
		return nil
	}
	text, err := line(entry{Version: version})
	if err == nil {
		err = b.append(text)
	}
	return err
}

// lock keeps other programs from opening the file.
func lock(f *os.File) error {
	err := safefile.Lock(f, patience)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}

var table = crc32.MakeTable(crc32.Castagnoli)

// line returns an entry as it is written.
func line(e entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, table), text), nil
}

// parse returns the entry of a line.
func parse(text []byte) (e entry, err error) {
	if len(text) < 10 || text[8] != ' ' || text[len(text)-1] != '\n' {
		return e, fmt.Errorf("%w: a line is cut off", ErrDamaged)
	}
	text, sum := text[9:len(text)-1], string(text[:8])
	if fmt.Sprintf("%08x", crc32.Checksum(text, table)) != sum {
		return e, fmt.Errorf("%w: a checksum is wrong", ErrDamaged)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

// longest is how many bytes a line may have.
const longest = 1 << 24

// read takes in the file.
func (b *Book) read() error {
	r := bufio.NewReader(b.file)
	for {
		text, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(text) == 0 {
			return b.cut()
		}
		e, err := parse(text)
		if err != nil {
			if _, next := r.Peek(1); errors.Is(next, io.EOF) && b.lines > 0 {
				return b.cut() // it was being written when the program, or the machine, ended
			}
			return fmt.Errorf("%w in line %d", err, b.lines+1)
		}
		if b.lines == 0 && e.Version != version {
			return fmt.Errorf("%w: it has version %d, and this program reads version %d", ErrVersion, e.Version, version)
		}
		if err := b.check(e); err != nil {
			return fmt.Errorf("%w in line %d", err, b.lines+1)
		}
		b.apply(e)
		b.lines++
		b.size += int64(len(text))
	}
}

// readLine returns the next line with its end, or what there is of it.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
		if len(text) > longest {
			return nil, fmt.Errorf("%w: a line is too long", ErrDamaged)
		}
	}
}

// cut ends the file after the last whole line.
func (b *Book) cut() error {
	if err := b.file.Truncate(b.size); err != nil {
		return err
	}
	_, err := b.file.Seek(b.size, io.SeekStart)
	return err
}

// check returns nil for an entry that can follow what is known.
func (b *Book) check(e entry) error {
	last := uint64(0)
	if len(b.events) > 0 {
		last = b.events[len(b.events)-1].ID
	}
	for _, x := range e.Events {
		if x.ID <= last {
			return fmt.Errorf("%w: event %d follows %d", ErrDamaged, x.ID, last)
		}
		last = x.ID
	}
	return nil
}

// apply takes in what has changed.
func (b *Book) apply(e entry) {
	if e.State != nil {
		b.state = *e.State
	}
	b.events = append(b.events, e.Events...)
	if over := len(b.events) - max(b.s.Events, b.s.Waiting); over > 0 {
		b.shedEvents(over)
		b.events = slices.Delete(b.events, 0, over)
	}
	for name, p := range e.Queues {
		b.queues[name] = p
	}
}

// rewrite writes the file anew, with what still counts. The new one is locked before it is in its place.
func (b *Book) rewrite() error {
	var all bytes.Buffer
	lines := []entry{{Version: version}, {State: &b.state, Events: b.events, Queues: b.queues}}
	for _, e := range lines {
		text, err := line(e)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	temp := b.path + ".new"
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = lock(f)
	if err == nil {
		_, err = f.Write(all.Bytes())
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = safefile.Rename(temp, b.path)
	}
	if err != nil {
		f.Close()
		os.Remove(temp)
		return err
	}
	b.file.Close() // the file that is no more
	b.file, b.size, b.lines = f, int64(all.Len()), len(lines)
	return nil
}

// State returns what was recorded of the room last.
func (b *Book) State() presence.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Record writes what the room came to and the events that led there, whose numbers ascend. It is on disk when it
// returns, all or nothing; where the disk cannot be written it is in memory, and [Book.Trouble] says so. The error is
// that of events whose numbers do not ascend; nothing has changed then.
func (b *Book) Record(s presence.State, events []presence.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := entry{State: &s, Events: events}
	err := b.check(e)
	if err == nil {
		err = b.put(e)
	}
	if err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	for name, more := range b.more {
		b.shed(name)
		if len(events) > 0 {
			select {
			case more <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

// shed gives up the oldest events of a queue that has more than it may. That is written with what is written next:
// until then they are lost anew each time.
func (b *Book) shed(name string) {
	p := b.queues[name]
	waiting := b.waiting(p)
	if over := len(waiting) - b.s.Waiting; over > 0 {
		waiting = waiting[over:]
	}
	if len(waiting) > 0 && waiting[0].ID > p.Done+1 {
		p.Lost += int(waiting[0].ID - 1 - p.Done)
		p.Done = waiting[0].ID - 1
		b.queues[name] = p
	}
}

// waiting returns the events that a sink has not got.
func (b *Book) waiting(p progress) []presence.Event {
	i, _ := slices.BinarySearchFunc(b.events, p.Done+1, func(e presence.Event, id uint64) int { return cmp.Compare(e.ID, id) })
	return b.events[i:]
}

// Events returns the last n events before the one of a number, or of all where it is 0, the newest first.
func (b *Book) Events(before uint64, n int) []presence.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []presence.Event{}
	kept := b.events[max(0, len(b.events)-b.s.Events):]
	for _, e := range slices.Backward(kept) {
		if (before == 0 || e.ID < before) && len(all) < n {
			all = append(all, e)
		}
	}
	return all
}

// Close writes what is held, and closes the file.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retry(true)
	err := b.hold.err
	if err != nil {
		err = fmt.Errorf("writing the logbook: %w; %d events are lost", err, len(b.held()))
	}
	return errors.Join(err, b.file.Close(), b.notes.close())
}

// Queue holds the events that a sink has not got yet. It is safe for concurrent use, by one sink.
type Queue struct {
	b    *Book
	name string
	more chan struct{}
}

// Queue returns the queue of a sink: what was recorded since it was first asked for, in this program or an earlier one.
func (b *Book) Queue(sink string) (*Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.queues[sink]; !there {
		last := b.state.Last
		if n := len(b.events); n > 0 {
			last = max(last, b.events[n-1].ID)
		}
		if err := b.put(entry{Queues: map[string]progress{sink: {Done: last}}}); err != nil {
			return nil, fmt.Errorf("opening the queue of %s: %w", sink, err)
		}
	}
	b.shed(sink)
	q := &Queue{b: b, name: sink, more: make(chan struct{}, 1)}
	b.more[sink] = q.more
	return q, nil
}

// Next returns the oldest event in the queue. Ok is false where there is none.
func (q *Queue) Next() (e presence.Event, ok bool) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	if waiting := q.b.waiting(q.b.queues[q.name]); len(waiting) > 0 {
		return waiting[0], true
	}
	return e, false
}

// Done says that the sink has got the events up to that number. Where the disk cannot be written that is kept in memory.
func (q *Queue) Done(id uint64) error {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	p := q.b.queues[q.name]
	if id <= p.Done {
		return nil
	}
	if err := q.b.put(entry{Queues: map[string]progress{q.name: {Done: id, Lost: p.Lost}}}); err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	return nil
}

// More is told when there may be something in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns how many events are in the queue, and how many there was no room for.
func (q *Queue) Waiting() (waiting, lost int) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	p := q.b.queues[q.name]
	return len(q.b.waiting(p)), p.Lost
}
