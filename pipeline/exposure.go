// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/still"
)

// A frame whose white, the 99th percentile of its grey values, is below dim is brightened until its
// white is bright. lab/NOTES.md has the measurements.
const (
	dim, bright = 160, 220
	mostGain    = 16
	// While frames are compared with each other, a gain is kept as long as it brings the white
	// between these bounds. A gain that follows each flicker would make each face look changed.
	// Movement is looked for in frames as they are: a gain would raise their noise above the
	// thresholds of package still.
	leastWhite, mostWhite = 145, 250
)

// exposure is the gain of successive frames. The zero value has seen none.
type exposure struct{ gain float64 }

// see returns the gain for a frame, given by a small grey picture of it; 0 if the frame stays as it
// is.
func (e *exposure) see(grey []uint8) float64 {
	w := white(grey)
	if kept := max(1, e.gain) * w; kept >= leastWhite && kept <= mostWhite {
		return e.gain
	}
	e.gain = 0
	if w < dim {
		e.gain = min(mostGain, bright/max(1, w))
	}
	return e.gain
}

// white returns the 99th percentile of grey values.
func white(grey []uint8) float64 {
	var histogram [256]int
	for _, v := range grey {
		histogram[v]++
	}
	for v, above := 255, 0; v > 0; v-- {
		if above += histogram[v]; 100*above > len(grey) {
			return float64(v)
		}
	}
	return 0
}

// gainOf returns the gain for a single frame.
func gainOf(img *facedet.Picture) (float64, error) {
	grey, err := img.Thumbnail(still.Shrunk(img.Size()))
	if err != nil {
		return 0, err
	}
	if w := white(grey); w < dim {
		return min(mostGain, bright/max(1, w)), nil
	}
	return 0, nil
}

// exposed is a frame as the detector and the extractor see it.
type exposed struct {
	*facedet.Picture                  // brightened, unless gain is 0
	frame            *facedet.Picture // as it is, for liveness
	gain             float64
}

// expose brightens a frame by a gain, or leaves it as it is if the gain is 0.
func expose(img *facedet.Picture, gain float64) (exposed, error) {
	if gain == 0 {
		return exposed{img, img, 0}, nil
	}
	b, err := img.Brightened(gain)
	return exposed{b, img, gain}, err
}

// Close frees what was made for the exposure, and not the frame.
func (e exposed) Close() {
	if e.gain != 0 {
		e.Picture.Close()
	}
}

// brightens reports whether faces are found in brightened frames. A login's gate refuses them.
func (p *Pipeline) brightens() bool { return p.o.Gate.MaxGain > 1 }
