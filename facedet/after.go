// SPDX-License-Identifier: Apache-2.0

package facedet

import "context"

// after skips the first frames of a source.
type after struct {
	Source
	last int
}

// After returns a source that skips the frames of s up to and including the frame with this index, which an earlier run
// has seen.
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
