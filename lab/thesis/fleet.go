// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/trial/days"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/sighting"
	"github.com/spf13/cobra"
)

// newFleet returns the command that measures devices which share learned faces.
func newFleet(o *options) *cobra.Command {
	var f fleet
	c := &cobra.Command{
		Use:   "fleet",
		Short: "four cameras on one device, and on four that share enrolments alone, or what they learn as well",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return f.run(c.Context(), o) },
	}
	f.flags(c)
	return c
}

// fleet holds the settings of the composed days.
type fleet struct {
	films bool
	days  int
	seed  uint64
	share time.Duration
	ks    []int
	own   int
}

func (f *fleet) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.films, "films", false, "the nine people of fast_videos, instead of the six of vidtimit_rot")
	c.Flags().IntVar(&f.days, "days", 30, "days at most")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "of the lot by which days are composed")
	c.Flags().DurationVar(&f.share, "share", time.Second, "how often devices give each other what they have learned")
	c.Flags().IntSliceVar(&f.ks, "k", []int{60, 150, 300, 1000}, "centroids of a device")
	c.Flags().IntVar(&f.own, "own", 0, "faces of a sighting that a device names by itself before lessons count there")
}

func (f *fleet) run(ctx context.Context, o *options) error {
	people := heads()
	if f.films {
		people = films
	}
	space, all, err := o.recordings(ctx, people)
	if err != nil {
		return err
	}
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return err
	}
	defer e.Close()
	blend := blends(e)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprintln(t, "k\tdevices\tpoison\tfaces: precision\trecall\twrong, strangers\tlater: "+
		"precision\trecall\tsightings: precision\trecall\tconfirmed: recall\twrong\tgiven a day\tkept by a "+
		"device\tbytes "+
		"of a device\t")
	row := func(k int, name string, devices int, more days.Options) error {
		more.Strangers, more.Cameras, more.Devices, more.Days, more.Seed = 2, 4, devices, f.days, f.seed
		more.Usable, more.Spare, more.Learner = preprocess.EnrolGate.Passes, true, online.Settings{K: k}
		more.Rules, more.Blend = sighting.Rules{Own: f.own}, blend
		r, err := days.Run(ctx, space, all, more)
		if err != nil {
			return err
		}
		n := r.Days * devices
		fmt.Fprintf(t, "%d\t%s\t%s\t%.4f\t%.4f\t%d, %d\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%d\t%d\t%d\t%d\t\n", k, name,
			more.Poison,
			r.Faces.Precision, r.Faces.Recall, r.Faces.Wrong, r.Faces.False, r.Later.Precision, r.Later.Recall,
			r.Tracks.Precision, r.Tracks.Recall, r.Confirmed.Recall, r.Confirmed.Wrong+r.Confirmed.False,
			r.Given/r.Days, r.Kept/n, r.Bytes/n)
		return t.Flush()
	}
	for _, k := range f.ks {
		if err := row(k, "one", 1, days.Options{}); err != nil {
			return err
		}
		if err := row(k, "four, enrolments", 4, days.Options{}); err != nil {
			return err
		}
		if err := row(k, "four, lessons", 4, days.Options{Share: f.share}); err != nil {
			return err
		}
	}
	for _, p := range []days.Poison{days.Swapped, days.Bridged, days.Blended} {
		if err := row(300, "four, lessons", 4, days.Options{Share: f.share, Poison: p}); err != nil {
			return err
		}
		if err := row(300, "four, withdrawn after a frame", 4,
			days.Options{Share: f.share, Poison: p, Withdraw: time.Millisecond}); err != nil {
			return err
		}
	}
	return nil
}

// blends returns a function that blends two faces from their small pictures. It computes each pair once.
func blends(e *preprocess.Embedding) func(from, to face.Sample) ([][]float32, error) {
	type pair [2]string
	done := make(map[pair][][]float32)
	return func(from, to face.Sample) ([][]float32, error) {
		of := pair{string(from.JPEG), string(to.JPEG)}
		if x, there := done[of]; there {
			return x, nil
		}
		a, err := aligned(e, from)
		if err != nil {
			return nil, err
		}
		defer a.Close()
		b, err := aligned(e, to)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		all, err := preprocess.Blends(e, a, b, 20)
		if err == nil {
			done[of] = all
		}
		return all, err
	}
}

// aligned returns the aligned face from its small picture, which has a margin of an eighth of its longer side.
func aligned(e *preprocess.Embedding, s face.Sample) (*facedet.Picture, error) {
	p, err := facedet.DecodePicture(s.JPEG)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	long := float64(max(s.Box.Dx(), s.Box.Dy()))
	scale := float64(max(p.Size().X, p.Size().Y)) / (1.25 * long)
	landmarks := make([]face.Point, len(s.Landmarks))
	for i, x := range s.Landmarks {
		landmarks[i] = face.Point{
			X: float32((float64(x.X) - float64(s.Box.Min.X) + long/8) * scale),
			Y: float32((float64(x.Y) - float64(s.Box.Min.Y) + long/8) * scale),
		}
	}
	return e.Align(p, p.Bounds(), landmarks)
}

// recordings returns the recordings of people as embeddings with small pictures, and their feature space.
func (o *options) recordings(ctx context.Context,
	people []person) (space face.Space, all []days.Recording, err error) {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), models.Dir())
	if err != nil {
		return space, nil, err
	}
	defer d.Close()
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil {
		return space, nil, err
	}
	defer e.Close()
	r := &dataset.Reader{Detector: d, Extractor: e, Warn: func(s string) { fmt.Fprintln(os.Stderr, s) }}
	for _, p := range people {
		for _, path := range p.recordings {
			frames, err := r.Frames(ctx, p.name, filepath.Join(o.data, "faces", path),
				pipeline.Options{Gate: preprocess.LearnGate, Picture: 112})
			if err != nil {
				return space, nil, err
			}
			all = append(all, days.Recording{Person: p.name, Frames: frames})
		}
	}
	return e.Space(), all, nil
}
