// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/preprocess"
)

// A program starts an eye of itself: its main calls Main when its first argument is "eye". What the eye decodes and
// sees comes back as plain values.
func ExampleMain() {
	dir, err := os.MkdirTemp("", "faceauth")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "grey.png")
	f, err := os.Create(name)
	if err == nil {
		err = png.Encode(f, image.NewGray(image.Rect(0, 0, 64, 48)))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	e, err := eye.Start(ctx, eye.Config{
		Space:  preprocess.NewPixels().Space(),
		Vision: eye.Vision{Features: "pixels", Detector: "haar"},
	})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	stream, err := e.Open(ctx, name, eye.Options{Gate: eye.Learn})
	if err != nil {
		panic(err)
	}
	frame, err := stream.Next(ctx)
	fmt.Println(frame.Size, len(frame.Samples), "faces", err)
	// Output:
	// (64,48) 0 faces <nil>
}
