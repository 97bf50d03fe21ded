// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A fleet lives in the accounts of docs/fleet-cluster.conf. A device there may not write in another's name, nor take
// the room of others, and nobody hears it when it was revoked.
func TestAccounts(t *testing.T) {
	text, err := os.ReadFile("../../docs/fleet-cluster.conf")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), "  HALL {")
	account, end := strings.CutSuffix("HALL {"+rest, "}\n}\n")
	if !found || !end {
		t.Fatal("the file has no account of a device at its end")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "conf")
	address := freeAddress(t)
	var ids []string
	var n *server.Server
	stop := func() {
		if n != nil {
			n.Shutdown()
			n.WaitForShutdown()
		}
	}
	t.Cleanup(stop)
	start := func() {
		stop()
		accounts := ""
		for i, id := range ids {
			name := fmt.Sprint("d", i)
			accounts += strings.NewReplacer("HALL", name, "hall", name, "DEVICE", id).Replace(account) + "}\n"
		}
		text := strings.NewReplacer("0.0.0.0:4222", address, "/var/lib/nats", dir).Replace(head)
		if err := os.WriteFile(path, []byte(text+accounts+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o.NoSigs, o.NoLog = true, true
		if n, err = server.NewServer(o); err != nil {
			t.Fatal(err)
		}
		if n.Start(); !n.ReadyForConnections(patience) {
			t.Fatal("the server does not start")
		}
	}
	start()
	login := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	x := newSiteAt(t, n.ClientURL())
	x.options.Quota = 1 << 20
	x.options.Cluster, x.options.Creds = n.ClientURL(), login("service", "service:change me 1")
	x.start()
	var all []*member
	for i := range 2 {
		name := fmt.Sprint("d", i)
		creds := login(name, "join:change me 2")
		m := &member{t: t, folder: filepath.Join(t.TempDir(), name)}
		how := fleet.Joining{Name: name, Creds: creds}
		if _, err := fleet.Join(t.Context(), m.folder, x.invite(time.Hour), how); err != nil {
			t.Fatal(err)
		}
		key, err := fleet.Identity(m.folder)
		if err != nil {
			t.Fatal(err)
		}
		id, err := key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		login(name, name+":change me 3")
		all = append(all, m)
	}
	start()
	for _, m := range all {
		m.start()
		t.Cleanup(m.end)
	}
	enrol := func() fleet.ID {
		id, err := all[0].d.Enroll("alice", "space", []fleet.Face{{Vector: []float32{1, 2}}})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	alice := enrol()
	agree(t, all...)
	if _, known := all[1].d.Person(alice); !known {
		t.Fatal("the other device does not know the person")
	}

	// d1 says something in the name of d0: directly, and by an answer that the server sends for it.
	store, err := nats.Connect(n.ClientURL(), nats.UserInfo("service", "change me 1"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	at := "F.say." + ids[0] + "." + alice.String()
	last := func(at string) *nats.Msg {
		m, err := store.Request("$JS.API.DIRECT.GET.say_"+ids[0], []byte(`{"last_by_subj":"`+at+`"}`), patience)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := last(at)
	raw := func(i int) *nats.Conn {
		nc, err := nats.Connect(n.ClientURL(), nats.UserInfo(fmt.Sprint("d", i), "change me 3"),
			nats.CustomInboxPrefix("_INBOX_"+ids[i]), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	nc, hears := raw(1), raw(0)
	live, err := hears.SubscribeSync("F.now.>")
	if err != nil {
		t.Fatal(err)
	}
	room, err := hears.SubscribeSync("F.room.*")
	if err == nil {
		err = hears.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish(at, []byte(value(9))); err != nil {
		t.Fatal(err)
	}
	for subject, ask := range map[string]string{"F.ask." + ids[1]: "",
		"$JS.API.DIRECT.GET.say_" + ids[1]: `{"last_by_subj":"F.say.` + ids[1] + `._head"}`} {
		for _, to := range []string{at, "F.now." + ids[0] + "._box", "F.room." + ids[0]} {
			if err := nc.PublishRequest(subject, to, []byte(ask)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := nc.Request(subject, []byte(ask), patience); err != nil { // what was sent before has come
			t.Fatal(err)
		}
	}
	if now := last(at); before.Header.Get("Nats-Sequence") == "" || string(now.Data) != string(before.Data) {
		t.Errorf("it wrote in another's name: %v %v", before.Header, now.Header)
	}
	second := enrol()
	agree(t, all...)
	if _, known := all[1].d.Person(second); !known {
		t.Error("the other device does not know the second person")
	}
	if err := nc.Publish("F.room."+ids[1], []byte("nobody")); err != nil {
		t.Fatal(err)
	}
	if m, err := room.NextMsg(patience); err != nil || m.Subject != "F.room."+ids[1] || string(m.Data) != "nobody" {
		t.Error("the room:", m, err)
	}
	for heard := false; !heard; {
		m, err := live.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		heard = strings.HasSuffix(m.Subject, second.String())
		if strings.HasSuffix(m.Subject, "._box") {
			t.Errorf("an answer at the live subject of another: %s", m.Data)
		}
	}
	if s := all[0].d.State(); len(s.Refused) > 0 || s.Trouble != "" { // d1 hears its own answers
		t.Errorf("%+v", s)
	}
	// In one account with the streams the same answer is written.
	if err := store.PublishRequest("$JS.API.DIRECT.GET.say_"+ids[1], at, []byte(`{"last_by_subj":"F.say.`+ids[1]+
		`._head"}`)); err != nil {
		t.Fatal(err)
	}
	until(t, "the answer is written", func() bool { return string(last(at).Data) != string(before.Data) })

	// d1 fills the room that it has, and no more.
	full := ""
	for i := 0; i < 100 && full == ""; i++ {
		m, err := nc.Request(fmt.Sprint("F.say.", ids[1], ".v", i), make([]byte, 100<<10), patience)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(m.Data), `"error"`) {
			full = string(m.Data)
		}
	}
	if !strings.Contains(full, "maximum bytes exceeded") {
		t.Errorf("the quota: %q", full)
	}
	third := enrol()
	agree(t, all...)
	if _, known := all[1].d.Person(third); !known {
		t.Error("the other device does not know the third person")
	}

	// It is revoked, and its user there is not removed yet. What is kept of it stays as it is, and nobody hears more.
	admin := x.admin()
	if m, err := nc.Request("F.say."+ids[1]+".v1", []byte(value(7)), patience); err != nil {
		t.Fatal(m, err)
	}
	if _, err := admin.Revoke(t.Context(), ids[1], map[string]uint64{"v1": 7}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"v1": value(7), "v2": ""} {
		nc.Request("F.say."+ids[1]+"."+name, []byte(value(9)), time.Second)
		ask := fmt.Sprintf(`{"last_by_subj":"F.say.%s.%s"}`, ids[1], name)
		m, err := store.Request("$JS.API.DIRECT.GET.say_"+ids[1], []byte(ask), patience)
		if err != nil || string(m.Data) != want {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
	enrol()
	for last := ""; !strings.HasSuffix(last, ids[0]+"._head"); {
		m, err := live.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if last = m.Subject; string(m.Data) == value(9) {
			t.Errorf("%s is heard", m.Subject)
		}
	}
}
