// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// listSubject is where a command on this machine asks what the service knows of devices.
const listSubject = "F.list.admin"

// largestList is the size after which an answer ends; the next one goes on.
const largestList = 400 << 10

// take is called by the connection with each request. It must not wait: a device that sends many requests must not keep
// those of others away.
func (s *service) take(m *nats.Msg) {
	if s.allows(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]) {
		select {
		case s.work <- m:
			return
		default:
		}
	}
	// The sender asks again. Without an answer the NATS server would remember the request for minutes.
	s.respond(m, []byte("the server has too many requests; try again later"))
}

// respond answers a request if the sender wants an answer.
func (s *service) respond(m *nats.Msg, answer []byte) {
	if m.Reply == "" {
		return
	}
	if err := m.Respond(answer); err != nil {
		s.Log.Warn("a request is not answered", "error", err)
	}
}

// relay passes on what a device broadcasts to those that listen. The server does not pass on by itself what comes from
// the account of a device.
func (s *service) relay(m *nats.Msg) {
	s.respond(m, nil)
	device := strings.TrimPrefix(m.Subject, fleet.RoomPrefix)
	if len(m.Data) > fleet.MaxValue || !s.allows(device) {
		return
	}
	if err := s.nc.Publish(heardPrefix+device, m.Data); err != nil {
		s.Log.Warn("what a device broadcasts is lost", "id", device, "error", err)
	}
}

// give stores a record that a device has shown at the gate. The device gives it again if that fails.
func (s *service) give(record []byte) bool {
	select {
	case s.work <- &nats.Msg{Subject: fleet.GivePrefix + "gate", Data: record}:
		return true
	default:
		return false
	}
}

// allows reports whether a request of a device or token is answered.
func (s *service) allows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.peer(id)
	if id == admin || x.asked.Allow() {
		x.seen = time.Now()
		return true
	}
	if x.dropped.IsZero() {
		s.Log.Warn("requests of a device are dropped: it sends too many", "id", id)
	}
	x.dropped = time.Now()
	return false
}

// run answers requests until ctx ends.
func (s *service) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-s.work:
			s.answer(ctx, m)
		}
	}
}

func (s *service) answer(ctx context.Context, m *nats.Msg) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	part := strings.Split(m.Subject, ".") // F, what, sender
	what, sender := part[1], part[2]
	var answer []byte
	var err error
	switch what {
	case "ask":
		answer = time.Now().UTC().AppendFormat(nil, time.RFC3339Nano)
	case "at":
		s.at(sender, m)
	case "list":
		answer, err = s.list(ctx, string(m.Data))
	case "give":
		err = s.add(ctx, m.Data, false)
	case "join":
		_, token, _, bad := fleet.CheckAdmission(s.fleet, m.Data)
		if err = bad; err == nil && token != sender {
			err = errors.New("the token has not signed this request")
		}
		if err == nil {
			err = s.add(ctx, m.Data, true)
		}
	}
	if err != nil {
		answer = []byte(err.Error())
	}
	s.respond(m, answer)
}

// at keeps the status of a device.
func (s *service) at(device string, m *nats.Msg) {
	var x fleet.Status
	d := json.NewDecoder(bytes.NewReader(m.Data))
	d.DisallowUnknownFields()
	if len(m.Data) > largestStatus || d.Decode(&x) != nil {
		return
	}
	if member, known := s.device(device); known && !member.Revoked {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.peer(device).status = &x
	}
}

// add checks a record, stores it, and does what it says. It can be repeated after an error. The errors are for people.
func (s *service) add(ctx context.Context, data []byte, joins bool) error {
	name, data, err := s.check(data, joins)
	if err != nil || data == nil {
		return err
	}
	if err := patiently(ctx, func(ctx context.Context) error {
		_, err := s.js.Publish(ctx, fleet.SayPrefix+admin+"."+name, data)
		return err
	}); err != nil {
		return storing(err)
	}
	switch kind, of := name[:1], name[1:]; {
	case name == "address":
		if s.server != nil {
			if err = safefile.Write(filepath.Join(s.Folder, addressFile), data); err == nil {
				err = s.certificate()
			}
		}
		s.Log.Info("the server has a new address", "url", s.url())
	case kind == "a":
		err = s.settle(ctx, s.admitted(of), nil)
		s.event("device admitted", s.admitted(of))
	case kind == "r":
		err = s.settle(ctx, of, nil)
		s.event("device revoked", of)
	default:
		s.Log.Info("a record of the admin key", "name", name)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.unstored, name)
	}
	return err
}

// check adds a record to the known ones, and returns what is to be stored: nothing if that was done.
func (s *service) check(data []byte, joins bool) (name string, store []byte, err error) {
	const again = "ask for a new one: faceauth fleet invite"
	if len(data) > fleet.MaxValue {
		return "", nil, fmt.Errorf("%w: it is too large", fleet.ErrRecord)
	}
	device, token, expires, err := fleet.CheckAdmission(s.fleet, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		now, user := time.Now(), s.members.Admitted(token)
		switch {
		case user != "" && user != device:
			return "", nil, fmt.Errorf("this token was used already by another device; %s", again)
		case s.members.Revoked(device):
			return "", nil, errors.New("this device was revoked; remove its folder, and join again with a new token")
		case user != "":
		case joins && !now.Before(expires), !joins && !s.inTime(expires, now):
			return "", nil, fmt.Errorf("this token has expired %s; %s", expires.UTC().Format("2006-01-02 15:04 MST"),
				again)
		}
	}
	name, err = s.learn(data)
	return name, s.unstored[name], err
}

func (s *service) event(what, id string) {
	x, _ := s.device(id)
	s.Log.Info(what, "device", x.Name, "id", id)
}

// settle gives a member its stream and lets it in, or shuts a revoked device out and deletes its values. Known are the
// streams that exist.
func (s *service) settle(ctx context.Context, id string, known map[string]*jetstream.StreamInfo) error {
	x, _ := s.device(id)
	if !x.Revoked {
		return s.ensure(ctx, id, known)
	}
	if s.server != nil {
		s.server.gate.cut(id)
	}
	return s.erase(ctx, x, id)
}

// erase deletes the values of a revoked device, except kept ones.
func (s *service) erase(ctx context.Context, x fleet.Member, id string) error {
	stream, kept := fleet.StreamOf(id), false
	var drop []uint64
	err := pull(ctx, s.nc, id, func(v fleet.Stored) error {
		if x.Kept(v.Name, fleet.ValueCounter(v.Data)) {
			kept = true
		} else {
			drop = append(drop, v.Place)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !kept {
		if err := s.js.DeleteStream(ctx, stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return storing(err)
		}
		return nil
	}
	values, err := s.js.Stream(ctx, stream)
	if err != nil {
		return storing(err)
	}
	for _, seq := range drop { // not by name: "*" is a name, too
		if err := values.DeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return storing(err)
		}
	}
	c := values.CachedInfo().Config
	c.Sealed = true // at a cluster the device may still be connected
	_, err = s.js.UpdateStream(ctx, c)
	return storing(err)
}

// states returns what the service knows of the members, by their ids.
func (s *service) states(ctx context.Context) (map[string]State, error) {
	stored, err := s.streams(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string]State)
	for _, m := range s.present() {
		x := s.state(m.ID)
		if info := stored[fleet.StreamOf(m.ID)]; info != nil {
			x.Bytes = info.State.Bytes
		}
		all[m.ID] = x
	}
	return all, nil
}

// list returns the states after a device, as many as fit into an answer.
func (s *service) list(ctx context.Context, after string) ([]byte, error) {
	all, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	some, size := make(map[string]json.RawMessage), 0
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if id <= after || size > largestList {
			continue
		}
		if some[id], err = json.Marshal(all[id]); err != nil {
			return nil, err
		}
		size += len(some[id])
	}
	return json.Marshal(some)
}
