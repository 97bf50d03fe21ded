// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/tape"
)

// A search that is killed or interrupted loses at most 64 photographs, and the next one looks at
// the rest alone. Then one that is new costs one look, and a renamed album none.
func TestPlainInterruptedAlbum(t *testing.T) {
	const pictures = 300
	for name, stop := range map[string]syscall.Signal{"kill -9": syscall.SIGKILL,
		"Ctrl-C": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.enrol("alice")
			file := func(name string) string { return filepath.Join(s.dir, name) }
			album, looks, index := file("album"), file("looks"), file("index")
			put := func(folder, name string) {
				fixture.Check(t, os.MkdirAll(filepath.Join(album, folder), 0o700))
				picture := tape.JPEG(tape.Moving("alice", .5, len(name)))
				fixture.Check(t, os.WriteFile(filepath.Join(album, folder, name), picture, 0o600))
			}
			for i := range pictures {
				put(fmt.Sprint(i%7), fmt.Sprintf("%03d.jpg", i))
			}
			looked := func() int { return int(fixture.Must(os.Stat(looks))(t).Size()) }
			search := func(hold int) string {
				fixture.Check(t, os.WriteFile(looks, nil, 0o600))
				c := s.command("search", album, "--name", "alice", "--jobs", "2", "--index", index)
				c.Env = append(c.Env, tape.Looks+"="+looks, fmt.Sprintf("%s=%d", tape.Hold, hold))
				var out bytes.Buffer
				c.Stdout, c.Stderr = &out, &out
				fixture.Check(t, c.Start())
				for begun := time.Now(); hold > 0 &&
					looked() < hold; time.Sleep(10 * time.Millisecond) {
					if time.Since(begun) > 2*time.Minute {
						t.Fatalf("only %d pictures are looked at: %s", looked(), &out)
					}
				}
				if hold > 0 {
					fixture.Check(t, c.Process.Signal(stop))
				}
				c.Wait()
				return out.String()
			}
			said := search(150)
			first := looked()
			if told := strings.Contains(said,
				"of 300 pictures are in the index"); told != (stop == syscall.SIGINT) {
				t.Errorf("it says %s", said)
			}
			for _, step := range []struct {
				what                  string
				do                    func()
				least, most, pictures int
			}{
				{"the rest", func() {}, pictures - first, pictures - first + 64, pictures},
				{"a new one", func() { put("new", "another.jpg") }, 1, 1, pictures + 1},
				{"all is renamed", func() {
					fixture.Check(t, os.Rename(album, album+"2"))
					album += "2"
				}, 0, 0, pictures + 1},
			} {
				step.do()
				said := search(0)
				want := fmt.Sprintf("alice is in %d of %[1]d pictures", step.pictures)
				if n := looked(); n < step.least || n > step.most || !strings.Contains(said, want) {
					t.Errorf("%s: %d looks, want %d to %d: %s", step.what, n, step.least, step.most,
						said)
				}
			}
		})
	}
}

// What search finds is in the folder of --out under its own name: once, however often it is put
// there, and with a number where another file has the name. It is a copy where no link can be made.
func TestCollected(t *testing.T) {
	none := func(string, string) error { return syscall.EXDEV }
	for name, link := range map[string]func(string, string) error{
		"linked": os.Link, "copied": none} {
		dir, out := t.TempDir(), t.TempDir()
		for _, f := range []struct{ path, content string }{{"a/1.jpg", "one"}, {"b/1.jpg", "two"},
			{"c/2.jpg", "one"}} {
			path := filepath.Join(dir, f.path)
			fixture.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
			fixture.Check(t, os.WriteFile(path, []byte(f.content), 0o600))
			fixture.Check(t, os.Symlink(path, path+".link.jpg"))
			for _, p := range []string{path, path, path + ".link.jpg"} {
				fixture.Check(t, collected(out, p, link))
			}
		}
		got := ""
		for _, e := range fixture.Must(os.ReadDir(out))(t) {
			path := filepath.Join(out, e.Name())
			same := os.SameFile(fixture.Must(os.Lstat(path))(t),
				fixture.Must(os.Stat(filepath.Join(dir, "b/1.jpg")))(t))
			got += fmt.Sprintf("%s %s %v\n", e.Name(), fixture.Must(os.ReadFile(path))(t), same)
		}
		want := "1-2.jpg two false\n1.jpg one false\n1.jpg.link-2.jpg two false\n" +
			"1.jpg.link.jpg one false\n" +
			"2.jpg one false\n2.jpg.link.jpg one false\n"
		if name == "linked" {
			want = strings.ReplaceAll(want, "two false", "two true")
		}
		if got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A small album is divided among the cores, but not into pieces that do not pay.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		pictures int
		jobs     uint
		want     []int
	}{{3, 2, []int{3}}, {10, 1, []int{10}}, {10, 2, []int{5, 5}}, {9, 4, []int{4, 4, 1}},
		{130, 2, []int{64, 64, 2}}, {0, 2, nil}} {
		o := options{reading: &reading{}}
		v := footage.Inventory{}
		if c.pictures > 0 {
			v.Items = []footage.Item{{Path: "album", Files: make([]string, c.pictures)}}
		}
		var got []int
		for _, p := range o.parts(v, c.jobs) {
			got = append(got, len(p.Files))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d pictures for %d jobs: %d, want %d", c.pictures, c.jobs, got, c.want)
		}
	}
}
