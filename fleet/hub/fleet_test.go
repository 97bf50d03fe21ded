// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
	"time"
)

// part is a running device of a fleet.
type part struct {
	*fleet.Device
	conn   *hub.Conn
	folder string
}

func takePart(t testing.TB, a *hub.Admin, name string) part {
	t.Helper()
	return join(t, invite(t, a), name)
}

func join(t testing.TB, token hub.Token, name string) part {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	m, err := hub.Join(within(t, 20*time.Second), folder, token, hub.Joining{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	d, err := fleet.Open(folder, fleet.Settings{Tell: func(s string) { t.Log(name + ": " + s) }})
	if err != nil {
		t.Fatal(err)
	}
	p := part{d, open(t, m), folder}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		if err := d.Run(ctx, p.conn); err != nil {
			t.Logf("%s: %v", name, err)
		}
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		d.Close()
	})
	return p
}

func face(x float32) []ledger.Face { return []ledger.Face{{Vector: []float32{x, 1, 0, 0}}} }

// A person who is enrolled at one device is known at all devices, also after the server was killed with SIGKILL. A
// person who is forgotten at one device is forgotten at all. All devices have the same state.
func TestFleetOfDevices(t *testing.T) {
	c := startChild(t, childConfig{Folder: filepath.Join(t.TempDir(), "server"), Listen: "127.0.0.1:0"})
	a := admin(t, c.config.Folder)
	parts := []part{takePart(t, a, "door"), takePart(t, a, "hall")}
	knows := func(p part, name string) bool {
		found, err := p.Find(name)
		return err == nil && len(found.Faces) > 0
	}
	if _, err := parts[0].Enroll("alice", "test", face(1)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	eventually(t, "alice at the hall", func() bool { return knows(parts[1], "alice") })
	t.Logf("known at the other device after %v", time.Since(begun))
	c.kill()
	bob, err := parts[1].Enroll("bob", "test", face(2)) // without a network
	if err != nil {
		t.Fatal(err)
	}
	c = c.again(t)
	eventually(t, "bob at the door", func() bool { return knows(parts[0], "bob") })
	a = admin(t, c.config.Folder)
	parts = append(parts, takePart(t, a, "late"))
	eventually(t, "both at the device that comes late",
		func() bool { return knows(parts[2], "alice") && knows(parts[2], "bob") })
	if _, err := parts[0].Forget(bob); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one state", func() bool {
		seq, hash := parts[0].Hash()
		for _, p := range parts {
			s, h := p.Hash()
			if s != seq || h != hash || knows(p, "bob") || !knows(p, "alice") || !p.State().InStep {
				return false
			}
		}
		return true
	})
	eventually(t, "the list to say that all are in step", func() bool {
		all, err := a.Devices(within(t, 5*time.Second))
		if err != nil || len(all) != 3 {
			return false
		}
		for _, d := range all {
			if !d.InStep {
				return false
			}
		}
		return true
	})
	if _, err := a.Revoke(within(t, 20*time.Second), "late"); err != nil {
		t.Fatal(err)
	}
	if _, err := parts[0].Enroll("carol", "test", face(3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "carol at the hall", func() bool { return knows(parts[1], "carol") })
	if knows(parts[2], "carol") {
		t.Error("a revoked device knows who was enrolled later")
	}
}
