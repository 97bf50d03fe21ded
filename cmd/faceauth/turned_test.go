// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"

	"github.com/faceauth/faceauth/internal/cli"
)

// turnedFolder writes the first 30 pictures of a person of vidtimit_rot, turned by 180 degrees.
func turnedFolder(t *testing.T, person string) string {
	t.Helper()
	dir := t.TempDir()
	names, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/vidtimit_rot/"+person),
		"*.jpg"))
	if err != nil || len(names) < 30 {
		t.Fatalf("%s has %d pictures: %v", person, len(names), err)
	}
	for _, name := range names[:30] {
		img := fixture.Must(facedet.ReadPicture(name))(t)
		turned, err := img.Turn(180)
		img.Close()
		fixture.Check(t, err)
		data, err := turned.JPEG(95)
		turned.Close()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600)
		}
		fixture.Check(t, err)
	}
	return dir
}

// Nobody is enrolled upside down. A turned camera is noticed, and then its pictures are as good as
// upright ones: nobody is confirmed as another person.
func TestSystemSeesTurned(t *testing.T) {
	clitest.Real(t)
	t.Parallel()
	run := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "faceauth",
			append(args, "--models", fixture.Models(t))...)
		c.Dir = t.TempDir()
		var out, words strings.Builder
		c.Stdout, c.Stderr = &out, &words
		c.Run()
		return out.String(), words.String(), c.ProcessState.ExitCode()
	}
	gallery := filepath.Join(t.TempDir(), "gallery")
	p3 := turnedFolder(t, "p3")
	if _, words, code := run("enroll", p3, "--name", "p3", "--gallery", gallery, "--rotate",
		"0"); code != cli.NoFace || !strings.Contains(words, "nothing was enrolled") {
		t.Fatalf("upside down: exit code %d, %s", code, words)
	}
	if _, err := os.Stat(gallery); err == nil {
		t.Error("the refused enrolment has made a gallery")
	}
	if _, words, code := run("enroll", p3, "--name", "p3", "--gallery", gallery,
		"--series"); code != 0 ||
		!strings.Contains(words, "its pictures are turned by 180 degrees") ||
		strings.Count(words, "seems") != 1 {
		t.Fatalf("auto: exit code %d, %s", code, words)
	}
	for _, name := range []string{"p0", "p3"} {
		for _, rotate := range []string{"auto", "0"} {
			out, words, code := run("replay", turnedFolder(t, name), "--gallery", gallery,
				"--rotate", rotate)
			if code != 0 {
				t.Fatalf("%s: exit code %d, %s", name, code, words)
			}
			confirmed := 0
			if m := regexp.MustCompile(`p3 .* confirmed: (\d+)`).FindStringSubmatch(out); m != nil {
				confirmed, _ = strconv.Atoi(m[1])
			}
			if name != "p3" && confirmed > 0 || name == "p3" && rotate == "auto" && confirmed < 15 {
				t.Errorf("%s with --rotate %s: %d faces are confirmed as p3: %s", name, rotate,
					confirmed, out)
			}
		}
	}
}
