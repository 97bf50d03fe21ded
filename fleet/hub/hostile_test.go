// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
)

// A member that speaks to the server with its own key, within its rights, ends neither the server nor another member:
// not with entries of a version that nobody can read, also over a restart, and not by storing messages under the ids of
// others before they do.
func TestHostileMember(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	folder := filepath.Join(t.TempDir(), "liar")
	liar, err := hub.Join(within(t, 20*time.Second), folder, invite(t, a), hub.Joining{Name: "liar"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := fleet.Identity(folder)
	if err != nil {
		t.Fatal(err)
	}
	m, door := joined(t, a, "door")
	isUp(t, door)
	nc, err := hub.Dial(within(t, 10*time.Second), s.URL, nats.Nkey(liar.ID, key.Sign),
		nats.Secure(hub.Pinned(liar.Pin)), nats.CustomInboxPrefix(hub.Inbox(liar.ID)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	say := func(id string, data []byte) {
		t.Helper()
		x := nats.NewMsg("faceauth." + liar.Fleet + ".log.-")
		x.Data = data
		if id != "" {
			x.Header.Set(nats.MsgIdHdr, id)
		}
		if err := nc.PublishMsg(x); err != nil {
			t.Fatal(err)
		}
	}
	newer := ledger.Entry{Version: ledger.Version + 1, Kind: ledger.Name, N: 1, Time: time.Now()}
	if err := newer.Sign(liar.Fleet, key); err != nil {
		t.Fatal(err)
	}
	say("", newer.Encode())
	for _, author := range []string{m.ID, liar.Fleet} { // the admin key's entries have the fleet's id
		for n := range 40 {
			say(fmt.Sprintf("%s-%d", author, n), []byte("garbage"))
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	r := follow(t, door)
	for n := range 20 {
		if err := door.Append(within(t, 10*time.Second), "", fmt.Sprintf("%s-%d", m.ID, n),
			fmt.Appendf(nil, "entry %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "what the door says", func() bool { return strings.Count(fmt.Sprint(r.all()), "entry ") == 20 })
	invite(t, a)
	if _, err := a.Revoke(within(t, 20*time.Second), "liar"); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	again := serve(t, hub.Options{Folder: s.folder})
	b := admin(t, again.folder)
	if all, err := b.Devices(within(t, 10*time.Second)); err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	joined(t, b, "hall")
}
