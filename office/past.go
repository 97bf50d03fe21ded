// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/sighting"
)

// ErrBusy is an error of [OpenPast].
var ErrBusy = errors.New("another program runs an office of this name")

// PastSettings limit a [Past]. A zero field means the default.
type PastSettings struct {
	Age     time.Duration // greatest age of sightings and clips. Default 7 days
	Bytes   int64         // greatest size of all faces of sightings, plus 1 KB for each sighting. Default 256 MB
	Records int           // greatest number of sightings. Default 20,000
	// Clips is the greatest size of clips: the beginnings of sightings as films, about 1 MB at most each. With 0, the
	// default, none are kept, and those of earlier runs are removed.
	Clips     int64
	Events    int           // number of kept events, the newest. Default 5,000
	Waiting   int           // greatest number of waiting events of a sink; the oldest are dropped. Default 10,000
	Retention time.Duration // a stranger who is not seen for this time is removed, unless ignored. Default 30 days
}

// Corrections are kept for a time, the latest of them.
const (
	correctionsAge = 90 * 24 * time.Hour
	mostStatements = 20000
)

func (s PastSettings) defaults() PastSettings {
	s.Age, s.Retention = cmp.Or(s.Age, 7*24*time.Hour), cmp.Or(s.Retention, 30*24*time.Hour)
	s.Bytes, s.Records = cmp.Or(s.Bytes, 256<<20), cmp.Or(s.Records, 20000)
	s.Events, s.Waiting = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000)
	return s
}

// Past keeps the sightings of an [Office], so that they can be corrected, the corrections, so that they can be undone,
// the events, and the strangers, in the database of a gallery. [OpenPast] opens it; close it when the office has ended.
type Past struct {
	mu   sync.Mutex // guards the fields below, the gallery, and the office
	g    *gallery.Gallery
	s    PastSettings
	id   int64 // number in the database
	name string
	code string
	off  bool // faces of strangers are not kept
	lock *os.File

	temporary bool

	state   roomState // as it was recorded last
	present bool      // who is present is not written
	waiting []Event   // not written, the oldest first
	lost    int       // events that were dropped and never written
	queues  map[string]*Queue
}

// OpenPast opens what is kept of the office with a name in the database of a gallery. The error wraps [ErrBusy] if
// another program runs an office of this name, or comes from the database.
func OpenPast(g *gallery.Gallery, name string, s PastSettings) (*Past, error) {
	return open(g, name, s, false)
}

// TemporaryPast opens a Past of which nothing outlives the program: Close removes it, and after a crash the next
// OpenPast of any name does.
func TemporaryPast(g *gallery.Gallery, s PastSettings) (*Past, error) {
	s.Records = cmp.Or(s.Records, listed)
	var name [8]byte
	rand.Read(name[:])
	return open(g, "\n"+hex.EncodeToString(name[:]), s, true)
}

func open(g *gallery.Gallery, name string, s PastSettings, temporary bool) (p *Past, err error) {
	p = &Past{g: g, s: s.defaults(), temporary: temporary, name: name, queues: make(map[string]*Queue)}
	if g.Path() != "" {
		p.lock, err = lockOf(g, name, 2*time.Second)
	}
	if err == nil {
		err = g.Records(false, p.begin)
	}
	if err != nil {
		p.release()
		return nil, fmt.Errorf("opening office %s: %w", name, err)
	}
	return p, nil
}

// lockOf locks an office, which keeps other programs from running it. The error is [ErrBusy] if one does.
func lockOf(g *gallery.Gallery, name string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(gallery.OfficeLock(g.Path(), name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = safefile.Lock(f, wait)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, safefile.ErrLocked) {
		err = ErrBusy
	}
	return nil, err
}

// release lets other programs run an office of this name.
func (p *Past) release() error {
	if p.lock == nil {
		return nil
	}
	if p.temporary {
		os.Remove(p.lock.Name()) // nobody else has this name
	}
	return p.lock.Close()
}

// begin reads what is kept of the office, makes its row if there is none, and removes what ended programs have left
// behind.
func (p *Past) begin(t *gallery.Tx) error {
	var random [4]byte
	rand.Read(random[:])
	t.Query(`insert into office(name, code, temporary, off, last) values(?, ?, ?, 0, 0)
		on conflict(name) do update set name = name returning id, code, off, last`, func(r gallery.Row) error {
		p.id, p.code, p.off, p.state.Last = r.ColumnInt64(0), r.ColumnText(1), r.ColumnInt64(2) == 1, uint64(r.ColumnInt64(3))
		return nil
	}, p.name, hex.EncodeToString(random[:]), p.temporary)
	left := make(map[int64]string)
	t.Query("select id, name from office where temporary and id <> ?", func(r gallery.Row) error {
		left[r.ColumnInt64(0)] = r.ColumnText(1)
		return nil
	}, p.id)
	for id, name := range left {
		if f, err := lockOf(p.g, name, 0); err == nil {
			t.Exec("delete from office where id = ?", id)
			os.Remove(f.Name())
			f.Close()
		}
	}
	if p.s.Clips == 0 { // nobody would remove those of earlier runs
		t.Exec("delete from film where sighting in (select id from sighting where office = ?)", p.id)
	}
	const people = "select person, since, last, camera, trust from present where office = ? order by person"
	t.Query(people, func(r gallery.Row) error {
		p.state.People = append(p.state.People, Presence{ID: r.ColumnInt64(0), Since: moment(r.ColumnInt64(1)),
			Last: moment(r.ColumnInt64(2)), Camera: r.ColumnText(3), Trust: sighting.Trust(r.ColumnText(4))})
		return nil
	}, p.id)
	return t.Query("select sink, done, lost from delivery where office = ?", func(r gallery.Row) error {
		p.queues[r.ColumnText(0)] = &Queue{p: p, done: uint64(r.ColumnInt64(1)), lost: uint64(r.ColumnInt64(2))}
		return nil
	}, p.id)
}

// ID returns the identifier of the office, which no other office has. It stays over restarts.
func (p *Past) ID() string { return p.code }

// Name returns the name of the office.
func (p *Past) Name() string { return p.name }

// Close writes what sinks have got, and lets other programs run an office of this name.
func (p *Past) Close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == 0 {
		return nil
	}
	if p.temporary || p.dirty() {
		err = p.g.Records(false, func(t *gallery.Tx) error {
			if p.temporary {
				t.Erase()
				return t.Exec("delete from office where id = ?", p.id)
			}
			p.write(t)
			return nil
		})
	}
	if errors.Is(err, gallery.ErrClosed) {
		err = nil // with the gallery everything was closed
	}
	p.id = 0
	return errors.Join(err, p.release())
}
