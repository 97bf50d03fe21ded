// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

func newCasts(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "casts",
		Short: "live faces refused and attacks let in by the liveness check, under colour casts " +
			"and noise",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.casts(c.Context()) },
	}
}

// cast is a false colour of a camera: factors of blue, green and red, the share of the colour that
// is left, and the standard deviation of noise in each of the three.
type cast struct {
	name              string
	b, g, r           float64
	saturation, noise float64
}

// casts go from the light of a lamp seen by a camera that is set to the sky, to the opposite, as a
// camera's white balance may be off by half of that way.
var casts = []cast{
	{"as recorded", 1, 1, 1, 1, 0},
	{"warm 10 %", .9, 1, 1.1, 1, 0},
	{"warm 20 %", .8, 1, 1.2, 1, 0},
	{"warm 35 %", .65, 1, 1.35, 1, 0},
	{"cold 10 %", 1.1, 1, .9, 1, 0},
	{"cold 20 %", 1.2, 1, .8, 1, 0},
	{"cold 35 %", 1.35, 1, .65, 1, 0},
	{"green 10 %", .95, 1.1, .95, 1, 0},
	{"pink 10 %", 1.05, .9, 1.05, 1, 0},
	{"half the colour", 1, 1, 1, .5, 0},
	{"grey", 1, 1, 1, 0, 0},
	{"noise 3", 1, 1, 1, 1, 3},
	{"noise 6", 1, 1, 1, 1, 6},
	{"noise 12", 1, 1, 1, 1, 12},
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

// castFace is a face with its score and its noise in colour, by cast.
type castFace struct {
	person string
	attack bool
	scores []float64
	noise  []float64
}

func (o *options) casts(ctx context.Context) error {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks),
		models.Dir())
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
			people = append(people, person{name,
				[]string{"spoof/" + name + "/" + filepath.Base(path)}})
		}
	}
	var all []castFace
	for _, p := range people {
		for _, recording := range p.recordings {
			w, err := o.showCasts(ctx, d, l, p.name, recording)
			if err != nil {
				return fmt.Errorf("%s: %w", recording, err)
			}
			all = append(all, w...)
		}
	}
	return o.tellCasts(all)
}

// mostShown is the largest number of faces of a recording.
const mostShown = 4

// showCasts returns faces of a recording that a login may use, about every two seconds.
func (o *options) showCasts(ctx context.Context, d facedet.Detector, l *preprocess.Liveness, name,
	recording string) (all []castFace, err error) {
	src, err := facedet.Open(ctx, filepath.Join(o.data, "faces", filepath.FromSlash(recording)),
		facedet.Options{})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	random := rand.New(rand.NewPCG(7, 8))
	seen := 0
	show := func(p *facedet.Picture, f face.Frame) error {
		if len(f.Samples) != 1 || f.Samples[0].Reason != "" {
			return nil
		}
		if seen++; seen%48 != 1 || len(all) == mostShown {
			return nil
		}
		now := castFace{person: name, attack: dataset.IsAttack(recording)}
		box := f.Samples[0].Box
		for _, c := range casts {
			q, err := c.apply(p, random)
			if err != nil {
				return err
			}
			score, err := l.Score(q, box)
			var noise float64
			if err == nil {
				noise, err = preprocess.ColourNoise(q, box)
			}
			q.Close()
			if err != nil {
				return err
			}
			now.scores, now.noise = append(now.scores, float64(score)), append(now.noise, noise)
		}
		all = append(all, now)
		return nil
	}
	stream := pipeline.New(src, d, preprocess.Pixels{},
		pipeline.Options{Gate: preprocess.LoginGate, Show: show})
	for {
		if _, err := stream.Next(ctx); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// tellCasts writes the table, by cast: live faces refused and attacks let in, and those of them
// that are too noisy for a login. People are in two halves, every second in each.
func (o *options) tellCasts(all []castFace) error {
	half := make(map[string]int)
	for _, w := range all {
		if _, ok := half[w.person]; !ok {
			half[w.person] = len(half) % 2
		}
	}
	least := models.Default(models.Liveness).Threshold
	var rows [][]string
	for i, c := range casts {
		row := []string{c.name}
		for h := range 2 {
			for _, attack := range []bool{false, true} {
				n, wrong, noisy, lowest, highest := 0, 0, 0, 1., 0.
				people := make(map[string]bool)
				for _, w := range all {
					if half[w.person] != h || w.attack != attack {
						continue
					}
					n, lowest, highest = n+1, min(lowest, w.scores[i]), max(highest, w.scores[i])
					tooNoisy := w.noise[i] > preprocess.LoginGate.MaxNoise
					if tooNoisy {
						noisy++
					}
					if (w.scores[i] >= least) == attack && !tooNoisy {
						wrong++
						people[w.person] = true
					}
				}
				edge := lowest
				if attack {
					edge = highest
				}
				row = append(row, fmt.Sprint(n), fmt.Sprint(wrong), fmt.Sprint(len(people)),
					fmt.Sprint(noisy), fmt.Sprintf("%.3f", edge))
			}
		}
		rows = append(rows, row)
	}
	header := []string{"cast"}
	for _, half := range []string{"chose", "others"} {
		header = append(header, "live, "+half, "refused", "people", "too noisy", "lowest",
			"attacks, "+half, "let in", "people", "too noisy", "highest")
	}
	return o.table("casts.csv", header, rows)
}
