// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/spf13/cobra"
)

// The process that sends faces to the daemon, the daemon, or both are killed at random moments while an office labels
// faces of a followed person and takes faces back. Afterwards the daemon has as many faces as the fleet. When
// the fleet forgets the person, the profile goes, whichever process is killed meanwhile.
func TestFleetTabletKilled(t *testing.T) {
	long(t)
	t.Parallel() // it mostly waits
	rng := rand.New(rand.NewPCG(5, 19))
	office, folder := t.TempDir(), t.TempDir()
	invite := newTestFleet(t)
	for name, state := range map[string]string{"office": office, "tablet": folder} {
		if _, err := fleet.Join(t.Context(), state, invite(), fleet.Joining{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	c := &cobra.Command{}
	c.SetContext(t.Context())
	part, err := (&memberFlags{fleet: true, state: office}).join(c)
	if err != nil {
		t.Fatal(err)
	}
	defer part.close()
	space := models.Default(models.Embedding).Space()
	faces := func(n int) (all []fleet.Face) {
		for range n {
			x, norm := make([]float32, space.Dim), 0.
			for i := range x {
				x[i] = float32(rng.NormFloat64())
				norm += float64(x[i] * x[i])
			}
			for i := range x {
				x[i] /= float32(math.Sqrt(norm))
			}
			all = append(all, fleet.Face{Vector: x})
		}
		return all
	}
	alice, err := part.Device.Enroll("alice", space.ID, faces(3))
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(t)
	d.start()
	teller := d.process("fleet", "tablet", "--state", folder)
	if out, code := d.ask("follow", "--user", "nobody", "--person", alice.String()); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	same := func() {
		t.Helper()
		d.until(func() bool {
			time.Sleep(50 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			s, err := d.client.Status(ctx, "nobody")
			her, known := part.Device.Person(alice)
			return err == nil && known && s.Fleet != nil && s.Fleet.Word == bus.InStep &&
				int(s.Fleet.Faces) == len(her.Faces)
		})
	}
	kill := func() {
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		which := 1 + rng.IntN(3)
		if which&1 != 0 {
			teller.kill(syscall.SIGKILL)
			teller = d.process("fleet", "tablet", "--state", folder)
		}
		if which&2 != 0 {
			d.stop(syscall.SIGKILL)
			d.start()
		}
	}
	same()
	for round := range 30 {
		her, _ := part.Device.Person(alice)
		if n := len(her.Faces); n > 1 && (n > 20 || rng.IntN(2) == 0) {
			err = part.Device.Retract(alice, her.Faces[rng.IntN(n)].ID)
		} else {
			err = part.Device.Label(alice, space.ID, faces(1+rng.IntN(3)))
		}
		if err != nil {
			t.Fatal(err)
		}
		kill()
		if round%5 == 4 {
			same()
		}
	}
	if _, err := part.Device.Forget(alice); err != nil {
		t.Fatal(err)
	}
	kill()
	d.until(func() bool {
		out, code := d.ask("status", "--user", "nobody", "--json")
		return code == refused && out != ""
	})
}
