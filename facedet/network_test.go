// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"image"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// A picture of any shape can be searched, and a narrow strip among the pictures of a folder does not end a recording.
func TestNetworkShapes(t *testing.T) {
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), fixture.Models(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, size := range []image.Point{{1, 65535}, {65535, 1}, {20, 30000}, {1, 1}, {4096, 1}, {5000, 100},
		{160, 120}} {
		p := fixture.Must(facedet.FromImage(image.NewGray(image.Rectangle{Max: size})))(t)
		if faces, err := d.Detect(p); err != nil || len(faces) > 0 {
			t.Errorf("%v: %d faces, %v", size, len(faces), err)
		}
		p.Close()
	}
}
