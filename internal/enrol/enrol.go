// SPDX-License-Identifier: Apache-2.0

// Package enrol takes the faces from frames by which a person is enrolled: see [Gather].
package enrol

import (
	"cmp"
	"iter"

	"github.com/faceauth/faceauth/face"
)

// Wanted says which faces [Gather] takes.
type Wanted struct {
	Faces   int  // their number
	Unclear bool // take doubtful faces, too: see [Doubtful]
}

// Gathered is what [Gather] has found.
type Gathered struct {
	Vectors  [][]float32
	Pictures [][]byte       // the JPEG of each of them, or nil
	Frames   int            // number of frames that it has seen
	Refused  map[string]int // frames without a face for an enrolment, by reason
	Unclear  int            // number of them that Wanted.Unclear would take
}

// Gather takes the first faces in frames that may be enrolled as one person, until there are enough
// or the frames end. The frames must be upright, and made for an enrolment: eye.Options with the
// gate Enrol. It calls step for each face, and returns the error of the frames.
func Gather(frames iter.Seq2[face.Frame, error], space face.Space, w Wanted,
	step func()) (Gathered, error) {
	g := Gathered{Refused: make(map[string]int)}
	for f, err := range frames {
		if err != nil {
			return g, err
		}
		g.Frames++
		reason := "several faces"
		switch len(f.Samples) {
		case 0:
			reason = "no face"
		case 1:
			x := f.Samples[0]
			doubtful := Doubtful(x, space)
			reason = string(cmp.Or(doubtful, x.Reason))
			if reason == "" || doubtful != "" && w.Unclear {
				g.Vectors, g.Pictures = append(g.Vectors, x.Vector), append(g.Pictures, x.JPEG)
				if step(); len(g.Vectors) == w.Faces {
					return g, nil
				}
				continue
			}
			if doubtful != "" {
				g.Unclear++
			}
		}
		g.Refused[reason]++
	}
	return g, nil
}

// Doubtful returns the reason why a face should be enrolled only if a user insists, or "": it is
// hard to recognise, or it is covered, as by tinted glasses, or blurred by a movement, and may be
// learned all the same.
func Doubtful(x face.Sample, space face.Space) face.Reason {
	switch {
	case (x.Reason == face.Covered || x.Reason == face.Moved) && x.Vector != nil &&
		x.Quality.Norm >= space.LearnNorm:
		return x.Reason
	case x.Reason == "" && x.Quality.Norm < space.ClearNorm:
		return face.Unclear
	}
	return ""
}
