// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/tape"
)

// killedSite has all folders that a program may write to below one.
type killedSite struct {
	site
	top string
}

// folders are those of a [killedSite], by the variables that name them.
var folders = map[string]string{"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run",
	"XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data",
	"XDG_STATE_HOME": "state"}

func newKilledSite(t *testing.T, films string, gallery *site) *killedSite {
	top := t.TempDir()
	s := &killedSite{site{t: t, dir: filepath.Join(top, "gallery"),
		run: filepath.Join(top, "run"), demo: films}, top}
	for _, name := range folders {
		fixture.Check(t, os.Mkdir(filepath.Join(top, name), 0o700))
	}
	fixture.Check(t, os.Mkdir(filepath.Join(top, "cwd"), 0o700))
	fixture.Check(t, os.CopyFS(s.dir, os.DirFS(gallery.dir)))
	return s
}

func (s *killedSite) command(args ...string) *exec.Cmd {
	c := s.site.command(args...)
	c.Dir = filepath.Join(s.top, "cwd")
	for variable, name := range folders {
		c.Env = append(c.Env, variable+"="+filepath.Join(s.top, name))
	}
	return c
}

// kept is where pictures and vectors are meant to be: the gallery with its log and its copies of
// each day, the index of searches, and what the user asked for.
var kept = regexp.MustCompile(`^(gallery/gallery(-wal|-shm|-journal|-[0-9-]+)?` +
	`|cache/faceauth/.*\.db(-wal|-shm|-journal)?|cwd/out(/[^.].*)?)$`)

// holds reports whether a file holds a picture or a vector. Random bytes do so once in a million
// files of their size here.
func holds(b, vector []byte) bool {
	for _, mark := range []string{"\xff\xd8\xff", "\x89PNG\r\n", "data:image/", string(vector)} {
		if bytes.Contains(b, []byte(mark)) {
			return true
		}
	}
	return false
}

// left returns the files with somebody's picture or vector where none belongs.
func (s *killedSite) left(vector []byte) (all []string) {
	fixture.Check(s.t, filepath.WalkDir(s.top, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.top, path)
		if err != nil || d.IsDir() || kept.MatchString(name) {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && holds(b, vector) {
			all = append(all, name)
		}
		return nil
	}))
	return all
}

// uploads sends pictures to the page of a running office, until ctx ends.
func (s *killedSite) uploads(ctx context.Context, log *fixture.Log) {
	picture := tape.JPEG(tape.Moving("alice", .5, 3))
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Millisecond)
		address := regexp.MustCompile(`http://\S+/`).FindString(log.String())
		if address == "" {
			continue
		}
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"api/recognise",
			bytes.NewReader(picture))
		if err != nil {
			s.t.Error(err)
			return
		}
		q.Header.Set("Content-Type", "image/jpeg")
		if a, err := http.DefaultClient.Do(q); err == nil {
			a.Body.Close()
		}
	}
}

// However a program or its eye is killed, no picture and no vector of a person is left, but in the
// gallery, in the index of searches and in what the user asked for. What was sent to an office is
// gone when the next program begins.
func TestSystemKilledLeavesNobody(t *testing.T) {
	t.Parallel()
	long(t)
	seed := number(t, slowSeed, rand.Uint64())
	t.Logf("%s=%d", slowSeed, seed)
	r := rand.New(rand.NewPCG(seed, 1))
	films := films(t)
	gallery := &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: films}
	gallery.enrol("alice")
	gallery.enrol("bob")
	for _, args := range [][]string{{"watch", gallery.recording("recording"), "--learn"},
		{"office", "door=" + gallery.recording("recording"), "--fast", "--state", "home"}} {
		if out, err := gallery.command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	vector := enrolled(t, filepath.Join(gallery.dir, "gallery"))
	film := filepath.Join(films, "recording.avi")
	album := filepath.Join(t.TempDir(), "album")
	fixture.Check(t, os.Mkdir(album, 0o700))
	for i, who := range []string{"alice", "carol", "bob", "alice"} {
		path := filepath.Join(album, fmt.Sprint(i, ".jpg"))
		fixture.Check(t, os.WriteFile(path, tape.JPEG(tape.Moving(who, .5, i)), 0o600))
	}
	picture := filepath.Join(album, "0.jpg")
	commands := [][]string{
		{"office", "door=" + film, "--fast", "--state", "home", "--clips-mb", "9"},
		{"office", "door=" + film, "--fast", "--stay", "--page", "127.0.0.1:0"},
		{"watch", film, "--learn"},
		{"replay", film, "--out", "out"},
		{"search", film, album, "--name", "alice", "--out", "out"},
		{"search", album, "--like", picture, "--no-index"},
		{"who", album},
		{"enroll", filepath.Join(films, "bob.avi"), "--name", "carol"},
		{"enroll", picture, "--name", "carol"},
		{"enroll", picture, "--name", "alice", "--add"},
		{"people", "remove", "alice"},
		{"people", "rename", "alice", "dora"},
		{"people", "undo", "1h"},
		{"people", "confirm", "alice"},
		{"backup", "out"},
		{"audit", "--sheet", "out"},
		{"office", "visits", "--state", "home", "--csv"},
		{"doctor"},
	}
	// Half of them, from one that the seed chooses: the next run has others.
	sent, runs := 0, int(number(t, slowRuns, uint64(len(commands)/2)))
	for i := range runs {
		args := commands[(i+int(seed%uint64(len(commands))))%len(commands)]
		s := newKilledSite(t, films, gallery)
		c := s.command(args...)
		log, shown := new(fixture.Log), slices.Contains(args, "--page")
		c.Stderr = log
		fixture.Check(t, c.Start())
		ctx, cancel := context.WithCancel(t.Context())
		uploaded := make(chan struct{})
		go func() {
			defer close(uploaded)
			if shown {
				s.uploads(ctx, log)
			}
		}()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Wait()
		}()
		life := time.Duration(r.Int64N(int64(time.Second)))
		if r.IntN(2) == 0 { // on a busy machine, its work has begun
			waits(t, "an eye", func() bool {
				select {
				case <-ended:
					return true
				default:
					return len(children(c.Process.Pid)) > 0
				}
			})
		}
		select {
		case <-ended:
		case <-time.After(life):
		}
		if r.IntN(4) == 0 {
			for _, eye := range children(c.Process.Pid) {
				syscall.Kill(eye, syscall.SIGKILL)
			}
			time.Sleep(life / 10)
		}
		c.Process.Kill()
		<-ended
		cancel()
		<-uploaded
		left := s.left(vector)
		if strings.Contains(fmt.Sprint(left), "run/faceauth-picture-") {
			if out, err := s.command("who", picture).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			left = s.left(vector)
			sent++
		}
		if len(left) > 0 {
			t.Errorf("%s, killed after %v: %v is left", strings.Join(args, " "), life, left)
		}
	}
	t.Logf("%d kills, %d of them while a picture was looked at", runs, sent)
}

// enrolled returns an enrolled vector of a gallery, as it is in files.
func enrolled(t *testing.T, path string) (vector []byte) {
	t.Helper()
	db := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	defer db.Close()
	fixture.Check(t, db.Query("select vector from label order by id limit 1",
		func(r store.Row) error {
			vector = bytes.Clone(r.ColumnRawBlob(0))
			return nil
		}))
	if len(vector) < 256 {
		t.Fatalf("a vector of %d bytes", len(vector))
	}
	return vector[:64]
}

// A daemon that is killed while it looks, enrols or rests leaves its sealed profiles alone.
func TestSystemKilledDaemon(t *testing.T) {
	long(t)
	t.Parallel()
	seed := number(t, slowSeed, rand.Uint64())
	t.Logf("%s=%d", slowSeed, seed)
	r := rand.New(rand.NewPCG(seed, 2))
	d := newDevice(t)
	d.camera(posing(t, "user"))
	d.start()
	d.enrolSeen()
	known := regexp.MustCompile(
		`^(camera|check|key|services|socket.*|pam_faceauth.so|state/profiles(-wal|-shm|-journal)?)$`)
	for i := range 4 {
		asks := exec.Command("faceauth", "login", []string{"try", "enroll"}[i%2], "--user",
			"nobody",
			"--socket", string(d.client))
		fixture.Check(t, asks.Start())
		time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
		d.stop(syscall.SIGKILL)
		asks.Wait()
		fixture.Check(t, filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
			name, _ := filepath.Rel(d.dir, path)
			if err == nil && !e.IsDir() && !known.MatchString(name) {
				t.Errorf("%s is left", name)
			}
			return err
		}))
		b, err := os.ReadFile(filepath.Join(d.dir, "state", "profiles"))
		if err != nil || holds(b, []byte("\xff\xd8\xff")) {
			t.Errorf("the profiles: %v", err)
		}
		d.start()
	}
}
