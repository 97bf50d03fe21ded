// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/ledger"
)

// deviceOptions makes this test program a device that makes changes until it is killed.
const deviceOptions = "FACEAUTH_HUB_TEST_DEVICE"

type talkerConfig struct {
	Folder string
	Seed   uint64
	Ahead  time.Duration // how far its clock is ahead
}

// talk makes random changes about random people. It prints each change before it makes it, and prints again after the
// device has accepted it: from then on the change must hold for ever.
func talk(text string) {
	var c talkerConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	go func() { // the process never outlives the test
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	m, err := hub.Open(c.Folder)
	if err != nil {
		panic(err)
	}
	conn, err := m.Connect(nil)
	if err != nil {
		panic(err)
	}
	d, err := fleet.Open(c.Folder, fleet.Settings{Now: func() time.Time { return time.Now().Add(c.Ahead) }})
	if err != nil {
		panic(err)
	}
	go d.Run(context.Background(), conn)
	r := rand.New(rand.NewPCG(c.Seed, 0))
	face := func() (ledger.Face, ledger.FaceID) {
		x := []float32{r.Float32(), r.Float32(), r.Float32(), r.Float32()}
		return ledger.Face{Vector: x}, ledger.NewFaceID("test", x)
	}
	for ; ; time.Sleep(time.Duration(10+r.IntN(30)) * time.Millisecond) {
		all := d.People()
		x, id := face()
		if len(all) < 5 || r.IntN(4) == 0 {
			p, err := d.Enroll(fmt.Sprintf("p%x", r.Uint32()), "test", []ledger.Face{x})
			if err == nil {
				fmt.Println("said label", p, id)
			}
			continue
		}
		p := all[r.IntN(len(all))]
		switch n := r.IntN(20); {
		case n < 10:
			if _, err := d.Label(p.ID, "test", []ledger.Face{x}); err == nil {
				fmt.Println("said label", p.ID, id)
			}
		case n < 14:
			d.Rename(p.ID, fmt.Sprintf("r%x", r.Uint32()))
		case n < 17 && len(p.Faces) > 1:
			f := p.Faces[r.IntN(len(p.Faces))].ID
			fmt.Println("try retract", p.ID, f)
			if _, err := d.Retract(p.ID, f); err == nil {
				fmt.Println("said retract", p.ID, f)
			}
		case n < 18:
			d.Deny(p.ID, "test", []ledger.Face{x})
		case n < 19:
			fmt.Println("try forget", p.ID, "-")
			if _, err := d.Forget(p.ID); err == nil {
				fmt.Println("said forget", p.ID, "-")
			}
		}
	}
}

// talker is a device that runs [talk] in a process of its own.
type talker struct {
	cmd  *exec.Cmd
	in   io.Closer
	done chan struct{}
}

func startTalker(t testing.TB, c talkerConfig, hear func(line string)) *talker {
	t.Helper()
	x := &talker{done: make(chan struct{})}
	var out io.Reader
	x.cmd, x.in, out = startProcess(t, deviceOptions, c, os.Stderr)
	go func() {
		defer close(x.done)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // an incomplete line reports no change
			}
			hear(strings.TrimSpace(line))
		}
	}()
	t.Cleanup(x.kill)
	return x
}

func (x *talker) kill() {
	if x.cmd.ProcessState == nil {
		x.cmd.Process.Kill()
		<-x.done
		x.cmd.Wait()
	}
	x.in.Close()
}

// The server and the devices are killed at random moments while all devices make changes, with clocks a day apart and
// the log trimmed all the time. Accepted changes hold, forgotten people stay forgotten, and all devices reach one
// state. FACEAUTH_FLEET_KILLS sets the number of kills, FACEAUTH_FLEET_SEED the seed of the random numbers.
func TestKilledAtRandom(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 5
	}
	number := func(name string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	kills = int(number("FACEAUTH_FLEET_KILLS", uint64(kills)))
	seed := number("FACEAUTH_FLEET_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	server := startChild(t,
		childConfig{Folder: filepath.Join(t.TempDir(), "server"), Listen: "127.0.0.1:0", SnapshotEvery: 60, Keep: 30})
	a := admin(t, server.config.Folder)
	var mu sync.Mutex
	said := make(map[string]bool)
	hear := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said[line] = true
	}
	var configs []talkerConfig
	var talkers []*talker
	for i, ahead := range []time.Duration{0, 26 * time.Hour, -26 * time.Hour} {
		c := talkerConfig{Folder: filepath.Join(t.TempDir(), fmt.Sprint("device", i)), Ahead: ahead}
		if _, err := hub.Join(within(t, 20*time.Second), c.Folder, invite(t, a),
			hub.Joining{Name: fmt.Sprint("device", i)}); err != nil {
			t.Fatal(err)
		}
		c.Seed = r.Uint64()
		configs, talkers = append(configs, c), append(talkers, startTalker(t, c, hear))
	}
	counts := make([]int, 4)
	for range kills {
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		i := r.IntN(4)
		counts[i]++
		if i == 3 {
			server.kill()
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
			server = server.again(t)
			continue
		}
		talkers[i].kill()
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		configs[i].Seed = r.Uint64()
		talkers[i] = startTalker(t, configs[i], hear)
	}
	for _, x := range talkers {
		x.kill()
	}

	// The devices run on without changes, and reach one state.
	var parts []part
	for i, c := range configs {
		m, err := hub.Open(c.Folder)
		if err != nil {
			t.Fatal(err)
		}
		d, err := fleet.Open(c.Folder, fleet.Settings{Tell: func(s string) { t.Logf("device %d: %s", i, s) }})
		if err != nil {
			t.Fatal(err)
		}
		p := part{d, open(t, m), c.Folder}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx, p.conn) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			d.Close()
		})
		parts = append(parts, p)
	}
	agree := func() bool {
		seq, hash := parts[0].Hash()
		for _, p := range parts {
			s, h := p.Hash()
			if state := p.State(); s != seq || h != hash || !state.InStep || state.Keys > 0 ||
				p.ContentHash() != parts[0].ContentHash() {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(2 * time.Minute); !agree(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			for _, p := range parts {
				seq, hash := p.Hash()
				t.Logf("%d %x %+v", seq, hash[:4], p.State())
			}
			t.Fatal("the devices do not come to one state")
		}
	}
	all := parts[0].People()
	labels, forgotten := 0, 0
	for line := range said {
		f := strings.Fields(line)
		id, err := ledger.ParseID(f[2])
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(p ledger.Person) bool { return p.ID == id })
		switch f[0] + " " + f[1] {
		case "said forget":
			forgotten++
			if at >= 0 || !parts[0].Forgotten(id) {
				t.Errorf("%s was forgotten, and is there", id)
			}
		case "said label", "said retract":
			if said["try forget "+f[2]+" -"] {
				continue
			}
			if at < 0 {
				t.Errorf("%s was enrolled, and is gone", id)
				continue
			}
			has := slices.ContainsFunc(all[at].Faces, func(x ledger.PersonFace) bool { return x.ID.String() == f[3] })
			if f[1] == "retract" && has {
				t.Errorf("a face of %s was taken back, and is there", id)
			}
			if labels++; f[1] == "label" && !has && !said["try retract "+f[2]+" "+f[3]] {
				t.Errorf("a face of %s was labelled, and is gone", id)
			}
		}
	}
	seq, _ := parts[0].Hash()
	t.Logf(
		"killed: devices %d times, the server %d times; %d entries in the log, %d things said that hold, %d people "+
			"there, %d forgotten",
		counts[0]+counts[1]+counts[2], counts[3], seq, labels, len(all), forgotten)
	if labels < kills {
		t.Errorf("only %d things were said", labels)
	}
}
