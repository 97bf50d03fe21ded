// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats.go"
)

func TestHostileSubjects(t *testing.T) {
	x := newSite(t).start()
	a, b := x.member(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})), x.member()
	for name, data := range map[string]string{"p1": "by B", "_x": "by B"} {
		if err := b.say(name, data); err != nil {
			t.Fatal(err)
		}
	}
	live, err := b.nc.SubscribeSync("F.now.>")
	if err != nil {
		t.Fatal(err)
	}
	b.nc.Flush()
	stream := "say_" + b.id
	var answers *nats.Subscription
	for i, try := range [][2]string{
		{"F.say." + b.id + ".p1", "overwrite"}, {"F.say.admin.r" + b.id, "forged"}, {"F.say." + a.id, "x"},
		{"F.say." + a.id + ".p.q", "x"}, {"F.now." + b.id + ".p1", "forged"}, {"F.now." + a.id + ".p1", "forged"},
		{"F.give." + b.id, "x"}, {"F.give.admin", "x"}, {"F.list.admin", ""}, {"F.at." + b.id, `{"in_step":true}`},
		{"F.ask." + b.id, ""}, {"F.join." + b.id, "x"}, {"F.room." + b.id, "x"},
		{"$JS.API.CONSUMER.CREATE." + stream, fmt.Sprintf(`{"stream_name":%q,"config":{"ack_policy":"none"}}`, stream)},
		{"$JS.API.CONSUMER.CREATE." + stream + ".x.F.say.>", fmt.Sprintf(`{"stream_name":%q,"config":{}}`, stream)},
		{"$JS.API.STREAM.PURGE." + stream, "{}"}, {"$JS.API.STREAM.DELETE." + stream, ""},
		{"$JS.API.STREAM.INFO." + stream, ""}, {"$JS.API.STREAM.CREATE.mine", `{"name":"mine"}`},
		{"$JS.API.STREAM.NAMES", ""}, {"$JS.API.STREAM.LIST", ""}, {"$JS.API.INFO", ""},
		{"$JS.API.STREAM.MSG.GET." + stream, `{"seq":1}`}, {"$JS.API.STREAM.MSG.DELETE." + stream, `{"seq":1}`},
		{"$JS.API.STREAM.SNAPSHOT." + stream, `{"deliver_subject":"x"}`}, {"$SYS.REQ.SERVER.PING", ""},
		{"$SYS.REQ.USER.INFO", ""}, {"$JS.ACK.x", ""}, {"_INBOX_" + b.id + ".x", "x"}, {"_R_.x", "x"},
	} {
		inbox := fleet.Inbox(a.id) + ".try"
		if answers == nil {
			if answers, err = a.nc.SubscribeSync(inbox + ".>"); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.nc.PublishRequest(try[0], fmt.Sprint(inbox, ".", i), []byte(try[1])); err != nil {
			t.Fatal(err)
		}
	}
	// The requests are in order: now all would be answered.
	until(t, "an answer", func() bool { return a.ask("F.ask."+a.id, "") != "no answer" })
	for {
		m, err := answers.NextMsg(200 * time.Millisecond)
		if err != nil {
			break
		}
		t.Errorf("%s: %s", m.Subject, m.Data)
	}
	for _, subject := range []string{">", "F.>", "F.say.>", "F.give.*", "F.join.>", "F.at.*", "_INBOX_" + b.id + ".>",
		"$JS.>", "$SYS.>", "_R_.>", "*"} {
		heard, err := a.nc.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		a.nc.Flush()
		b.say("_y", subject)
		if m, err := heard.NextMsg(20 * time.Millisecond); err == nil {
			t.Errorf("%s is heard: %s", subject, m.Subject)
		}
		heard.Unsubscribe()
	}
	for name, want := range map[string]string{"p1": "by B", "_x": "by B"} {
		if got := a.read(b.id, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	for {
		m, err := live.NextMsg(50 * time.Millisecond)
		if err != nil {
			break
		}
		if m.Subject != "F.now."+b.id+"._y" {
			t.Errorf("B hears %s: %s", m.Subject, m.Data)
		}
	}
}

func TestHostileHeaders(t *testing.T) {
	x := newSite(t).start()
	a, b := x.member(), x.member()
	if err := a.say("keep", "this"); err != nil {
		t.Fatal(err)
	}
	if err := b.say("keep", "this"); err != nil {
		t.Fatal(err)
	}
	for _, h := range []nats.Header{
		{"Nats-Rollup": {"all"}}, {"Nats-Rollup": {"sub"}}, {"Nats-TTL": {"1s"}}, {"Nats-Schedule": {"@every 1s"}},
		{"Nats-Schedule": {"@at 2030-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"F.say." + b.id + ".keep"}},
		{"Nats-Batch-Id": {"q"}, "Nats-Batch-Sequence": {"1"}}, {"Nats-Incr": {"+1"}},
		{"Nats-Expected-Stream": {"say_" + b.id}},
		{"Nats-Expected-Last-Subject-Sequence": {"0"},
			"Nats-Expected-Last-Subject-Sequence-Subject": {"F.say." + b.id + ".keep"}},
	} {
		m, err := a.nc.RequestMsg(&nats.Msg{Subject: "F.say." + a.id + ".h", Header: h, Data: []byte("x")}, time.Second)
		if err == nil && len(m.Data) > 0 && !strings.Contains(string(m.Data), `"error"`) &&
			h.Get("Nats-Expected-Last-Subject-Sequence") == "" {
			t.Errorf("%v is taken: %s", h, m.Data)
		}
	}
	// An id that A has guessed must not keep a value of B away for longer than the shortest window.
	for _, d := range []*device{a, b} {
		until(t, "the value is stored", func() bool {
			m, err := d.nc.RequestMsg(&nats.Msg{Subject: "F.say." + d.id + ".i",
				Header: nats.Header{"Nats-Msg-Id": {"same"}},
				Data:   []byte("x")}, patience)
			return err == nil && !strings.Contains(string(m.Data), "duplicate")
		})
	}
	for _, d := range []*device{a, b} {
		if got := b.read(d.id, "keep"); got != "this" {
			t.Errorf("the value is %q", got)
		}
	}
	if got := a.ask("F.say."+a.id+".big", strings.Repeat("x", fleet.MaxValue+1)); !strings.Contains(got, `"error"`) {
		t.Errorf("a value that is too large: %s", got)
	}
	if got := a.ask("F.say."+a.id+".big", strings.Repeat("x", 2<<20)); got != nats.ErrMaxPayload.Error() {
		t.Errorf("a message that is too large: %s", got)
	}
}

// A value whose headers look like those of the server stops nobody who reads it.
func TestHostileAnswers(t *testing.T) {
	x := newSite(t).start()
	one, a := x.join("one"), x.member()
	for i, h := range []nats.Header{
		{"Status": {"500"}}, {"Status": {"404"}}, {"Status": {"204"}, "Nats-Num-Pending": {"9"}}, {"Status": {"503"}},
		{"Nats-Sequence": {"1"}}, {"Nats-Sequence": {"9000000000"}}, {"Nats-Sequence": {"x"}},
		{"Nats-Subject": {"F.say." + one.d.ID() + "._head"}}, {"Nats-Subject": {"x"}}, {"Nats-Num-Pending": {""}},
		{"Nats-Num-Pending": {"0"}}, {"Nats-Time-Stamp": {"x"}},
	} {
		m, err := a.nc.RequestMsg(&nats.Msg{Subject: fmt.Sprint("F.say.", a.id, ".v", i), Header: h,
			Data: []byte(value(i + 1))}, patience)
		if err != nil {
			t.Fatal(m, err)
		}
	}
	if err := a.say("last", value(100)); err != nil {
		t.Fatal(err)
	}
	two := x.join("two") // it reads all
	if _, err := one.d.Enroll("alice", "space", []fleet.Face{{Vector: []float32{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	agree(t, one, two)
	if s := two.d.State(); s.Trouble != "" {
		t.Errorf("%+v", s)
	}
	if n := countValues(t, a, a.id); n < 2 {
		t.Errorf("%d values are stored", n)
	}
	admin := x.admin()
	if alone, err := admin.Alone(t.Context(), a.id); err != nil || len(alone) > 0 {
		t.Error(alone, err)
	}
	if _, err := admin.Revoke(t.Context(), a.id, nil); err != nil {
		t.Error(err)
	}
}

// An answer of the server, aimed at subjects of others, is stored nowhere and changes nothing.
func TestHostileReplies(t *testing.T) {
	x := newSite(t).start()
	a, b := x.member(), x.member()
	if err := a.say("json", `{"in_step":true,"waiting":9,"keys":0}`); err != nil {
		t.Fatal(err)
	}
	spare := x.newDevice()
	admission, err := x.invite(time.Hour).Admit(spare.id, "spare", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	read, _ := json.Marshal(map[string]string{"last_by_subj": "F.say." + a.id + ".json"})
	for _, to := range []string{"F.say." + b.id + ".x", "F.say.admin.x", "F.give." + b.id, "F.give.admin",
		"F.list.admin",
		"F.at." + b.id, "F.join." + b.id, "$JS.API.STREAM.DELETE.say_" + b.id, "$JS.API.STREAM.PURGE.say_" + b.id,
		"$JS.API.STREAM.INFO.say_" + b.id, "F.say." + a.id + ".x", "$JS.API.DIRECT.GET.say_admin", "_R_.x"} {
		for subject, data := range map[string][]byte{"F.say." + a.id + ".p": []byte("own"), "F.ask." + a.id: nil,
			"$JS.API.DIRECT.GET.say_" + a.id: read, "F.give." + a.id: admission} {
			if err := a.nc.PublishRequest(subject, to, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The requests are in order: after this answer all are done.
	until(t, "an answer", func() bool { return a.ask("F.ask."+a.id, "") != "no answer" })
	if err := a.say("p", "last"); err != nil {
		t.Fatal(err)
	}
	for _, writer := range []string{b.id, "admin"} {
		if got := b.read(writer, "x"); got != "" {
			t.Errorf("an answer was stored for %s: %q", writer, got)
		}
	}
	all, err := x.admin().Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Status != nil {
			t.Errorf("an answer became the status of a device: %+v", d.Status)
		}
	}
	if err := b.say("x", "by B"); err != nil || a.read(b.id, "x") != "by B" {
		t.Error(err, a.read(b.id, "x"))
	}
}

// A device that sends too much, asks too often and says what nobody can read is named, with the reasons.
func TestHostileIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	x := newSite(t).start()
	one, a := x.join("one"), x.member(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	admin := x.admin()
	named := func() (d hub.Device) {
		all, err := admin.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if x.ID == a.id {
				d = x
			} else if x.Limited != "" || len(x.Skipped) > 0 {
				t.Errorf("another device is named: %+v", x)
			}
		}
		return d
	}
	if d := named(); d.Limited != "" || len(d.Skipped) > 0 {
		t.Errorf("%+v", d)
	}
	if err := a.say("_box", "garbage"); err != nil {
		t.Fatal(err)
	}
	until(t, "its value is skipped", func() bool {
		return strings.Contains(named().Skipped[one.d.ID()], "a value that cannot be read")
	})
	for range 300 {
		a.nc.Publish("F.ask."+a.id, nil)
	}
	until(t, "its requests are dropped", func() bool { return strings.Contains(named().Limited, "too many requests") })
	done := make(chan struct{})
	defer func() { <-done }()
	var end atomic.Bool
	defer end.Store(true)
	go func() {
		defer close(done)
		for !end.Load() && !a.nc.IsClosed() {
			a.nc.Publish("F.say."+a.id+".x", make([]byte, 200<<10))
		}
	}()
	until(t, "it is slowed down", func() bool {
		return strings.Contains(named().Limited, "slowed down") &&
			strings.Contains(x.lines.String(), "device is slowed down: it sends too much")
	})
	if s := one.d.State(); !s.InStep || s.Trouble != "" {
		t.Errorf("the other device: %+v", s)
	}
}

// A member aims answers of the server at the subjects at which devices hear of new values: garbage, and what another
// device once said. Nobody hears it.
func TestHostileLive(t *testing.T) {
	x := newSite(t).start()
	one, two, a, b := x.join("one"), x.join("two"), x.member(), x.member()
	alice, err := one.d.Enroll("alice", "space", []fleet.Face{{Vector: []float32{1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	agree(t, one, two)
	values := map[string]string{"garbage": "garbage", "head": a.read(one.d.ID(), "_head"),
		"old": a.read(one.d.ID(), alice.String())}
	for name, data := range values {
		if err := a.say(name, data); err != nil || data == "" {
			t.Fatal(name, err)
		}
	}
	if err := one.d.Label(alice, "space", []fleet.Face{{Vector: []float32{3, 4}}}); err != nil {
		t.Fatal(err)
	}
	agree(t, one, two)
	live, err := b.nc.SubscribeSync("F.now.>")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.nc.Subscribe("F.room.*", func(m *nats.Msg) { t.Errorf("B hears %s", m.Subject) }); err != nil {
		t.Fatal(err)
	}
	b.nc.Flush()
	for range 10 {
		for _, to := range []string{"F.now." + one.d.ID() + "." + alice.String(), "F.now." + one.d.ID() + "._head",
			"F.now." + two.d.ID() + "._box", "F.now.admin.address", "F.now.admin.r" + one.d.ID(),
			"F.room." + one.d.ID(), "F.now." + a.id + ".x", "F.now.x"} {
			for _, name := range []string{"old", "head", "garbage"} {
				ask := fmt.Sprintf(`{"last_by_subj":"F.say.%s.%s"}`, a.id, name)
				if err := a.nc.PublishRequest("$JS.API.DIRECT.GET.say_"+a.id, to, []byte(ask)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := one.d.Enroll("bob", "space", []fleet.Face{{Vector: []float32{5, 6}}}); err != nil {
		t.Fatal(err)
	}
	until(t, "bob is known", func() bool { _, err := two.d.Find("bob"); return err == nil })
	agree(t, one, two)
	until(t, "the answers are through", func() bool { return a.read(a.id, "old") != "" })
	if err := b.say("end", ""); err != nil {
		t.Fatal(err)
	}
	for end := false; !end; {
		m, err := live.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		end = m.Subject == "F.now."+b.id+".end"
		for name, data := range values {
			if string(m.Data) == data {
				t.Errorf("B hears the %s at %s", name, m.Subject)
			}
		}
	}
	for _, m := range []*member{one, two} {
		p, _ := m.d.Person(alice)
		if s := m.d.State(); len(p.Faces) != 2 || s.Trouble != "" || len(m.d.Members()) != 4 {
			t.Errorf("alice is %+v, %+v", p, s)
		}
	}
}
