// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
)

// Presence at a device can be read only by devices that may know these people. A server cannot change it.
func TestRoom(t *testing.T) {
	w := newLive(t)
	one, two := w.join(fleet.Scope{All: true}), w.join(fleet.Scope{All: true})
	ann, err := one.d.Enroll("ann", space, []fleet.Face{{Vector: []float32{1, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	bob, err := one.d.Enroll("bob", space, []fleet.Face{{Vector: []float32{0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	limited := w.join(fleet.Scope{People: []fleet.ID{bob}})
	defer func() {
		if t.Failed() {
			for _, n := range []*member{one, two, limited} {
				t.Logf("%+v\n%s", n.d.State(), n.d.Debug())
			}
		}
	}()
	for _, n := range []*member{one, two, limited} {
		until(t, "all are in step", func() bool {
			return n.d.State().InStep && len(n.d.People()) >= 1 && n.d.People()[0].Name != ""
		})
	}
	until(t, "two knows both", func() bool {
		return len(two.d.People()) == 2 && two.d.People()[0].Name != "" && two.d.People()[1].Name != ""
	})
	at := time.Date(2026, 11, 22, 9, 0, 0, 5, time.UTC)
	here := fleet.Room{At: at, Unknown: 2, People: []fleet.Guest{
		{Name: "ann", Since: at.Add(-time.Hour), Last: at, Camera: "door", Trust: "confirmed"},
		{Name: "bob", Since: at.Add(-time.Minute), Last: at, Camera: "hall", Trust: "learned", Unsure: true},
		{Name: "somebody whom the fleet does not know", Since: at, Last: at, Camera: "hall"},
	}}
	data := one.d.SealRoom(here)
	for _, secret := range []string{"ann", "bob", "door", "hall", "confirmed"} {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%q can be read on the way", secret)
		}
	}
	got, err := two.d.OpenRoom(one.d.ID(), data)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[fleet.ID]fleet.Guest)
	for i, id := range []fleet.ID{ann, bob} {
		guest := here.People[i]
		guest.Person = id
		want[id] = guest
	}
	people := make(map[fleet.ID]fleet.Guest)
	for _, guest := range got.People {
		people[guest.Person] = guest
	}
	if got.Device.ID != one.d.ID() || !got.At.Equal(at) || got.Unknown != 2 || len(got.People) != 2 ||
		!reflect.DeepEqual(people, want) {
		t.Errorf("%+v", got)
	}
	got, err = limited.d.OpenRoom(one.d.ID(), data)
	if err != nil || len(got.People) != 1 || got.People[0].Person != bob {
		t.Errorf("a device that may know bob alone reads %+v, %v", got.People, err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1 << (i % 8)
		if _, err := two.d.OpenRoom(one.d.ID(), bad); !errors.Is(err, fleet.ErrRoom) {
			t.Fatalf("byte %d of %d: %v", i, len(data), err)
		}
	}
	for _, bad := range [][]byte{nil, []byte("x"), data[:len(data)/2], make([]byte, 1<<20)} {
		if _, err := two.d.OpenRoom(one.d.ID(), bad); !errors.Is(err, fleet.ErrRoom) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	r, err := w.admin.Revoke(one.d.ID(), nil, time.Now())
	try(t, err)
	try(t, w.server.give(r))
	until(t, "one is revoked", func() bool { m, _ := two.d.Member(one.d.ID()); return m.Revoked })
	if _, err := two.d.OpenRoom(one.d.ID(), data); !errors.Is(err, fleet.ErrRoom) {
		t.Errorf("of a device that was revoked: %v", err)
	}
}
