// SPDX-License-Identifier: Apache-2.0

package preprocess

import (
	"image"
	"math"
	"slices"

	"github.com/faceauth/faceauth/facedet"
)

// noiseSamples is the largest number of pixels in which noise is measured.
const noiseSamples = 4096

// ColourNoise returns [face.Quality].Noise of a face in a box: 1.4826 times the median distance of a colour difference
// from its mean over 5x5 pixels around, weighted (1, 4, 6, 4, 1)/16 in both directions. The median ignores the edges in
// the face. The colour difference is Cr or Cb, whichever has more noise.
func ColourNoise(img *facedet.Picture, box image.Rectangle) (float64, error) {
	crop, err := img.Crop(box)
	if err != nil {
		return 0, err
	}
	defer crop.Close()
	pix, err := crop.BGR()
	if err != nil {
		return 0, err
	}
	w, h := crop.Size().X, crop.Size().Y
	step := max(1, int(math.Ceil(math.Sqrt(float64(w*h)/noiseSamples))))
	difference := func(at, channel int) float64 {
		x := pix[3*at:]
		return float64(x[channel]) - (.114*float64(x[0]) + .587*float64(x[1]) + .299*float64(x[2]))
	}
	kernel := [5]float64{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
	noise := 0.
	for channel, scale := range map[int]float64{0: .564, 2: .713} { // Cb, Cr
		var far []float64
		for y := 2; y < h-2; y += step {
			for x := 2; x < w-2; x += step {
				mean := 0.
				for dy, a := range kernel {
					for dx, b := range kernel {
						mean += a * b * difference((y+dy-2)*w+x+dx-2, channel)
					}
				}
				far = append(far, math.Abs(difference(y*w+x, channel)-mean))
			}
		}
		if len(far) > 0 {
			slices.Sort(far)
			noise = max(noise, 1.4826*scale*far[len(far)/2])
		}
	}
	return noise, nil
}
