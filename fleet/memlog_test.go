// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
)

// memLog is a log in memory that many devices share. It can fail in many ways.
type memLog struct {
	mu       sync.Mutex
	all      []logEntry
	seq      uint64
	grown    chan struct{} // closed and replaced at each entry
	servers  map[string]func([]byte) []byte
	snapshot []byte
	snapSeq  uint64
	trimmed  uint64
	asked    int
	full     uint64     // the last place at which the log stores an entry; 0 for no limit
	fetched  int        // how often the snapshot was fetched
	readOnly bool       // devices may not put snapshots
	faults   *rand.Rand // nil for no faults
	restored []byte     // the signed notice of the last restoration
	served   int        // counts the servers: an entry sent to an earlier one does not arrive at a later one
}

type logEntry struct {
	seq     uint64
	subject string
	data    []byte
}

func newMemLog() *memLog {
	return &memLog{
		grown:   make(chan struct{}),
		servers: make(map[string]func([]byte) []byte),
	}
}

var errFault = errors.New("the test's log has failed")

// fault draws whether an operation fails that fails once in n times on average.
func (l *memLog) fault(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults != nil && l.faults.IntN(n) == 0
}

// add adds an entry, whoever its author is.
func (l *memLog) add(subject string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(subject, data)
}

func (l *memLog) append(subject string, data []byte) {
	l.seq++
	l.all = append(l.all, logEntry{l.seq, subject, bytes.Clone(data)})
	close(l.grown)
	l.grown = make(chan struct{})
}

// purge removes the entries about a person below a place.
func (l *memLog) purge(subject string, below uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(e logEntry) bool { return e.subject == subject && e.seq < below })
}

// trim removes the entries that a snapshot holds.
func (l *memLog) trim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trimmed = l.snapSeq
	l.all = slices.DeleteFunc(l.all, func(e logEntry) bool { return e.seq <= l.trimmed })
}

// last returns the number of the last entry.
func (l *memLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// calm ends all faults.
func (l *memLog) calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
}

// conn is the connection of one device to the log.
type conn struct {
	*memLog
	mu   sync.Mutex
	away bool
	cut  chan struct{} // closed when the connection is lost
}

func (l *memLog) conn() *conn { return &conn{memLog: l, cut: make(chan struct{})} }

// part cuts the connection. It either keeps it cut, or allows a new one.
func (c *conn) part(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
	close(c.cut)
	c.cut = make(chan struct{})
}

func (c *conn) lost() (<-chan struct{}, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut, c.away
}

func (c *conn) Append(ctx context.Context, person string, data []byte) error {
	cut, away := c.lost()
	c.memLog.mu.Lock()
	served := c.served
	c.memLog.mu.Unlock()
	if away || c.fault(12) {
		return errFault
	}
	if c.fault(12) {
		select {
		case <-cut:
			return errFault
		case <-time.After(time.Millisecond):
		}
	}
	c.memLog.mu.Lock()
	if c.served != served || isCut(ctx) || c.full > 0 && c.seq >= c.full {
		c.memLog.mu.Unlock()
		return errFault
	}
	c.append(person, data)
	c.memLog.mu.Unlock()
	if c.fault(12) {
		return errFault // the entry is stored, but its author is not told
	}
	return nil
}

func (c *conn) Follow(ctx context.Context, after uint64, take func(uint64, []byte) error) error {
	cut, away := c.lost()
	if away || isCut(ctx) {
		return errFault
	}
	c.memLog.mu.Lock()
	trimmed := after < c.trimmed && c.snapSeq > after
	c.memLog.mu.Unlock()
	if trimmed {
		return fleet.ErrTrimmed
	}
	for {
		c.memLog.mu.Lock()
		i, _ := slices.BinarySearchFunc(c.all, after+1,
			func(e logEntry, seq uint64) int { return int(e.seq) - int(seq) })
		next := slices.Clone(c.all[i:])
		grown := c.grown
		c.memLog.mu.Unlock()
		for _, e := range next {
			select {
			case <-cut:
				return errFault
			default:
			}
			if c.fault(60) {
				return errFault
			}
			if err := take(e.seq, e.data); err != nil {
				return err
			}
			if c.fault(6) { // deliver the entry a second time
				if err := take(e.seq, e.data); err != nil {
					return err
				}
			}
			after = e.seq
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-cut:
			return errFault
		case <-grown:
		}
	}
}

func (c *conn) Last(context.Context) (uint64, error) {
	if _, away := c.lost(); away {
		return 0, errFault
	}
	c.memLog.mu.Lock()
	defer c.memLog.mu.Unlock()
	return c.seq, nil
}

func (c *conn) AskKeys(ctx context.Context, of string, request []byte) ([]byte, error) {
	if _, away := c.lost(); away || c.fault(4) {
		return nil, errFault
	}
	c.memLog.mu.Lock()
	answer := c.servers[of]
	if of == "" {
		for _, f := range c.servers { // any server
			answer = f
			break
		}
	}
	c.asked++
	c.memLog.mu.Unlock()
	if answer == nil {
		return nil, fleet.ErrNoAnswer
	}
	data := answer(request)
	if data == nil {
		return nil, fleet.ErrNoAnswer
	}
	if c.fault(8) && len(data) > 0 {
		data[len(data)/2] ^= 1
	}
	return data, nil
}

func (c *conn) ServeKeys(ctx context.Context, id string, answer func([]byte) []byte) error {
	cut, away := c.lost()
	if away {
		return errFault
	}
	c.memLog.mu.Lock()
	c.servers[id] = answer
	c.memLog.mu.Unlock()
	defer func() {
		c.memLog.mu.Lock()
		delete(c.servers, id)
		c.memLog.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-cut:
		return errFault
	}
}

func (c *conn) PutSnapshot(ctx context.Context, seq uint64, data io.Reader) error {
	b, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	c.memLog.mu.Lock()
	defer c.memLog.mu.Unlock()
	if c.readOnly {
		return errors.ErrUnsupported
	}
	if seq > c.seq || isCut(ctx) {
		return errFault // the entry belongs to a log that no longer exists
	}
	if seq > c.snapSeq {
		c.snapshot, c.snapSeq = b, seq
	}
	return nil
}

func (c *conn) Snapshot(context.Context) (uint64, io.ReadCloser, error) {
	if _, away := c.lost(); away {
		return 0, nil, errFault
	}
	c.memLog.mu.Lock()
	defer c.memLog.mu.Unlock()
	c.fetched++
	if c.snapshot == nil {
		return 0, nil, fleet.ErrNoSnapshot
	}
	return c.snapSeq, io.NopCloser(bytes.NewReader(c.snapshot)), nil
}

var _ fleet.Log = (*conn)(nil)
