// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/evaluate/dataset"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

func newCasts(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "casts",
		Short: "whether a colour cast makes a live face look like a picture, and ways to balance the colours",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.casts(c.Context()) },
	}
}

// cast is a false colour of a camera: factors of blue, green and red, the share of the colour that is left, and the
// standard deviation of noise in each of the three.
type cast struct {
	name              string
	b, g, r           float64
	saturation, noise float64
}

// casts go from the light of a lamp seen by a camera that is set to the sky, to the opposite, as a camera's white
// balance may be off by half of that way.
var casts = []cast{
	{"as recorded", 1, 1, 1, 1, 0},
	{"warm 20 %", .8, 1, 1.2, 1, 0},
	{"warm 35 %", .65, 1, 1.35, 1, 0},
	{"cold 20 %", 1.2, 1, .8, 1, 0},
	{"cold 35 %", 1.35, 1, .65, 1, 0},
	{"green 10 %", .95, 1.1, .95, 1, 0},
	{"pink 10 %", 1.05, .9, 1.05, 1, 0},
	{"half the colour", 1, 1, 1, .5, 0},
	{"grey", 1, 1, 1, 0, 0},
	{"noise 6", 1, 1, 1, 1, 6},
	{"noise 20", 1, 1, 1, 1, 20},
}

// apply returns a picture with the cast.
func (c cast) apply(p *facedet.Picture, random *rand.Rand) (*facedet.Picture, error) {
	pix, err := p.BGR()
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(pix); i += 3 {
		x := [3]float64{c.b * float64(pix[i]), c.g * float64(pix[i+1]), c.r * float64(pix[i+2])}
		grey := .114*x[0] + .587*x[1] + .299*x[2]
		for k, v := range x {
			v = grey + c.saturation*(v-grey)
			if c.noise > 0 {
				v += c.noise * random.NormFloat64()
			}
			pix[i+k] = uint8(min(max(math.Round(v), 0), 255))
		}
	}
	return facedet.FromBGR(p.Size(), pix)
}

// meanColour returns the mean blue, green and red of a part of a picture.
func meanColour(p *facedet.Picture, part image.Rectangle) (mean [3]float64, err error) {
	q, err := p.Crop(part.Intersect(p.Bounds()))
	if err != nil {
		return mean, err
	}
	defer q.Close()
	pix, err := q.BGR()
	if err != nil {
		return mean, err
	}
	for i, x := range pix {
		mean[i%3] += float64(x) / float64(len(pix)/3)
	}
	return mean, nil
}

// balanced returns the score of the face in a picture whose colours are multiplied so that a mean becomes a target, up
// to brightness.
func balanced(l *preprocess.Liveness, p *facedet.Picture, box image.Rectangle, mean, target [3]float64) (float64, error) {
	g := target[1] / max(mean[1], 1)
	c := cast{b: target[0] / max(mean[0], 1) / g, g: 1, r: target[2] / max(mean[2], 1) / g, saturation: 1}
	q, err := c.apply(p, nil)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	s, err := l.Score(q, box)
	return float64(s), err
}

// forms are the ways to score a face.
var forms = []string{"plain", "mean with a warm picture", "grey surroundings", "mean with grey surroundings", "warm", "face like a face",
	"mean with face like a face", "largest of plain and warm"}

// skin is the mean colour of the faces of the people who chose, as recorded.
var skin = [3]float64{.78, 1, 1.34}

// scoresOf returns the score of each form.
func scoresOf(l *preprocess.Liveness, p *facedet.Picture, box image.Rectangle) (s [8]float64, err error) {
	plain, err := l.Score(p, box)
	if err != nil {
		return s, err
	}
	frame, err := meanColour(p, p.Bounds())
	if err != nil {
		return s, err
	}
	own, err := meanColour(p, box)
	if err != nil {
		return s, err
	}
	one := [3]float64{1, 1, 1}
	warm, err1 := balanced(l, p, box, [3]float64{1000, 1000, 1000}, [3]float64{900, 1000, 1100})
	grey, err2 := balanced(l, p, box, frame, one)
	like, err3 := balanced(l, p, box, own, skin)
	a := float64(plain)
	return [8]float64{a, (a + warm) / 2, grey, (a + grey) / 2, warm, like, (a + like) / 2, max(a, warm)},
		errors.Join(err1, err2, err3)
}

// chromaNoise returns the noise in colour of a part of a picture: 1.4826 times the median distance of Cr, or of Cb if
// that is larger, from its mean over the pixels around.
func chromaNoise(p *facedet.Picture, part image.Rectangle) (float64, error) {
	q, err := p.Crop(part.Intersect(p.Bounds()))
	if err != nil {
		return 0, err
	}
	defer q.Close()
	pix, err := q.BGR()
	if err != nil {
		return 0, err
	}
	w, h := q.Size().X, q.Size().Y
	most := 0.
	kernel := []float64{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
	for _, c := range []struct {
		at    int
		scale float64
	}{{2, .713}, {0, .564}} {
		plane := make([]float64, w*h)
		for i := range plane {
			x := pix[3*i:]
			y := .114*float64(x[0]) + .587*float64(x[1]) + .299*float64(x[2])
			plane[i] = c.scale * (float64(x[c.at]) - y)
		}
		var far []float64
		for y := 2; y < h-2; y++ {
			for x := 2; x < w-2; x++ {
				sum := 0.
				for dy, ky := range kernel {
					for dx, kx := range kernel {
						sum += ky * kx * plane[(y+dy-2)*w+x+dx-2]
					}
				}
				far = append(far, math.Abs(plane[y*w+x]-sum))
			}
		}
		if len(far) > 0 {
			slices.Sort(far)
			most = max(most, 1.4826*far[len(far)/2])
		}
	}
	return most, nil
}

// window is a few faces of one presentation with their scores by cast and form.
type window struct {
	person string
	attack bool
	scores [][8]float64 // by cast, means over the faces
	noise  []float64    // by cast, the largest
	colour [3]float64
}

func (o *options) casts(ctx context.Context) error {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), models.Dir())
	if err != nil {
		return err
	}
	defer d.Close()
	l, err := preprocess.NewLiveness(models.Default(models.Liveness), models.Dir())
	if err != nil {
		return err
	}
	defer l.Close()
	people := append(heads(), films...)
	stills, err := o.folders("faces94_subset")
	if err != nil {
		return err
	}
	people = append(people, stills...)
	for _, name := range []string{"lestari", "pyimagesearch_liveness"} {
		found, err := filepath.Glob(filepath.Join(o.data, "faces/spoof", name, "*"))
		if err != nil {
			return err
		}
		for _, path := range found {
			people = append(people, person{name, []string{"spoof/" + name + "/" + filepath.Base(path)}})
		}
	}
	var all []window
	for _, p := range people {
		for _, recording := range p.recordings {
			w, err := o.windows(ctx, d, l, p.name, recording)
			if err != nil {
				return fmt.Errorf("%s: %w", recording, err)
			}
			all = append(all, w...)
			fmt.Printf("%s: %d windows\n", recording, len(w))
		}
	}
	return o.tellCasts(all)
}

const (
	most          = 3 // largest number of windows of a recording
	facesOfWindow = 1
)

// around returns the part of a picture that a liveness network may see, and where the box is in it.
func around(p *facedet.Picture, box image.Rectangle) (*facedet.Picture, image.Rectangle, error) {
	side := max(box.Dx(), box.Dy()) / 2
	part := box.Inset(-side).Intersect(p.Bounds())
	q, err := p.Crop(part)
	return q, box.Sub(part.Min), err
}

// windows returns the first windows of a recording: a face that a login may use, about every two seconds.
func (o *options) windows(ctx context.Context, d facedet.Detector, l *preprocess.Liveness, name,
	recording string) (all []window, err error) {
	src, err := facedet.Open(ctx, filepath.Join(o.data, "faces", filepath.FromSlash(recording)), facedet.Options{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	random := rand.New(rand.NewPCG(7, 8))
	attack := dataset.IsAttack(recording)
	var now *window
	var faces, seen int
	show := func(p *facedet.Picture, f face.Frame) error {
		if len(f.Samples) != 1 || f.Samples[0].Reason != "" {
			return nil
		}
		if seen++; seen%4 != 1 || faces == 0 && seen%48 != 1 || len(all) == most {
			return nil
		}
		if now == nil {
			now = &window{person: name, attack: attack, scores: make([][8]float64, len(casts)),
				noise: make([]float64, len(casts))}
		}
		p, box, err := around(p, f.Samples[0].Box)
		if err != nil {
			return err
		}
		defer p.Close()
		for i, c := range casts {
			q, err := c.apply(p, random)
			if err != nil {
				return err
			}
			s, err := scoresOf(l, q, box)
			if err == nil && (c.noise > 0 || i == 0) {
				var n float64
				n, err = chromaNoise(q, box)
				now.noise[i] = max(now.noise[i], n)
			}
			q.Close()
			if err != nil {
				return err
			}
			for k := range s {
				now.scores[i][k] += s[k] / facesOfWindow
			}
		}
		colour, err := meanColour(p, box)
		if err != nil {
			return err
		}
		now.colour = colour
		if faces++; faces == facesOfWindow {
			all, now, faces = append(all, *now), nil, 0
		}
		return nil
	}
	stream := pipeline.New(src, d, preprocess.NewPixels(), pipeline.Options{Gate: preprocess.LoginGate, Show: show})
	for {
		if _, err := stream.Next(ctx); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// tellCasts writes the table: windows refused of live people and let in of attacks, by form and cast. Every second
// person chooses, the others report.
func (o *options) tellCasts(all []window) error {
	half := make(map[string]int)
	var rows [][]string
	for _, w := range all {
		if _, ok := half[w.person]; !ok {
			half[w.person] = len(half) % 2
		}
	}
	for k, form := range forms {
		for i, c := range casts {
			row := []string{form, c.name}
			for h := range 2 {
				live, refused, attacks, let := 0, 0, 0, 0
				lowest, highest := 1., 0.
				for _, w := range all {
					s := w.scores[i][k]
					switch {
					case half[w.person] != h:
					case w.attack:
						attacks, highest = attacks+1, max(highest, s)
						if s >= .5 {
							let++
						}
					default:
						live, lowest = live+1, min(lowest, s)
						if s < .5 {
							refused++
						}
					}
				}
				row = append(row, fmt.Sprint(live), fmt.Sprint(refused), fmt.Sprintf("%.3f", lowest),
					fmt.Sprint(attacks), fmt.Sprint(let), fmt.Sprintf("%.3f", highest))
			}
			rows = append(rows, row)
		}
	}
	for i, c := range casts {
		var live, attack []float64
		for _, w := range all {
			if w.attack {
				attack = append(attack, w.noise[i])
			} else {
				live = append(live, w.noise[i])
			}
		}
		slices.Sort(live)
		slices.Sort(attack)
		fmt.Printf("noise of %s: live %.2f to %.2f, median %.2f; attacks %.2f to %.2f\n", c.name, live[0],
			live[len(live)-1], live[len(live)/2], attack[0], attack[len(attack)-1])
	}
	var sum [3]float64
	n := 0.
	for _, w := range all {
		if half[w.person] == 0 && !w.attack {
			for k := range sum {
				sum[k] += w.colour[k] / w.colour[1]
			}
			n++
		}
	}
	fmt.Printf("mean colour of the faces of the half that chooses: %.2f %.2f %.2f\n", sum[0]/n, sum[1]/n, sum[2]/n)
	return o.table("casts.csv", []string{"form", "cast", "live, chose", "refused", "lowest", "attacks, chose", "let in",
		"highest", "live, others", "refused", "lowest", "attacks, others", "let in", "highest"}, rows)
}
