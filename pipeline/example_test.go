// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// middle is a detector of one's own: it takes the middle of each picture for a face.
type middle struct{}

func (middle) Detect(p *facedet.Picture) ([]facedet.Face, error) {
	return []facedet.Face{{Box: p.Bounds().Inset(20), Score: 1}}, nil
}

func (middle) Close() error { return nil }

// From a folder of pictures to vectors, with a detector of one's own and the thesis's
// preprocessing.
func Example() {
	dir, err := os.MkdirTemp("", "faceauth")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for i := range 2 {
		draw(filepath.Join(dir, fmt.Sprintf("%d.png", i)), uint8(40*i))
	}
	ctx := context.Background()
	src, err := facedet.Open(ctx, dir, facedet.Options{})
	if err != nil {
		panic(err)
	}
	defer src.Close()
	stream := pipeline.New(src, middle{}, preprocess.Pixels,
		pipeline.Options{Gate: preprocess.LearnGate})
	for {
		frame, err := stream.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, s := range frame.Samples {
			fmt.Println("frame", frame.Index, s.Box, len(s.Vector), "values; learned:",
				s.Reason == "")
		}
	}
	// Output:
	// frame 0 (20,20)-(140,140) 9216 values; learned: true
	// frame 1 (20,20)-(140,140) 9216 values; learned: true
	// EOF
}

// draw writes a picture of stripes.
func draw(name string, shade uint8) {
	img := image.NewGray(image.Rect(0, 0, 160, 160))
	for y := range 160 {
		for x := range 160 {
			img.SetGray(x, y, color.Gray{shade + uint8(60*(x/8%2)+50*(y/8%2))})
		}
	}
	f, err := os.Create(name)
	if err == nil {
		err = png.Encode(f, img)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}
