// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
)

func TestToken(t *testing.T) {
	_, fleet := fleetKey(t)
	want := hub.NewToken("tls://office.example:4222", fleet, bytes.Repeat([]byte{7}, 32), time.Now().Add(time.Hour))
	text := want.String()
	got, err := hub.ParseToken(" " + text[:50] + "\n  " + text[50:] + "\r\n") // with line breaks, as from a letter
	if err != nil || got.URL != want.URL || got.Fleet != want.Fleet || !bytes.Equal(got.Pin, want.Pin) ||
		!bytes.Equal(got.Secret, want.Secret) ||
		!got.Expires.Equal(want.Expires) {
		t.Errorf("%+v, %v", got, err)
	}
	if strings.ContainsAny(text, "+/= ") {
		t.Errorf("the token %s is no single word", text)
	}
	if other := hub.NewToken(want.URL, fleet, nil, want.Expires); bytes.Equal(other.Secret, want.Secret) {
		t.Error("two tokens have one secret")
	}
	for n := range len(text) - 1 {
		if _, err := hub.ParseToken(text[:n]); !errors.Is(err, hub.ErrToken) {
			t.Fatalf("the first %d letters: %v", n, err)
		}
		wrong := []byte(text)
		if wrong[n] = 'A'; text[n] == 'A' {
			wrong[n] = 'B'
		}
		if _, err := hub.ParseToken(string(wrong)); !errors.Is(err, hub.ErrToken) {
			t.Fatalf("letter %d is wrong: %v", n, err)
		}
	}
	for _, bad := range []hub.Token{
		{URL: "http://x:1", Fleet: fleet, Secret: want.Secret},
		{URL: "tls://a:b@x:1", Fleet: fleet, Secret: want.Secret},
		{URL: "tls://x:1", Fleet: fleet, Secret: want.Secret[:5]},
		{URL: "tls://x:1", Fleet: fleet, Secret: want.Secret, Pin: []byte{1}},
		{URL: "tls://x:1", Fleet: "U", Secret: want.Secret}, {},
	} {
		if _, err := hub.ParseToken(bad.String()); !errors.Is(err, hub.ErrToken) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	_, fleet := fleetKey(f)
	f.Add(hub.NewToken("tls://office.example:4222", fleet, bytes.Repeat([]byte{7}, 32), time.Unix(2e9, 0)).String())
	f.Add("AaQBd3Rs")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := hub.ParseToken(s)
		if err != nil {
			if !errors.Is(err, hub.ErrToken) {
				t.Error(err)
			}
			return
		}
		if again, err := hub.ParseToken(token.String()); err != nil || again.URL != token.URL {
			t.Errorf("%+v is read again as %+v, %v", token, again, err)
		}
	})
}

func TestCheckURL(t *testing.T) {
	for _, good := range []string{"tls://a:4222", "nats://10.0.0.1:4222", "tls://[::1]:1,nats://b", "tls://a/"} {
		if err := hub.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a:4222", "tls://", "tls://a,", "ws://a:1", "tls://u@a:1", "tls://a:1/x",
		"tls://a:1 b", "tls://\x00"} {
		if err := hub.CheckURL(bad); err == nil {
			t.Errorf("%q gave no error", bad)
		}
	}
}
