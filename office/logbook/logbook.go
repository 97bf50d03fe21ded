// Package logbook keeps on disk what has happened in a room, who is there, and what has not been delivered yet to those
// who want to know: a program that is killed and started again goes on from it.
//
// [Open] opens a [Book], [Book.Record] writes events and what the room came to as one, and [Book.Queue] gives the events
// for one sink in their order. All of it is bounded.
//
// # File format
//
// A bbolt database with the buckets "book" (the version, and who is there, in JSON), "events" (JSON under the number as
// a big-endian uint64), and "queues" with a bucket for each sink, of events alike and of the count of those that were
// lost. It has names and times, and no faces. The owner alone can read it.
package logbook

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/faceauth/faceauth/internal/database"
	"github.com/faceauth/faceauth/office/presence"
	"go.etcd.io/bbolt"
)

// Errors of [Open] and of the methods of [Book].
var (
	ErrVersion = errors.New("logbook of another version")
	ErrDamaged = database.ErrDamaged
	ErrBusy    = database.ErrBusy
)

const version = 1

var (
	bookBucket   = []byte("book")
	eventsBucket = []byte("events")
	queuesBucket = []byte("queues")
	versionKey   = []byte("version")
	stateKey     = []byte("state")
	lostKey      = []byte("lost") // shorter than the numbers of events, so that it is none
)

// Settings of a [Book]. The zero value of each field stands for its default.
type Settings struct {
	Events  int // kept, the newest. Default 5,000
	Waiting int // kept for a sink that does not take them, the newest. Default 10,000
}

// Book is an open logbook. It is safe for concurrent use. Close it.
type Book struct {
	s  Settings
	db *bbolt.DB

	mu     sync.Mutex
	count  int // of events kept
	queues map[string]*Queue
}

// Open opens the logbook at path and makes one where there is none. The error wraps [ErrVersion], [ErrDamaged], or
// [ErrBusy] when another program does not let go of the file for two seconds.
func Open(path string, s Settings) (*Book, error) {
	s.Events, s.Waiting = cmp.Or(s.Events, 5000), cmp.Or(s.Waiting, 10000)
	db, err := database.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening logbook %s: %w", path, err)
	}
	b := &Book{s: s, db: db, queues: make(map[string]*Queue)}
	if err := b.update(b.begin); err != nil {
		database.Guard(db.Close)
		return nil, fmt.Errorf("opening logbook %s: %w; move it away to begin anew", path, err)
	}
	return b, nil
}

// begin checks the book, or writes what a new one begins with.
func (b *Book) begin(tx *bbolt.Tx) error {
	if head := tx.Bucket(bookBucket); head != nil {
		v := head.Get(versionKey)
		if len(v) != 4 || tx.Bucket(eventsBucket) == nil || tx.Bucket(queuesBucket) == nil {
			return fmt.Errorf("%w: it has no head", ErrDamaged)
		}
		if n := binary.BigEndian.Uint32(v); n != version {
			return fmt.Errorf("%w: it is %d, and this program reads %d", ErrVersion, n, version)
		}
		b.count = count(tx.Bucket(eventsBucket))
		_, err := state(tx)
		return err
	}
	for _, name := range [][]byte{bookBucket, eventsBucket, queuesBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bookBucket).Put(versionKey, binary.BigEndian.AppendUint32(nil, version))
}

func (b *Book) update(do func(*bbolt.Tx) error) error {
	return database.Guard(func() error { return b.db.Update(do) })
}

func (b *Book) view(do func(*bbolt.Tx) error) error {
	return database.Guard(func() error { return b.db.View(do) })
}

// number returns the key of an event.
func number(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// count returns how many events a bucket holds.
func count(b *bbolt.Bucket) (n int) {
	c := b.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		if len(k) == 8 {
			n++
		}
	}
	return n
}

// put adds an event to a bucket of n, at most room, and returns how many the bucket then has, and how many went.
func put(b *bbolt.Bucket, e presence.Event, n, room int) (int, int, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return n, 0, err
	}
	if err := b.Put(number(e.ID), text); err != nil {
		return n, 0, err
	}
	n++
	gone := 0
	for ; n > room; n, gone = n-1, gone+1 {
		k, _ := b.Cursor().First()
		if err := b.Delete(k); err != nil {
			return n, gone, err
		}
	}
	return n, gone, nil
}

func state(tx *bbolt.Tx) (s presence.State, err error) {
	text := tx.Bucket(bookBucket).Get(stateKey)
	if text == nil {
		return s, nil
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%w: who is there cannot be read: %w", ErrDamaged, err)
	}
	return s, nil
}

// State returns what was recorded of the room last.
func (b *Book) State() (s presence.State, err error) {
	err = b.view(func(tx *bbolt.Tx) error {
		s, err = state(tx)
		return err
	})
	return s, err
}

// Record writes what the room came to and the events that led there, also into the queue of every sink. It is on disk
// when it returns, all or nothing.
func (b *Book) Record(s presence.State, events []presence.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.count
	waiting, lost := make(map[*Queue]int), make(map[*Queue]int)
	err := b.update(func(tx *bbolt.Tx) error {
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if err := tx.Bucket(bookBucket).Put(stateKey, text); err != nil {
			return err
		}
		n = b.count
		for _, e := range events {
			if n, _, err = put(tx.Bucket(eventsBucket), e, n, b.s.Events); err != nil {
				return err
			}
		}
		for name, q := range b.queues {
			waiting[q], lost[q] = q.waiting, q.lost
			bucket := tx.Bucket(queuesBucket).Bucket([]byte(name))
			for _, e := range events {
				var gone int
				if waiting[q], gone, err = put(bucket, e, waiting[q], b.s.Waiting); err != nil {
					return err
				}
				lost[q] += gone
			}
			if lost[q] != q.lost {
				if err := bucket.Put(lostKey, number(uint64(lost[q]))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	b.count = n
	for _, q := range b.queues {
		q.waiting, q.lost = waiting[q], lost[q]
		if len(events) > 0 {
			select {
			case q.more <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

// Events returns the last n events before the one of a number, or of all where it is 0, the newest first.
func (b *Book) Events(before uint64, n int) (all []presence.Event, err error) {
	err = b.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(eventsBucket).Cursor()
		k, v := c.Last()
		if before > 0 {
			if at, _ := c.Seek(number(before)); at != nil {
				k, v = c.Prev()
			} else {
				k, v = c.Last()
			}
		}
		for ; k != nil && len(all) < n; k, v = c.Prev() {
			var e presence.Event
			if err := json.Unmarshal(v, &e); err != nil {
				return fmt.Errorf("%w: event %x cannot be read", ErrDamaged, k)
			}
			all = append(all, e)
		}
		return nil
	})
	return all, err
}

// Close closes the file.
func (b *Book) Close() error { return database.Guard(b.db.Close) }

// Queue holds the events that a sink has not got yet. It is safe for concurrent use, by one sink.
type Queue struct {
	b       *Book
	name    string
	more    chan struct{}
	waiting int // guarded by b.mu, like lost
	lost    int
}

// Queue returns the queue of a sink: what was recorded since it was first asked for, in this program or an earlier one.
func (b *Book) Queue(sink string) (*Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := &Queue{b: b, name: sink, more: make(chan struct{}, 1)}
	err := b.update(func(tx *bbolt.Tx) error {
		bucket, err := tx.Bucket(queuesBucket).CreateBucketIfNotExists([]byte(sink))
		if err != nil {
			return err
		}
		q.waiting = count(bucket)
		if lost := bucket.Get(lostKey); len(lost) == 8 {
			q.lost = int(binary.BigEndian.Uint64(lost))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening the queue of %s: %w", sink, err)
	}
	b.queues[sink] = q
	return q, nil
}

// Next returns the oldest event in the queue. Ok is false where there is none.
func (q *Queue) Next() (e presence.Event, ok bool, err error) {
	err = q.b.view(func(tx *bbolt.Tx) error {
		k, v := tx.Bucket(queuesBucket).Bucket([]byte(q.name)).Cursor().First()
		if len(k) != 8 {
			return nil
		}
		ok = true
		if err := json.Unmarshal(v, &e); err != nil {
			return fmt.Errorf("%w: event %x cannot be read", ErrDamaged, k)
		}
		return nil
	})
	return e, ok && err == nil, err
}

// Done removes an event, which the sink has got.
func (q *Queue) Done(id uint64) error {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	there := false
	err := q.b.update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(queuesBucket).Bucket([]byte(q.name))
		there = bucket.Get(number(id)) != nil
		return bucket.Delete(number(id))
	})
	if err != nil {
		return fmt.Errorf("writing the logbook: %w", err)
	}
	if there { // it may have made room for others
		q.waiting--
	}
	return nil
}

// More is told when there may be something in the queue.
func (q *Queue) More() <-chan struct{} { return q.more }

// Waiting returns how many events are in the queue, and how many there was no room for.
func (q *Queue) Waiting() (waiting, lost int) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	return q.waiting, q.lost
}
