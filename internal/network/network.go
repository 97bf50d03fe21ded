// SPDX-License-Identifier: Apache-2.0

// Package network runs the neural network of a model description on pictures.
//
// [Open] verifies the file and reads it; whatever does not fit the description is an error that names
// the model and wraps [models.ErrShape].
package network

import (
	"errors"
	"fmt"
	"image"
	"image/color"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/models"
)

// Network is the network of a description. It is used by one goroutine at a time.
type Network struct {
	models.Description
	net *cv.Net
}

// Open opens the network of a description from the folder dir. The error wraps the errors of [models.Description.Path],
// or [models.ErrShape] if the network is of another kind or cannot be read.
func Open(d models.Description, kind models.Kind, dir string) (*Network, error) {
	n := &Network{Description: d}
	if d.Kind != kind {
		return nil, n.Unfit("it is of kind %s, want %s", d.Kind, kind)
	}
	path, err := d.Path(dir)
	if err != nil {
		return nil, err
	}
	if n.net, err = cv.OpenNet(path); errors.Is(err, cv.ErrMemory) {
		return nil, fmt.Errorf("model %s: %w", n.Name, err)
	} else if err != nil {
		return nil, n.Unfit("%w", err)
	}
	return n, nil
}

// Forward returns the outputs of the network for a picture, in the order of the description.
func (n *Network) Forward(img *cv.Image) ([]cv.Tensor, error) {
	out, err := n.net.Forward(img, cv.Blob{
		Size: image.Pt(n.Input.Width, n.Input.Height), Scale: n.Input.Scale, Mean: n.Input.Mean,
		RGB: n.Input.Colour == "rgb", Gray: n.Input.Colour == "gray",
	}, n.Outputs...)
	if errors.Is(err, cv.ErrMemory) {
		return nil, fmt.Errorf("model %s: %w", n.Name, err)
	}
	if err != nil {
		return nil, n.Unfit("%w", err)
	}
	return out, nil
}

// Try calls f with a black picture of the input's size. Callers use it after Open, to find a network with wrong outputs
// before the first face.
func (n *Network) Try(f func(blank *cv.Image) error) error {
	blank, err := cv.NewImage(image.Pt(n.Input.Width, n.Input.Height), color.RGBA{})
	if err != nil {
		return n.Unfit("%w", err)
	}
	defer blank.Close()
	return f(blank)
}

// Unfit returns an error that says why the network does not fit its description.
func (n *Network) Unfit(format string, args ...any) error {
	return fmt.Errorf("model %s: %w: %w", n.Name, models.ErrShape, fmt.Errorf(format, args...))
}

// Close frees the network. It may be called twice.
func (n *Network) Close() error { return n.net.Close() }
