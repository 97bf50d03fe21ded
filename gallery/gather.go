// SPDX-License-Identifier: Apache-2.0

package gallery

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
	Vectors [][]float32
	Frames  int            // number of frames that it has seen
	Refused map[string]int // frames without a face for an enrolment, by reason
	Unclear int            // number of them that Wanted.Unclear would take
}

// turnedLead is the ratio by which the norms of unclear faces must be greater at another turn before they count as
// turned: that of --rotate auto (lab/NOTES.md).
const turnedLead = 1.15

// Gather takes the first faces in frames that may be enrolled as one person, until there are enough or the frames end.
// The frames must be made for an enrolment: eye.Options with the gate Enrol. It calls step for each face. The error is
// that of the frames, or wraps face.ErrTurned if the faces are turned, as soon as this makes them hard to recognise;
// do not enrol them then.
func Gather(frames iter.Seq2[face.Frame, error], space face.Space, w Wanted, step func()) (Gathered, error) {
	g := Gathered{Refused: make(map[string]int)}
	var turns, doubt face.Turns // sums over the taken faces, and over those that are hard to recognise
	doubts, turned := 0, 0
	for f, err := range frames {
		if err != nil {
			return g, err
		}
		g.Frames++
		if len(f.Samples) != 1 {
			reason := "several faces"
			if len(f.Samples) == 0 {
				reason = "no face"
			}
			g.Refused[reason]++
			continue
		}
		x := f.Samples[0]
		doubtful := Doubtful(x, space)
		reason := cmp.Or(doubtful, x.Reason)
		take := reason == "" || doubtful != "" && w.Unclear
		if x.Turns != nil && (x.Reason != "" || !take) {
			doubt.Add(*x.Turns)
			if doubts++; doubts >= w.Faces && doubt.Best(turnedLead) != 0 {
				return g, doubt.Check(f.Turned)
			}
		}
		if !take {
			g.Refused[string(reason)]++
			if doubtful != "" {
				g.Unclear++
			}
			continue
		}
		g.Vectors = append(g.Vectors, x.Vector)
		if x.Turns != nil {
			turns.Add(*x.Turns)
			turned = f.Turned
		}
		if step(); len(g.Vectors) == w.Faces {
			break
		}
	}
	return g, turns.Check(turned)
}

// Doubtful returns the reason why a face should be enrolled only if a user insists, or "": it is hard to recognise, or
// it is covered, as by tinted glasses, or blurred by a movement, and may be learned all the same.
func Doubtful(x face.Sample, space face.Space) face.Reason {
	switch {
	case (x.Reason == face.Covered || x.Reason == face.Moved) && x.Vector != nil && x.Quality.Norm >= space.LearnNorm:
		return x.Reason
	case x.Reason == "" && x.Quality.Norm < space.ClearNorm:
		return face.Unclear
	}
	return ""
}
