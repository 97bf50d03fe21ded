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
	"github.com/nats-io/nats.go"
)

// A copy of the folder of a device runs beside the device. Both notice it, fleet check says it, and nothing is lost
// that either has said. They do not answer each other for ever.
func TestClone(t *testing.T) {
	x := newSite(t).start()
	one, two, other := x.join("one"), x.join("two"), x.join("other")
	if _, err := one.d.Enroll("alice", "space", []fleet.Face{{Vector: []float32{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	agree(t, one, two, other)
	one.end()
	copied := &member{t: t, folder: filepath.Join(t.TempDir(), "copy")}
	if err := os.CopyFS(copied.folder, os.DirFS(one.folder)); err != nil {
		t.Fatal(err)
	}
	one.start()
	copied.start()
	t.Cleanup(copied.end)
	agree(t, one, two)
	agree(t, copied, two)
	both := map[string]*member{"one": one, "the copy": copied}
	var said []fleet.ID
	for round := range 3 {
		for who, m := range both {
			id, err := m.d.Enroll(fmt.Sprint("by ", who, round), "space",
				[]fleet.Face{{Vector: []float32{3, float32(round)}}})
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, id)
		}
	}
	const copiedFolder = "its folder was copied"
	for who, m := range both {
		until(t, who+" notices the copy", func() bool { return strings.Contains(m.d.State().Trouble, copiedFolder) })
	}
	admin := x.admin()
	until(t, "the server hears of it", func() bool {
		all, err := admin.Devices(t.Context())
		return err == nil && all[0].Status != nil && strings.Contains(all[0].Status.Trouble, copiedFolder)
	})
	knows := func(m *member) bool {
		for _, id := range said {
			if p, _ := m.d.Person(id); len(p.Faces) != 1 || p.Name == "" {
				return false
			}
		}
		return true
	}
	for _, m := range []*member{one, copied, two} {
		until(t, "everybody is known", func() bool { return knows(m) })
	}
	// A new epoch: each of the two would give the device another key.
	if _, err := admin.Revoke(t.Context(), "other", nil); err != nil {
		t.Fatal(err)
	}
	live, err := x.member().nc.Subscribe("F.now."+one.d.ID()+".*", func(*nats.Msg) {})
	if err != nil {
		t.Fatal(err)
	}
	last, quiet := int64(-1), time.Now()
	until(t, "the two are silent", func() bool {
		n, err := live.Delivered()
		if err != nil {
			t.Fatal(err)
		}
		if n != last {
			last, quiet = n, time.Now()
		}
		return time.Since(quiet) > 2*time.Second
	})
	if two.d.State().Trouble != "" || !knows(two) {
		t.Errorf("the third device: %+v", two.d.State())
	}
}
