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
	"golang.org/x/time/rate"
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

// sender returns a device or token that sends requests.
func (s *service) sender(id string) *sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.rates[id]
	if x == nil {
		if len(s.rates) > mostSenders {
			clear(s.rates)
		}
		x = &sender{limit: rate.NewLimiter(requestsPerSecond, requestsAtOnce),
			turns: make(chan struct{}, readsForOne), volume: rate.NewLimiter(readRate, readBurst)}
		s.rates[id] = x
	}
	return x
}

// allows reports whether a request of a device or token is answered.
func (s *service) allows(id string) bool {
	x := s.sender(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == admin || x.limit.Allow() {
		return true
	}
	if x.dropped.IsZero() {
		s.Log.Warn("requests of a device are dropped: it sends too many", "id", id)
	}
	x.dropped = time.Now()
	return false
}

// drops reports whether requests of a device were dropped a short time ago.
func (s *service) drops(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.rates[id]
	return x != nil && time.Since(x.dropped) < droppedFor
}

// run answers requests until ctx ends.
func (s *service) run(ctx context.Context) {
	shown := make(chan []byte)
	if s.server != nil {
		shown = s.server.gate.shown
	}
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-s.calls:
			f(ctx)
		case data := <-shown:
			s.show(ctx, data)
		case m := <-s.work:
			s.answer(ctx, m)
		}
	}
}

// call lets the goroutine of run call f, and waits for it.
func (s *service) call(ctx context.Context, f func(context.Context)) error {
	done := make(chan struct{})
	select {
	case s.calls <- func(ctx context.Context) { defer close(done); f(ctx) }:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

func (s *service) answer(ctx context.Context, m *nats.Msg) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	part := strings.Split(m.Subject, ".") // F, what, sender
	what, sender := part[1], part[2]
	if _, known := s.members.Device(sender); known {
		s.heard[sender] = time.Now()
	}
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
	if member, known := s.members.Device(device); known && !member.Revoked {
		s.status[device] = x
	}
}

// show keeps an admission that a device has shown at the gate.
func (s *service) show(ctx context.Context, data []byte) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := s.add(ctx, data, false); err != nil {
		device, _, _, _ := fleet.CheckAdmission(s.fleet, data)
		s.Log.Warn("a device that this server does not know is refused", "id", device, "error", err)
		s.server.gate.forget(device)
	}
}

// learn adds a record to the known ones.
func (s *service) learn(data []byte) (name string, news bool, err error) {
	if name, news, err = s.members.Add(data); err != nil {
		return name, news, err
	}
	if device, token, _, err := fleet.CheckAdmission(s.fleet, data); err == nil && news {
		s.used[token] = device
		if s.server != nil {
			s.server.gate.use(token, device)
		}
	} else if device, revoked := strings.CutPrefix(name, "r"); revoked {
		s.used[name] = device // so that devices knows it
	}
	return name, news, nil
}

// devices returns the ids of all devices that records name.
func (s *service) devices() map[string]bool {
	all := make(map[string]bool)
	for id := range maps.Values(s.used) {
		all[id] = true
	}
	return all
}

// present returns the members that are not revoked.
func (s *service) present() []fleet.Member {
	return slices.DeleteFunc(s.members.Devices(), func(m fleet.Member) bool { return m.Revoked })
}

// add checks a record, stores it, and does what it says. It can be repeated after an error. The errors are for people.
func (s *service) add(ctx context.Context, data []byte, joins bool) error {
	const again = "ask for a new one: faceauth fleet invite"
	if len(data) > fleet.MaxValue {
		return fmt.Errorf("%w: it is too large", fleet.ErrRecord)
	}
	device, token, expires, err := fleet.CheckAdmission(s.fleet, data)
	if err == nil {
		user, used := s.used[token]
		now := time.Now()
		switch {
		case used && user != device:
			return fmt.Errorf("this token was used already by another device; %s", again)
		case s.members.Revoked(device):
			return errors.New("this device was revoked; remove its folder, and join again with a new token")
		case used:
		case joins && !now.Before(expires), !joins && !s.admits(expires, now):
			return fmt.Errorf("this token has expired %s; %s", expires.UTC().Format("2006-01-02 15:04 MST"), again)
		}
	}
	name, news, err := s.learn(data)
	if err != nil {
		return err
	}
	if news {
		s.unstored[name] = data
	}
	data, waits := s.unstored[name]
	if !waits {
		return nil
	}
	if _, err := s.js.Publish(ctx, fleet.SayPrefix+admin+"."+name, data); err != nil {
		return storing(err)
	}
	switch id, revoked := strings.CutPrefix(name, "r"); {
	case token != "":
		err = s.settle(ctx, device, nil)
		s.event("device admitted", device)
	case revoked:
		err = s.settle(ctx, id, nil)
		s.event("device revoked", id)
	case name == "address" && s.server != nil:
		if err = safefile.Write(filepath.Join(s.Folder, addressFile), data); err == nil {
			err = s.certificate()
		}
		s.Log.Info("the server has a new address", "url", s.members.URL())
	default:
		s.Log.Info("a record of the admin key", "name", name)
	}
	if err == nil {
		delete(s.unstored, name)
	}
	return err
}

func (s *service) event(what, id string) {
	x, _ := s.members.Device(id)
	s.Log.Info(what, "device", x.Name, "id", id)
}

// admits reports whether an admission counts whose device has not asked to join.
func (s *service) admits(expires, now time.Time) bool {
	if s.server != nil {
		return s.server.gate.admits(expires)
	}
	return now.Before(expires)
}

// settle gives a member its stream and lets it in, or shuts a revoked device out and deletes its values. Known are the
// streams that exist.
func (s *service) settle(ctx context.Context, id string, known map[string]*jetstream.StreamConfig) error {
	x, _ := s.members.Device(id)
	if !x.Revoked {
		if err := s.ensure(ctx, id, known); err != nil {
			return err
		}
	}
	if s.server != nil {
		s.server.gate.set(id, x.Name, x.Revoked)
	}
	if !x.Revoked {
		return nil
	}
	delete(s.status, id)
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
	stored := make(map[string]uint64)
	list := s.js.ListStreams(ctx)
	for info := range list.Info() {
		stored[info.Config.Name] = info.State.Bytes
	}
	if err := list.Err(); err != nil {
		return nil, storing(err)
	}
	all := make(map[string]State)
	for _, m := range s.present() {
		x, slow := State{Seen: s.heard[m.ID], Bytes: stored[fleet.StreamOf(m.ID)]}, false
		if s.server != nil {
			x.Connected, slow, x.Seen = s.server.gate.connected(m.ID)
		}
		if slow {
			x.Limited = "it sends too much and is slowed down"
		} else if s.drops(m.ID) {
			x.Limited = "it sends too many requests, and some are dropped"
		}
		if status, told := s.status[m.ID]; told {
			x.Status = &status
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
