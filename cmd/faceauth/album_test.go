// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
)

// A search that is killed or interrupted loses at most 64 photographs, and the next one looks at the rest alone. Then
// one that is new costs one look, and a renamed album none.
func TestInterruptedAlbum(t *testing.T) {
	const pictures = 300
	for name, stop := range map[string]syscall.Signal{"kill -9": syscall.SIGKILL, "Ctrl-C": syscall.SIGINT} {
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
				for begun := time.Now(); hold > 0 && looked() < hold; time.Sleep(10 * time.Millisecond) {
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
			if told := strings.Contains(said, "of 300 pictures are in the index"); told != (stop == syscall.SIGINT) {
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
					t.Errorf("%s: %d looks, want %d to %d: %s", step.what, n, step.least, step.most, said)
				}
			}
		})
	}
}
