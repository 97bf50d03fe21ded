// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/faceauth/faceauth/online"
)

// compacted returns a learner made of two people who move along two lines, and of a stranger far away.
func compacted(t *testing.T, k int) (*online.Learner, online.Compacted) {
	t.Helper()
	labelled := []online.Example{{Vector: []float32{0, 0}, Name: "alice"}, {Vector: []float32{0, 10}, Name: "bob"}}
	var faces [][]float32
	for i := range 120 {
		x := float32(i) / 30
		faces = append(faces, []float32{x, .1 * x}, []float32{x, 10}, []float32{100 + x, 0})
	}
	l, report, err := online.Compact(context.Background(), plane, online.Settings{K: k}, labelled, faces,
		online.Compaction{})
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
			want string
		}{{[]float32{3.5, .35}, "alice"}, {[]float32{3.5, 10}, "bob"}, {[]float32{101, 0}, ""}, {[]float32{2, 5}, ""}} {
			if v, err := l.Judge(p.x); err != nil || v.Label != p.want {
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
	label := []online.Example{{Vector: []float32{0, 0}, Name: "alice"}}
	for name, c := range map[string]struct {
		labelled []online.Example
		faces    [][]float32
		s        online.Settings
		how      online.Compaction
		want     error
	}{
		"nobody": {nil, [][]float32{{0, 0}}, online.Settings{}, online.Compaction{}, online.ErrSettings},
		"name": {[]online.Example{{Vector: []float32{0, 0}}}, nil, online.Settings{}, online.Compaction{},
			online.ErrName},
		"labels beyond k": {append(label, label[0]), nil, online.Settings{K: 1}, online.Compaction{}, nil},
		"pull": {label, [][]float32{{0, 0}}, online.Settings{}, online.Compaction{Pull: -1},
			online.ErrSettings},
		"settings":           {label, nil, online.Settings{K: -1}, online.Compaction{}, online.ErrSettings},
		"nothing to learn":   {label, nil, online.Settings{}, online.Compaction{}, nil},
		"the same all over":  {label, [][]float32{{0, 0}, {0, 0}, {0, 0}}, online.Settings{}, online.Compaction{}, nil},
		"no room for others": {label, [][]float32{{.1, 0}, {.2, 0}}, online.Settings{K: 1}, online.Compaction{}, nil},
	} {
		if _, _, err := online.Compact(ctx, plane, c.s, c.labelled, c.faces, c.how); !errors.Is(err, c.want) ||
			c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, x := range [][]float32{{1}, {float32(math.NaN()), 0}} {
		if _, _, err := online.Compact(ctx, plane, online.Settings{}, label, [][]float32{x},
			online.Compaction{}); err == nil {
			t.Errorf("%v is a face", x)
		}
	}
	stop, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := online.Compact(stop, plane, online.Settings{}, label, [][]float32{{0, 0}, {1, 1}},
		online.Compaction{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
