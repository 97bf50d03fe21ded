// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"image"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// The detectors' scores have one scale.
func TestCertain(t *testing.T) {
	yunet := fixture.Must(models.Of(models.Detector, "yunet"))(t)
	for score, want := range map[float64]float64{0: 0, .7: .85, 1: 1, .35: .425} {
		if got := facedet.Certain(yunet, score); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("a score of %v is %v, want %v", score, got, want)
		}
	}
}

// A picture of any shape can be searched, and a narrow strip among the pictures of a folder does
// not end a recording.
func TestNetworkShapes(t *testing.T) {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks),
		fixture.Models(t))
	fixture.Check(t, err)
	defer d.Close()
	for _, size := range []image.Point{{1, 65535}, {65535, 1}, {20, 30000}, {1, 1}, {4096, 1},
		{5000, 100},
		{160, 120}} {
		p := fixture.Must(facedet.FromImage(image.NewGray(image.Rectangle{Max: size})))(t)
		if faces, err := d.Detect(p); err != nil || len(faces) > 0 {
			t.Errorf("%v: %d faces, %v", size, len(faces), err)
		}
		p.Close()
	}
}
