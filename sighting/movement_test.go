// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/sighting"
)

// blobsOf draws forty blobs of ink: where they are, how large, and how dark.
func blobsOf(r *rand.Rand) (all [][4]float64) {
	for range 40 {
		all = append(all, [4]float64{2*r.Float64() - 1, 2*r.Float64() - 1, .06 + .12*r.Float64(),
			2 * r.NormFloat64()})
	}
	return all
}

// drawn returns a made-up aligned face: blobs of ink on paper, where a place of the picture is a
// place of the drawing through a map, in a light, with noise.
func drawn(blobs [][4]float64, noise float64, r *rand.Rand, through func(x, y float64) (u, v float64),
	lit func(v, x, y float64) float64) []byte {
	const side = face.AlignedSide
	p := make([]byte, side*side)
	for i := range p {
		x, y := float64(i%side)/side*2-1, float64(i/side)/side*2-1
		u, v := through(x, y)
		ink := 0.
		for _, b := range blobs {
			ink += b[3] * math.Exp(-((u-b[0])*(u-b[0])+(v-b[1])*(v-b[1]))/(2*b[2]*b[2]))
		}
		grey := lit(130+60*math.Tanh(ink), x, y) + noise*r.NormFloat64()
		p[i] = uint8(min(max(grey, 0), 255))
	}
	return p
}

// What is drawn on a plane has not moved apart, however the plane is held, lit and seen through
// noise; a drawing whose middle comes nearer than its rim, as a nose does, or whose lower part
// opens, has.
func TestMovement(t *testing.T) {
	same := func(x, y float64) (float64, float64) { return x, y }
	day := func(v, _, _ float64) float64 { return v }
	flat, apart := 0., math.Inf(1)
	for run := range uint64(60) {
		r := rand.New(rand.NewPCG(run, 9))
		blobs := blobsOf(r)
		near := func(by float64) float64 { return by * (2*r.Float64() - 1) }
		a, b, c, d := near(.04), near(.04), near(.02), near(.02)
		held := func(x, y float64) (u, v float64) {
			w := 1 + c*x + d*y
			return (x + a - b*y) / w, (y + b*x - a) / w
		}
		gain, lamp, level := .4+.8*r.Float64(), near(20), near(15)
		light := func(v, x, y float64) float64 { return gain*(v+lamp*x-level*y-128) + 128*gain }
		before := drawn(blobs, 1, r, same, day)
		flat = max(flat, sighting.Movement(before, drawn(blobs, 2, r, held, light)))

		turned := func(x, y float64) (u, v float64) {
			u, v = held(x, y)
			return u + .15*math.Exp(-4*(x*x+y*y)), v
		}
		spoken := func(x, y float64) (u, v float64) {
			u, v = held(x, y)
			return u, v - .3*max(0, y-.1)*math.Exp(-4*x*x)
		}
		for _, moved := range []func(x, y float64) (u, v float64){turned, spoken} {
			apart = min(apart, sighting.Movement(before, drawn(blobs, 2, r, moved, light)))
		}
	}
	t.Logf("a plane moves by at most %.2f, a head by %.2f and more", flat, apart)
	if flat >= sighting.MovedApart || apart < sighting.MovedApart {
		t.Errorf("a plane moves by %g, a head by %g", flat, apart)
	}
	black := make([]byte, face.AlignedSide*face.AlignedSide)
	if m := sighting.Movement(black, black); m != 0 {
		t.Errorf("nothing to see has moved by %g", m)
	}
	if m := sighting.Movement(black, nil); !math.IsInf(m, 1) {
		t.Errorf("nothing to compare has moved by %g", m)
	}
}

// A face whose vector and landmarks say that it is another look, and whose parts have not moved
// apart, is none.
func TestMovementDecides(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	blobs := blobsOf(r)
	day := func(v, _, _ float64) float64 { return v }
	same := func(x, y float64) (float64, float64) { return x, y }
	turned := func(x, y float64) (float64, float64) {
		return x + .2*math.Exp(-4*(x*x+y*y)), y
	}
	space := face.Space{ID: "line", Dim: 1, Scale: 1, Look: .2}
	first := sighting.Look{Vector: []float32{0}, Landmarks: fixture.Landmarks(0, .5, .3),
		Aligned: drawn(blobs, 1, r, same, day)}
	second := sighting.Look{Vector: []float32{.4}, Landmarks: fixture.Landmarks(.4, .5, .3)}
	for _, c := range []struct {
		aligned []byte
		want    bool
	}{{drawn(blobs, 2, r, same, day), false}, {drawn(blobs, 2, r, turned, day), true},
		{nil, true}} {
		second.Aligned = c.aligned
		isNew, _ := second.Differs(space, []sighting.Look{first})
		if isNew != c.want {
			t.Errorf("another look: %t, want %t", isNew, c.want)
		}
	}
}
