package main

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/faceauth/faceauth/graph"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// problem is a stream of points of two classes, the labelled ones first.
type problem struct {
	x      [][]float32
	class  []int
	kernel graph.Kernel
	d      *mat.SymDense // distances of all points
}

// readUCI returns the problems of a dataset: each of the first ten classes against the one that follows it.
func (o *options) readUCI(dataset string) ([]problem, error) {
	var files []string
	label := 0
	classes := namesOfClasses(26, func(i int) string { return string(rune('A' + i)) })
	switch dataset {
	case "letter":
		files = []string{"letter/letter-recognition.data"}
	case "optdigits":
		files, label = []string{"optdigits/optdigits.tra", "optdigits/optdigits.tes"}, 64
		classes = namesOfClasses(10, strconv.Itoa)
	}
	rows := make(map[string][][]float32)
	for _, name := range files {
		f, err := os.Open(filepath.Join(o.data, "tables", name))
		if err != nil {
			return nil, err
		}
		records, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i, r := range records {
			x := make([]float32, 0, len(r)-1)
			for q, s := range r {
				if q == label {
					continue
				}
				v, err := strconv.ParseFloat(s, 32)
				if err != nil {
					return nil, fmt.Errorf("%s, line %d: %w", name, i+1, err)
				}
				x = append(x, float32(v))
			}
			rows[r[label]] = append(rows[r[label]], x)
		}
	}
	all := make([]problem, problems)
	for i := range all {
		a, b := rows[classes[i]], rows[classes[(i+1)%len(classes)]]
		if len(a) < points/4 || len(b) < points/4 {
			return nil, fmt.Errorf("%s has %d points of %s and %d of %s", dataset, len(a), classes[i], len(b), classes[(i+1)%len(classes)])
		}
		all[i] = newProblem(a, b, uint64(i))
	}
	return all, nil
}

func namesOfClasses(n int, f func(int) string) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

func newProblem(a, b [][]float32, seed uint64) problem {
	r := rand.New(rand.NewPCG(seed, 2011))
	type point struct {
		x     []float32
		class int
	}
	var stream []point
	for class, rows := range [][][]float32{a, b} {
		for _, x := range rows {
			stream = append(stream, point{x, class})
		}
	}
	r.Shuffle(len(stream), func(i, j int) { stream[i], stream[j] = stream[j], stream[i] })
	stream = stream[:min(points, len(stream))]
	// The labelled points come first, in their order.
	seen := [2]int{}
	var labelled, rest []point
	for _, p := range stream {
		if seen[p.class] < perClass {
			seen[p.class]++
			labelled = append(labelled, p)
		} else {
			rest = append(rest, p)
		}
	}
	var p problem
	for _, q := range append(labelled, rest...) {
		p.x, p.class = append(p.x, q.x), append(p.class, q.class)
	}
	dim := len(p.x[0])
	var deviation float64
	column := make([]float64, len(p.x))
	for q := range dim {
		for i, x := range p.x {
			column[i] = float64(x[q])
		}
		deviation += stat.StdDev(column, nil) / float64(dim)
	}
	p.kernel = graph.ScaledHeat(dim, deviation)
	p.d = graph.Distances(p.x, 1)
	return p
}
