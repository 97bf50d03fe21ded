// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// calloutSubject is the subject on which a NATS server asks who may connect.
const calloutSubject = "$SYS.REQ.USER.AUTH"

// calloutWaiting is the number of connections that may wait for an answer. The cluster refuses further ones after a
// time.
const calloutWaiting = 2000

// calloutLife is how long a device stays connected to a cluster before the cluster asks again. A random part of up to
// half of it is added, so that not all devices return at once. The service cannot end connections of a cluster, so a
// revoked device may read for this time.
var calloutLife = 10 * time.Minute

// listenCallout subscribes to the questions of the cluster.
func (s *service) listenCallout() (chan *nats.Msg, error) {
	if s.Callout == "" {
		return nil, nil
	}
	asked := make(chan *nats.Msg, calloutWaiting)
	if _, err := s.conn.nc.ChanQueueSubscribe(calloutSubject, "faceauth", asked); err != nil {
		return nil, plain(err)
	}
	return asked, plain(s.conn.nc.Flush())
}

// answerCallout answers the cluster's questions until ctx ends.
func (s *service) answerCallout(ctx context.Context, asked chan *nats.Msg) {
	for {
		select {
		case m := <-asked:
			text, err := s.callout(string(m.Data), time.Now())
			if err == nil {
				err = m.Respond([]byte(text))
			}
			if err != nil {
				s.passed.Do(func() { s.Log.Warn("a question of the cluster was not answered", "error", err) })
			}
		case <-ctx.Done():
			return
		}
	}
}

// callout answers one question of a NATS server.
func (s *service) callout(question string, now time.Time) (string, error) {
	q, err := jwt.DecodeAuthorizationRequestClaims(question)
	if err != nil {
		return "", fmt.Errorf("the question of the cluster cannot be read: %w", err)
	}
	answer := jwt.NewAuthorizationResponseClaims(q.UserNkey)
	if answer == nil {
		return "", errors.New("the question of the cluster names no user")
	}
	answer.Audience = q.Server.ID
	rights, until, err := s.mayConnect(q.ConnectOptions.Nkey, q.ConnectOptions.Token, now)
	if err == nil && !verifyNonce(q.ConnectOptions.Nkey, q.ClientInformation.Nonce, q.ConnectOptions.SignedNonce) {
		err = errors.New(
			"its key has not signed the nonce of the connection; " +
				"servers of a cluster send a nonce if the cluster has a user with an nkey")
	}
	if err != nil {
		answer.Error = err.Error()
		return answer.Encode(s.admin)
	}
	user := jwt.NewUserClaims(q.UserNkey)
	user.Name, user.Audience, user.Expires = q.ConnectOptions.Nkey, s.Callout, until.Unix()
	user.Pub.Allow, user.Sub.Allow = rights.Publish, rights.Subscribe
	if rights.Answers {
		user.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
	}
	if answer.Jwt, err = user.Encode(s.admin); err != nil {
		return "", err
	}
	return answer.Encode(s.admin)
}

// mayConnect returns the rights of a key at the cluster, and until when they hold.
func (s *service) mayConnect(id, token string, now time.Time) (Rights, time.Time, error) {
	if !nkeys.IsValidPublicUserKey(id) {
		return Rights{}, now, errors.New("the connection shows no key of a device")
	}
	if s.isMember(id) {
		return DeviceRights(s.names.fleet, id), now.Add(calloutLife + rand.N(calloutLife/2)), nil
	}
	if until, bearer := s.tokens.bearers()[id]; bearer && now.Before(until) {
		return BearerRights(s.names.fleet, id), now.Add(time.Minute), nil
	}
	if (s.epoch() > 0 || s.isRevoked(id)) && token == RejoinToken {
		return RejoinRights(s.names.fleet, id), now.Add(time.Minute), nil
	}
	return Rights{}, now, errors.New("the device was revoked or never admitted")
}

// verifyNonce reports whether a key has signed the nonce of a connection.
func verifyNonce(id, nonce, signature string) bool {
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	return err == nil && nonce != "" && signedBy(id, []byte(nonce), sig)
}
