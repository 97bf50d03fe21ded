// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/tape"
	"golang.org/x/sys/unix"
)

// slowSeed repeats the pauses of a run, and slowRuns sets their number.
//
// slowClock is how much faster the clock of these tests runs, 100 by default: a pause of 40 s takes
// 0.4 s. No constant of time in the program changes an answer about a recording, so nothing else
// has to be scaled but the user's --timeout, of 10 s; 1 proves that.
const (
	slowSeed, slowRuns = "FACEAUTH_SLOW_SEED", "FACEAUTH_SLOW_RUNS"
	slowClock          = "FACEAUTH_SLOW_CLOCK"
)

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

// pauser stops and continues a program and its eyes.
type pauser struct {
	*rand.Rand
	scale                          int64        // of its clock
	random, eyes, commits, answers atomic.Int64 // the number of stops, by their moment
}

// between waits for a time of at most so long, on the clock of the tests.
func (p *pauser) between(most time.Duration) {
	time.Sleep(time.Duration(p.Int64N(int64(most) / p.scale)))
}

// pauses stops and continues a program and its eyes, by turns or together, until ctx ends.
func (p *pauser) pauses(ctx context.Context, program int) {
	for ctx.Err() == nil {
		p.between(10 * time.Second)
		var chosen []int
		eyes := children(program)
		switch p.IntN(3) {
		case 0:
			chosen = []int{program}
		case 1:
			chosen = eyes
		default:
			chosen = append(eyes, program)
		}
		for _, pid := range chosen {
			if syscall.Kill(pid, syscall.SIGSTOP) == nil {
				p.random.Add(1)
			}
		}
		p.between(longestStop)
		for _, pid := range chosen {
			syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// wakes continues a program and its eyes, which were stopped by the eye ([tape.Stops]), while the
// program committed, or before it was answered, until ctx ends.
func (p *pauser) wakes(ctx context.Context, program int) {
	for ctx.Err() == nil {
		eyes := slices.DeleteFunc(children(program), func(pid int) bool { return !stopped(pid) })
		if len(eyes) > 0 || stopped(program) {
			p.eyes.Add(int64(len(eyes)))
			p.between(longestStop)
			for _, pid := range append(eyes, program) {
				syscall.Kill(pid, syscall.SIGCONT)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// mostCommits is how often a run is stopped while it commits.
const mostCommits = 10

// commit stops a program while it writes the log of its database, until ctx ends.
func (p *pauser) commit(ctx context.Context, program int, dir string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	log := os.NewFile(uintptr(fd), "inotify")
	defer log.Close()
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MODIFY); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { log.Close() })
	for b := make([]byte, 4096); p.commits.Load() < mostCommits; {
		n, err := log.Read(b)
		if err != nil {
			return ctx.Err()
		}
		if bytes.Contains(b[:n], []byte("gallery-wal")) &&
			syscall.Kill(program, syscall.SIGSTOP) == nil {
			p.commits.Add(1)
		}
	}
	return nil
}

// children returns the processes that a process has started.
func children(of int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, path := range lists {
		b, _ := os.ReadFile(path)
		for _, pid := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(pid)
			all = append(all, n)
		}
	}
	return all
}

// stopped reports whether a process is.
func stopped(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return bytes.Contains(b, []byte(") T "))
}

// hook is a webhook, which stops a program before it answers, if it is told to.
type hook struct {
	URL string

	mu   sync.Mutex
	got  []string // events, each once
	stop func()
}

func newHook(t *testing.T) *hook {
	h := new(hook)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil { // a stop was longer than a try
			return
		}
		h.mu.Lock()
		if !slices.Contains(h.got, string(b)) {
			h.got = append(h.got, string(b))
		}
		stop := h.stop
		h.mu.Unlock()
		if stop != nil {
			stop()
		}
	}))
	t.Cleanup(s.Close)
	h.URL = s.URL
	return h
}

// aims stops a program and its eyes when the eye starts or answers, while the program commits, and
// before its webhook answers, until ctx ends.
func (p *pauser) aims(t *testing.T, ctx context.Context, program int, s *slowSite) {
	s.hook.mu.Lock()
	s.hook.stop = func() {
		if syscall.Kill(program, syscall.SIGSTOP) != nil {
			return
		}
		n := p.answers.Add(1)
		for n%2 == 0 && stopped(program) { // every other answer comes when it goes on
			time.Sleep(time.Millisecond)
		}
	}
	s.hook.mu.Unlock()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		err := p.commit(ctx, program, s.dir)
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	p.wakes(ctx, program)
}

// slowSite is a site for one run of a command, with a gallery of its own.
type slowSite struct {
	site
	hook *hook
	stop string // whom an eye stops, and when
}

var (
	tries  = regexp.MustCompile(`(?m)^faceauth: webhook: .*\n`) // a stop was longer than a try
	stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	dates  = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
)

// outcome is all that a run leaves: its exit code, its output, its files and its rows. Times count
// from the first one.
func (s *slowSite) outcome(t *testing.T, args []string,
	pause func(ctx context.Context, program int)) string {
	t.Helper()
	c := s.command(args...)
	c.Env = append(c.Env, "XDG_CACHE_HOME="+s.dir, tape.Stops+"="+s.stop)
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
	if strings.Contains(all.String(), "not delivered yet") { // the next start delivers it
		nobody := filepath.Join(s.run, "nobody.avi")
		fixture.Check(t, tape.Film{FPS: 15, Frames: make([][]tape.Actor, 15)}.Write(nobody))
		c := s.command("office", "door="+nobody, "--fast", "--state", "home", "--webhook",
			s.hook.URL)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	s.hook.mu.Lock()
	fmt.Fprintln(&all, strings.Join(s.hook.got, "\n"))
	s.hook.mu.Unlock()
	text := strings.ReplaceAll(tries.ReplaceAllString(all.String(), ""), s.dir, "DIR")
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
func slowCommands(dir, film, album, webhook string) map[string][]string {
	out := filepath.Join(dir, "out")
	return map[string][]string{
		"office": {"office", "door=" + film, "--fast", "--json", "--state", "home", "--timeout",
			"100ms", "--webhook", webhook},
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
	scale := int64(number(t, slowClock, 100))
	gallery := &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: folder, eye: eye}
	gallery.enrol("alice")
	begin := func(name, stop string) (*slowSite, []string) {
		s := &slowSite{hook: newHook(t), stop: stop,
			site: site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: folder, eye: eye}}
		fixture.Check(t, os.CopyFS(s.dir, os.DirFS(gallery.dir)))
		return s, slowCommands(s.dir, filepath.Join(folder, film), album, s.hook.URL)[name]
	}
	names := []string{"office", "replay", "search", "who", "enroll"}
	want := map[string]string{}
	for _, name := range names {
		s, args := begin(name, "")
		want[name] = s.outcome(t, args, nil)
		if !strings.Contains(want[name], "exit code 0") {
			t.Fatalf("%s: %s", name, want[name])
		}
	}
	stops := map[string]int64{}
	for i := range runs {
		p := &pauser{Rand: rand.New(rand.NewPCG(seed, uint64(i))), scale: scale}
		name, aimed, stop := names[(uint64(i)+seed)%uint64(len(names))], i%2 == 1, ""
		if aimed {
			at := 0 // a real eye stops only when it starts
			if eye == "" {
				at = p.IntN(4)
			}
			stop = fmt.Sprint([]string{"eye", "program", "both"}[p.IntN(3)], " ", at)
		}
		s, args := begin(name, stop)
		got := s.outcome(t, args, func(ctx context.Context, program int) {
			if aimed {
				p.aims(t, ctx, program, s)
			} else {
				p.pauses(ctx, program)
			}
		})
		if got != want[name] {
			at := 0 // of the first byte that differs
			for at < min(len(got), len(want[name])) && got[at] == want[name][at] {
				at++
			}
			t.Fatalf("run %d, %s, %q: it leaves\n%.3000s\nand without pauses\n%.3000s", i, name,
				stop, got[max(0, at-300):], want[name][max(0, at-300):])
		}
		stops["at random"] += p.random.Load()
		stops["of eyes"] += p.eyes.Load()
		stops["in commits"] += p.commits.Load()
		stops["before answers"] += p.answers.Load()
	}
	t.Logf("stops: %v", stops)
	for moment, n := range stops {
		if n == 0 && runs >= 2*len(names) {
			t.Errorf("no stop %s in %d runs", moment, runs)
		}
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
	slowly(t, films(t), "recording.avi", album, "", int(number(t, slowRuns, 5)))
}

// The same with the real eye.
func TestSlowEye(t *testing.T) {
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
	slowly(t, folder, "brief.avi", album, tape.RealOnly, int(number(t, slowRuns, 2)))
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
	p := &pauser{Rand: rand.New(rand.NewPCG(seed, 0)), scale: 5} // of 8 s at most
	p.pauses(ctx, r.c.Process.Pid)
	stops := p.random.Load()
	r.stop()
	out := r.out.String()
	if strings.Count(out, "has arrived") != 1 || strings.Count(out, "somebody unknown") != 1 ||
		strings.Contains(out, "has left") || stops < 4 {
		t.Errorf("after %d stops: %s", stops, out)
	}
}
