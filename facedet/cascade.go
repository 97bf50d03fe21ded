// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/internal/cv"
)

// cascade is a detector of boosted classifiers.
type cascade struct{ c *cv.Cascade }

// Haar returns the frontal face detector of Haar features that comes with OpenCV, in the Debian
// package opencv-data: boosted classifiers, as in the thesis. Its faces have no landmarks.
func Haar() (Detector, error) {
	const name = "haarcascades/haarcascade_frontalface_default.xml"
	for _, dir := range []string{"/usr/share/opencv4", "/usr/local/share/opencv4"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		c, err := cv.OpenCascade(path)
		if err != nil {
			return nil, fmt.Errorf("opening detector: %w", err)
		}
		return &cascade{c}, nil
	}
	return nil, fmt.Errorf("opening detector: there is no %s below /usr/share/opencv4; "+
		"run: sudo apt-get update && sudo apt-get install --no-install-recommends opencv-data",
		name)
}

// smallestShare is the side of the smallest face that is searched for, as a share of the shorter
// side of the frame.
const smallestShare = .1

func (d *cascade) Detect(img *Picture) ([]Face, error) {
	size := img.Size()
	boxes, err := d.c.Detect(img, int(smallestShare*float64(min(size.X, size.Y))))
	if err != nil {
		return nil, err
	}
	var faces []Face
	for _, b := range boxes {
		faces = append(faces, Face{Box: b, Score: 1})
	}
	largestFirst(faces)
	return faces, nil
}

func (d *cascade) Close() error { return d.c.Close() }

// largestFirst sorts faces by area. Faces of equal area are sorted by place, so the order is always
// the same.
func largestFirst(faces []Face) {
	slices.SortFunc(faces, func(a, b Face) int {
		return cmp.Or(
			cmp.Compare(b.Box.Dx()*b.Box.Dy(), a.Box.Dx()*a.Box.Dy()),
			cmp.Compare(a.Box.Min.Y, b.Box.Min.Y),
			cmp.Compare(a.Box.Min.X, b.Box.Min.X),
		)
	})
}
