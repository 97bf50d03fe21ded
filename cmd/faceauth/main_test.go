// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"
)

func TestMain(m *testing.M) { clitest.Main(m, "faceauth", main) }

func TestScripts(t *testing.T) { clitest.Scripts(t) }

// Names of package clitest.
var (
	long       = clitest.Long
	recordings = clitest.Recordings
	eachFrame  = clitest.EachFrame
)

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
	stills, _ := recordings(t)
	var out, words bytes.Buffer
	if code := run(context.Background(), []string{"enroll", filepath.Join(stills, "s2"), "--name", "alice",
		"--gallery",
		path, "--models", fixture.Models(t)}, &out, &words); code != 0 {
		t.Fatalf("enrolling: exit code %d: %s", code, &words)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
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
