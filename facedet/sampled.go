// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"time"
)

// sampled skips frames.
type sampled struct {
	Source
	step, due time.Duration
}

// Sampled returns a source that gives about fps frames a second of a recording and skips the others. If fps is 0 or
// less, it skips none. It skips no photograph.
func Sampled(s Source, fps float64) Source {
	if !(fps > 0) {
		return s
	}
	return &sampled{Source: s, step: time.Duration(float64(time.Second) / fps)}
}

// Next implements [Source].
func (s *sampled) Next(ctx context.Context) (*Frame, error) {
	for {
		f, err := s.Source.Next(ctx)
		if err != nil {
			return nil, err
		}
		if f.Still {
			return f, nil
		}
		if f.Time >= s.due {
			s.due += s.step
			if f.Time >= s.due { // the recording has fewer frames
				s.due = f.Time + s.step
			}
			return f, nil
		}
		f.Close()
	}
}
