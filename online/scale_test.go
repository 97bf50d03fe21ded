// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"math"
	"math/rand/v2"

	"github.com/faceauth/faceauth/face"
)

// crowd returns faces of any number of people, with the distances of an embedding: two faces of one
// person are about .7 apart, faces of two people about 1.4.
type crowd struct {
	r   *rand.Rand
	dim int
	of  [][]float32
}

func newCrowd(people, dim int) *crowd {
	c := &crowd{r: rand.New(rand.NewPCG(5, 1)), dim: dim}
	for range people {
		c.of = append(c.of, c.direction(make([]float32, dim), 1))
	}
	return c
}

// direction returns the unit vector that lies at x moved by noise of the given length.
func (c *crowd) direction(x []float32, noise float64) []float32 {
	y := make([]float32, c.dim)
	var sum float64
	for i := range y {
		v := float64(x[i]) + noise/math.Sqrt(float64(c.dim))*c.r.NormFloat64()
		y[i] = float32(v)
		sum += v * v
	}
	for i := range y {
		y[i] /= float32(math.Sqrt(sum))
	}
	return y
}

func (c *crowd) face(person int) []float32 { return c.direction(c.of[person], .55) }

func (c *crowd) stranger() []float32 { return c.direction(make([]float32, c.dim), 1) }

// sphereOf returns a space like that of the embedding that the program installs.
func sphereOf(dim int) face.Space {
	return face.Space{ID: "crowd", Dim: dim, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3,
		Reach: .86}
}
