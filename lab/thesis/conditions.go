// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"image"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

func newConditions(o *options) *cobra.Command {
	var most int
	var chosen, values bool
	c := &cobra.Command{
		Use: "conditions",
		Short: "which pictures of lfw are found, refused and wrongly matched in the dark, " +
			"blurred, tilted, cut off, small or covered",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.conditions(c.Context(), most, chosen, values)
		},
	}
	c.Flags().IntVar(&most, "people", 200, "number of people")
	c.Flags().BoolVar(&chosen, "chosen", false,
		"the half of the people on which the gate's thresholds were chosen")
	c.Flags().BoolVar(&values, "values", false, "also print what the gate measured")
	return c
}

// condition changes a picture in which f is the face.
type condition struct {
	name string
	of   func(p raster, f facedet.Face, rnd *rand.Rand) raster
}

// conditions change pictures by code. The lengths of blurs are shares of the width of the face.
var conditions = []condition{
	{"as it is", func(p raster, _ facedet.Face, _ *rand.Rand) raster { return p }},
	{"a fifth of the light", light(.2)},
	{"a tenth of the light", light(.1)},
	{"a twentieth of the light", light(.05)},
	{"motion blur, 5 % of the face", motion(.05)},
	{"motion blur, 10 %", motion(.10)},
	{"motion blur, 20 %", motion(.20)},
	{"motion blur, 30 %", motion(.30)},
	{"JPEG of quality 5", func(p raster, _ facedet.Face, _ *rand.Rand) raster {
		return p.through(5)
	}},
	{"tilted by 30 degrees", roll(30)},
	{"tilted by 45 degrees", roll(45)},
	{"tilted by 60 degrees", roll(60)},
	{"a quarter cut off at a side", cut(.25, 0)},
	{"half cut off at a side", cut(.5, 0)},
	{"a quarter cut off below", cut(0, .25)},
	{"half cut off below", cut(0, .5)},
	{"enlarged from 60 pixels", small(60)},
	{"enlarged from 40 pixels", small(40)},
	{"enlarged from 25 pixels", small(25)},
	{"sunglasses", func(p raster, f facedet.Face, _ *rand.Rand) raster { return p.sunglasses(f) }},
	{"mask", func(p raster, f facedet.Face, rnd *rand.Rand) raster { return p.mask(f, rnd) }},
}

// raster is a picture in Go's memory: blue, green and red, row by row.
type raster struct {
	size image.Point
	pix  []byte
}

func newRaster(size image.Point) raster { return raster{size, make([]byte, 3*size.X*size.Y)} }

// at returns the pixel at a place. Beyond the edge it is the nearest pixel.
func (p raster) at(x, y int) []byte {
	i := 3 * (min(max(y, 0), p.size.Y-1)*p.size.X + min(max(x, 0), p.size.X-1))
	return p.pix[i : i+3]
}

// each returns a picture of which do makes each pixel.
func (p raster) each(do func(x, y int, to []byte)) raster {
	q := newRaster(p.size)
	for y := range p.size.Y {
		for x := range p.size.X {
			do(x, y, q.at(x, y))
		}
	}
	return q
}

// light returns a condition with a share of the light, and with the noise of a sensor, of one grey
// value.
func light(share float64) func(raster, facedet.Face, *rand.Rand) raster {
	return func(p raster, _ facedet.Face, rnd *rand.Rand) raster {
		return p.each(func(x, y int, to []byte) {
			for c, v := range p.at(x, y) {
				to[c] = uint8(min(255, max(0, math.Round(share*float64(v)+rnd.NormFloat64()))))
			}
		})
	}
}

// motion returns the blur of a movement of a share of the face in a random direction.
func motion(share float64) func(raster, facedet.Face, *rand.Rand) raster {
	return func(p raster, f facedet.Face, rnd *rand.Rand) raster {
		n := max(2, int(share*float64(f.Box.Dx())+.5))
		angle := math.Pi * rnd.Float64()
		dx, dy := math.Cos(angle), math.Sin(angle)
		return p.each(func(x, y int, to []byte) {
			var sum [3]int
			for i := range n {
				at := float64(i) - float64(n-1)/2
				for c, v := range p.at(x+int(math.Round(at*dx)), y+int(math.Round(at*dy))) {
					sum[c] += int(v)
				}
			}
			for c := range to {
				to[c] = uint8((sum[c] + n/2) / n)
			}
		})
	}
}

// through returns the picture after a JPEG of that quality.
func (p raster) through(quality int) raster {
	return p.by(func(m *facedet.Picture) (*facedet.Picture, error) {
		b, err := m.JPEG(quality)
		if err != nil {
			return nil, err
		}
		return facedet.DecodePicture(b)
	})
}

// by returns the picture changed by a function of package facedet, none of which fails for such
// pictures.
func (p raster) by(do func(*facedet.Picture) (*facedet.Picture, error)) raster {
	m, err := facedet.FromBGR(p.size, p.pix)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	q, err := do(m)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	pix, err := q.BGR()
	if err != nil {
		panic(err)
	}
	return raster{q.Size(), pix}
}

// roll turns the picture around the face.
func roll(degrees float64) func(raster, facedet.Face, *rand.Rand) raster {
	return func(p raster, f facedet.Face, rnd *rand.Rand) raster {
		angle := degrees * math.Pi / 180
		if rnd.IntN(2) == 0 {
			angle = -angle
		}
		cos, sin := math.Cos(angle), math.Sin(angle)
		cx, cy := float64(f.Box.Min.X+f.Box.Max.X)/2, float64(f.Box.Min.Y+f.Box.Max.Y)/2
		return p.by(func(m *facedet.Picture) (*facedet.Picture, error) {
			return m.Warp([6]float64{cos, -sin, cx - cos*cx + sin*cy, sin, cos,
				cy - sin*cx - cos*cy}, p.size)
		})
	}
}

// cut leaves out a share of the face at the left, or below.
func cut(left, below float64) func(raster, facedet.Face, *rand.Rand) raster {
	return func(p raster, f facedet.Face, _ *rand.Rand) raster {
		r := image.Rectangle{Max: p.size}
		if left > 0 {
			r.Min.X = f.Box.Min.X + int(left*float64(f.Box.Dx()))
		}
		if below > 0 {
			r.Max.Y = f.Box.Max.Y - int(below*float64(f.Box.Dy()))
		}
		return p.by(func(m *facedet.Picture) (*facedet.Picture, error) { return m.Crop(r) })
	}
}

// small shrinks the picture until the face has a width, and enlarges it again.
func small(width int) func(raster, facedet.Face, *rand.Rand) raster {
	return func(p raster, f facedet.Face, _ *rand.Rand) raster {
		scale := float64(width) / float64(f.Box.Dx())
		if scale >= 1 {
			return p
		}
		return p.by(func(m *facedet.Picture) (*facedet.Picture, error) {
			s, err := m.Resize(image.Pt(int(scale*float64(p.size.X)), int(scale*float64(p.size.Y))))
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return s.Resize(p.size)
		})
	}
}

// inside reports whether a point is in a polygon.
func inside(x, y float64, polygon [][2]float64) bool {
	in := false
	for i, a := range polygon {
		b := polygon[(i+len(polygon)-1)%len(polygon)]
		if (a[1] > y) != (b[1] > y) && x < (b[0]-a[0])*(y-a[1])/(b[1]-a[1])+a[0] {
			in = !in
		}
	}
	return in
}

// fill draws a polygon of one colour. A share of the picture below shines through.
func (p raster) fill(polygon [][2]float64, colour [3]byte, through float64) raster {
	return p.each(func(x, y int, to []byte) {
		copy(to, p.at(x, y))
		if inside(float64(x), float64(y), polygon) {
			for c := range to {
				to[c] = uint8(through*float64(to[c]) + (1-through)*float64(colour[c]))
			}
		}
	})
}

// sunglasses draws a dark glass over each eye and its brow, and a bridge between.
func (p raster) sunglasses(f facedet.Face) raster {
	five, _ := face.FivePoints(f.Landmarks)
	l, r := five[0], five[1]
	ux, uy := r[0]-l[0], r[1]-l[1] // one distance of the eyes, to the right
	at := func(e [2]float64, right, down float64) [2]float64 {
		return [2]float64{e[0] + right*ux - down*uy, e[1] + right*uy + down*ux}
	}
	for _, e := range [][2]float64{l, r} {
		var glass [][2]float64
		for i := range 24 {
			a := 2 * math.Pi * float64(i) / 24
			glass = append(glass, at(e, .42*math.Cos(a), .03+.30*math.Sin(a)))
		}
		p = p.fill(glass, [3]byte{20, 18, 18}, .12)
	}
	return p.fill([][2]float64{at(l, .2, -.12), at(r, -.2, -.12), at(r, -.2, -.02),
		at(l, .2, -.02)},
		[3]byte{20, 18, 18}, 0)
}

// mask draws a mask of a random light or dark colour from the bridge of the nose to the chin.
func (p raster) mask(f facedet.Face, rnd *rand.Rand) raster {
	m := f.Landmarks
	polygon := [][2]float64{{float64(m[28].X), float64(m[28].Y)}}
	for i := 14; i >= 2; i-- {
		polygon = append(polygon, [2]float64{float64(m[i].X), float64(m[i].Y)})
	}
	colours := [][3]byte{{235, 235, 235}, {220, 190, 150}, {30, 30, 30}, {120, 60, 40}}
	return p.fill(polygon, colours[rnd.IntN(len(colours))], .08)
}

// single is a source of one picture.
type single struct{ p raster }

func (s *single) Next(context.Context) (*facedet.Frame, error) {
	if s.p.pix == nil {
		return nil, io.EOF
	}
	m, err := facedet.FromBGR(s.p.size, s.p.pix)
	s.p.pix = nil
	return &facedet.Frame{Image: m}, err
}
func (s *single) Count() face.Count { return face.Count{Declared: 1} }
func (s *single) Close() error      { return nil }

// pictured is a face of one person under a condition.
type pictured struct {
	person string
	face.Sample
}

func (o *options) conditions(ctx context.Context, most int, chosen, values bool) error {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks),
		models.Dir())
	if err != nil {
		return err
	}
	defer d.Close()
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return err
	}
	defer e.Close()
	people, err := o.folders("lfw")
	if err != nil {
		return err
	}
	sample := func(p raster) (*face.Sample, error) {
		f, err := pipeline.New(&single{p}, d, e,
			pipeline.Options{Gate: preprocess.EnrolGate}).Next(ctx)
		if err != nil || len(f.Samples) == 0 {
			return nil, err
		}
		return &f.Samples[0], nil
	}
	var gallery []pictured // the second picture of each person, as it is
	type probe struct {
		person string
		p      raster
		f      facedet.Face
	}
	var probes []probe
	for i, q := range people {
		if chosen == (i%2 == 1) || len(probes) >= most {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(o.data, "faces",
			filepath.FromSlash(q.recordings[0]), "*"))
		if err != nil {
			return err
		}
		if len(paths) < 2 {
			continue
		}
		var two [2]raster
		for j := range two {
			m, err := facedet.ReadPicture(paths[j])
			if err != nil {
				return err
			}
			pix, err := m.BGR()
			if two[j] = (raster{m.Size(), pix}); err != nil {
				return err
			}
			m.Close()
		}
		s, err := sample(two[0])
		if err != nil {
			return err
		}
		other, err := sample(two[1])
		if err != nil {
			return err
		}
		if s != nil && other != nil && s.Reason == "" && other.Reason == "" {
			probes = append(probes, probe{q.name, two[0],
				facedet.Face{Box: s.Box, Landmarks: s.Landmarks}})
			gallery = append(gallery, pictured{q.name, *other})
		}
	}
	near := e.Space().Stills.Distances[2]
	fmt.Printf("%d people, false match rate 1e-4 within %.3f\n", len(probes), near)
	fmt.Println("| condition | found | enrolment refuses | learning refuses | recognised | FMR | " +
		"FMR between such faces | of these, learning accepts |\n|---|--:|---|---|--:|--:|--:|--:|")
	for _, c := range conditions {
		rnd := rand.New(rand.NewPCG(1, 2))
		var found []pictured
		for _, q := range probes {
			s, err := sample(c.of(q.p, q.f, rnd))
			if err != nil {
				return err
			}
			if s != nil {
				found = append(found, pictured{q.person, *s})
			}
		}
		var genuine, wrong, pairs, same, samePairs, passed, passedPairs int
		for i, x := range found {
			if x.Vector == nil {
				continue
			}
			for _, y := range gallery {
				within := distance(x.Vector, y.Vector) <= near
				if x.person == y.person {
					genuine += count(within)
				} else {
					pairs, wrong = pairs+1, wrong+count(within)
				}
			}
			for _, y := range found[:i] {
				if y.Vector == nil {
					continue
				}
				within := count(distance(x.Vector, y.Vector) <= near)
				samePairs, same = samePairs+1, same+within
				if preprocess.LearnGate.Check(x.Quality) == "" &&
					preprocess.LearnGate.Check(y.Quality) == "" {
					passedPairs, passed = passedPairs+1, passed+within
				}
			}
		}
		fmt.Printf("| %s | %d | %s | %s | %d | %s | %s | %s |\n", c.name, len(found),
			refusals(found, preprocess.EnrolGate), refusals(found, preprocess.LearnGate), genuine,
			rate(wrong, pairs), rate(same, samePairs), rate(passed, passedPairs))
		if values {
			for _, x := range found {
				fmt.Printf("%s: %+v\n", x.person, x.Quality)
			}
		}
	}
	return nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func rate(n, of int) string { return fmt.Sprintf("%.5f", float64(n)/float64(max(1, of))) }

func distance(a, b []float32) float64 {
	var sum float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// refusals lists how many faces a gate refuses, by reason.
func refusals(all []pictured, g preprocess.Gate) string {
	n := map[face.Reason]int{}
	for _, x := range all {
		if why := g.Check(x.Quality); x.Vector == nil {
			n[face.NoVector]++
		} else if why != "" {
			n[why]++
		}
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", why, n[why]))
	}
	return strings.Join(parts, ", ")
}
