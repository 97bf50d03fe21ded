// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"errors"
	"image"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
)

// film writes a video of n frames to path, and returns the error of writing or closing it.
func film(t *testing.T, path string, n int) error {
	t.Helper()
	w := fixture.Must(cv.NewVideoWriter(path, 10, 320, 240))(t)
	for i := range n {
		img := fixture.Must(cv.NewImage(image.Pt(320, 240), color.RGBA{uint8(i), 50, 90, 255}))(t)
		for j := range 20 { // so that the compressed pictures are not tiny
			img.DrawBox(image.Rect(9*j, 7*j, 9*j+100, 7*j+80), strings.Repeat("faces ", j%5),
				color.RGBA{uint8(11 * j), uint8(255 - 7*j), uint8(i), 255})
		}
		if err := w.Write(img); err != nil {
			img.Close()
			w.Close()
			return err
		}
		img.Close()
	}
	return w.Close()
}

func TestCountFrames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.avi")
	fixture.Check(t, film(t, path, 20))
	whole := fixture.Must(os.ReadFile(path))(t)
	last := 21
	for _, size := range []int{len(whole), len(whole) * 3 / 4, len(whole) / 2, 100, 8, 3, 0} {
		fixture.Check(t, os.WriteFile(path, whole[:size], 0o600))
		n, err := cv.CountFrames(path)
		if err != nil || n > last || size == len(whole) && n != 20 || size <= len(whole)/2 && n > 12 ||
			size <= 100 && n != 0 {
			t.Errorf("%d of %d bytes: %d frames, %v", size, len(whole), n, err)
		}
		last = n
	}
	// A length that points back, or beyond the end of the file, ends the count.
	for _, text := range []string{"RIFF\x00\x00\x00\x00AVI LIST\x00\x00\x00\x00movi00dc\xff\xff\xff\xff",
		"junk\xff\xff\xff\xff", "RIFFRIFFRIFFRIFFRIFF"} {
		fixture.Check(t, os.WriteFile(path, []byte(text), 0o600))
		if n, err := cv.CountFrames(path); n != 0 || err != nil {
			t.Errorf("%q: %d frames, %v", text, n, err)
		}
	}
}

// A full disk is an error, although no library reports it.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("FACEAUTH_TEST_FULL"); dir != "" { // this process has its own mount namespace, see below
		err := film(t, filepath.Join(dir, "a.avi"), 60)
		if !errors.Is(err, cv.ErrCutOff) || !strings.Contains(err.Error(), "of 60 frames; is the disk full?") {
			t.Errorf("error %v", err)
		}
		return
	}
	fixture.MountNamespace(t)
	dir := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=300k none "$1" && exec "$2" -test.run '^TestFullDisk$' -test.v`, "sh", dir, os.Args[0])
	cmd.Env = append(os.Environ(), "FACEAUTH_TEST_FULL="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An error for lack of memory must not be taken for a damaged file.
func TestClassify(t *testing.T) {
	for text, want := range map[string]bool{
		"std::bad_alloc": true, "OpenCV(4.6.0) ... error: (-4:Insufficient memory) Failed to allocate 9 bytes": true,
		"OpenCV(4.6.0) error: (-215:Assertion failed)": false,
	} {
		if err := cv.Classify(text); errors.Is(err, cv.ErrMemory) != want || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}
