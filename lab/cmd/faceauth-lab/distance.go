// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/spf13/cobra"
)

// Heights of faces and sizes of frames, in pixels, that are measured.
var (
	faceHeights = []int{24, 32, 40, 64, 240, 1000}
	frameSizes  = []image.Point{{640, 480}, {1280, 720}, {1920, 1080}, {2560, 1440}, {3840, 2160},
		{4000, 3000}, {1080, 1920}}
)

const (
	looksOfOne = 3   // faces taken of each identity
	hit        = .35 // least overlap with the true box
	mosaics    = 12  // scenes without a face
	filmFrames = 72
)

// distances is what "trial distance" measures.
type distances struct {
	Faces int          `json:"faces"`
	Found []foundFaces `json:"found"`
	// False are boxes in scenes of a size that are made of the recordings, with every face covered.
	False []falseBoxes `json:"false"`
}

type foundFaces struct {
	Frame  string `json:"frame"`
	Height int    `json:"height"`
	Found  int    `json:"found"` // -1 where such a face does not fit
}

type falseBoxes struct {
	Frame                        string `json:"frame"`
	Scenes, Whole, Windows, Runs int
}

func newDistanceTrial() *cobra.Command {
	var o trialFlags
	film := ""
	c := &cobra.Command{
		Use:   "distance DIR...",
		Short: "measure how small a face is found in frames of several sizes",
		Long: "Distance pastes three faces of each identity, scaled to several heights, into a " +
			"scene of noise, with\n" +
			"their surroundings, and counts how many are found. It then covers all faces of the " +
			"recordings, puts\n" +
			"their frames side by side, and counts the boxes found where no face is: in one run " +
			"over the whole\n" +
			"frame, and in all windows. With --film it measures nothing, and writes films of the " +
			"identities in a\n" +
			"frame of 1920x1080, their faces 48 and 64 pixels high.\n\n" + labelledRecordings,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, dirs []string) error {
			return o.measureDistance(c, dirs, film)
		},
	}
	o.flags(c)
	c.Flags().StringVar(&film, "film", "", "folder for the films")
	return c
}

// shown is a face with its surroundings.
type shown struct {
	img *facedet.Picture
	box image.Rectangle // of the face in it
}

func (o *trialFlags) measureDistance(c *cobra.Command, dirs []string, film string) error {
	o.Features, o.Detector = "embedding", "network"
	v, err := look(&o.Options, c, true)
	if err != nil {
		return err
	}
	defer v.Close()
	d := v.detector.(*facedet.Network)
	var faces []shown
	var actors [][]shown
	var empty []*image.RGBA
	for _, dir := range dirs {
		err := o.reader(c, v).Each(dir, func(person, path string, attack bool) error {
			all, err := shownIn(c.Context(), d, path)
			if err != nil || len(all) == 0 {
				return err
			}
			for i := range looksOfOne {
				f := all[i*len(all)/12] // the later ones of the recordings here turn their heads
				faces = append(faces, f)
				scene, err := covered(f)
				if err != nil {
					return err
				}
				empty = append(empty, scene)
			}
			actors = append(actors, all)
			return nil
		})
		if err != nil {
			return cli.StreamError(c, err)
		}
	}
	if len(faces) == 0 {
		return cli.Fail(cli.NoFace, errors.New("no recording shows a face"))
	}
	if film != "" {
		for _, height := range []int{48, 64} {
			if err := writeFilm(filepath.Join(film, fmt.Sprint(height)), actors,
				height); err != nil {
				return err
			}
		}
		return nil
	}
	r := distances{Faces: len(faces)}
	for _, size := range frameSizes {
		for _, height := range faceHeights {
			if height > size.Y/2 { // it has no surroundings there
				r.Found = append(r.Found, foundFaces{Frame: named(size), Height: height, Found: -1})
				continue
			}
			n, err := foundOf(d, faces, size, height)
			if err != nil {
				return err
			}
			r.Found = append(r.Found, foundFaces{named(size), height, n})
		}
		b, err := falseIn(d, empty, size)
		if err != nil {
			return err
		}
		r.False = append(r.False, b)
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return printDistances(c.OutOrStdout(), r)
}

// shownIn returns the frames of a recording that show one face, each in its frame.
func shownIn(ctx context.Context, d *facedet.Network, path string) (all []shown, err error) {
	s, err := facedet.Open(ctx, path, facedet.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dataset.NameOf(path), err)
	}
	defer s.Close()
	for range 3 * filmFrames {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		found, err := d.Detect(f.Image)
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].Score > .9 {
			all = append(all, shown{f.Image, found[0].Box}) // closed at the end of the process
		} else {
			f.Close()
		}
	}
	return all, nil
}

// covered returns a frame with its face painted over.
func covered(f shown) (*image.RGBA, error) {
	m, err := f.img.Image()
	if err == nil {
		draw.Draw(m, f.box.Inset(-f.box.Dx()/3), image.NewUniform(m.At(2, 2)), image.Point{},
			draw.Src)
	}
	return m, err
}

// scene is a picture of rectangles in faint colours, with noise.
func scene(size image.Point, r *rand.Rand) *image.RGBA {
	m := image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(m, m.Rect, image.NewUniform(color.RGBA{120, 118, 110, 255}), image.Point{}, draw.Src)
	for range 40 {
		at := image.Pt(r.IntN(size.X), r.IntN(size.Y))
		c := color.RGBA{uint8(70 + r.IntN(110)), uint8(70 + r.IntN(110)), uint8(70 + r.IntN(110)),
			255}
		part := image.Rectangle{at, at.Add(image.Pt(20+r.IntN(size.X/4), 20+r.IntN(size.Y/4)))}
		draw.Draw(m, part, image.NewUniform(c), image.Point{}, draw.Src)
	}
	return m
}

// noisy adds noise of a standard deviation of 5 grey values, and compresses the picture as a camera
// does.
func noisy(m *image.RGBA, r *rand.Rand) (*facedet.Picture, error) {
	var noise [1 << 14]int
	for i := range noise {
		noise[i] = int(math.Round(5 * r.NormFloat64()))
	}
	for at := 0; at < len(m.Pix); at += m.Stride {
		from := r.IntN(len(noise))
		for i, x := range m.Pix[at : at+m.Stride] {
			if i%4 == 3 {
				continue // alpha
			}
			m.Pix[at+i] = uint8(min(max(int(x)+noise[(from+i)%len(noise)], 0), 255))
		}
	}
	p, err := facedet.FromImage(m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	data, err := p.JPEG(85)
	if err != nil {
		return nil, err
	}
	return facedet.DecodePicture(data)
}

// paste draws a face with its surroundings, scaled to a height, into a scene. It returns the true
// box.
func paste(into *image.RGBA, f shown, height int, at image.Point) (box image.Rectangle, err error) {
	around := f.box.Inset(-f.box.Dx() * 3 / 4).Intersect(f.img.Bounds())
	crop, err := f.img.Crop(around)
	if err != nil {
		return box, err
	}
	defer crop.Close()
	scale := float64(height) / float64(f.box.Dy())
	scaled := func(p image.Point) image.Point {
		return image.Pt(max(1, int(scale*float64(p.X)+.5)), max(1, int(scale*float64(p.Y)+.5)))
	}
	small, err := crop.Resize(scaled(around.Size()))
	if err != nil {
		return box, err
	}
	defer small.Close()
	m, err := small.Image()
	if err != nil {
		return box, err
	}
	at = image.Pt(min(at.X, into.Rect.Max.X-m.Rect.Dx()), min(at.Y, into.Rect.Max.Y-m.Rect.Dy()))
	draw.Draw(into, m.Rect.Add(at), m, image.Point{}, draw.Src)
	from := at.Add(scaled(f.box.Min.Sub(around.Min)))
	return image.Rectangle{from, from.Add(scaled(f.box.Size()))}, nil
}

func named(size image.Point) string { return fmt.Sprintf("%dx%d", size.X, size.Y) }

func foundOf(d *facedet.Network, faces []shown, size image.Point, height int) (n int, err error) {
	r := rand.New(rand.NewPCG(uint64(size.X), uint64(height)))
	for _, f := range faces {
		m := scene(size, r)
		box, err := paste(m, f, height, image.Pt(r.IntN(size.X), r.IntN(size.Y)))
		if err != nil {
			return 0, err
		}
		p, err := noisy(m, r)
		if err != nil {
			return 0, err
		}
		found, err := d.Detect(p)
		p.Close()
		if err != nil {
			return 0, err
		}
		for _, x := range found {
			if face.Overlap(x.Box, box) > hit {
				n++
				break
			}
		}
	}
	return n, nil
}

// falseIn counts boxes in scenes made of frames whose faces are covered.
func falseIn(d *facedet.Network, empty []*image.RGBA, size image.Point) (b falseBoxes, err error) {
	r := rand.New(rand.NewPCG(uint64(size.X), 1))
	b = falseBoxes{Frame: named(size), Scenes: mosaics}
	b.Runs = mosaics * len(facedet.Windows(d.Looks(), image.Rectangle{Max: size}))
	for range mosaics {
		m := image.NewRGBA(image.Rectangle{Max: size})
		for y := 0; y < size.Y; {
			row := 0
			for x := 0; x < size.X; {
				part := empty[r.IntN(len(empty))]
				draw.Draw(m, part.Rect.Add(image.Pt(x, y)), part, image.Point{}, draw.Src)
				x, row = x+part.Rect.Dx(), max(row, part.Rect.Dy())
			}
			y += row
		}
		p, err := noisy(m, r)
		if err != nil {
			return b, err
		}
		whole, err := d.Boxes(p, p.Bounds())
		if err == nil {
			b.Whole += len(whole)
			whole, err = d.Detect(p)
			b.Windows += len(whole)
		}
		p.Close()
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// writeFilm writes the frames of a film in which all identities stand beside one another.
func writeFilm(dir string, actors [][]shown, height int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, uint64(height)))
	size := image.Pt(1920, 1080)
	still := scene(size, r)
	for i := range filmFrames {
		m := image.NewRGBA(still.Rect)
		copy(m.Pix, still.Pix)
		for k, all := range actors {
			at := image.Pt((2*k+1)*size.X/(2*len(actors)), size.Y/3)
			f := all[min(i+4, len(all)-1)] // an enrolment takes the first four
			if _, err := paste(m, f, height, at); err != nil {
				return err
			}
		}
		p, err := noisy(m, r)
		if err != nil {
			return err
		}
		data, err := p.JPEG(95)
		p.Close()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.jpg", i)), data,
			0o600); err != nil {
			return err
		}
	}
	return nil
}

func printDistances(w io.Writer, r distances) error {
	fmt.Fprintf(w, "found of %s, by their height in pixels\n\n", cli.Count(r.Faces, "face"))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "frame\t")
	for _, h := range faceHeights {
		fmt.Fprintf(t, "%d\t", h)
	}
	for i, f := range r.Found {
		if i%len(faceHeights) == 0 {
			fmt.Fprintf(t, "\n%s\t", f.Frame)
		}
		if f.Found < 0 {
			fmt.Fprint(t, "-\t")
			continue
		}
		fmt.Fprintf(t, "%d\t", f.Found)
	}
	fmt.Fprint(t, "\n\nframe\tscenes\tfalse boxes in one run\tin all windows\truns\t\n")
	for _, f := range r.False {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", f.Frame, f.Scenes, f.Whole, f.Windows, f.Runs)
	}
	return t.Flush()
}
