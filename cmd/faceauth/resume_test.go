// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
)

// begin starts the program.
func begin(t *testing.T, args ...string) (c *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	c = exec.CommandContext(t.Context(), "faceauth", append(args, "--models", fixture.Models(t))...)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	c.Stdout, c.Stderr = stdout, stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, stdout, stderr
}

// killed starts the program, and kills it as soon as a cache has results of a kind that it had not before.
func killed(t *testing.T, cache, kind string, args ...string) {
	t.Helper()
	cached := func() (n int) {
		if _, err := os.Stat(cache); err != nil {
			return 0
		}
		k, err := store.OpenCache(cache)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if _, err := k.Purge(func(of string, _ []byte) bool {
			if of == kind {
				n++
			}
			return false
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := cached()
	c, _, stderr := begin(t, args...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if cached() > before {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("nothing was kept within two minutes: %s", stderr)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Fatal("it came to its end before it was killed")
	}
}

// ended runs the program to its end.
func ended(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	c, out, said := begin(t, args...)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out.String(), said.String()
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A search that was killed continues where it stopped, and finds the same. What a replay has looked at is in the index.
func TestGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("a long recording is composed and looked through three times")
	}
	gallery, dir := enrolled(t, 0), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	film := filepath.Join(dir, "day.avi")
	// One person comes, then another, then the first again. After two minutes nobody is there.
	d := stillDay{fps: 5, empty: 45 * time.Second, sits: 5 * time.Second, leaves: 75 * time.Second, noise: 0}
	p0, p4 := fixture.Recordings(t, "faces/vidtimit_rot/p0"), fixture.Recordings(t, "faces/vidtimit_rot/p4")
	d.writeAll(t, film, 1, 1, p0, p4, p0)

	find := func(index string) []string {
		return []string{"search", film, "--name", "p0", "--gallery", gallery, "--index", filepath.Join(dir, index),
			"--json"}
	}
	all, _ := ended(t, find("all")...)
	killed(t, filepath.Join(dir, "parts"), "search", find("parts")...)
	if rest, _ := ended(t, find("parts")...); rest != all || !strings.Contains(all, `"share"`) {
		t.Errorf("found %s, and where it was killed %s", all, rest)
	}

	ended(t, "replay", film, "--gallery", gallery, "--out", filepath.Join(dir, "report"))
	info, err := os.Stat(film)
	if err == nil {
		err = os.Truncate(film, 0)
	}
	if err == nil {
		err = os.Truncate(film, info.Size()) // nothing in it can be read now
	}
	if err == nil {
		err = os.Chtimes(film, info.ModTime(), info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
	hits, _ := ended(t, "search", film, "--name", "p0", "--gallery", gallery, "--json")
	if strings.Count(hits, `"share"`) != strings.Count(all, `"share"`) {
		t.Errorf("found %s, and by the index of a replay %s", all, hits)
	}
}

// Several recordings at the same time give the same results as one after the other.
func TestSeveralAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("recordings are looked through several times")
	}
	t.Parallel()
	gallery, dir := enrolled(t, 0, 1), t.TempDir()
	p0, p1, p4 := fixture.Sparse(t, "faces/vidtimit_rot/p0", 4), fixture.Sparse(t, "faces/vidtimit_rot/p1", 4),
		fixture.Sparse(t, "faces/vidtimit_rot/p4", 4)
	args := func(out, jobs string) []string {
		return []string{"replay", p0, p1, p4, p0, "--gallery", gallery, "--jobs", jobs, "--out",
			filepath.Join(dir, out)}
	}
	one, _ := ended(t, args("one", "1")...)
	several, _ := ended(t, args("several", "3")...)
	if strings.ReplaceAll(several, "/several/", "/one/") != one || strings.Count(one, "events:") != 4 {
		t.Errorf("%s\nand one after the other\n%s", several, one)
	}
	for _, name := range []string{"p0", "p1", "p4", "p0-2"} {
		path := filepath.Join(name, "events.jsonl")
		if a := content(t, filepath.Join(dir, "one", path)); a == "" ||
			a != content(t, filepath.Join(dir, "several", path)) {
			t.Errorf("%s differs where several are replayed at once", path)
		}
	}
	alone, _ := ended(t, "replay", p1, "--gallery", gallery, "--out",
		filepath.Join(dir, "alone"))
	among := content(t, filepath.Join(dir, "several", "p1", "events.jsonl"))
	if content(t, filepath.Join(dir, "alone", "events.jsonl")) != among || alone == "" {
		t.Error("a recording replayed alone comes to something else than among others")
	}
}
