// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/faceauth/faceauth/internal/tape"
)

func TestMain(m *testing.M) {
	clitest.Main(m, "faceauth", main, func() {
		if folder, err := madeUp(); err == nil {
			os.RemoveAll(folder)
		}
	})
}

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata/script") }

// Each command that looks at pictures does so with the real eye.
func TestSystemScripts(t *testing.T) {
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

// films returns a folder of recordings named as those of the demo, of people who are made up. No test may change it.
func films(t testing.TB) (folder string) {
	t.Helper()
	folder, err := madeUp()
	if err != nil {
		t.Fatal(err)
	}
	return folder
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
	enroll := []string{"enroll", filepath.Join(films(t), "alice.avi"), "--name", "alice", "--gallery", path, "--models",
		fixture.Models(t)}
	if code := run(context.Background(), enroll, &out, &words); code != 0 {
		t.Fatalf("enrolling: exit code %d: %s", code, &words)
	}
	before := fixture.Must(os.ReadFile(path))(t)
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
		code := run(ctx, append(c.args, "--gallery", path, "--models", fixture.Models(t), "--timeout", "3s"), &out,
			&words)
		if code != c.code || !strings.Contains(words.String(), "interrupted") {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, &words)
		}
		// FFmpeg itself gives up after three seconds; a hang would last until the test's own limit.
		t.Logf("%s ended after %v", c.args[0], time.Since(begun))
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%v changed the gallery; %v", c.args, err)
		}
		cancel()
	}
}
