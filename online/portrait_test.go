// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// A learned face keeps its picture, also in a snapshot, until the face is gone or no pictures are
// wanted. A picture that is too large, and the picture of a face that was merged into another, are
// not kept.
func TestPictures(t *testing.T) {
	secret := []byte("a picture of alice")
	learn := func(t *testing.T, s online.Settings) *online.Learner {
		t.Helper()
		l, err := online.New(face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3,
			Reach: .6}, s)
		if err == nil {
			err = l.Label([]float32{0, 0}, alice)
		}
		fixture.Check(t, err)
		for _, o := range []online.Observation{
			{Vector: []float32{.1, 0}, Picture: secret},
			{Vector: []float32{.1, 0}, Picture: []byte("of the same face"), Frontal: true},
			{Vector: []float32{.2, 0}, Picture: make([]byte, 1<<16+1), Frontal: true},
		} {
			if v, err := l.ObserveFrame([]online.Observation{o}); err != nil || !v[0].Learned {
				t.Fatal(v, err)
			}
		}
		return l
	}
	// held returns the learner read from a snapshot, and whether the snapshot holds the picture.
	held := func(t *testing.T, l *online.Learner) (*online.Learner, bool) {
		t.Helper()
		data, err := l.MarshalBinary()
		var back online.Learner
		if err == nil {
			err = back.UnmarshalBinary(data)
		}
		fixture.Check(t, err)
		again, err := back.MarshalBinary()
		if err != nil || !bytes.Equal(data, again) {
			t.Errorf("the snapshot of a snapshot differs: %v", err)
		}
		return &back, bytes.Contains(data, secret)
	}
	l, ok := held(t, learn(t, online.Settings{}))
	all := l.Stored()
	if !ok || len(all) != 3 || !bytes.Equal(all[1].Picture, secret) || all[1].Frontal ||
		all[2].Picture != nil || !all[2].Frontal || all[0].Picture != nil {
		t.Errorf("kept %v: %+v", ok, all)
	}
	for name, change := range map[string]func(l *online.Learner) error{
		"forgotten": func(l *online.Learner) error { return l.Forget(alice) },
		"undone":    func(l *online.Learner) error { _, err := l.Undo(0); return err },
		"removed":   func(l *online.Learner) error { _, err := l.Remove(2); return err },
		"unwanted": func(l *online.Learner) error {
			return l.Configure(online.Settings{NoPictures: true})
		},
	} {
		l := learn(t, online.Settings{})
		if err := change(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := held(t, l); ok {
			t.Errorf("%s: the picture is still there", name)
		}
	}
	if _, ok := held(t, learn(t, online.Settings{NoPictures: true})); ok {
		t.Error("a picture is kept, and none is wanted")
	}
}
