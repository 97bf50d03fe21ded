// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
)

// faulty builds the program, with an eye beside it that breaks at a given frame.
func faulty(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "faceauth")
	for path, from := range map[string]string{program: "../../cmd/faceauth", program +
		"-eye": "./testdata/fault"} {
		if out, err := exec.Command("go", "build", "-o", path, from).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return program
}

// A fault in C in the eye, as in a decoder, is reported in one line for its recording, and never
// ends the program.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the program is built with faults in it")
	}
	att := fixture.Recordings(t, "faces/att")
	film := fixture.Recordings(t, "faces/vidtimit_rot/p0")
	program := faulty(t)
	dir := t.TempDir()
	people := filepath.Join(dir, "people")
	fixture.Check(t, os.Mkdir(people, 0o700))
	for i := 1; i <= 4; i++ {
		name := fmt.Sprintf("s%d", i)
		fixture.Check(t, os.Symlink(filepath.Join(att, name), filepath.Join(people, name)))
	}
	gallery := filepath.Join(dir, "gallery")
	run := func(fault string, args ...string) (out string, code int, took time.Duration) {
		t.Helper()
		begun := time.Now()
		c := exec.Command(program, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "FACEAUTH_EYE_FAULT="+fault, "FACEAUTH_MODELS="+
			fixture.Models(t), "GOTRACEBACK=none")
		b, err := c.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(b), c.ProcessState.ExitCode(), time.Since(begun)
	}
	if out, code, _ := run("", "enroll", film, "--name", "p0", "--gallery", gallery); code != 0 {
		t.Fatal(out)
	}
	const cut = `p0: it could not be read beyond \S+( pictures?)?: the eye, the process that decodes, has ended: .*\n`
	for _, c := range []struct {
		name  string
		fault string
		args  []string
		code  int
		want  string // expected output
	}{
		{"replay, abort", "abort 5", []string{"replay", film, "--gallery", gallery}, 9, cut},
		{"replay, segment", "segment 5", []string{"replay", film, "--gallery", gallery}, 9, cut},
		{"replay, memory", "memory 5", []string{"replay", film, "--gallery", gallery}, 9, cut},
		{"replay, panic", "panic 5", []string{"replay", film, "--gallery", gallery}, 9, cut},
		{"replay, at once", "abort 1", []string{"replay", film, "--gallery", gallery}, 3,
			`^faceauth: .*p0: the eye, the process that decodes, has ended: .*\n$`},
		{"replay, spin", "spin 5", []string{"replay", film, "--gallery", gallery}, 9,
			`p0: it could not be read beyond .*: the eye, the process that decodes, gives no answer\n`},
		{"enroll", "abort 3", []string{"enroll", film, "--name", "q", "--gallery", gallery,
			"--force"}, 9, cut},
		{"watch", "abort 5", []string{"watch", film, "--gallery", gallery}, 9, cut},
		{"search", "abort 15", []string{"search", film, filepath.Join(people, "s1"), "--name", "p0",
			"--gallery", gallery, "--fps", "0", "--no-index"}, 9, cut},
		{"office", "abort 30", []string{"office", "a=" + film, "--gallery", gallery, "--fast"}, 9,
			`p0 has arrived\n(.*\n)*` + cut + `(.*\n)*.*p0 has left\n`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code, took := run(c.fault, c.args...)
			t.Logf("%v: %s", took.Round(time.Millisecond), out)
			if code != c.code || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("exit code %d, want %d and %s: %s", code, c.code, c.want, out)
			}
			if strings.Contains(out, "goroutine") {
				t.Error("the trace of a fault is printed")
			}
		})
	}
}
