// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/compact"
	"github.com/faceauth/faceauth/online"
)

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, ImpostorRadius: .9}

// compacted returns a learner made of two people who move along two lines, and of a stranger far away.
func compacted(t *testing.T, k int) (*online.Learner, compact.Report) {
	t.Helper()
	labelled := []compact.Example{{Vector: []float32{0, 0}, Person: 1}, {Vector: []float32{0, 10}, Person: 2}}
	var faces [][]float32
	for i := range 120 {
		x := float32(i) / 30
		faces = append(faces, []float32{x, .1 * x}, []float32{x, 10}, []float32{100 + x, 0})
	}
	l, report, err := compact.Learner(context.Background(), plane, online.Settings{K: k}, labelled, faces,
		compact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l, report
}

func TestCompact(t *testing.T) {
	for _, k := range []int{40, 100, 1000} {
		l, report := compacted(t, k)
		if l.Graph().Len() > k || report.Faces != 360 || report.Kept > 240 || report.Centroids != l.Graph().Len()-2 {
			t.Errorf("k %d: %d vertices, %+v", k, l.Graph().Len(), report)
		}
		if c := l.Counts(); c.Labelled != 2 || c.Observed != int64(report.Kept) || c.Learned != int64(report.Kept) {
			t.Errorf("k %d: %+v", k, c)
		}
		for _, p := range []struct {
			x    []float32
			want online.Person
		}{{[]float32{3.5, .35}, 1}, {[]float32{3.5, 10}, 2}, {[]float32{101, 0}, 0}, {[]float32{2, 5}, 0}} {
			if v, err := l.Judge(p.x); err != nil || v.Person != p.want {
				t.Errorf("k %d, %v: %+v, %v", k, p.x, v, err)
			}
		}
		again, _ := compacted(t, k)
		if !bytes.Equal(snapshot(t, l), snapshot(t, again)) {
			t.Errorf("k %d: the same faces make another learner", k)
		}
		// The learner goes on learning, within k.
		for i := range 200 {
			if _, err := l.Observe([]float32{4 + float32(i)/50, .4}); err != nil {
				t.Fatal(err)
			}
		}
		if l.Graph().Learned() > k+1 {
			t.Errorf("k %d: %d learned vertices", k, l.Graph().Learned())
		}
	}
}

func TestCompactBadInput(t *testing.T) {
	ctx := context.Background()
	label := []compact.Example{{Vector: []float32{0, 0}, Person: 1}}
	for name, c := range map[string]struct {
		labelled []compact.Example
		faces    [][]float32
		s        online.Settings
		how      compact.Options
		want     error
	}{
		"nobody": {nil, [][]float32{{0, 0}}, online.Settings{}, compact.Options{}, online.ErrSettings},
		"person 0": {[]compact.Example{{Vector: []float32{0, 0}}}, nil, online.Settings{}, compact.Options{},
			online.ErrUnknown},
		"labels beyond k": {append(label, label[0]), nil, online.Settings{K: 1}, compact.Options{}, nil},
		"pull": {label, [][]float32{{0, 0}}, online.Settings{}, compact.Options{Pull: -1},
			online.ErrSettings},
		"settings":           {label, nil, online.Settings{K: -1}, compact.Options{}, online.ErrSettings},
		"nothing to learn":   {label, nil, online.Settings{}, compact.Options{}, nil},
		"the same all over":  {label, [][]float32{{0, 0}, {0, 0}, {0, 0}}, online.Settings{}, compact.Options{}, nil},
		"no room for others": {label, [][]float32{{.1, 0}, {.2, 0}}, online.Settings{K: 1}, compact.Options{}, nil},
	} {
		if _, _, err := compact.Learner(ctx, plane, c.s, c.labelled, c.faces, c.how); !errors.Is(err, c.want) ||
			c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, x := range [][]float32{{1}, {float32(math.NaN()), 0}} {
		if _, _, err := compact.Learner(ctx, plane, online.Settings{}, label, [][]float32{x},
			compact.Options{}); err == nil {
			t.Errorf("%v is a face", x)
		}
	}
	stop, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := compact.Learner(stop, plane, online.Settings{}, label, [][]float32{{0, 0}, {1, 1}},
		compact.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func snapshot(t *testing.T, l *online.Learner) []byte {
	t.Helper()
	b, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}
