// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"golang.org/x/time/rate"
)

// What one device or token may do: so many requests and bytes at once, and so many each second. A flood is slow and
// nothing else, and the device need not be punished.
const (
	askBurst  = 100
	askRate   = 10
	sendBurst = 8 << 20
	sendRate  = 2 << 20
	readBurst = 512 << 20
	readRate  = 32 << 20
	// readsForOne is how many requests to read one device may have at once, and how many may be of one stream: a writer
	// can make its stream slow.
	readsForOne = 4
	mostPeers   = 50_000
	droppedFor  = time.Minute // how long it is told that requests of a device were dropped
	// lateAdmission is how long after a start a token that expired may still admit a device that used it in time.
	lateAdmission = time.Hour
)

// roster is who belongs to a fleet, and what each does. The gate and the service share it.
type roster struct {
	fleet string // its id

	mu       sync.Mutex
	members  *fleet.Members
	unstored map[string][]byte // known records that are not stored, or whose effect is incomplete
	peers    map[string]*peer  // by device, token or stream
	since    time.Time         // of the newest stored value at the start: what is older is not lost
	started  time.Time         // zero at a cluster, which loses nothing
}

// peer is a device or a token that joins, as this server meets it. The roster's mu guards what is not safe by itself.
type peer struct {
	seen    time.Time // when it was last connected, or sent a request
	status  *fleet.Status
	conns   []*pipe   // the oldest first
	dropped time.Time // when a request was last dropped

	asked, sent, read *rate.Limiter // requests, bytes that it sends and bytes that it reads
	reads             atomic.Int32  // requests to read that were not answered
	turns             chan struct{}
}

func newRoster(id string) *roster {
	return &roster{fleet: id, members: fleet.NewMembers(id), unstored: make(map[string][]byte),
		peers: make(map[string]*peer)}
}

// peer returns what is known of a device, token or stream. The caller holds mu.
func (r *roster) peer(id string) *peer {
	x := r.peers[id]
	if x == nil {
		if len(r.peers) > mostPeers {
			maps.DeleteFunc(r.peers, func(id string, x *peer) bool {
				_, known := r.members.Device(id)
				return !known && len(x.conns) == 0
			})
		}
		x = &peer{asked: rate.NewLimiter(askRate, askBurst), sent: rate.NewLimiter(sendRate, sendBurst),
			read: rate.NewLimiter(readRate, readBurst), turns: make(chan struct{}, readsForOne)}
		r.peers[id] = x
	}
	return x
}

// reader is [roster.peer] for those who do not hold mu.
func (r *roster) reader(id string) *peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peer(id)
}

// learn adds a record to the known ones, and returns its name. The caller holds mu.
func (r *roster) learn(data []byte) (name string, err error) {
	name, news, err := r.members.Add(data)
	if news {
		r.unstored[name] = data
	}
	return name, err
}

// inTime reports whether an unknown admission by a token counts: the token is valid, or it expired when the data were
// perhaps lost. Otherwise an expired token, shown as an admission, would be valid for ever. The caller holds mu.
func (r *roster) inTime(expires, now time.Time) bool {
	return now.Before(expires) || expires.After(r.since) && expires.Before(r.started.Add(lateAdmission))
}

// device returns a device, and whether it was ever admitted.
func (r *roster) device(id string) (fleet.Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members.Device(id)
}

// admitted returns the device that a token has admitted.
func (r *roster) admitted(token string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members.Admitted(token)
}

// present returns the members that are not revoked.
func (r *roster) present() []fleet.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(r.members.Devices(), func(m fleet.Member) bool { return m.Revoked })
}

// url returns the address that the admin key has signed.
func (r *roster) url() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members.URL()
}

// state returns what is known of a member. Bytes are not.
func (r *roster) state(id string) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.peers[id]
	if x == nil {
		return State{}
	}
	s := State{Connected: len(x.conns) > 0, Seen: x.seen, Status: x.status}
	if slices.ContainsFunc(x.conns, func(p *pipe) bool { return p.slow.Load() }) {
		s.Limited = "it sends too much and is slowed down"
	} else if time.Since(x.dropped) < droppedFor {
		s.Limited = "it sends too many requests, and some are dropped"
	}
	return s
}
