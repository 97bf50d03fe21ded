// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// asks are the queues of requests to the service.
type asks struct{ join, rejoin, admin, places chan *nats.Msg }

// Lengths of these queues. Requests that find a full queue get no answer, and are sent again.
const (
	joinsWaiting   = 64
	adminWaiting   = 64
	placesWaiting  = 20000
	rejoinsWaiting = 2000
	// joinsPerSecond limits how fast somebody can try tokens.
	joinsPerSecond = 20
)

// listen subscribes to the requests.
func (s *service) listen() (asks, error) {
	a := asks{
		make(chan *nats.Msg, joinsWaiting),
		make(chan *nats.Msg, rejoinsWaiting),
		make(chan *nats.Msg, adminWaiting),
		make(chan *nats.Msg, placesWaiting),
	}
	for subject, ch := range map[string]chan *nats.Msg{
		s.names.join(): a.join, s.names.rejoin(): a.rejoin, s.names.admin(): a.admin, s.names.at("*"): a.places,
	} {
		if _, err := s.conn.nc.ChanSubscribe(subject, ch); err != nil {
			return a, plain(err)
		}
	}
	return a, plain(s.conn.nc.Flush())
}

// answer handles the requests until ctx ends.
func (s *service) answer(ctx context.Context, a asks) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { // an administrator does not wait behind joining devices
		for {
			select {
			case m := <-a.admin:
				s.respond(m, s.command(ctx, m.Data))
			case <-ctx.Done():
				return
			}
		}
	})
	work.Go(func() {
		for {
			select {
			case m := <-a.rejoin:
				s.respond(m, s.rejoin(ctx, m.Data))
			case <-ctx.Done():
				return
			}
		}
	})
	work.Go(func() {
		for {
			select {
			case m := <-a.places:
				s.place(m)
			case <-ctx.Done():
				return
			}
		}
	})
	limit := rate.NewLimiter(joinsPerSecond, joinsPerSecond)
	for {
		select {
		case m := <-a.join:
			if limit.Wait(ctx) != nil {
				return
			}
			s.respond(m, s.join(ctx, m.Data))
		case <-ctx.Done():
			return
		}
	}
}

// respond sends an answer. If it is lost, the other side asks again.
func (s *service) respond(m *nats.Msg, answer any) {
	b, err := cbor.Marshal(answer)
	if err == nil && m.Reply != "" {
		err = m.Respond(b)
	}
	if err != nil {
		s.Log.Warn("an answer was not sent", "error", err)
	}
}

// place records the position that a device reports.
func (s *service) place(m *nats.Msg) {
	id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	if len(m.Data) != 8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, known := s.ledger.Device(id); known && !d.Revoked {
		s.places[id] = Place{Seq: min(binary.BigEndian.Uint64(m.Data), s.ledger.Seq()), Seen: time.Now()}
	}
}

// refusal is the message for a device that asks to join and is refused.
type refusal string

func (r refusal) Error() string { return string(r) }

// join answers a bearer of a token.
func (s *service) join(ctx context.Context, data []byte) joinAnswer {
	answer := joinAnswer{Version: joinVersion}
	entry, err := s.admit(ctx, data)
	var r refusal
	switch {
	case errors.As(err, &r):
		answer.Refused = string(r)
	case err != nil:
		s.Log.Error("a device was not admitted", "error", err)
		answer.Refused = "the server could not admit the device: " + err.Error() + "; try again with the same token"
	}
	answer.Admission, answer.Time = entry, time.Now().UnixMilli()
	return answer
}

const askForToken = "; ask for a new one: faceauth fleet invite"

// admit checks a request to join, and adds the admission to the log.
func (s *service) admit(ctx context.Context, data []byte) ([]byte, error) {
	unreadable := refusal(
		"the request cannot be read; install the same version of faceauth on the device and the server")
	var signed signedJoin
	var r joinRequest
	if strict.Unmarshal(data, &signed) != nil || strict.Unmarshal(signed.Request, &r) != nil ||
		r.Version != joinVersion {
		return nil, unreadable
	}
	text := joinText(s.names.fleet, signed.Request)
	if !nkeys.IsValidPublicUserKey(r.Token) || !nkeys.IsValidPublicUserKey(r.Device) ||
		!signedBy(r.Token, text, signed.ByToken) ||
		!signedBy(r.Device, text, signed.ByDevice) {
		return nil, refusal(
			"the request is not signed by the token and the device, or is for another fleet" + askForToken)
	}
	if err := CheckName(r.Name); err != nil {
		return nil, refusal(err.Error())
	}
	now := time.Now()
	i, known := s.tokens.find(r.Token)
	switch {
	case !known:
		return nil, refusal("this token is not of this fleet, or is older than a month" + askForToken)
	case i.Device != "" && i.Device != r.Device:
		return nil, refusal(
			fmt.Sprintf("this token was used already, on %s, by the device %q; each token admits one device%s",
				i.Used.Format("2006-01-02 15:04 MST"), i.Name, askForToken),
		)
	case i.Device == "" && now.After(i.Expires):
		return nil, refusal(
			fmt.Sprintf("this token expired on %s, by the clock of the server%s",
				i.Expires.Format("2006-01-02 15:04 MST"), askForToken),
		)
	}
	if d, was := s.device(r.Device); was {
		switch {
		case d.Revoked || !s.isMember(r.Device):
			return nil, refusal("the key of this device was revoked; remove its folder, and join with a new token")
		case i.Device == r.Device: // it did not get the first answer
			return s.admissionOf(r.Device)
		}
		return nil, refusal(
			fmt.Sprintf(
				"this device is a member already, as %q; if parts of its folder are lost, remove the folder and join "+
					"again",
				d.Name),
		)
	}
	if slices.ContainsFunc(s.members(), func(m ledger.Member) bool { return m.Name == r.Name }) {
		return nil, refusal(fmt.Sprintf("another device is named %q; choose another name with --name", r.Name))
	}
	// The token is marked as used before the log has the admission. So a stolen token admits no second device.
	err := s.tokens.change(now, func(all map[string]invitation) error {
		i, known := all[r.Token]
		if !known || i.Device != "" && i.Device != r.Device {
			return refusal("this token was used already" + askForToken)
		}
		i.Device, i.Name = r.Device, r.Name
		if i.Used.IsZero() {
			i.Used = now
		}
		all[r.Token] = i
		return nil
	})
	if err != nil {
		return nil, err
	}
	entry, err := s.say(ctx, ledger.Admit, ledger.Admission{Device: r.Device, Name: r.Name, Scope: i.Scope})
	if err != nil {
		return nil, err
	}
	s.Log.Info("device admitted", "name", r.Name, "id", r.Device)
	return entry, nil
}

func (s *service) device(id string) (ledger.Member, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Device(id)
}

// admissionOf returns an admission of a member. It is signed again, because the log may no longer hold the first one.
func (s *service) admissionOf(id string) ([]byte, error) {
	d, _ := s.device(id)
	e := ledger.Entry{N: 1, Time: d.Admitted, Kind: ledger.Admit}
	e.Put(ledger.Admission{Device: id, Name: d.Name, Scope: d.Scope})
	if err := e.Sign(s.names.fleet, s.admin); err != nil {
		return nil, err
	}
	return e.Encode(), nil
}

func signedBy(id string, text, sig []byte) bool {
	key, err := nkeys.FromPublicKey(id)
	return err == nil && key.Verify(text, sig) == nil
}
