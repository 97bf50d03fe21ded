// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/faceauth/faceauth/online"
)

func TestStored(t *testing.T) {
	l := learner(t, online.Settings{})
	for _, x := range faces(3, 60) {
		if _, err := l.Observe(x); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, l)
	name := l.Names()[0]
	all, err := l.Stored(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, snapshot(t, l)) {
		t.Error("to look changed something")
	}
	if len(all) != l.Graph().Len() {
		t.Fatalf("%d of %d", len(all), l.Graph().Len())
	}
	learned := 0
	for _, s := range all {
		switch {
		case s.Labelled && s.Name == name && math.Abs(s.Margin-1) > 1e-9, s.Labelled && s.Name != name &&
			math.Abs(s.Margin+1) > 1e-9:
			t.Errorf("the margin of a face of %s is %g", s.Name, s.Margin)
		case s.Margin < -1-1e-9 || s.Margin > 1+1e-9:
			t.Errorf("a margin of %g", s.Margin)
		case !s.Labelled:
			learned++
			if (s.Name == name) != (s.Margin > 0) {
				t.Errorf("learned as %q with a margin of %g", s.Name, s.Margin)
			}
		}
	}
	if learned == 0 {
		t.Fatal("nothing was learned")
	}
	if _, err := l.Stored("nobody"); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	// One learned face is removed, and then a labelled one: only these faces, and the faces that were learned through
	// them.
	for i, s := range all {
		if s.Labelled && i > 0 {
			continue
		}
		had := l.Counts()
		n := l.Graph().Len()
		gone, err := l.Remove(s.ID)
		if s.Labelled {
			if err != nil || gone != 0 || l.Graph().Len() != n-1 {
				t.Errorf("labelled: %d faces gone, %v", gone, err)
			}
		} else if errors.Is(err, online.ErrUnknown) {
			continue // it was removed with another face
		} else if err != nil || gone < int(s.Points) || l.Graph().Len() >= n {
			t.Errorf("learned: %d faces gone of %g, %v", gone, s.Points, err)
		}
		if l.Counts() != had {
			t.Error("what was observed was observed")
		}
	}
	if _, err := l.Remove(all[0].ID); !errors.Is(err, online.ErrUnknown) {
		t.Errorf("twice: %v", err)
	}
}

func TestAdopt(t *testing.T) {
	one, many := learner(t, online.Settings{}), learner(t, online.Settings{})
	x := faces(3, 3)[0]
	if _, err := one.Observe(x); err != nil {
		t.Fatal(err)
	}
	for range 4 { // the same face again merges with itself
		if _, err := one.Observe(x); err != nil {
			t.Fatal(err)
		}
	}
	v, err := many.Adopt(x, 5)
	if err != nil || !v.Learned {
		t.Fatalf("%+v, %v", v, err)
	}
	if one.Counts() != many.Counts() {
		t.Errorf("%+v and %+v", one.Counts(), many.Counts())
	}
	for _, probe := range faces(4, 30) {
		a, err := one.Judge(probe)
		if err != nil {
			t.Fatal(err)
		}
		b, err := many.Judge(probe)
		if err != nil {
			t.Fatal(err)
		}
		if a.Label != b.Label || math.Abs(a.Confidence-b.Confidence) > 1e-8 {
			t.Fatalf("%+v and %+v", a, b)
		}
	}
	// A snapshot of the learner can be read, and the faces can then be taken back.
	data := snapshot(t, many)
	if err := many.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if n, err := many.Undo(0); err != nil || n != 5 {
		t.Errorf("%d taken back, %v", n, err)
	}
	far := []float32{1e3, 1e3}
	had := many.Counts()
	if v, err := many.Adopt(far, 3); err != nil || v.Learned || many.Counts() != had {
		t.Errorf("an outlier: %+v, %v", v, err)
	}
	for _, n := range []int{0, -1, 1 << 41} {
		if _, err := many.Adopt(x, n); !errors.Is(err, online.ErrSettings) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if _, err := many.Adopt([]float32{1}, 1); err == nil {
		t.Error("a face of another length was adopted")
	}
}
