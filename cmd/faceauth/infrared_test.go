// SPDX-License-Identifier: Apache-2.0

package main

import (
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
)

// infraredFilm writes a recording in colour as an infrared camera with an emitter would see it in
// the dark, and returns its name. Every picture becomes a lit and a dark one; the emitter lights
// the middle, where the person is.
func infraredFilm(t *testing.T, recording string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(recording, "*.jpg"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d pictures, %v", len(names), err)
	}
	path := filepath.Join(t.TempDir(), "film.512x384.GREY")
	out := fixture.Must(os.Create(path))(t)
	defer out.Close()
	for _, name := range names {
		in := fixture.Must(os.Open(name))(t)
		img, err := jpeg.Decode(in)
		in.Close()
		if err != nil || img.Bounds().Dx() != 512 || img.Bounds().Dy() != 384 {
			t.Fatalf("%v, %v", img.Bounds(), err)
		}
		var lit, dark []byte
		for y := range 384 {
			for x := range 512 {
				v := color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y
				dark = append(dark, v/40)
				if x < 172 || x >= 340 {
					v /= 4
				}
				lit = append(lit, v)
			}
		}
		fixture.Must(out.Write(slices.Concat(dark, lit)))(t)
	}
	return path
}

// A login by the real daemon, PAM and two eyes: infrared decides for whom it was enrolled, whatever
// colour shows.
func TestSystemInfraredLogin(t *testing.T) {
	t.Parallel()
	clitest.Real(t)
	user, stranger := fixture.Recordings(t, "faces/vidtimit_rot/p2"),
		fixture.Recordings(t, "faces/vidtimit_rot/p3")
	d := newDevice(t)
	d.eye = tape.RealOnly // a tape knows no infrared
	infrared := filepath.Join(d.dir, "infrared.512x384.GREY")
	d.args = append(d.args, "--infrared", infrared)
	shows := func(film string) {
		t.Helper()
		if err := os.Remove(infrared); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		fixture.Check(t, os.Symlink(film, infrared))
	}
	mine := infraredFilm(t, user)
	shows(mine)
	d.start()
	d.enrol(user)
	let := func() bool {
		d.mayLogIn()
		return d.login("face", "")
	}
	d.camera(filepath.Join(d.dir, "unplugged")) // colour is not looked at
	// a busy machine judges too few faces within the deadline
	for begun := time.Now(); !let(); {
		if time.Since(begun) > 5*time.Minute {
			t.Fatal("the user is not let in by infrared")
		}
	}
	if out, _ := d.ask("history", "--user", "nobody"); !strings.HasSuffix(out, ", by infrared\n") {
		t.Errorf("the history: %s", out)
	}
	d.camera(user)
	black := filepath.Join(t.TempDir(), "black")
	fixture.Check(t, os.WriteFile(black, make([]byte, 100*512*384), 0o600))
	for name, film := range map[string]string{"a screen": black,
		"a stranger": infraredFilm(t, stranger)} {
		if shows(film); let() {
			t.Errorf("%s is let in by infrared, while colour shows the user", name)
		}
	}
}
