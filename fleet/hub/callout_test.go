// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// newCallout starts a nats-server of the version in go.mod. The server asks a fleet's service which clients may
// connect.
func newCallout(t *testing.T) (o hub.Options) {
	t.Helper()
	if testing.Short() {
		t.Skip("nats-server is built")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "nats-server")
	if out, err := exec.Command("go", "build", "-o", program,
		"github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Fatalf("building nats-server: %v\n%s", err, out)
	}
	admin, id := fleetKey(t)
	service, serviceID := deviceKey(t)
	o = hub.Options{Folder: filepath.Join(dir, "service"), Creds: filepath.Join(dir, "service.nk"), Callout: "FLEET",
		Limits: hub.Limits{Disk: 256 << 20}}
	if err := os.Mkdir(o.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{filepath.Join(o.Folder, "fleet"): id + "\n"}
	for path, key := range map[string]nkeys.KeyPair{filepath.Join(o.Folder, "admin.nk"): admin, o.Creds: service} {
		seed, err := key.Seed()
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(seed)
	}
	port := ports(t, 1)[0]
	config := filepath.Join(dir, "nats.conf")
	// The same settings as in docs/fleet.md.
	files[config] = fmt.Sprintf(`
listen: "127.0.0.1:%d"
jetstream { store_dir: %q, max_mem: 64MB, max_file: 1GB }
accounts {
  FLEET: { jetstream: enabled, users: [ {nkey: %s} ] }
}
authorization {
  auth_callout { issuer: %s, auth_users: [ %s ], account: FLEET }
}
`, port, dir, serviceID, id, serviceID)
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	o.Cluster = fmt.Sprintf("nats://127.0.0.1:%d", port)
	n := &clusterNode{program: program, config: config, url: o.Cluster, log: log}
	n.start(t)
	t.Cleanup(func() {
		n.kill()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the cluster: %s", text)
		}
	})
	eventually(t, "the cluster to listen", func() bool {
		login, err := hub.Creds(o.Creds)
		if err != nil {
			t.Fatal(err)
		}
		nc, err := hub.Dial(within(t, 5*time.Second), o.Cluster, login)
		if err == nil {
			nc.Close()
		}
		return err == nil
	})
	return o
}

// A cluster that asks the service about each client admits the devices that the log has admitted, with the rights of a
// device. It disconnects revoked devices.
func TestCallout(t *testing.T) {
	hub.CalloutLife(t, 3*time.Second)
	o := newCallout(t)
	s := serve(t, o)
	a := admin(t, s.folder)
	door, hall := takePart(t, a, "door"), takePart(t, a, "hall")
	if _, err := door.Enroll("alice", "test", face(1)); err != nil {
		t.Fatal(err)
	}
	knows := func(p part, name string) bool {
		found, err := p.Find(name)
		return err == nil && len(found.Faces) > 0
	}
	eventually(t, "alice at the hall", func() bool { return knows(hall, "alice") })
	time.Sleep(6 * time.Second) // the devices have to ask again
	if _, err := hall.Enroll("bob", "test", face(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "bob at the door", func() bool { return knows(door, "bob") })
	// Nobody else is admitted, and a device has no more rights than at the fleet's own server.
	stranger, _ := deviceKey(t)
	for name, key := range map[string]nkeys.KeyPair{"a stranger": stranger, "a thief who knows the id alone": nil} {
		id, sign := hall.ID(), func([]byte) ([]byte, error) { return make([]byte, 64), nil }
		if key != nil {
			public, err := key.PublicKey()
			if err != nil {
				t.Fatal(err)
			}
			id, sign = public, key.Sign
		}
		for _, token := range []string{"", hub.RejoinToken} {
			if nc, err := hub.Dial(within(t, 10*time.Second), o.Cluster, nats.Nkey(id, sign), nats.Token(token),
				nats.NoReconnect()); !errors.Is(err, hub.ErrRefused) {
				t.Errorf("%s: %v", name, err)
				nc.Close()
			}
		}
	}
	if nc, err := hub.Dial(within(t, 10*time.Second), o.Cluster, nats.NoReconnect()); !errors.Is(err, hub.ErrRefused) {
		t.Errorf("nobody: %v", err)
		nc.Close()
	}
	if _, err := a.Revoke(within(t, 20*time.Second), "hall"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the revoked device to be cut off", func() bool { return errors.Is(hall.conn.Err(), hub.ErrRefused) })
	if _, err := door.Enroll("carol", "test", face(3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "carol to be stored", func() bool { return door.State().Waiting == 0 })
	if knows(hall, "carol") {
		t.Error("a revoked device reads on")
	}
	used := invite(t, a)
	if _, err := hub.Join(within(t, 20*time.Second), t.TempDir(), used, hub.Joining{Name: "late"}); err != nil {
		t.Error(err)
	}
	if _, err := hub.Join(within(t, 20*time.Second), t.TempDir(), used, hub.Joining{Name: "later"}); !errors.Is(err,
		hub.ErrDenied) {
		t.Errorf("a token that was used: %v", err)
	}
}
