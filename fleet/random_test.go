// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/online"
)

// TestRandom lets devices say random things while they and the server are cut off, killed and put back from old
// copies. In the end all know the same, and nobody can read about the forgotten.
func TestRandom(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { random(t, uint64(seed)) })
		})
	}
}

func random(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t, 4)
	defer w.close()
	settle()
	var people []fleet.ID
	var merges []fleet.Merge
	forgotten := make(map[fleet.ID]bool)
	var backups []map[string]*memStream
	var revocations [][]byte
	var stored [][3]string // all that the server ever stored
	keep := func() {
		for device, st := range w.server.backup() {
			for name, v := range st.at {
				stored = append(stored, [3]string{device, name, string(v.data)})
			}
		}
	}
	copies := make(map[*member]string)
	revoked := 0
	pick := func() fleet.ID {
		if len(people) == 0 {
			return fleet.ID{}
		}
		return people[r.IntN(len(people))]
	}
	allowed := func(err error) {
		t.Helper()
		for _, ok := range []error{fleet.ErrUnknown, fleet.ErrForgotten, fleet.ErrKeyless, fleet.ErrNoEffect,
			fleet.ErrScope, fleet.ErrNobody} {
			if errors.Is(err, ok) {
				return
			}
		}
		try(t, err)
	}
	for step := range 220 {
		m := w.devices[r.IntN(len(w.devices))]
		if m.d == nil && r.IntN(3) > 0 {
			m.start()
		}
		if m.d == nil {
			continue
		}
		d, id := m.d, pick()
		switch what := r.IntN(100); {
		case what < 14:
			id, err := d.Enroll(fmt.Sprint("p", r.IntN(6)), space, faces(step))
			try(t, err)
			people = append(people, id)
		case what < 40:
			allowed(d.Label(id, space, faces(1000+r.IntN(12))))
		case what < 46:
			allowed(d.Retract(id, fleet.NewFaceID(space, vector(1000+r.IntN(12)))))
		case what < 50:
			allowed(d.Deny(id, space, faces(1000+r.IntN(12))))
		case what < 55:
			allowed(d.Rename(id, fmt.Sprint("p", r.IntN(6))))
		case what < 59:
			x, err := d.Merge(id, pick())
			allowed(err)
			if err == nil {
				merges = append(merges, x)
			}
		case what < 61:
			if len(merges) > 0 {
				allowed(d.Unmerge(merges[r.IntN(len(merges))]))
			}
		case what < 65:
			if p, known := d.Person(id); known {
				for _, id := range p.IDs {
					forgotten[id] = true
				}
				_, err := d.Forget(id)
				allowed(err)
			}
		case what < 69:
			_, err := d.Teach(id, []online.Lesson{{Space: space, Centroids: []online.Centroid{{Vector: vector(step),
				Multiplicity: 1}}}})
			allowed(err)
		case what < 71:
			allowed(d.Withdraw(w.devices[r.IntN(len(w.devices))].d0(), r.IntN(2) == 0))
		case what < 76:
			w.server.cut()
		case what < 79:
			w.server.mu.Lock()
			w.server.down = !w.server.down
			w.server.mu.Unlock()
			w.server.cut()
		case what < 84:
			m.end()
			if r.IntN(2) == 0 {
				copies[m] = m.copyFolder()
			}
		case what < 86:
			if old := copies[m]; old != "" {
				m.end()
				try(t, os.RemoveAll(m.folder))
				m.folder = old
				delete(copies, m)
			}
		case what < 88:
			keep()
			backups = append(backups, w.server.backup())
		case what < 90:
			if len(backups) > 0 {
				keep()
				w.server.restore(t, w.admin.Fleet(), backups[r.IntN(len(backups))])
				// Devices that were away may not have heard of them; docs/fleet.md tells the admin to look.
				for _, rec := range revocations {
					try(t, w.server.give(rec))
				}
			}
		case what < 91:
			if len(w.devices) < 7 {
				w.join(fleet.Scope{All: true})
			}
		case what < 92:
			m.skew.Store(int64(time.Duration(r.IntN(49)-24) * time.Hour))
		case what < 93 && revoked < 2 && step > 60:
			revoked++
			rec, err := w.admin.Revoke(d.ID(), nil, time.Now())
			try(t, err)
			try(t, w.server.give(rec))
			revocations = append(revocations, rec)
			if m.stop != nil && !w.server.down {
				m.end()
			}
			w.devices = slices.DeleteFunc(w.devices, func(x *member) bool { return x == m })
			defer m.end()
			for id := range forgotten { // whoever was forgotten may be remembered again
				delete(forgotten, id)
			}
		default:
			time.Sleep(time.Duration(r.IntN(7200)) * time.Second)
			keep()
		}
	}
	w.server.mu.Lock()
	w.server.down = false
	w.server.mu.Unlock()
	for _, m := range w.devices {
		m.skew.Store(0)
		if m.stop == nil {
			m.start()
		}
	}
	keep()
	time.Sleep(80 * time.Hour) // clocks were ahead by a day, and the grace is a day
	w.agree()
	if t.Failed() {
		for _, m := range w.devices {
			t.Log(m.d.Debug())
		}
	}
	var all []*fleet.Device
	for _, m := range w.devices {
		all = append(all, m.d)
	}
	dead := 0
	for _, id := range people {
		if !all[0].Forgotten(id) {
			continue
		}
		dead++
		for i, d := range all {
			if !d.Dead(id) {
				t.Errorf("device %d keeps the key of a forgotten person", i)
			}
		}
		if fleet.Readable(all, id, stored) {
			t.Error("a forgotten person can be read in a backup")
		}
	}
	t.Logf("%d people, %d forgotten, %d values stored, %d left", len(people), dead, len(stored), len(all[0].People()))
}

// d0 returns the id of a device that may be off.
func (m *member) d0() string {
	key, err := fleet.Identity(m.folder)
	if err != nil {
		m.w.t.Fatal(err)
	}
	id, _ := key.PublicKey()
	return id
}
