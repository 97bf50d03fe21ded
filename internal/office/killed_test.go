// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// spot returns the face of person i: in a place of their own.
func spot(i int) []float32 { return []float32{100 + 5*float32(i%1000), 5 * float32(i/1000)} }

// street is a camera that sees one person after the other for a while, from a list that others
// change.
type street struct {
	r     *rand.Rand
	mu    sync.Mutex
	i, at int
	left  int
}

func (s *street) Next(ctx context.Context) (face.Frame, error) {
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left < 0 {
		s.at, s.left = s.r.IntN(60), 40
	}
	x := spot(s.at)
	x[0] += .02 * float32(s.i%5)
	s.i++
	return face.Frame{Index: s.i, Time: time.Duration(s.i) * time.Second / 5,
		Samples: []face.Sample{{Vector: x}}}, ctx.Err()
}
func (*street) Close() error { return nil }
func (*street) Dropped() int { return 0 }

// busy is a program on a database that many programs change: an office of a name, or the command
// line. It prints each change that is on the disk.
func busy(path, kind string) error {
	g, err := gallery.Open(path, space)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	pick := func(people []gallery.Person) string { return people[r.IntN(len(people))].Name }
	fresh := func() string { return fmt.Sprintf("p%dq", 1+r.IntN(1<<40)) }
	if kind == "line" {
		for {
			said := ""
			err := g.Change(func() error {
				people := g.People()
				name := fresh()
				switch k := r.IntN(8); {
				case k < 5 || len(people) < 20:
					said = "in " + name
					_, err := g.Enroll(name, [][]float32{spot(60 + r.IntN(100000))}, time.Now(),
						gallery.Enrolment{Force: true})
					return err
				case k < 7:
					from := pick(people)
					said = "renamed " + from + " " + name
					fmt.Println("maybe", from)
					return g.Rename(from, name)
				}
				name = pick(people)
				said = "out " + name
				fmt.Println("maybe", name)
				return g.Forget(name)
			})
			switch {
			case errors.Is(err, gallery.ErrBusy): // for ten seconds, on a busy machine
			case err != nil:
				return err
			default:
				fmt.Println(said)
			}
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		}
	}
	p, err := office.OpenPast(g, kind, office.PastSettings{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	var first sync.Once
	w := office.New(p, office.Options{Keep: true, Event: func(presence.Event) {
		first.Do(func() { fmt.Println("event") })
	}})
	go w.Run(context.Background(), []office.Camera{{Name: "street", Open: func(context.Context,
		func() bool) (office.Stream, error) {
		return &street{r: rand.New(rand.NewPCG(r.Uint64(), 2))}, nil
	}}})
	for {
		time.Sleep(time.Duration(5+r.IntN(30)) * time.Millisecond)
		switch k := r.IntN(12); {
		case k < 5:
			if all := w.Strangers(); len(all) > 0 {
				name := fresh()
				if err := refusal(w.Name(all[r.IntN(len(all))].ID, name, true)); err == nil {
					fmt.Println("in", name)
				} else if !errors.Is(err, gallery.ErrBusy) &&
					!strings.Contains(err.Error(), "no such group") {
					return err
				}
			}
		case k < 7:
			if all := w.Now().Known; len(all) > 0 {
				from, name := all[r.IntN(len(all))].Name, fresh()
				fmt.Println("maybe", from)
				if err := refusal(w.Rename(from, name)); err == nil {
					fmt.Println("renamed", from, name)
				}
			}
		case k < 8:
			if all := w.Now().Known; len(all) > 8 {
				name := all[r.IntN(len(all))].Name
				fmt.Println("maybe", name)
				if err := refusal(w.Forget(name)); err == nil {
					fmt.Println("out", name)
				}
			}
		case k < 10:
			if all := w.Sightings(0, 64); len(all) > 0 {
				s := all[r.IntN(len(all))]
				loses(w, func() error { return refusal(w.Correct(s.ID, "")) })
			}
		default:
			if all := w.Corrections(0, 20); len(all) > 0 {
				c := all[r.IntN(len(all))]
				loses(w, func() error { return w.Undo(c.ID) })
			}
		}
	}
}

// loses does something by which somebody may lose all labels, or get another name.
func loses(w *office.Office, do func() error) {
	fmt.Println("begins")
	before := w.Now().Known
	do() // an error says that nothing was done
	here := make(map[string]bool)
	for _, p := range w.Now().Known {
		here[p.Name] = true
	}
	for _, p := range before {
		if !here[p.Name] {
			fmt.Println("maybe", p.Name)
		}
	}
	fmt.Println("ends")
}

func TestMain(m *testing.M) {
	if kind := os.Getenv("FACEAUTH_TEST_BUSY"); kind != "" {
		path := os.Getenv("FACEAUTH_TEST_GALLERY")
		if err := errors.Join(gallery.SetKey(path, testKey(path)), busy(path, kind)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if dir, err := played(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// testKey is the key of a gallery whose path says that it has one.
func testKey(path string) []byte {
	if strings.HasSuffix(path, "sealed") {
		return bytes.Repeat([]byte("key "), 8)
	}
	return nil
}

// Two offices and two command lines change one database at once, and are killed at random. What a
// program has said to be on the disk is there, nobody forgotten returns, also not into the bytes of
// a file, nobody comes from nowhere, the file is whole, and what is learned agrees with the rows.
func TestSystemKilledTogether(t *testing.T) {
	t.Run("plain", func(t *testing.T) { killed(t, "gallery", fixture.Kills(t, 16)) })
	t.Run("encrypted", func(t *testing.T) { killed(t, "sealed", fixture.Kills(t, 16)/2) })
}

func killed(t *testing.T, name string, kills int) {
	path := filepath.Join(t.TempDir(), name)
	nothing(t, gallery.SetKey(path, testKey(path)))
	nothing(t, peopleAt(t, path).Close())
	var mu sync.Mutex
	in, out, begun, forgot := make(map[string]bool), make(map[string]bool), make(map[string]bool),
		make(map[string]bool)
	left, opened, unsaid := kills, 0, 0 // unsaid: killed while somebody may have lost all labels
	var work sync.WaitGroup
	for seed, kind := range []string{"home", "shop", "line", "line"} {
		work.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(seed)))
			for {
				mu.Lock()
				left--
				on := left >= 0
				mu.Unlock()
				if !on {
					return
				}
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), "FACEAUTH_TEST_BUSY="+kind, "FACEAUTH_TEST_GALLERY="+
					path)
				lines, err := c.StdoutPipe()
				if err == nil {
					err = c.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				// Every other one is killed at any time, also before it has opened the database;
				// the rest only after a while of work, an office after its first event, which is
				// longer on a slow machine.
				life, started := time.Duration(200+r.IntN(1200))*time.Millisecond, time.Now()
				kill := func() { c.Process.Kill() }
				early := r.IntN(2) == 0
				if early {
					time.AfterFunc(life, kill)
				}
				within := 0
				for s := bufio.NewScanner(lines); s.Scan(); {
					if begins := kind == "line" || s.Text() == "event"; !early && begins {
						early = true
						time.AfterFunc(max(life, 3*time.Since(started)), kill)
					}
					f := strings.Fields(s.Text())
					mu.Lock()
					switch {
					case f[0] == "begins":
						within = 1
					case f[0] == "ends":
						within = 0
					case f[0] == "open":
						opened++
					case f[0] == "event":
						t.Logf("%s: the first event after %v", kind,
							time.Since(started).Round(100*time.Millisecond))
					case f[0] == "in":
						in[f[1]] = true
					case f[0] == "renamed":
						in[f[2]], out[f[1]] = true, true
						delete(begun, f[1])
					case f[0] == "out":
						out[f[1]], forgot[f[1]] = true, true
						delete(begun, f[1])
					case f[0] == "maybe" && len(f) > 1: // killed before it could say so
						begun[f[1]] = true
					case f[0] == "error":
						t.Errorf("%s: %s", kind, s.Text())
					}
					mu.Unlock()
				}
				c.Wait() // it was killed
				mu.Lock()
				unsaid += within
				mu.Unlock()
			}
		})
	}
	work.Wait()
	g, err := gallery.Open(path, space)
	nothing(t, err)
	here := make(map[string]bool)
	for _, p := range g.People() {
		if here[p.Name] = true; forgot[p.Name] {
			t.Errorf("%s was forgotten, and is back", p.Name)
		}
	}
	lost := 0
	for name := range in {
		if !here[name] && !out[name] && !begun[name] {
			lost++
		}
	}
	if lost > unsaid {
		t.Errorf("%d people are lost, and at most %d lost their labels", lost, unsaid)
	}
	faces, records, events := 0, 0, 0
	nothing(t, g.Rows().Look(func(tx *gallery.Tx) error {
		for n, sql := range map[*int]string{
			// The learner has no use for what was denied of a person who has no faces.
			&faces: "select count(*) from label where valid and (not rejected or person in " +
				"(select person from label where valid and not rejected))",
			&events:  "select count(*) from event",
			&records: "select count(*) from sighting",
		} {
			all, err := tx.Int(sql)
			if err != nil {
				return err
			}
			*n = int(all)
		}
		for r := range tx.Rows("pragma integrity_check") {
			if s := r.ColumnText(0); s != "ok" {
				t.Error(s)
			}
		}
		return tx.Err()
	}))
	nothing(t, office.Folded(g))
	if labels := len(g.Learner().Labels()); labels != faces {
		t.Errorf("%d labels, and %d faces", labels, faces)
	}
	t.Logf("%d kills, %d offices opened, %d people in, %d out, %d of them forgotten, %d here, %d "+
		"lost, %d events, %d sightings", kills, opened, len(in), len(out), len(forgot), len(here),
		lost, events, records)
	if opened == 0 || events == 0 || records == 0 || len(forgot) == 0 {
		t.Error("so it tests nothing")
	}
	nothing(t, g.Close())
	for _, end := range []string{"", "-wal"} {
		data, _ := os.ReadFile(path + end)
		for name := range forgot {
			if bytes.Contains(data, []byte(name)) {
				t.Errorf("%s was forgotten, and is in the file %q", name, end)
			}
		}
	}
}
