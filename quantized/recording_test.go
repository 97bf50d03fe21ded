// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package quantized_test

import (
	"context"
	"math"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/quantized"
)

// On real faces, too, the graph must agree with the thesis's listing: four people, each with the first four frames
// labelled, and two strangers. A small k causes frequent repartitions.
func TestSystemRecordingAgainstReference(t *testing.T) {
	if testing.Short() {
		t.Skip("real recordings take a while")
	}
	dir := fixture.Models(t)
	fixture.Recordings(t, "faces/vidtimit_rot")
	d, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	read := func(person string) [][]float32 {
		src, err := facedet.Open(context.Background(), fixture.Sparse(t, "faces/vidtimit_rot/"+person, 2),
			facedet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		var faces [][]float32
		for _, f := range fixture.Faces(t, pipeline.New(src, d, e, pipeline.Options{})) {
			faces = append(faces, f.Vector)
		}
		return faces
	}
	s := e.Space()
	c := quantized.Config{
		K: 60, Multiplier: 1.5, Dim: s.Dim, Scale: s.Scale, Kernel: graph.Heat(s.Sigma), Epsilon: .1 * s.Gamma,
		Gamma: s.Gamma,
	}
	g, err := quantized.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &reference.Graph{Config: c}
	const known, labelled = 4, 4
	var stream [][]float32
	for i, person := range []string{"p0", "p1", "p2", "p3", "p4", "p5"} {
		faces := read(person)
		if i < known {
			for _, x := range faces[:labelled] {
				if err := g.Label(x, i); err != nil {
					t.Fatal(err)
				}
				r.Label(x, i)
			}
			faces = faces[labelled:]
		}
		stream = append(stream, faces...)
	}
	largest, outliers, repartitions := 0., 0, 0
	for step, x := range stream {
		radius := g.R()
		want := r.Place(x)
		c := g.Place(x)
		if c.Outlier() != want.Outlier {
			t.Fatalf("face %d: outlier %t, reference %t", step, c.Outlier(), want.Outlier)
		}
		if c.Outlier() {
			outliers++
			continue
		}
		if g.R() != radius {
			repartitions++
		}
		values := solved(t, g, c.Trial)
		first, best := 0, 0
		for q := range want.Values {
			largest = max(largest, math.Abs(values[q]-want.Values[q]))
			if values[q] > values[first] {
				first = q
			}
			if want.Values[q] > want.Values[best] {
				best = q
			}
		}
		if first != best {
			t.Fatalf("face %d: class %d, reference %d", step, first, best)
		}
		m := quantized.Moment{Observation: int64(step + 1)}
		_, kept := c.Keep(first, m)
		if _, wanted := r.Keep(want, first, m); kept != wanted {
			t.Fatalf("face %d: room differs", step)
		}
	}
	t.Logf("%d faces, %d outliers, %d repartitions, largest difference %.2g", len(stream), outliers, repartitions,
		largest)
	if largest > 1e-8 || outliers == 0 || repartitions == 0 {
		t.Errorf("largest difference %g, %d outliers, %d repartitions", largest, outliers, repartitions)
	}
}
