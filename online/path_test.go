// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/online"
)

func TestPath(t *testing.T) {
	l := learner(t, online.Settings{})
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for i, x := range faces(3, 60) {
		l.SetTime(at.Add(time.Duration(i) * time.Second))
		if _, err := l.Observe(x); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, l)
	all := l.Stored()
	vectors := make(map[int64][]float32)
	for _, s := range all {
		vectors[s.ID] = s.Vector
	}
	learned := 0
	for _, s := range all {
		path, whole, err := l.Path(s.ID)
		if err != nil || !whole || len(path) != s.Hops+1 || path[0].Stored != s.ID || path[0].Distance != 0 {
			t.Fatalf("%+v, %v, %v", path, whole, err)
		}
		last := path[len(path)-1]
		switch {
		case last.Label.ID != last.Stored || last.Label.Person == 0 || !last.At.IsZero():
			t.Errorf("it ends with %+v", last)
		case s.Person != 0 && last.Label.Person != s.Person:
			t.Errorf("a face of %d came through one of %d", s.Person, last.Label.Person)
		case !s.Labelled:
			learned++
			if !s.At.Equal(path[0].At) || s.At.Before(at) {
				t.Errorf("learned at %v, and at %v", s.At, path[0].At)
			}
		}
		for i := range path[1:] {
			if d := graph.Distance(vectors[path[i].Stored], vectors[path[i+1].Stored],
				l.Space().Scale); d != path[i+1].Distance {
				t.Errorf("a step of %g, want %g", path[i+1].Distance, d)
			}
		}
	}
	if learned == 0 {
		t.Error("nothing was learned")
	}
	if !bytes.Equal(before, snapshot(t, l)) {
		t.Error("to look changed something")
	}
	if _, _, err := l.Path(1 << 40); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
}
