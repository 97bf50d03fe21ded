// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	Dial   = dial
	Pinned = pinned
	Inbox  = inbox
)

// Names are the names of a fleet at a server.
type Names struct {
	Stream, Bucket, Admin, Join, AnyLog, AnyPlace string
}

func NamesOf(fleet string) Names {
	s := subjects{fleet}
	return Names{s.stream(), s.bucket(), s.admin(), s.join(), s.log("*"), s.at("*")}
}

func LogOf(fleet, person string) string   { return subjects{fleet}.log(person) }
func KeysOf(fleet, device string) string  { return subjects{fleet}.keys(device) }
func PlaceOf(fleet, device string) string { return subjects{fleet}.at(device) }

func OpenStream(
	ctx context.Context,
	js jetstream.JetStream,
	fleet string,
	limits Limits,
	replicas int,
) (jetstream.Stream, error) {
	return openStream(ctx, js, subjects{fleet}, limits, replicas)
}

func OpenBucket(
	ctx context.Context,
	js jetstream.JetStream,
	fleet string,
	limits Limits,
	replicas int,
) (jetstream.ObjectStore, error) {
	return openBucket(ctx, js, subjects{fleet}, limits, replicas)
}

var PutSnapshot = putSnapshot

// CalloutLife sets the time after which devices of a cluster have to ask again.
func CalloutLife(t testing.TB, life time.Duration) {
	was := calloutLife
	calloutLife = life
	t.Cleanup(func() { calloutLife = was })
}

// LimitsOf returns the limits with every zero replaced by its default.
func LimitsOf(l Limits) Limits { return l.defaults() }

// Dialer gives a connection another way to the server.
func (s *Settings) Dialer(dial func(network, address string) (net.Conn, error)) { s.dial = dial }

// AgeInvitations makes the tokens of a stopped server older.
func AgeInvitations(t testing.TB, folder string, by time.Duration) {
	t.Helper()
	v, err := openInvitations(filepath.Join(folder, "invitations"))
	if err == nil {
		err = v.change(time.Now(), func(all map[string]invitation) error {
			for k, i := range all {
				i.Made, i.Expires = i.Made.Add(-by), i.Expires.Add(-by)
				all[k] = i
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}
