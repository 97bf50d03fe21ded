// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// liar is a member that speaks NATS with its own key.
type liar struct {
	*nats.Conn
	id  string
	key nkeys.KeyPair
}

// newLiar joins, and connects without the checks of [hub.Conn].
func newLiar(t testing.TB, s *served) liar {
	t.Helper()
	token := invite(t, admin(t, s.folder))
	folder := filepath.Join(t.TempDir(), "liar")
	m, err := hub.Join(within(t, 20*time.Second), folder, token, hub.Joining{Name: "liar"})
	if err != nil {
		t.Fatal(err)
	}
	key := deviceSeed(t, folder)
	nc, err := hub.Dial(within(t, 10*time.Second), s.URL, nats.Nkey(m.ID, key.Sign),
		nats.Secure(hub.Pinned(token.Pin)), nats.CustomInboxPrefix(hub.Inbox(m.ID)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return liar{nc, m.ID, key}
}

// put stores a message in the log, with the given headers.
func (l liar) put(t testing.TB, s *served, person string, header nats.Header, data []byte) {
	t.Helper()
	m := &nats.Msg{Subject: hub.LogOf(s.Fleet, person), Header: header, Data: data}
	if reply, err := l.RequestMsgWithContext(within(t, 5*time.Second), m); err != nil ||
		!strings.Contains(string(reply.Data), `"seq"`) {
		t.Fatalf("storing: %v, %v", reply, err)
	}
}

// lines collects log lines. It is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// No message of a member ends the server or another device, or keeps the server from starting again. The server reports
// the message with its author.
func TestHostileMessages(t *testing.T) {
	var said lines
	o := hub.Options{Log: slog.New(slog.NewTextHandler(&said, nil))}
	s := serve(t, o)
	a := admin(t, s.folder)
	door, hall := takePart(t, a, "door"), takePart(t, a, "hall")
	bad := newLiar(t, s)
	entry := ledger.Entry{Version: ledger.Version + 1, N: 1, Kind: ledger.Name, Time: time.Unix(0, 0)}
	for _, data := range [][]byte{signedEntry(t, s.Fleet, bad.key, entry), nil, []byte("garbage"),
		bytes.Repeat([]byte{0x9f}, 1000)} {
		bad.put(t, s, "-", nil, data)
	}
	known(t, "alice", door, hall)
	if text := said.String(); !strings.Contains(text, "newer version") || !strings.Contains(text, bad.id) {
		t.Errorf("the server does not name the author of a newer entry: %s", text)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	o.Folder, o.Listen = s.folder, strings.TrimPrefix(s.URL, "tls://")
	serve(t, o)
	known(t, "bo", door, hall)
	if _, err := admin(t, s.folder).Revoke(within(t, 20*time.Second), "liar"); err != nil {
		t.Errorf("revoking: %v", err)
	}
}

// known enrols a person at one device, and waits until another one knows the person.
func known(t testing.TB, name string, here, there part) ledger.ID {
	t.Helper()
	id, err := here.Enroll(name, "test", face(float32(len(name))))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, name, func() bool { p, err := there.Find(name); return err == nil && len(p.Faces) > 0 })
	return id
}

// A member that uses the message ids of later entries first silences neither a device nor the admin key.
func TestHostileMessageIDs(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	door, hall := takePart(t, a, "door"), takePart(t, a, "hall")
	alice := known(t, "alice", door, hall)
	bad := newLiar(t, s)
	for n := range 20 {
		for _, author := range []string{s.Fleet, door.ID()} {
			bad.put(t, s, "-", nats.Header{"Nats-Msg-Id": {fmt.Sprint(author, "-", n+1)}}, nil)
		}
	}
	if _, err := door.Forget(alice); err != nil {
		t.Fatal(err)
	}
	eventually(t, "her being forgotten at the hall", func() bool { return hall.Forgotten(alice) })
	known(t, "bo", door, hall)
	takePart(t, a, "late")
	if _, err := a.Revoke(within(t, 20*time.Second), "liar"); err != nil {
		t.Errorf("revoking: %v", err)
	}
}

// A member that forgets everybody forgets a day's number of people. The others stay, also when it is revoked, until the
// admin key allows more.
func TestHostileForgetting(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	door, hall := takePart(t, a, "door"), takePart(t, a, "hall")
	const people = 2*ledger.DailyForgets + 10
	var all []ledger.ID
	for i := range people {
		id, err := door.Enroll(fmt.Sprint("person ", i), "test", face(float32(i)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	eventually(t, "all people", func() bool { return len(hall.People()) == people && hall.State().Keys == 0 })
	bad := newLiar(t, s)
	said := uint64(0)
	forget := func(also ...ledger.ID) {
		t.Helper()
		said++
		e := ledger.Entry{N: said, Time: time.Unix(int64(said)*86400, 0), Kind: ledger.Forget, Person: also[0]}
		e.Put(ledger.Forgetting{Also: also[1:]})
		bad.put(t, s, e.Subject(), nil, signedEntry(t, s.Fleet, bad.key, e))
	}
	more := 0
	left := func(n int) {
		t.Helper()
		more++
		known(t, fmt.Sprint("more ", more), door, hall) // enrolled after everything that was said before
		if got := len(hall.People()) - more; got != n {
			t.Errorf("%d people are left, want %d", got, n)
		}
	}
	forget(all...)
	left(people)
	for _, id := range all {
		forget(id)
	}
	left(people - ledger.DailyForgets)
	if _, err := a.Allow(within(t, 20*time.Second), bad.id); err != nil {
		t.Fatal(err)
	}
	for _, id := range all {
		forget(id)
	}
	left(people - 2*ledger.DailyForgets)
}

// A member that sends garbage at full rate is paused, and the server names it. An entry of another device arrives.
func TestHostileFlood(t *testing.T) {
	var said lines
	s := serve(t, hub.Options{Limits: hub.Limits{Burst: 4 << 20}, Log: slog.New(slog.NewTextHandler(&said, nil))})
	a := admin(t, s.folder)
	door, hall := takePart(t, a, "door"), takePart(t, a, "hall")
	bad := newLiar(t, s)
	garbage := make([]byte, 100_000)
	eventually(t, "its being paused", func() bool {
		for range 10 {
			bad.Publish(hub.LogOf(s.Fleet, "-"), garbage)
		}
		bad.FlushTimeout(time.Second)
		return strings.Contains(said.String(), "sends too much and is paused; revoke it if it is broken\" id="+bad.id)
	})
	known(t, "alice", door, hall)
}
