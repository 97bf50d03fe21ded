// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/tape"
)

// slowSeed repeats the pauses of a run, and slowRuns sets their number.
const slowSeed, slowRuns = "FACEAUTH_SLOW_SEED", "FACEAUTH_SLOW_RUNS"

// hundredth is how much faster the clock of these tests runs: a pause of 40 s takes 0.4 s. No
// constant of time in the program changes an answer about a recording, so nothing else has to be
// scaled but the user's --timeout, of 10 s.
const hundredth = 100

// longestStop is the longest pause, on the clock of the tests.
const longestStop = 40 * time.Second

// number returns a number of the environment, or another one.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		return fixture.Must(strconv.ParseUint(text, 10, 64))(t)
	}
	return otherwise
}

// pauses stops and continues a program and its eyes, by turns or together, until ctx ends. It
// returns the number of stops.
func pauses(ctx context.Context, program int, r *rand.Rand, scale int64) (stops int) {
	between := func(most time.Duration) { time.Sleep(time.Duration(r.Int64N(int64(most) / scale))) }
	for ctx.Err() == nil {
		between(10 * time.Second)
		var chosen []int
		eyes := children(program)
		switch r.IntN(3) {
		case 0:
			chosen = []int{program}
		case 1:
			chosen = eyes
		default:
			chosen = append(eyes, program)
		}
		for _, pid := range chosen {
			if syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stops++
			}
		}
		between(longestStop)
		for _, pid := range chosen {
			syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	return stops
}

// children returns the processes that a process has started.
func children(of int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path)
		var name, state string
		var pid, parent int
		fmt.Sscan(string(b), &pid, &name, &state, &parent)
		if parent == of {
			all = append(all, pid)
		}
	}
	return all
}

// slowSite is a site for one run of a command, with a gallery of its own.
type slowSite struct{ site }

var (
	stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	dates  = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
)

// outcome is all that a run leaves: its exit code, its output, its files and its rows. Times count
// from the first one.
func (s *slowSite) outcome(t *testing.T, args []string,
	pause func(ctx context.Context, program int)) string {
	t.Helper()
	c := s.command(args...)
	c.Env = append(c.Env, "XDG_CACHE_HOME="+s.dir)
	var all bytes.Buffer
	c.Stdout, c.Stderr = &all, &all
	fixture.Check(t, c.Start())
	ctx, cancel := context.WithCancel(t.Context())
	paused := make(chan struct{})
	go func() {
		defer close(paused)
		if pause != nil {
			pause(ctx, c.Process.Pid)
		}
	}()
	c.Wait()
	cancel()
	<-paused
	fmt.Fprintf(&all, "exit code %d\n", c.ProcessState.ExitCode())
	fixture.Check(t, filepath.WalkDir(filepath.Join(s.dir, "out"),
		func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b := fixture.Must(os.ReadFile(path))(t)
				fmt.Fprintf(&all, "%s: %s\n", path, b)
			}
			return nil
		}))
	s.rows(t, &all)
	text := strings.ReplaceAll(all.String(), s.dir, "DIR")
	return dates.ReplaceAllString(since(text), "DATE")
}

// rows writes the rows of people, sightings, events and faces, but the times of the clock on the
// wall.
func (s *slowSite) rows(t *testing.T, all *bytes.Buffer) {
	t.Helper()
	db := fixture.Must(store.Open(filepath.Join(s.dir, "gallery"), store.Schema{}, false))(t)
	defer db.Close()
	for _, q := range []string{
		`select json_array(id, camera, first - (select min(first) from sighting), last - first,
			person, trust, stranger, size) from sighting order by id`,
		`select json_array(number, kind, person, stranger, camera, trust, at - (select min(first)
			from sighting), known - at) from event order by number`,
		`select json_array(number, sighting, stranger, camera, at - (select min(first)
			from sighting), hex(vector), hex(jpeg)) from face order by number`,
		`select json_array(id, name) from person order by id`,
	} {
		fixture.Check(t, db.Query(q, func(r store.Row) error {
			fmt.Fprintln(all, r.ColumnText(0))
			return nil
		}))
	}
}

// since replaces times by those since the first one.
func since(text string) string {
	var first time.Time
	return stamps.ReplaceAllStringFunc(text, func(x string) string {
		at, err := time.Parse(time.RFC3339Nano, x)
		if err != nil {
			return x
		}
		if first.IsZero() {
			first = at
		}
		return at.Sub(first).String()
	})
}

// slowCommands are commands about recordings.
func slowCommands(dir string, film, album string) map[string][]string {
	out := filepath.Join(dir, "out")
	return map[string][]string{
		"office": {"office", "door=" + film, "--fast", "--json", "--state", "home", "--timeout",
			"100ms"},
		"replay": {"replay", film, "--out", out, "--timeout", "100ms"},
		"search": {"search", film, album, "--name", "alice", "--json", "--timeout", "100ms"},
		"who":    {"who", album, "--json", "--timeout", "100ms"},
		"enroll": {"enroll", filepath.Join(filepath.Dir(film), "bob.avi"), "--name", "bob",
			"--timeout", "100ms"},
	}
}

// slowly runs the commands without pauses, and then so many times with pauses, and compares what
// they leave to the byte.
func slowly(t *testing.T, folder, film, album, eye string, runs int) {
	t.Helper()
	seed := number(t, slowSeed, rand.Uint64())
	t.Logf("%s=%d, %d runs", slowSeed, seed, runs)
	gallery := &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: folder, eye: eye}
	gallery.enrol("alice")
	begin := func(name string) (*slowSite, []string) {
		s := &slowSite{site: site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: folder, eye: eye}}
		fixture.Check(t, os.CopyFS(s.dir, os.DirFS(gallery.dir)))
		return s, slowCommands(s.dir, filepath.Join(folder, film), album)[name]
	}
	names := []string{"office", "replay", "search", "who", "enroll"}
	want := map[string]string{}
	for _, name := range names {
		s, args := begin(name)
		want[name] = s.outcome(t, args, nil)
		if !strings.Contains(want[name], "exit code 0") {
			t.Fatalf("%s: %s", name, want[name])
		}
	}
	stops := 0
	for i := range runs {
		name := names[i%len(names)]
		s, args := begin(name)
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		got := s.outcome(t, args, func(ctx context.Context, program int) {
			stops += pauses(ctx, program, r, hundredth)
		})
		if got != want[name] {
			t.Fatalf("run %d, %s: it leaves\n%.3000s\nand without pauses\n%.3000s", i, name, got,
				want[name])
		}
	}
	t.Logf("%d stops", stops)
	if stops < runs {
		t.Errorf("only %d stops in %d runs", stops, runs)
	}
}

// However a program and its eye are stopped and go on, at any moment, what they say about
// recordings is the same to the byte: output, exit codes, reports and rows.
func TestSystemSlow(t *testing.T) {
	long(t)
	t.Parallel()
	album := filepath.Join(t.TempDir(), "album")
	fixture.Check(t, os.Mkdir(album, 0o700))
	for i, who := range []string{"alice", "carol", "bob", "alice"} {
		fixture.Check(t, os.WriteFile(filepath.Join(album, fmt.Sprintf("%c.jpg", 'a'+i*3)),
			tape.JPEG(tape.Moving(who, .5, i)), 0o600))
	}
	slowly(t, films(t), "recording.avi", album, "", int(number(t, slowRuns, 10)))
}

// The same with the real eye.
func TestSystemSlowEye(t *testing.T) {
	long(t)
	t.Parallel()
	stills, folder := recordings(t)
	all := fixture.Must(filepath.Glob(filepath.Join(stills, "*", "*.*g*")))(t)
	album := filepath.Join(t.TempDir(), "album")
	fixture.Check(t, os.Mkdir(album, 0o700))
	for i := 0; i < len(all); i += max(1, len(all)/4) {
		picture := fixture.Must(os.ReadFile(all[i]))(t)
		path := filepath.Join(album, fmt.Sprintf("%03d%s", i, filepath.Ext(all[i])))
		fixture.Check(t, os.WriteFile(path, picture, 0o600))
	}
	slowly(t, folder, "brief.avi", album, tape.RealOnly, int(number(t, slowRuns, 5)))
}

// Before a live camera pauses cost frames only: nobody leaves who stays, and nobody is announced
// twice.
func TestSystemSlowCamera(t *testing.T) {
	long(t)
	seed := number(t, slowSeed, rand.Uint64())
	t.Logf("%s=%d", slowSeed, seed)
	s := newSite(t)
	s.enrol("alice")
	camera := s.newStage("alice")
	shown := [][]byte{}
	for i := range 40 {
		shown = append(shown, tape.JPEG(tape.Moving("alice", .2, i), tape.Moving("carol", .8, i)))
	}
	camera.mu.Lock()
	camera.pictures = shown
	camera.mu.Unlock()
	r := s.office("door="+camera.URL, "--away", "2s", "--timeout", "1m", "--fps", "1000")
	r.until("alice has arrived")
	r.until("somebody unknown")
	r.until("fewer than half of the 1000 asked for")
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	stops := pauses(ctx, r.c.Process.Pid, rand.New(rand.NewPCG(seed, 0)), 5) // of 8 s at most
	r.stop()
	out := r.out.String()
	if strings.Count(out, "has arrived") != 1 || strings.Count(out, "somebody unknown") != 1 ||
		strings.Contains(out, "has left") || stops < 4 {
		t.Errorf("after %d stops: %s", stops, out)
	}
}

// What is killed leaves no picture and no vector of a person but in its gallery, its report and the
// index.
func TestSystemKilledLeavesNobody(t *testing.T) {
	long(t)
	seed := number(t, slowSeed, rand.Uint64())
	t.Logf("%s=%d", slowSeed, seed)
	r := rand.New(rand.NewPCG(seed, 1))
	folder := films(t)
	gallery := &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: folder}
	gallery.enrol("alice")
	for i := range int(number(t, slowRuns, 10)) {
		s := &slowSite{site: site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: folder}}
		fixture.Check(t, os.CopyFS(s.dir, os.DirFS(gallery.dir)))
		all := slowCommands(s.dir, filepath.Join(folder, "recording.avi"), folder)
		args := all[[]string{"office", "replay", "search", "who", "enroll"}[i%5]]
		c := s.command(args...)
		temporary := t.TempDir()
		c.Env = append(c.Env, "XDG_CACHE_HOME="+s.dir, "TMPDIR="+temporary)
		fixture.Check(t, c.Start())
		time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
		c.Process.Kill()
		c.Wait()
		for _, dir := range []string{temporary, s.run} {
			if left := fixture.Must(os.ReadDir(dir))(t); len(left) > 0 {
				t.Errorf("%v leaves %v", args, left)
			}
		}
	}
}
