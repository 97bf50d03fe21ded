// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

func TestCompact(t *testing.T) {
	space := face.Space{ID: "field", Dim: 2, Scale: 1, Sigma: .3, Gamma: 1e-3, GenuineRadius: 1}
	labelled := []online.Example{
		{Vector: []float32{0, 0}, Name: "alice"}, {Vector: []float32{5, 5}, Name: "bob"},
		{Vector: []float32{.1, 0}, Name: "alice"},
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 500, time.UTC)
	g, report, err := gallery.Compact(context.Background(), space, online.Settings{K: 20}, labelled, spots(0, .1, 40),
		online.Compaction{}, now, false)
	if err != nil {
		t.Fatal(err)
	}
	people := g.People()
	if len(people) != 2 || people[0].Name != "alice" || people[0].Faces != 2 || people[1].Faces != 1 ||
		!people[0].Enrolled.Equal(now.Truncate(time.Second)) {
		t.Errorf("%+v", people)
	}
	if report.Centroids == 0 || report.Centroids > 17 {
		t.Errorf("%+v", report)
	}
	// The gallery works like any other: it can be saved and read, recognises the faces, and can forget them.
	path := filepath.Join(t.TempDir(), "gallery")
	if err := g.Save(path); err != nil {
		t.Fatal(err)
	}
	if g, err = gallery.Open(path, space); err != nil {
		t.Fatal(err)
	}
	if v, err := g.Learner().Judge([]float32{1.9, .1}); err != nil || v.Label != "alice" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := g.Forget("alice"); err != nil {
		t.Fatal(err)
	}
	if v, err := g.Learner().Judge([]float32{1.9, .1}); err != nil || v.Label != "" || g.Learner().Graph().Len() != 1 {
		t.Errorf("%+v, %v, %d faces", v, err, g.Learner().Graph().Len())
	}

	labelled = append(labelled, online.Example{Vector: []float32{5, 5.1}, Name: "alice"})
	if _, _, err := gallery.Compact(context.Background(), space, online.Settings{}, labelled, nil, online.Compaction{},
		now, false); !errors.Is(err, gallery.ErrMixed) {
		t.Errorf("two people under one name: %v", err)
	}
	if _, _, err := gallery.Compact(context.Background(), space, online.Settings{}, labelled, nil, online.Compaction{},
		now, true); err != nil {
		t.Errorf("forced: %v", err)
	}
}
