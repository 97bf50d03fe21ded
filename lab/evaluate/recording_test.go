// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
)

// frames is a recording. It ends with an error, or with io.EOF for none.
type frames struct {
	all []face.Frame
	err error
}

func (s *frames) Next(context.Context) (face.Frame, error) {
	if len(s.all) == 0 {
		if s.err != nil {
			return face.Frame{}, s.err
		}
		return face.Frame{}, io.EOF
	}
	f := s.all[0]
	s.all = s.all[1:]
	return f, nil
}

// Every frame is a face or is counted as one without, with the cause.
func TestRead(t *testing.T) {
	sample := func(x float32, size int, reason face.Reason) face.Sample {
		return face.Sample{Vector: []float32{x}, Quality: face.Quality{Size: size}, Reason: reason}
	}
	none := face.Sample{Reason: face.NoVector}
	recording := func() []face.Frame {
		var all []face.Frame
		for _, samples := range [][]face.Sample{
			{sample(1, 100, "")}, {}, {sample(2, 100, ""), sample(9, 100, "")},
			{none}, {none, sample(9, 100, "")}, {sample(3, 10, face.Blurred)}, nil,
		} {
			all = append(all, face.Frame{Samples: samples})
		}
		return all
	}
	large := func(q face.Quality) bool { return q.Size > 50 }
	id, err := evaluate.Read(context.Background(), "alice", &frames{all: recording()}, large)
	if err != nil {
		t.Fatal(err)
	}
	if id.Name != "alice" || len(id.Faces) != 3 || id.Undetected != 4 || id.NoVector != 2 ||
		id.Several != 1 {
		t.Errorf("%+v", id)
	}
	for i, want := range []struct{ usable, hold bool }{{true, false}, {true, false},
		{false, true}} {
		if f := id.Faces[i]; f.Vector[0] != float32(i+1) || f.Usable != want.usable ||
			f.Hold != want.hold {
			t.Errorf("face %d: %+v", i, f)
		}
	}
	broken := errors.New("broken")
	_, err = evaluate.Read(context.Background(), "alice", &frames{all: recording(), err: broken},
		large)
	if !errors.Is(err, broken) {
		t.Errorf("a recording that breaks off: %v", err)
	}
}
