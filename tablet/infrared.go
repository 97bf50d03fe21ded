// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
)

// InfraredLight is what [LookInfrared] has seen. A frame of an infrared camera is a pair of pictures.
type InfraredLight struct {
	Size    [2]int    `json:"size"`
	Pairs   int       `json:"pairs"`             // pairs of pictures
	Flashed int       `json:"flashed"`           // pairs with a lit and a dark picture
	Pulse   float64   `json:"pulse"`             // median difference of lit and dark, in grey levels
	Faces   int       `json:"faces"`             // faces in the pairs
	Lit     []float32 `json:"lit,omitempty"`     // the scores of these faces
	Reasons []string  `json:"reasons,omitempty"` // why faces would not be used
}

// flash is the least pulse, in grey levels, of a pair with a lit and a dark picture.
const flash = 12

// LookInfrared looks through an infrared camera for some time, to find out whether it can serve logins.
func LookInfrared(ctx context.Context, s face.Stream, within time.Duration) (l InfraredLight, err error) {
	var pulses []float64
	for end := time.Now().Add(within); time.Now().Before(end); {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return l, err
		}
		l.Size, l.Pairs = [2]int{f.Size.X, f.Size.Y}, l.Pairs+1
		if pulses = append(pulses, f.Pulse); f.Pulse >= flash {
			l.Flashed++
		}
		for _, x := range f.Samples {
			l.Faces++
			if x.Liveness != nil {
				l.Lit = append(l.Lit, *x.Liveness)
			}
			if why := string(x.Reason); why != "" && !slices.Contains(l.Reasons, why) {
				l.Reasons = append(l.Reasons, why)
			}
		}
	}
	if len(pulses) > 0 {
		slices.Sort(pulses)
		l.Pulse = pulses[len(pulses)/2]
	}
	return l, nil
}
