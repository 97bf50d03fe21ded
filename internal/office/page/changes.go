// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

const (
	lookEvery    = 500 * time.Millisecond // pause between two looks at the state
	listEvery    = 2 * time.Second        // pause between two looks at the lists, which take longer
	beatEvery    = 15 * time.Second       // silence after which a stream shows that it is alive
	longestWrite = 10 * time.Second
	mostStreams  = 64
)

// change is a message of the stream: only what differs from the message before.
type change struct {
	// without cameras and known people, which have requests of their own
	Now *office.Now `json:"now,omitempty"`
	// Questions is the number of open questions, and Run is of the program: a page of another run
	// must be loaded anew.
	Questions int           `json:"questions"`
	Proxy     *string       `json:"proxy,omitempty"` // one that is not declared
	Run       string        `json:"run"`
	Views     []office.View `json:"views,omitempty"` // of the cameras that have changed
	Stale     []string      `json:"stale,omitempty"` // lists that have changed
}

// glance is the state of an office, looked at once for all pages that are open.
type glance struct {
	mu        sync.Mutex
	now       office.Now
	at        time.Time
	lists     map[string]uint64 // a hash of each list
	questions int
	listed    time.Time
}

// lookAround returns the state, at most a moment old. Do not change it.
func (p *Page) lookAround() (office.Now, int, map[string]uint64) {
	p.glance.mu.Lock()
	defer p.glance.mu.Unlock()
	w, at := &p.glance, time.Now()
	if at.Sub(w.at) >= lookEvery*4/5 {
		w.now, w.at = p.office.Now(), at
	}
	if at.Sub(w.listed) >= listEvery*4/5 {
		w.lists, w.questions = p.listsNow(w.now)
		w.listed = at
	}
	return w.now, w.questions, w.lists
}

// listsNow returns a hash of each list.
func (p *Page) listsNow(now office.Now) (lists map[string]uint64, questions int) {
	lists = make(map[string]uint64)
	open := p.inbox()
	var people maphash.Hash // of who knows 10,000 people: as JSON this takes forty times as long
	people.SetSeed(seed)
	for _, known := range p.people() {
		maphash.WriteComparable(&people, known)
	}
	lists["people"] = people.Sum64()
	for name, list := range map[string]any{
		"sightings": p.office.Sightings(0, mostSightings), "inbox": open,
		"events": p.office.Events(0, 1, nil), "corrections": p.office.Corrections(0, usualEvents),
		"sinks": p.o.Sinks(),
	} {
		lists[name] = maphash.Bytes(seed, minutely(list))
	}
	return lists, len(open)
}

var (
	seed    = maphash.MakeSeed()
	seconds = regexp.MustCompile(`(T\d\d:\d\d):[\d.]+`) // after the minute of a time
)

// minutely returns JSON without seconds: who is in view was last seen a moment ago with each frame,
// and only the minute counts.
func minutely(v any) []byte { return seconds.ReplaceAll(encoded(v), []byte("$1")) }

// stream is what one open page has been told.
type stream struct {
	live  bool // where each face is, too
	now   string
	views map[string]string
	lists map[string]uint64
}

// next returns what has changed.
func (s *stream) next(run string, now office.Now, questions int,
	lists map[string]uint64) (c change) {
	c.Questions, c.Run = questions, run
	st := now
	st.Cameras, st.Known, st.At = nil, nil, time.Time{}
	if as := fmt.Sprint(string(minutely(st)), questions); as != s.now {
		st.At = now.At
		c.Now, s.now = &st, as
	}
	// The speed of a camera changes with each frame, and is told from time to time.
	every := time.Minute
	if s.live {
		every = 10 * time.Second
	}
	told := make(map[string]string)
	for _, v := range now.Cameras {
		if !s.live {
			v.Seen = []presence.Seen{}
		}
		as := v
		as.Frames, as.Dropped, as.Rate = 0, 0, 0
		told[v.Camera] = string(encoded(as)) + now.At.Truncate(every).String()
		if told[v.Camera] != s.views[v.Camera] {
			c.Views = append(c.Views, v)
		}
	}
	s.views = told
	for name, of := range lists {
		if was, there := s.lists[name]; !there || was != of {
			c.Stale = append(c.Stale, name)
		}
	}
	slices.Sort(c.Stale)
	s.lists = lists
	return c
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	return b
}

// changes sends an open page what has changed, until it is closed: server-sent events, packed as
// one text.
func (p *Page) changes(w http.ResponseWriter, r *http.Request) {
	q := asked(r, "live")
	s := &stream{live: q.truth("live")}
	if q.err != nil {
		http.Error(w, q.err.Error()+"; see api/openapi.json", http.StatusBadRequest)
		return
	}
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Time{}) // without a connection, as in a test, there are no deadlines
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for nginx
	h.Set("Vary", "Accept-Encoding")
	out, flush := io.Writer(w), c.Flush
	if zips(r) {
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		out, flush = z, func() error {
			if err := z.Flush(); err != nil {
				return err
			}
			return c.Flush()
		}
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for spoken := (time.Time{}); ; {
		message := ":\n\n"
		now, questions, lists := p.lookAround()
		if q.by.cameras != nil {
			questions = 0
		}
		next := s.next(p.run, q.by.now(now), questions, lists)
		next.Proxy = p.proxy.Load()
		news := next.Now != nil || len(next.Views) > 0 || len(next.Stale) > 0
		if news {
			message = "data: " + string(encoded(next)) + "\n\n"
		}
		if news || time.Since(spoken) > beatEvery {
			spoken = time.Now()
			c.SetWriteDeadline(spoken.Add(longestWrite))
			_, err := io.WriteString(out, message)
			if errors.Join(err, flush()) != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// zips reports whether a client takes gzip.
func zips(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") }

// give writes bytes that a client may keep, as long as they are the same. Those that never change
// under this address of this run are not asked for again.
func give(w http.ResponseWriter, r *http.Request, b []byte, never bool) {
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	if never {
		h.Set("Cache-Control", "private, max-age=86400, immutable")
	}
	sum := sha256.Sum256(b)
	h.Set("ETag", fmt.Sprintf("%q", hex.EncodeToString(sum[:12])))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}
