// SPDX-License-Identifier: Apache-2.0

package office

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
)

// ErrBusy is an error of [OpenPast].
var ErrBusy = errors.New("another program runs an office of this name")

var errNoRecord = errors.New("no such record")

// part is a part of a journal in the database.
type part interface {
	write(t *gallery.Transaction, office int64) error
	// written tells whether the changes of the last write are in the database, and whether everything that was learned
	// is there, too.
	written(committed, saved bool)
	dirty() bool // there are changes that are not written
}

// journalState has the numbers and settings of an office in the database.
type journalState struct {
	Numbers map[string]uint64 `json:"numbers"` // the last reserved number of each kind
	Off     bool              `json:"off"`     // faces of strangers are not kept
	ID      string            `json:"id"`      // random
}

// journal keeps what happened in an office: numbered records, such as corrections and sightings, and the events. All of
// it is in memory, and in the database of a gallery if the office has a name there. All sizes are limited: the oldest
// are removed first. One goroutine may use it at a time, except its book. The caller closes it.
//
// A change is made in memory. The next save of the gallery writes all changes since the save before, in one
// transaction: of a correction all is in the database, or nothing. What cannot be written stays in memory, within
// limits, and the next save tries again.
//
// The database has the numbers of people, and no names: a person who is renamed or forgotten by any program is so in
// all records. A record about a forgotten person is deleted in the transaction that forgets the person.
type journal struct {
	*book
	before func() // called before each write, and may change records; may be nil

	g       *gallery.Gallery // nil in memory
	name    string
	lock    *os.File
	office  int64 // number in the database; 0: it has no row yet
	state   journalState
	changed bool // the state is not written
	secret  bool // what is deleted or changed must leave no trace
	writing bool // the last write had the state
	begun   bool // the last write made the row
	failed  bool // the last write was not committed
	parts   []part
}

// eventNumbers is the kind of the numbers of events.
const eventNumbers = "event"

// newJournal returns a journal in memory.
func newJournal(s EventLimits) *journal {
	j := &journal{book: newBook(s), state: journalState{Numbers: make(map[string]uint64)}}
	j.book.memory = true
	return j
}

// openJournal opens the journal of the office with a name in the database of a gallery. From now on each save of the
// gallery writes it. The error wraps [ErrBusy] if another program uses it for more than two seconds.
func openJournal(g *gallery.Gallery, name string, s EventLimits) (j *journal, err error) {
	j = newJournal(s)
	j.g, j.name, j.book.memory = g, name, false
	if err = g.Look(func(*gallery.Transaction) error { return nil }); err == nil { // the folder is there
		err = j.hold()
	}
	if err == nil {
		err = g.Look(j.read)
	}
	if err != nil {
		j.Close()
		return nil, fmt.Errorf("opening office %s: %w", name, err)
	}
	j.parts = append(j.parts, j.book)
	g.Attach(j)
	return j, nil
}

// hold keeps other programs from running an office of this name.
func (j *journal) hold() (err error) {
	sum := sha256.Sum256([]byte(j.name))
	j.lock, err = os.OpenFile(fmt.Sprintf("%s-office-%x", j.g.Path(), sum[:4]), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		if err = safefile.Lock(j.lock, 2*time.Second); errors.Is(err, safefile.ErrLocked) {
			err = ErrBusy
		}
	}
	return err
}

func (j *journal) read(t *gallery.Transaction) error {
	err := t.Query("select id, state from office where name = ?", func(r gallery.Row) error {
		j.office = r.ColumnInt64(0)
		return json.Unmarshal([]byte(r.ColumnText(1)), &j.state)
	}, j.name)
	if err == nil {
		if j.state.Numbers == nil {
			j.state.Numbers = make(map[string]uint64)
		}
		if j.state.ID == "" {
			var random [4]byte
			rand.Read(random[:])
			j.state.ID, j.changed = hex.EncodeToString(random[:]), true
		}
		err = j.book.read(t, j.office, j.state.Numbers[eventNumbers])
	}
	return err
}

// Write implements [gallery.Records].
func (j *journal) Write(t *gallery.Transaction) error {
	if j.before != nil {
		j.before()
	}
	if last := j.book.State().Last; last > j.state.Numbers[eventNumbers] {
		j.state.Numbers[eventNumbers], j.changed = last, true
	}
	j.writing, j.begun = j.office == 0 || j.changed, j.office == 0
	if j.writing {
		text, err := json.Marshal(j.state)
		if err != nil {
			return err
		}
		err = t.Exec("insert into office(name, state) values(?1, ?2) on conflict(name) do update set state = ?2",
			j.name, string(text))
		if err == nil {
			err = t.Query("select id from office where name = ?", func(r gallery.Row) error {
				j.office = r.ColumnInt64(0)
				return nil
			}, j.name)
		}
		if err != nil {
			return err
		}
	}
	t.Gone = t.Gone || j.secret
	for _, p := range j.parts {
		if err := p.write(t, j.office); err != nil {
			return err
		}
	}
	return nil
}

// Written implements [gallery.Records].
func (j *journal) Written(committed, saved bool) {
	j.secret = j.secret && !committed
	if j.failed = !committed; j.writing {
		j.changed = j.failed
	}
	if j.begun && !committed {
		j.office = 0
	}
	j.writing, j.begun = false, false
	for _, p := range j.parts {
		p.written(committed, saved)
	}
}

// Dirty reports whether there are changes that are not in the database.
func (j *journal) Dirty() bool {
	return j.g != nil && (j.changed || j.secret || slices.ContainsFunc(j.parts, part.dirty))
}

// Purge makes the next write remove all traces of what was deleted or changed before it.
func (j *journal) Purge() { j.secret = true }

// Reserved returns the last reserved number of a kind.
func (j *journal) Reserved(kind string) uint64 { return j.state.Numbers[kind] }

// Reserve reserves the numbers of a kind up to "to", so that none is used twice, also after a crash. If they are not
// reserved yet, it reserves "more" numbers beyond, and returns true: the journal must be written before the numbers
// are used.
func (j *journal) Reserve(kind string, to, more uint64) bool {
	if to <= j.state.Numbers[kind] {
		return false
	}
	j.state.Numbers[kind], j.changed = to+more, true
	return true
}

// ID returns the identifier of the office, which no other office has. It stays over restarts.
func (j *journal) ID() string { return j.state.ID }

// Keeps reports whether faces of strangers are kept.
func (j *journal) Keeps() bool { return !j.state.Off }

// SetKeeps sets whether faces of strangers are kept.
func (j *journal) SetKeeps(on bool) {
	j.changed = j.changed || j.state.Off == on
	j.state.Off = !on
}

// Close writes what has changed, and lets other programs run an office of this name.
func (j *journal) Close() (err error) {
	if j.lock == nil {
		return nil
	}
	if len(j.parts) > 0 && j.Dirty() {
		err = j.g.SaveRecords(false)
	}
	return errors.Join(err, j.lock.Close())
}

// numbered returns a text for the number of a person. No name of a person has this form.
func numbered(person int64) string { return "\n" + strconv.FormatInt(person, 10) }

// named returns the number of a text of numbered.
func named(text string) (person int64, ok bool) {
	digits, ok := strings.CutPrefix(text, "\n")
	person, err := strconv.ParseInt(digits, 10, 64)
	return person, ok && err == nil
}

// nanoseconds returns a time for the database.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is the opposite of nanoseconds.
func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
