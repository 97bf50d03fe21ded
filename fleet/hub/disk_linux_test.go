// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/internal/fixture"
)

// The disk of the server becomes full while devices say things. Devices keep what they say. When there is room, the
// server has all, and nothing is lost that it had confirmed.
func TestFullDisk(t *testing.T) {
	disk := fixture.NewDisk(t, 32<<20)
	x := newSite(t)
	x.folder = filepath.Join(disk.Dir, "server")
	x.options.Folder = x.folder
	if err := hub.Create(x.folder, x.key, x.url); err != nil {
		t.Fatal(err)
	}
	x.start()
	one, two := x.join("one"), x.join("two")
	said := make(map[fleet.ID]bool)
	say := func(m *member, n int) {
		for i := range n {
			v := make([]float32, 512)
			v[0], v[1] = float32(len(said)), float32(i)
			id, err := m.d.Enroll(fmt.Sprint("p", len(said)), "space", []fleet.Face{{Vector: v}})
			if err != nil {
				t.Fatal(err)
			}
			said[id] = true
		}
	}
	say(one, 20)
	agree(t, one, two)
	disk.Fill()
	say(one, 200)
	until(t, "what is said waits", func() bool { return one.d.State().Waiting > 0 && one.d.State().Trouble != "" })
	disk.Free()
	if err := x.stop(); err != nil {
		t.Logf("the server ended: %v", err)
	}
	x.start()
	agree(t, one, two)
	for id := range said {
		if p, _ := two.d.Person(id); len(p.Faces) != 1 {
			t.Errorf("%s is lost", id)
		}
	}
}

// The disk of a device becomes full. It refuses to say more, or keeps what it says; it loses nothing that it has said,
// and takes part again when there is room.
func TestFullDiskOfDevice(t *testing.T) {
	disk := fixture.NewDisk(t, 8<<20)
	x := newSite(t).start()
	two := x.join("two")
	one := &member{t: t, folder: filepath.Join(disk.Dir, "one")}
	if _, err := fleet.Join(t.Context(), one.folder, x.invite(time.Hour), fleet.Joining{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	one.start()
	t.Cleanup(one.end)
	agree(t, one, two)
	said := make(map[fleet.ID]bool)
	refused := 0
	enrol := func(m *member, n int) {
		for i := range n {
			id, err := m.d.Enroll("p", "space", []fleet.Face{{Vector: append(make([]float32, 511), float32(i))}})
			if err != nil {
				refused++
			} else {
				said[id] = true
			}
		}
	}
	enrol(one, 20)
	agree(t, one, two)
	disk.Fill()
	enrol(one, 100)
	if refused == 0 {
		t.Error("nothing is refused on a full disk")
	}
	enrol(two, 100) // what one cannot keep
	until(t, "the device says that it cannot write", func() bool { return one.d.State().Trouble != "" })
	t.Logf("%d of 100 are refused; %s", refused, one.d.State().Trouble)
	disk.Free()
	agree(t, one, two)
	for id := range said {
		for _, m := range []*member{one, two} {
			if p, _ := m.d.Person(id); len(p.Faces) != 1 {
				t.Errorf("%s is lost", id)
			}
		}
	}
	refused = 0
	if enrol(one, 1); refused > 0 {
		t.Error("the device refuses with an empty disk")
	}
	agree(t, one, two)
}
