// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

func newMorph(o *options) *cobra.Command {
	var set, folder string
	var most int
	var turns []float64
	c := &cobra.Command{
		Use: "morph",
		Short: "make a film for each ordered pair of people in which the first person's face " +
			"becomes the second's",
		Long: "Morph writes folders of pictures, USER-ATTACKER, 4.6 s at 25 pictures a\n" +
			"second. Both people move as in their recordings. The 68 landmarks are\n" +
			"triangulated (Delaunay), each triangle is warped, and the two warped faces are\n" +
			"blended. The films hold real faces: never publish them.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if folder == "" {
				return errors.New("--folder names the folder of the films")
			}
			if len(turns) != 2 {
				return errors.New("--turns takes two numbers, the least and the greatest turn")
			}
			people, err := o.folders(set)
			if err != nil {
				return err
			}
			if most > 0 {
				people = people[:min(most, len(people))]
			}
			return o.morphs(c.Context(), people, [2]float64(turns), folder)
		},
	}
	c.Flags().StringVar(&folder, "folder", "", "folder of the films")
	c.Flags().StringVar(&set, "set", "vidtimit_rot", "folder of people below faces")
	c.Flags().IntVar(&most, "most", 0, "number of people, the first ones; 0 for all")
	c.Flags().Float64SliceVar(&turns, "turns", []float64{-.45, .45},
		"least and greatest turn of the heads")
	return c
}

// framesOfMorph is the length of a film: 4.6 s at 25 pictures a second.
const framesOfMorph = 115

// share returns the attacker's share of a picture: none for the first fifth of the film, so that
// the user is confirmed, and all of it in the last tenth.
func share(i int) float64 {
	at := float64(i) / float64(framesOfMorph-1)
	return min(max((at-.2)/.7, 0), 1)
}

// posed is a picture of a face with its landmarks, and with points on the edge of the picture.
type posed struct {
	img    *image.RGBA
	points []face.Point
}

// morphs writes the films of all ordered pairs of people, from pictures with the given least and
// greatest turn.
func (o *options) morphs(ctx context.Context, people []person, turns [2]float64,
	folder string) error {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks),
		models.Dir())
	if err != nil {
		return err
	}
	defer d.Close()
	// The vectors are not used, and those of pixels take no time.
	r := dataset.Reader{Detector: d, Extractor: preprocess.Pixels{}}
	all := make([][]posed, len(people))
	for i, p := range people {
		show := func(img *facedet.Picture, f face.Frame) error {
			if len(f.Samples) != 1 || len(f.Samples[0].Landmarks) != 68 ||
				len(all[i]) == framesOfMorph {
				return nil
			}
			if turn := f.Samples[0].Quality.Turn; turn < turns[0] || turn > turns[1] {
				return nil
			}
			m, err := img.Image()
			if err == nil {
				all[i] = append(all[i], posed{m,
					append(slices.Clone(f.Samples[0].Landmarks), edge(m.Rect.Max)...)})
			}
			return err
		}
		path := filepath.Join(o.data, "faces", filepath.FromSlash(p.recordings[0]))
		if _, err := r.Identity(ctx, p.name, []string{path},
			pipeline.Options{Show: show}); err != nil {
			return err
		}
		if len(all[i]) == 0 {
			return fmt.Errorf("%s shows no face with a turn from %g to %g", path, turns[0],
				turns[1])
		}
	}
	for i, user := range people {
		for j, attacker := range people {
			if i == j {
				continue
			}
			dir := filepath.Join(folder, user.name+"-"+attacker.name)
			if err := film(ctx, all[i], all[j], dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// film writes the film in which one face becomes another.
func film(ctx context.Context, from, to []posed, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	triangles := delaunay(between(from[0].points, to[0].points, .5))
	for i := range framesOfMorph {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, b := back(from, i), back(to, i)
		if a.img.Rect != b.img.Rect {
			return fmt.Errorf("pictures of %v and %v cannot be blended", a.img.Rect.Max,
				b.img.Rect.Max)
		}
		img, err := facedet.FromImage(morph(a, b, share(i), triangles))
		if err != nil {
			return err
		}
		data, err := img.JPEG(95)
		img.Close()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.jpg", i)), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// back returns the i-th picture if they are shown forwards and backwards in turns.
func back(all []posed, i int) posed {
	if i %= max(2*len(all)-2, 1); i >= len(all) {
		i = 2*len(all) - 2 - i
	}
	return all[i]
}

// edge returns the corners of a picture and the middles of its sides.
func edge(size image.Point) (all []face.Point) {
	x, y := float32(size.X-1), float32(size.Y-1)
	return []face.Point{{}, {X: x / 2}, {X: x}, {X: x, Y: y / 2}, {X: x, Y: y}, {X: x / 2, Y: y},
		{Y: y}, {Y: y / 2}}
}

// between returns (1-share) a + share b.
func between(a, b []face.Point, share float64) []face.Point {
	all, s := make([]face.Point, len(a)), float32(share)
	for i := range a {
		all[i] = face.Point{X: (1-s)*a[i].X + s*b[i].X, Y: (1-s)*a[i].Y + s*b[i].Y}
	}
	return all
}

// morph warps both pictures to the shape between them, triangle by triangle, and blends them.
func morph(a, b posed, share float64, triangles [][3]int) *image.RGBA {
	dst, shape := image.NewRGBA(a.img.Rect), between(a.points, b.points, share)
	for _, t := range triangles {
		p := [3]face.Point{shape[t[0]], shape[t[1]], shape[t[2]]}
		area := cross(p[0], p[1], p[2])
		if area == 0 {
			continue
		}
		box := image.Rect(
			int(min(p[0].X, p[1].X, p[2].X)), int(min(p[0].Y, p[1].Y, p[2].Y)),
			int(max(p[0].X, p[1].X, p[2].X))+1,
			int(max(p[0].Y, p[1].Y, p[2].Y))+1).Intersect(dst.Rect)
		for y := box.Min.Y; y < box.Max.Y; y++ {
			for x := box.Min.X; x < box.Max.X; x++ {
				q := face.Point{X: float32(x), Y: float32(y)}
				// A little beyond its sides, so that no pixel between two triangles stays black.
				u, v := cross(p[1], p[2], q)/area, cross(p[2], p[0], q)/area
				w := 1 - u - v
				if min(u, v, w) < -1e-3 {
					continue
				}
				for c := range 3 {
					from := sampled(a, t, u, v, w, c)
					dst.Pix[dst.PixOffset(x, y)+c] = uint8(math.Round(from +
						share*(sampled(b, t, u, v, w, c)-from)))
				}
				dst.Pix[dst.PixOffset(x, y)+3] = 255
			}
		}
	}
	return dst
}

// sampled returns a channel of a picture at a place in a triangle of its landmarks, by bilinear
// interpolation.
func sampled(s posed, t [3]int, u, v, w float64, channel int) float64 {
	at := func(p [3]float32, limit int) (int, float64) {
		x := u*float64(p[0]) + v*float64(p[1]) + w*float64(p[2])
		x = min(max(x, 0), float64(limit-1))
		i := min(int(x), limit-2)
		return i, x - float64(i)
	}
	a, b, c := s.points[t[0]], s.points[t[1]], s.points[t[2]]
	x, dx := at([3]float32{a.X, b.X, c.X}, s.img.Rect.Max.X)
	y, dy := at([3]float32{a.Y, b.Y, c.Y}, s.img.Rect.Max.Y)
	pixel := func(x, y int) float64 { return float64(s.img.Pix[s.img.PixOffset(x, y)+channel]) }
	return (1-dy)*((1-dx)*pixel(x, y)+dx*pixel(x+1, y)) +
		dy*((1-dx)*pixel(x, y+1)+dx*pixel(x+1, y+1))
}

// cross returns twice the area of a triangle, negative if it turns the other way.
func cross(a, b, c face.Point) float64 {
	return float64(b.X-a.X)*float64(c.Y-a.Y) - float64(b.Y-a.Y)*float64(c.X-a.X)
}

// delaunay returns a Delaunay triangulation, by Bowyer and Watson: points are added one after the
// other, and the triangles whose circle holds the new point are replaced by triangles from the new
// point to the edges around them.
func delaunay(points []face.Point) (all [][3]int) {
	n, far := len(points), float32(1e5)
	p := append(slices.Clone(points), face.Point{X: -far, Y: -far}, face.Point{X: far, Y: -far},
		face.Point{Y: far})
	all = [][3]int{{n, n + 1, n + 2}}
	for i := range n {
		edges := make(map[[2]int]int)
		all = slices.DeleteFunc(all, func(t [3]int) bool {
			if !inCircle(p[t[0]], p[t[1]], p[t[2]], p[i]) {
				return false
			}
			for k := range 3 {
				e := [2]int{t[k], t[(k+1)%3]}
				edges[[2]int{min(e[0], e[1]), max(e[0], e[1])}]++
			}
			return true
		})
		for e, count := range edges {
			if count == 1 {
				all = append(all, [3]int{e[0], e[1], i})
			}
		}
	}
	return slices.DeleteFunc(all, func(t [3]int) bool { return max(t[0], t[1], t[2]) >= n })
}

// inCircle reports whether d lies inside the circle through a, b and c.
func inCircle(a, b, c, d face.Point) bool {
	row := func(p face.Point) (x, y, square float64) {
		x, y = float64(p.X)-float64(d.X), float64(p.Y)-float64(d.Y)
		return x, y, x*x + y*y
	}
	ax, ay, a2 := row(a)
	bx, by, b2 := row(b)
	cx, cy, c2 := row(c)
	det := ax*(by*c2-b2*cy) - ay*(bx*c2-b2*cx) + a2*(bx*cy-by*cx)
	return det*cross(a, b, c) > 0
}
