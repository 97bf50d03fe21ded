// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats.go"
)

// getPrefix is where requests to read values arrive from the accounts of devices: F.get.DEVICE.STREAM. A hundred bytes
// ask for megabytes. NATS would answer all at once, and keep in memory what the device does not take.
const getPrefix = "F.get."

// Limits of what devices read.
const (
	readsAtOnce  = 16               // of all devices
	readsWaiting = 32               // of one device
	readTime     = 10 * time.Second // until the next part of an answer
)

// passReads passes on requests to read and their answers until ctx ends.
func (s *service) passReads(ctx context.Context) error {
	inboxes := make(chan *nats.Subscription, readsAtOnce)
	for range readsAtOnce {
		in, err := s.nc.SubscribeSync(s.nc.NewInbox() + ".*")
		if err != nil {
			return err
		}
		inboxes <- in
	}
	_, err := s.nc.Subscribe(getPrefix+"*.*", func(m *nats.Msg) { // it must not wait
		part := strings.Split(m.Subject, ".")
		x := s.reader(part[2])
		if m.Reply == "" {
			return
		}
		if x.reads.Add(1) > readsWaiting {
			x.reads.Add(-1)
			endRead(m)
			return
		}
		s.running.Go(func() {
			defer x.reads.Add(-1)
			for _, turns := range []chan struct{}{x.turns, s.reader(part[3]).turns} {
				turns <- struct{}{} // those before it end with ctx
				defer func() { <-turns }()
			}
			in := <-inboxes
			n := s.passRead(ctx, in, part[3], m)
			inboxes <- in
			x.read.WaitN(ctx, n) // an error means that ctx has ended
		})
	})
	return err
}

// endRead ends an answer. A device takes this for an error, and the NATS server forgets the request.
func endRead(m *nats.Msg) { m.Respond(nil) }

// passRead reads for a device, and returns how many bytes it gets.
func (s *service) passRead(ctx context.Context, inbox *nats.Subscription, stream string, m *nats.Msg) (n int) {
	var q struct {
		From  uint64 `json:"seq,omitempty"`
		Count int    `json:"batch,omitempty"`
		Bytes int    `json:"max_bytes,omitempty"`
		Next  string `json:"next_by_subj,omitempty"`
		Last  string `json:"last_by_subj,omitempty"`
	}
	err := json.Unmarshal(m.Data, &q)
	if q.Count = min(q.Count, fleet.BatchCount); q.Count > 0 && (q.Bytes <= 0 || q.Bytes > fleet.BatchBytes) {
		q.Bytes = fleet.BatchBytes
	}
	to := strings.TrimSuffix(inbox.Subject, "*") + m.Reply[strings.LastIndexByte(m.Reply, '.')+1:]
	ask, err2 := json.Marshal(q)
	if err = errors.Join(err, err2); err == nil {
		err = s.nc.PublishRequest(fleet.DirectGet+stream, to, ask)
	}
	for end := false; !end && err == nil; {
		wait, cancel := context.WithTimeout(ctx, readTime)
		x, failed := inbox.NextMsgWithContext(wait)
		cancel()
		switch {
		case errors.Is(failed, nats.ErrNoResponders): // no such stream
			x, failed = &nats.Msg{Subject: to, Header: nats.Header{"Status": {"503"}}}, nil
		case failed == nil && x.Subject != to: // the rest of an answer that came too late
			continue
		}
		if err = failed; err == nil {
			n += len(x.Data)
			h := fleet.ServerHeaders(s.nc, x.Header)
			end = q.Count <= 0 || h.Get("Status") != "" || h.Get("Nats-Num-Pending") == "" // the last is an old server
			err = m.RespondMsg(&nats.Msg{Header: h, Data: x.Data})
		}
	}
	if err != nil {
		endRead(m)
	}
	return n
}
