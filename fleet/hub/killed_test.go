// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
)

// TestRole is the server or a device of [TestKilledAtRandom], in a process of its own.
func TestRole(t *testing.T) {
	folder, seed := os.Getenv("FACEAUTH_TEST_FOLDER"), os.Getenv("FACEAUTH_TEST_SEED")
	switch os.Getenv("FACEAUTH_TEST_ROLE") {
	default:
		t.Skip("it is a part of TestKilledAtRandom")
	case "server":
		t.Fatal(hub.Serve(context.Background(), hub.Options{Folder: folder, Listen: os.Getenv("FACEAUTH_TEST_LISTEN")}))
	case "device":
		n, _ := strconv.ParseUint(seed, 10, 64)
		say(t, folder, rand.New(rand.NewPCG(n, 3)))
	}
}

// say says random things for ever, and prints a line when each is said.
func say(t *testing.T, folder string, rng *rand.Rand) {
	skew := time.Duration(rng.IntN(40)-20) * time.Minute
	d, err := fleet.Open(folder, fleet.Settings{Retry: 20 * time.Millisecond, Turn: 100 * time.Millisecond,
		Now: func() time.Time { return time.Now().Add(skew) }})
	if err != nil {
		t.Fatal(err)
	}
	go d.Run(context.Background(), d.Dial)
	for {
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		x := []float32{rng.Float32(), rng.Float32(), rng.Float32()}
		face := fleet.NewFaceID("space", x)
		all := d.Names()
		if len(all) < 10 || len(all) < 1000 && rng.IntN(10) == 0 { // few faces for each: the oldest would make room
			if id, err := d.Enroll(fmt.Sprint("p", rng.IntN(100)), "space", []fleet.Face{{Vector: x}}); err == nil {
				fmt.Println("said", id, face)
			}
			continue
		}
		id := all[rng.IntN(len(all))]
		switch rng.IntN(12) {
		case 0:
			d.Rename(id, fmt.Sprint("q", rng.IntN(100)))
		case 1:
			if len(all) > 20 && few(folder) {
				fmt.Println("forgets", id) // it may be killed before it can say so
				d.Forget(id)
			}
		default:
			if d.Label(id, "space", []fleet.Face{{Vector: x}}) == nil {
				fmt.Println("said", id, face)
			}
		}
	}
}

// few reports whether a device has forgotten only a few people: more than [fleet.DailyForgets] would wait.
func few(folder string) bool {
	path := folder + ".forgets"
	b, err := os.ReadFile(path)
	return len(b) < 6 && (err == nil || os.IsNotExist(err)) && os.WriteFile(path, append(b, '.'), 0o600) == nil
}

// process is a process that is killed and started again.
type process struct {
	t    *testing.T
	env  []string
	cmd  *exec.Cmd
	mu   sync.Mutex
	said []string
	read sync.WaitGroup
}

func (p *process) start(seed uint64) {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0], "-test.run", "^TestRole$")
	p.cmd.Env = append(os.Environ(), append(p.env, fmt.Sprint("FACEAUTH_TEST_SEED=", seed))...)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.read.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.said = append(p.said, s.Text())
			p.mu.Unlock()
		}
	})
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.read.Wait()
	p.cmd.Wait()
}

// Server and devices are killed with -9 at random moments. In the end all devices know the same, and all that a device
// has said counts.
func TestKilledAtRandom(t *testing.T) {
	kills, seed := 12, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("FACEAUTH_FLEET_KILLS")); err == nil {
		kills = n
	} else if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	if n, err := strconv.ParseUint(os.Getenv("FACEAUTH_FLEET_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("FACEAUTH_FLEET_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	x := newSite(t)
	x.start()
	var all []*process
	var members []*member
	for i := range 3 {
		m := x.join(fmt.Sprint("d", i))
		agree(t, append(members, m)...)
		members = append(members, m)
	}
	for _, m := range members {
		m.end()
		all = append(all, &process{t: t,
			env: []string{"FACEAUTH_TEST_ROLE=device", "FACEAUTH_TEST_FOLDER=" + m.folder}})
	}
	x.stop()
	all = append(all, &process{t: t, env: []string{"FACEAUTH_TEST_ROLE=server", "FACEAUTH_TEST_FOLDER=" + x.folder,
		"FACEAUTH_TEST_LISTEN=" + x.options.Listen}})
	for _, p := range all {
		p.start(rng.Uint64())
	}
	for range kills {
		time.Sleep(time.Duration(100+rng.IntN(900)) * time.Millisecond)
		p := all[rng.IntN(len(all))]
		p.kill()
		p.start(rng.Uint64())
	}
	for _, p := range all {
		p.kill()
	}
	x.start()
	for _, m := range members {
		m.start()
	}
	defer func() {
		for _, m := range members {
			if t.Failed() && m.d != nil {
				t.Logf("%+v, %d people, %x", m.d.State(), len(m.d.Names()), m.d.Hash())
			}
		}
	}()
	agree(t, members...)
	forgotten := make(map[string]bool)
	var said [][]string
	for _, p := range all {
		for _, line := range p.said {
			switch f := strings.Fields(line); {
			case len(f) == 2 && f[0] == "forgets":
				forgotten[f[1]] = true
			case len(f) == 3 && f[0] == "said":
				said = append(said, f)
			}
		}
	}
	faces := make(map[string]bool)
	for _, p := range members[0].d.People() {
		for _, f := range p.Faces {
			faces[p.ID.String()+f.ID.String()] = true
		}
	}
	lost, held := 0, 0
	count := make(map[string]int)
	for _, f := range said {
		count[f[1]]++
	}
	for _, f := range said {
		switch {
		case forgotten[f[1]] || count[f[1]] > fleet.MaxFaces: // the oldest make room
		case !faces[f[1]+f[2]]:
			lost++
		default:
			held++
		}
	}
	if lost > 0 || held == 0 {
		t.Errorf("%d of %d things that were said are lost", lost, lost+held)
	}
	files, _ := filepath.Glob(filepath.Join(members[0].folder, "*"))
	t.Logf("%d kills: %d things said, %d checked, %d people, %d forgotten; files %d", kills, len(said), held,
		len(members[0].d.Names()), len(forgotten), len(files))
}
