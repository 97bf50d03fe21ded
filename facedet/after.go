// SPDX-License-Identifier: Apache-2.0

package facedet

import "context"

// after passes over the first frames.
type after struct {
	Source
	last int
}

// After returns a source that passes over the frames of s up to the one of that index, as an earlier run has seen them.
func After(s Source, index int) Source { return &after{s, index} }

// Next implements [Source].
func (a *after) Next(ctx context.Context) (*Frame, error) {
	for {
		f, err := a.Source.Next(ctx)
		if err != nil || f.Index > a.last {
			return f, err
		}
		f.Close()
	}
}
