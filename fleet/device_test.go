// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/online"
)

// settle waits until the devices that are on have nothing to do.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// agree checks that all devices that are on know the same people.
func (w *world) agree() {
	w.t.Helper()
	settle()
	var first *member
	for i, m := range w.devices {
		if m.stop == nil {
			continue
		}
		if s := m.d.State(); !s.InStep || s.Keys > 0 {
			w.t.Errorf("device %d: %+v", i, s)
		}
		if first == nil {
			first = m
		} else if m.d.Hash() != first.d.Hash() {
			w.t.Errorf("device %d knows other people:\n%v\n%v", i, names(m.d), names(first.d))
		}
	}
}

func names(d *fleet.Device) (all []string) {
	for _, p := range d.People() {
		all = append(all, p.Shown)
	}
	return all
}

func try(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		a, b, c := w.devices[0].d, w.devices[1].d, w.devices[2].d
		alice, err := a.Enroll("alice", space, faces(1, 2))
		try(t, err)
		bob, err := b.Enroll("bob", space, faces(10))
		try(t, err)
		w.agree()
		try(t, c.Label(alice, space, faces(3)))
		try(t, b.Retract(alice, fleet.NewFaceID(space, vector(1))))
		try(t, c.Deny(bob, space, faces(11)))
		try(t, a.Rename(bob, "alice"))
		w.agree()
		p, err := b.Find("alice")
		try(t, err)
		if p.ID != alice || len(p.Faces) != 2 || len(p.Gone) != 1 {
			t.Errorf("alice is %+v", p)
		}
		p, err = c.Find("alice (2)")
		try(t, err)
		if p.ID != bob || len(p.Faces) != 1 || len(p.Denied) != 1 {
			t.Errorf("bob is %+v", p)
		}
		m, err := c.Merge(bob, alice)
		try(t, err)
		w.agree()
		if p, _ := a.Person(bob); p.ID != alice || len(p.Faces) != 3 || len(p.IDs) != 2 {
			t.Errorf("merged: %+v", p)
		}
		if _, err := a.Merge(alice, bob); !errors.Is(err, fleet.ErrNoEffect) {
			t.Errorf("merged again: %v", err)
		}
		try(t, a.Unmerge(m))
		w.agree()
		if p, _ := a.Person(bob); p.ID != bob || len(p.Faces) != 1 || !b.Unmerged(m) {
			t.Errorf("unmerged: %+v", p)
		}
		if _, err := a.Forget(alice); err != nil {
			t.Fatal(err)
		}
		w.agree()
		if _, err := b.Find("alice"); err != nil { // bob, who has that name alone now
			t.Error(err)
		}
		if !c.Forgotten(alice) {
			t.Error("alice is remembered")
		}
		time.Sleep(26 * time.Hour)
		w.agree()
		d := w.join(fleet.Scope{All: true})
		w.agree()
		if got := names(d.d); len(got) != 1 || got[0] != "alice" {
			t.Errorf("the new device knows %v", got)
		}
	})
}

func TestLessons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		a, b, c := w.devices[0].d, w.devices[1].d, w.devices[2].d
		alice, err := a.Enroll("alice", space, faces(1))
		try(t, err)
		w.agree()
		lesson := func(through ...string) []online.Lesson {
			l := online.Lesson{Space: space, Through: through}
			for i := range 40_000 {
				l.Centroids = append(l.Centroids, online.Centroid{Vector: vector(i), Multiplicity: 1, Radius: 0.5})
			}
			return []online.Lesson{l}
		}
		small := func(n int, through ...string) []online.Lesson {
			return []online.Lesson{{Space: space, Through: through,
				Centroids: []online.Centroid{{Vector: vector(n), Multiplicity: 1, Radius: 0.5}}}}
		}
		big := lesson()
		big[0].Centroids = big[0].Centroids[:15_000] // several values
		did, err := b.Teach(alice, big)
		try(t, err)
		if again, err := b.Teach(alice, big); !did || again || err != nil {
			t.Errorf("taught: %v, again: %v, %v", did, again, err)
		}
		_, err = c.Teach(alice, small(5, b.Source(b.ID())))
		try(t, err)
		w.agree()
		if p, _ := a.Person(alice); len(p.Lessons) != 2 {
			t.Errorf("%d lessons", len(p.Lessons))
		}
		try(t, a.Withdraw(b.ID(), false))
		w.agree()
		if p, _ := c.Person(alice); len(p.Lessons) != 0 {
			t.Errorf("%d lessons after the withdrawal", len(p.Lessons))
		}
		if did, err := b.Teach(alice, big); !did || err != nil {
			t.Errorf("taught after the withdrawal: %v, %v", did, err)
		}
		w.agree()
		if p, _ := a.Person(alice); len(p.Lessons) != 1 {
			t.Errorf("%d lessons", len(p.Lessons))
		}
		try(t, a.Withdraw(b.ID(), true))
		_, err = b.Teach(alice, small(9))
		try(t, err)
		w.agree()
		if p, _ := c.Person(alice); len(p.Lessons) != 0 {
			t.Errorf("%d lessons of a muted device", len(p.Lessons))
		}
	})
}

func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		defer w.close()
		a, b, liar := w.devices[0].d, w.devices[1].d, w.devices[2]
		alice, err := a.Enroll("alice", space, faces(1, 2))
		try(t, err)
		carol, err := liar.d.Enroll("carol", space, faces(20))
		try(t, err)
		w.agree()
		try(t, liar.d.Label(alice, space, faces(66)))
		try(t, liar.d.Rename(alice, "mallory"))
		_, err = liar.d.Forget(alice)
		try(t, err)
		w.agree()
		if !a.Forgotten(alice) {
			t.Error("alice is not forgotten")
		}
		r, err := w.admin.Revoke(liar.d.ID(), nil, time.Now())
		try(t, err)
		try(t, w.server.give(r))
		if err := <-liar.ended; !errors.Is(err, fleet.ErrRevoked) {
			t.Errorf("the revoked device ends with %v", err)
		}
		liar.stop = nil
		w.agree()
		p, known := b.Person(alice)
		if !known || p.Name != "alice" || len(p.Faces) != 2 {
			t.Errorf("alice is %+v", p)
		}
		if _, known := a.Person(carol); known {
			t.Error("carol, whom only the revoked device enrolled, stays")
		}
		if _, err := liar.d.Enroll("dave", space, faces(30)); !errors.Is(err, fleet.ErrRevoked) {
			t.Errorf("the revoked device enrols: %v", err)
		}
	})
}

func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.close()
		a, b := w.devices[0].d, w.devices[1].d
		alice, err := a.Enroll("alice", space, faces(1, 2))
		try(t, err)
		bob, err := a.Enroll("bob", space, faces(10))
		try(t, err)
		w.agree()
		tablet := w.join(fleet.Scope{People: []fleet.ID{alice}}).d
		settle()
		if p, known := tablet.Person(alice); !known || len(p.Faces) != 2 {
			t.Errorf("the tablet knows alice as %+v", p)
		}
		if p, _ := tablet.Person(bob); len(p.Faces) > 0 || p.Name != "" {
			t.Errorf("the tablet reads about bob: %+v", p)
		}
		if err := tablet.Label(bob, space, faces(66)); err == nil {
			t.Error("the tablet labels bob")
		}
		try(t, tablet.Label(alice, space, faces(3)))
		guest, err := tablet.Enroll("guest", space, faces(40))
		try(t, err)
		settle()
		if p, _ := b.Person(alice); len(p.Faces) != 3 {
			t.Errorf("alice has %d faces", len(p.Faces))
		}
		if p, known := b.Person(guest); !known || p.Name != "guest" {
			t.Errorf("the guest is %+v", p)
		}
	})
}

func TestManyForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		a, b, liar := w.devices[0].d, w.devices[1].d, w.devices[2].d
		var all []fleet.ID
		for i := range 30 {
			id, err := a.Enroll("p", space, faces(i))
			try(t, err)
			all = append(all, id)
		}
		w.agree()
		waiting := 0
		for _, id := range all {
			waits, err := liar.Forget(id)
			try(t, err)
			if waits {
				waiting++
			}
		}
		settle()
		if n := len(b.People()); n != 10 || waiting != 10 {
			t.Errorf("%d people are left, %d wait", n, waiting)
		}
		_, err := a.Forget(all[29])
		try(t, err)
		settle()
		if !b.Forgotten(all[29]) || b.Forgotten(all[28]) {
			t.Error("two devices forget, or one does what it may not")
		}
		r, err := w.admin.Allow(liar.ID(), time.Now())
		try(t, err)
		try(t, w.server.give(r))
		settle()
		if n := len(b.People()); n != 0 {
			t.Errorf("%d people are left after the admin has agreed", n)
		}
	})
}

// The folder of a device is put back from an old copy while nobody else is there. The keys of the people whom it has
// enrolled since are on the server, and nowhere else.
func TestOldFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.close()
		m, other := w.devices[0], w.devices[1]
		for i := range 60 { // the keys are in 16 notes
			_, err := m.d.Enroll("bob", space, faces(10+i))
			try(t, err)
		}
		w.agree()
		other.end()
		m.end()
		old := m.copyFolder()
		m.start()
		alice, err := m.d.Enroll("alice", space, faces(2, 3))
		try(t, err)
		settle()
		m.end()
		m.folder = old
		m.start()
		settle()
		if p, _ := m.d.Person(alice); len(p.Faces) != 2 || p.Name != "alice" {
			t.Errorf("alice is %+v, %+v", p, m.d.State())
		}
		other.start()
		w.agree()
	})
}

// A limited device says all that it may not say: about other people, in the name of full devices, and by calling a
// person of its own the same as somebody else. Nobody believes it, and the others name it.
func TestLimitedLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		defer w.close()
		a, b, c := w.devices[0].d, w.devices[1].d, w.devices[2].d
		alice, err := a.Enroll("alice", space, faces(1, 2))
		try(t, err)
		bob, err := a.Enroll("bob", space, faces(10, 11))
		try(t, err)
		lesson := []online.Lesson{{Space: space, Centroids: []online.Centroid{{Vector: vector(9), Multiplicity: 1}}}}
		_, err = a.Teach(bob, lesson)
		try(t, err)
		w.agree()
		liar := w.join(fleet.Scope{People: []fleet.ID{alice}})
		defer liar.end()
		tablet := liar.d
		guest, err := tablet.Enroll("guest", space, faces(40))
		try(t, err)
		settle()
		for range 3 {
			try(t, tablet.Lies(bob, guest, a.ID()))
			settle()
		}
		w.devices = w.devices[:3] // the tablet believes itself
		w.agree()
		for _, d := range []*fleet.Device{a, b, c} {
			p, err := d.Find("bob")
			if err != nil || p.ID != bob || len(p.IDs) != 1 || len(p.Faces) != 2 || len(p.Lessons) != 1 ||
				p.Sealed > 0 {
				t.Errorf("bob is %+v, %v", p, err)
			}
			if p, _ := d.Person(guest); p.Name != "guest" || len(p.Faces) != 1 {
				t.Errorf("the guest is %+v", p)
			}
			if s := d.State(); len(s.Refused) != 1 || s.Refused[tablet.ID()] == "" {
				t.Errorf("refused: %q", s.Refused)
			}
		}
		dave, err := c.Enroll("dave", space, faces(20)) // the keys still pass between the full devices
		try(t, err)
		w.agree()
		if p, _ := a.Person(dave); len(p.Faces) != 1 {
			t.Errorf("dave is %+v", p)
		}
	})
}
