// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/tape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestMain(m *testing.M) {
	clitest.Main(m, "faceauth", main, func() {
		if folder, err := madeUp(); err == nil {
			os.RemoveAll(folder)
		}
	})
}

func TestPlainScripts(t *testing.T) { clitest.Scripts(t, "testdata/script") }

// Each command that looks at pictures does so with the real eye.
func TestSystemScripts(t *testing.T) {
	t.Parallel()
	long(t)
	clitest.Scripts(t, "testdata/system", tape.RealOnly)
}

// Names of package clitest.
var (
	long       = clitest.Long
	recordings = clitest.Recordings
)

var madeUp = sync.OnceValues(func() (folder string, err error) {
	folder, err = os.MkdirTemp("", "faceauth-test-films-")
	return folder, errors.Join(err, tape.Demo(folder))
})

// films returns a folder of recordings named as those of the demo, of people who are made up. No
// test may change it.
func films(t testing.TB) (folder string) {
	t.Helper()
	return fixture.Must(madeUp())(t)
}

// run executes a command line in this process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRoot(), args, stdout, stderr)
}

// If a source has stopped giving frames, Ctrl-C ends a replay of it at once, and changes nothing.
func TestInterrupted(t *testing.T) {
	stop := make(chan struct{})
	asked := make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-stop
	}))
	defer s.Close()
	defer close(stop)
	dir := t.TempDir()
	path := filepath.Join(dir, "gallery")
	var out, words bytes.Buffer
	enroll := []string{"enroll", filepath.Join(films(t), "alice.avi"), "--name", "alice",
		"--gallery", path, "--models", fixture.Models(t)}
	if code := run(context.Background(), enroll, &out, &words); code != 0 {
		t.Fatalf("enrolling: exit code %d: %s", code, &words)
	}
	before := fixture.Must(os.ReadFile(path))(t)
	out.Reset()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if code := run(ended, []string{"doctor", "--gallery", path}, &out, &words); code != 130 ||
		out.Len() > 0 {
		t.Errorf("doctor: exit code %d: %s", code, &out)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"replay", s.URL, "--learn", "--out", filepath.Join(dir, "out")}, 130},
		{[]string{"watch", s.URL, "--learn"}, 130},
		{[]string{"enroll", s.URL, "--name", "bob"}, 130},
		{[]string{"enroll", s.URL, "--name", "alice", "--add"}, 130},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-asked
			cancel()
		}()
		begun := time.Now()
		words.Reset()
		code := run(ctx, append(c.args, "--gallery", path, "--models", fixture.Models(t),
			"--timeout", "2m"), &out,
			&words)
		if code != c.code || !strings.Contains(words.String(), "interrupted") {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, &words)
		}
		// A hang would last until the timeout.
		t.Logf("%s ended after %v", c.args[0], time.Since(begun))
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%v changed the gallery; %v", c.args, err)
		}
		cancel()
	}
	// Of several people those before it stay.
	known := filepath.Join(dir, "known")
	for _, name := range []string{"alice", "bob"} {
		fixture.Check(t, os.MkdirAll(filepath.Join(known, name), 0o700))
		fixture.Check(t, os.Symlink(filepath.Join(films(t), name+".avi"),
			filepath.Join(known, name, "a.avi")))
	}
	ctx, first := context.WithCancel(context.Background())
	words.Reset()
	code := run(ctx, []string{"enroll", "--people", known, "--gallery", path + "2", "--models",
		fixture.Models(t)}, ending(first), &words)
	const want = "interrupted; 1 of 2 people were enrolled"
	if code != 130 || !strings.Contains(words.String(), want) {
		t.Errorf("--people: exit code %d: %s", code, &words)
	}
}

// ending ends a command that prints.
type ending func()

func (e ending) Write(p []byte) (int, error) {
	e()
	return len(p), nil
}

// A flag means the same in every command.
func TestMeanings(t *testing.T) {
	means := map[string]string{"infrared": "", "rotate": "", "challenge": "", "out": "", "fps": "",
		"strangers": "", "from": "", "state": "", "learn": ""} // each with its own words
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			meaning := fmt.Sprintf("%s, by default %q: %s", f.Value.Type(), f.DefValue, f.Usage)
			other, there := means[f.Name]
			if !there {
				means[f.Name] = meaning
			} else if other != "" && other != meaning {
				t.Errorf("--%s of %s: %s; elsewhere: %s", f.Name, c.CommandPath(), meaning, other)
			}
		})
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRoot())
}

// A program can open the file of any name that it gets, and a table keeps its lines and columns.
func TestNames(t *testing.T) {
	for _, n := range []string{"plain.mp4", "caf\xe9.mp4", "new\nline\ttab.mp4", "張.mp4", ""} {
		b := fixture.Must(json.Marshal(footage.Name(n)))(t)
		var got string
		if json.Unmarshal(b, &got) != nil {
			var both struct{ Text, Base64 string }
			fixture.Check(t, json.Unmarshal(b, &both))
			raw, err := base64.StdEncoding.DecodeString(both.Base64)
			if err != nil || !strings.Contains(both.Text, "caf") {
				t.Errorf("%q: %s, %v", n, b, err)
			}
			got = string(raw)
		}
		if got != n {
			t.Errorf("%q came back as %q", n, got)
		}
		if strings.ContainsAny(cell(n), "\n\t\r") {
			t.Errorf("the cell %q", cell(n))
		}
	}
}

// The exit code says that something was not looked at, unless something worse happened.
func TestReadingEnd(t *testing.T) {
	left := footage.Left{Path: "a.heic", Why: ".heic (cannot be read here)"}
	one := footage.Left{Path: "a.mp4", Why: "it is broken"}
	for name, c := range map[string]struct {
		r    *reading
		err  error
		n    int
		code int
		text string
	}{
		"all was read": {&reading{}, nil, 2, 0, ""},
		"nobody, all was read": {&reading{}, cli.Fail(cli.Refused, errors.New("none")), 2,
			cli.Refused, "none"},
		"left out": {&reading{left: []footage.Left{left}}, nil, 2, cli.Partly, "left out: 1 .heic"},
		"nobody, one unread": {&reading{noun: "recording", unread: []footage.Left{one}},
			cli.Fail(cli.Refused, errors.New("none")),
			2, cli.Partly, "none; 1 of 2 recordings could not be read: a.mp4; alice may be there"},
		"a part is missing": {&reading{short: []footage.Left{one}}, nil, 1, cli.Partly,
			"a part is missing of a.mp4"},
		"nothing was read": {&reading{unread: []footage.Left{one}}, nil, 1, cli.BadSource,
			"a.mp4: it is broken"},
		"something worse": {&reading{unread: []footage.Left{one}}, cli.Fail(cli.BadGallery,
			errors.New("bad")), 2, cli.BadGallery, "bad"},
	} {
		err := c.r.end(c.err, c.n, "alice")
		text := ""
		if err != nil {
			text = err.Error()
		}
		if cli.Code(err) != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d %q, want %d %q", name, cli.Code(err), text, c.code, c.text)
		}
	}
}
