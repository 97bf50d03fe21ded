// SPDX-License-Identifier: Apache-2.0

package distil_test

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/distil"
)

// shown is a stream with a frame for each vector. A nil vector gives a frame without a face. After the frames the
// stream returns its error, or waits for ever if the error is nil.
type shown struct {
	vectors [][]float32
	err     error
}

func (s *shown) Next(ctx context.Context) (face.Frame, error) {
	if err := ctx.Err(); err != nil {
		return face.Frame{}, err
	}
	if len(s.vectors) == 0 {
		if s.err == nil { // a camera without further frames
			<-ctx.Done()
			return face.Frame{}, ctx.Err()
		}
		return face.Frame{}, s.err
	}
	x := s.vectors[0]
	s.vectors = s.vectors[1:]
	if x == nil {
		return face.Frame{}, nil
	}
	return face.Frame{Samples: []face.Sample{{Vector: x}, {Vector: []float32{9, 9}}}}, nil
}

func TestJudge(t *testing.T) {
	v, err := distil.New(learner(t, true), "alice", distil.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	own, other := []float32{0, 0}, []float32{5, 0}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		s               shown
		faces, accepted int
		yes             bool
		err             error
	}{
		"all own faces":       {shown{[][]float32{own, nil, own, own, other}, io.EOF}, 3, 3, true, nil},
		"half of the faces":   {shown{[][]float32{own, other}, io.EOF}, 2, 1, false, nil},
		"ends early":          {shown{[][]float32{own}, io.EOF}, 1, 1, true, nil},
		"nobody":              {shown{nil, io.EOF}, 0, 0, false, nil},
		"error of the stream": {shown{[][]float32{own}, broken}, 1, 1, true, broken},
		"until the deadline":  {shown{[][]float32{own, own}, nil}, 2, 2, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer stop()
			d, err := v.Judge(ctx, &c.s, 3)
			if d.Faces != c.faces || d.Accepted != c.accepted || d.Yes() != c.yes || !errors.Is(err, c.err) {
				t.Errorf("decision %+v, error %v", d, err)
			}
			if math.IsInf(d.Best, -1) != (c.faces == 0) {
				t.Errorf("best value %g of %d faces", d.Best, d.Faces)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Judge(ctx, &shown{[][]float32{own}, io.EOF}, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
