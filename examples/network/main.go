// SPDX-License-Identifier: Apache-2.0

// Command network compares two pictures of faces with a neural network of your own.
//
//	go run ./examples/network examples/network/network.json a.jpg b.jpg
//
// A description in JSON gives the input and the output of the network. network.json beside this
// file is an example, and models.Description documents the fields. The program checks the SHA-256
// of the file, opens the network and runs it once: a network that does not fit its description is
// an error before the first face.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/quantized"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "network:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: network DESCRIPTION.json PICTURE PICTURE")
	}
	description, err := models.ParseDescription(args[0])
	if err != nil {
		return err
	}
	embedding, err := preprocess.NewEmbedding(description, models.Dir())
	if err != nil {
		return err
	}
	defer embedding.Close()
	detector, err := facedet.NewNetwork(models.Default(models.Detector),
		models.Default(models.Landmarks), models.Dir())
	if err != nil {
		return err
	}
	defer detector.Close()
	var vectors [][]float32
	for _, path := range args[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := vector(detector, embedding, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		vectors = append(vectors, x)
	}
	space := embedding.Space()
	d := quantized.Distance(vectors[0], vectors[1], space.Scale)
	verdict := "perhaps one person"
	switch {
	case space.ImpostorRadius > 0 && d < space.ImpostorRadius:
		verdict = "one person: faces of two people are hardly ever so near to each other"
	case space.GenuineRadius > 0 && d > space.GenuineRadius:
		verdict = "two people: faces of one person are hardly ever so far from each other"
	}
	_, err = fmt.Fprintf(out, "distance %.3f, %s\n", d, verdict)
	return err
}

// vector returns the vector of the largest face in a picture.
func vector(d facedet.Detector, e preprocess.Extractor, path string) ([]float32, error) {
	p, err := facedet.ReadPicture(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	faces, err := d.Detect(p)
	if err != nil {
		return nil, err
	}
	if len(faces) == 0 {
		return nil, errors.New("there is no face in it")
	}
	x, _, err := preprocess.Extract(e, p, faces[0].Box, faces[0].Landmarks)
	return x, err
}
