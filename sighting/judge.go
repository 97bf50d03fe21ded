package sighting

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// Judge has a learner judge the faces of a frame, all at once, and learn from those for which hold, given the number
// of the face, is false. It returns the verdict on each face, nil for a face without a vector. The error is that of
// [online.Learner.ObserveFrame].
func Judge(l *online.Learner, faces []face.Sample, hold func(i int) bool) ([]*online.Verdict, error) {
	verdicts := make([]*online.Verdict, len(faces))
	var seen []online.Observation
	var at []int // the face of each observation
	for i, s := range faces {
		if s.Vector != nil {
			seen = append(seen, online.Observation{Vector: s.Vector, Hold: hold(i)})
			at = append(at, i)
		}
	}
	found, err := l.ObserveFrame(seen)
	if err != nil {
		return nil, err
	}
	for q := range found {
		verdicts[at[q]] = &found[q]
	}
	return verdicts, nil
}
