// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/facedet"
)

// A source is opened by its name: here it is an image, and it could be a camera, a video, a folder
// or a URL.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "faceauth")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "grey.jpg")
	f, err := os.Create(name)
	if err == nil {
		err = jpeg.Encode(f, image.NewGray(image.Rect(0, 0, 64, 48)), nil)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	src, err := facedet.Open(ctx, name, facedet.Options{})
	if err != nil {
		panic(err)
	}
	defer src.Close()
	frame, err := src.Next(ctx)
	if err != nil {
		panic(err)
	}
	defer frame.Close()
	fmt.Println("frame", frame.Index, "has", frame.Image.Bounds().Size(), "pixels")
	_, err = src.Next(ctx)
	fmt.Println(err)
	// Output:
	// frame 0 has (64,48) pixels
	// EOF
}
