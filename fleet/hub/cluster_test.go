// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// The service works beside a NATS server that somebody else runs.
func TestCluster(t *testing.T) {
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(),
		NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	x := newSite(t)
	x.options.Cluster, x.options.Metrics = n.ClientURL(), "127.0.0.1:0"
	x.start()
	nc, err := nats.Connect(n.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	d := x.newDevice()
	token := x.invite(time.Hour)
	admission, err := token.Admit(d.id, "far", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	public, err := tokenKey(t, token).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{"F.join." + d.id: "the token has not signed this request",
		"F.join." + public: ""} {
		if m, err := nc.Request(subject, admission, patience); err != nil || string(m.Data) != want {
			t.Fatalf("%s: %q, %v", subject, m.Data, err)
		}
	}
	for _, name := range []string{"x", "y"} {
		if m, err := nc.Request("F.say."+d.id+"."+name, []byte(value(3)), patience); err != nil ||
			strings.Contains(string(m.Data), "error") {
			t.Fatal(m, err)
		}
	}
	admin := x.admin()
	if all, err := admin.Devices(t.Context()); err != nil || len(all) != 1 || all[0].Name != "far" {
		t.Fatal(all, err)
	}
	if err := hub.Backup(t.Context(), x.folder, x.folder+".tar"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Revoke(t.Context(), "far", map[string]uint64{"y": 3}); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"x": false, "y": true} {
		ask := fmt.Sprintf(`{"last_by_subj":"F.say.%s.%s"}`, d.id, name)
		m, err := nc.Request("$JS.API.DIRECT.GET.say_"+d.id, []byte(ask), patience)
		if err != nil || (m.Header.Get("Status") == "") != there {
			t.Errorf("%s: %v %v", name, m, err)
		}
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	x.start()
}
