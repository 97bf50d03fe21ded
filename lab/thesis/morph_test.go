// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"encoding/json"
	"image"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
)

// A triangulation of a picture covers it, and no circle of a triangle holds another point.
func TestDelaunay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		points := edge(image.Pt(320, 240))
		for range r.IntN(69) {
			points = append(points, face.Point{X: 1 + 317*r.Float32(), Y: 1 + 237*r.Float32()})
		}
		all, area := delaunay(points), 0.
		for _, k := range all {
			a, b, c := points[k[0]], points[k[1]], points[k[2]]
			area += math.Abs(cross(a, b, c)) / 2
			for i, p := range points {
				// A point on a circle may be on either side because of rounding, such as a corner
				// of the picture.
				in := face.Point{X: p.X + .01*((a.X+b.X+c.X)/3-p.X),
					Y: p.Y + .01*((a.Y+b.Y+c.Y)/3-p.Y)}
				out := face.Point{X: 2*p.X - in.X, Y: 2*p.Y - in.Y}
				if i != k[0] && i != k[1] && i != k[2] && inCircle(a, b, c, p) &&
					inCircle(a, b, c, out) {
					t.Fatalf("of %d points, point %d is in the circle of %v", len(points), i, k)
				}
			}
		}
		if want := 319. * 239; math.Abs(area-want) > 1e-6*want {
			t.Fatalf("%d triangles cover %g of %g", len(all), area, want)
		}
	}
}

// At the beginning and at the end a morph is the picture itself.
func TestMorphEnds(t *testing.T) {
	size, r := image.Pt(40, 30), rand.New(rand.NewPCG(3, 4))
	some := func() posed {
		p := posed{image.NewRGBA(image.Rectangle{Max: size}), edge(size)}
		for i := range p.img.Pix {
			p.img.Pix[i] = uint8(r.IntN(256))
			if i%4 == 3 {
				p.img.Pix[i] = 255
			}
		}
		for range 5 {
			p.points = append(p.points, face.Point{X: 5 + 30*r.Float32(), Y: 5 + 20*r.Float32()})
		}
		return p
	}
	a, b := some(), some()
	for at, want := range map[float64]posed{share(0): a, share(framesOfMorph - 1): b} {
		got := morph(a, b, at, delaunay(want.points))
		for i, x := range got.Pix {
			if math.Abs(float64(x)-float64(want.img.Pix[i])) > 1 {
				t.Fatalf("share %g: byte %d is %d, want %d", at, i, x, want.img.Pix[i])
			}
		}
	}
}

// After a film in which a user becomes an attacker, and after all faces that are offered were
// confirmed, no own face of the attacker is confirmed as the user.
func TestSystemMorph(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program and judges 163 pictures")
	}
	data, networks := fixture.Recordings(t, "faces/vidtimit_rot"), fixture.Models(t)
	program, work := filepath.Join(t.TempDir(), "faceauth"), t.TempDir()
	build := exec.Command("go", "-C", fixture.Root(t), "build", "-o", filepath.Dir(program),
		"./cmd/faceauth", "./cmd/faceauth-eye")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o := options{data: filepath.Dir(filepath.Dir(data))}
	if err := o.morphs(t.Context(), heads()[:2], [2]float64{-.45, .45}, work); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (stdout, stderr string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), program,
			append(args, "--gallery", filepath.Join(work, "gallery"))...)
		c.Dir = work
		var out, words strings.Builder
		c.Stdout, c.Stderr = &out, &words
		if err := c.Run(); err != nil && c.ProcessState.ExitCode() != 7 { // nobody can be asked
			t.Fatalf("%v: %v: %s", args, err, words.String())
		}
		return out.String(), words.String()
	}
	own := func(person string) string { // the first pictures
		dir := filepath.Join(work, person)
		names, err := filepath.Glob(filepath.Join(data, person, "*.jpg"))
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err != nil || len(names) < 24 {
			t.Fatalf("%d pictures of %s: %v", len(names), person, err)
		}
		for _, name := range names[:24] {
			abs, err := filepath.Abs(name)
			if err == nil {
				err = os.Symlink(abs, filepath.Join(dir, filepath.Base(name)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	run("enroll", own("p0"), "--name", "user", "--models", networks)
	confirmed := func(source string, more ...string) (n int) {
		out, _ := run(append([]string{"replay", source, "--json", "--models", networks},
			more...)...)
		var report struct {
			Summary struct {
				People []struct{ Confirmed int }
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Summary.People {
			n += p.Confirmed
		}
		return n
	}
	if n := confirmed(filepath.Join(work, "p0-p1"), "--learn"); n < 20 {
		t.Errorf("%d faces of the film are confirmed; it does not begin as the user", n)
	}
	_, words := run("people", "confirm", "user")
	if m := regexp.MustCompile(`--faces ([0-9,]+)`).FindStringSubmatch(words); m != nil {
		run("people", "confirm", "user", "--faces", m[1])
	}
	if n := confirmed(own("p1"), "--freeze"); n != 0 {
		t.Errorf("%d of the attacker's own faces are confirmed", n)
	}
}
