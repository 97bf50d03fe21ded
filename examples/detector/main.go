// SPDX-License-Identifier: Apache-2.0

// Command detector shows how to use your own detector: it counts the faces in a recording.
//
//	go run ./examples/detector recording.avi
//
// This detector searches near the faces of the last picture, and only sometimes the whole picture, which makes a slow
// detector several times faster. Any type with the two methods of facedet.Detector can be used. A detector made with
// gocv or with package image gets the pixels from Picture.Mat or Picture.Image.
package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/signal"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "detector:", err)
		stop()
		os.Exit(1)
	}
}

// nearby is a detector that searches around the faces of the last picture. Use one for each source.
type nearby struct {
	facedet.Detector     // the slow detector
	every            int // pictures between two searches of the whole picture

	seen  []image.Rectangle // faces in the last picture
	count int               // pictures since the last search of the whole picture
}

var _ facedet.Detector = (*nearby)(nil)

func (n *nearby) Detect(p *facedet.Picture) ([]facedet.Face, error) {
	faces, err := n.detect(p)
	if err != nil {
		return nil, err
	}
	n.seen = n.seen[:0]
	for _, f := range faces {
		n.seen = append(n.seen, f.Box)
	}
	return faces, nil
}

func (n *nearby) detect(p *facedet.Picture) ([]facedet.Face, error) {
	if n.count++; n.count >= n.every || len(n.seen) == 0 {
		n.count = 0
		return n.Detector.Detect(p)
	}
	var all []facedet.Face
	for _, box := range n.seen {
		around := box.Inset(-max(box.Dx(), box.Dy()) / 4).Intersect(p.Bounds())
		found, err := n.look(p, around)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			// Keep only the face that was at this place; the loop visits the others later.
			if !f.Box.Overlaps(box) {
				continue
			}
			all = append(all, f)
			break
		}
	}
	if len(all) < len(n.seen) { // a face is lost: search the whole picture
		n.count = 0
		return n.Detector.Detect(p)
	}
	return all, nil
}

// look returns the faces in a part of a picture, at their places in the whole.
func (n *nearby) look(p *facedet.Picture, part image.Rectangle) ([]facedet.Face, error) {
	crop, err := p.Crop(part)
	if err != nil {
		return nil, err
	}
	defer crop.Close()
	faces, err := n.Detector.Detect(crop)
	for i := range faces {
		faces[i].Box = faces[i].Box.Add(part.Min)
		for j := range faces[i].Landmarks {
			faces[i].Landmarks[j].X += float32(part.Min.X)
			faces[i].Landmarks[j].Y += float32(part.Min.Y)
		}
	}
	return faces, err
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: detector RECORDING")
	}
	haar, err := facedet.Haar()
	if err != nil {
		return err
	}
	d := &nearby{Detector: haar, every: 10}
	defer d.Close()
	src, err := facedet.Open(ctx, args[0], facedet.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	frames, faces, good := 0, 0, 0
	p := pipeline.New(src, d, preprocess.NewPixels(), pipeline.Options{Gate: preprocess.LearnGate})
	for {
		f, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			_, err := fmt.Fprintf(out, "%d frames, %d faces, of which %d are good enough to learn from\n", frames,
				faces, good)
			return err
		}
		if err != nil {
			return err
		}
		frames++
		for _, s := range f.Samples {
			faces++
			if s.Reason == "" {
				good++
			}
		}
	}
}
