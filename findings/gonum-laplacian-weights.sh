#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gonum 0.17.0, graph/spectral: NewLaplacian and NewSymNormLaplacian take a weighted graph, and leave its weights out: each
# edge counts 1. In a harmonic solution on them a face that is near ann (0.9) and hardly like bob (0.1) is ann's as much as
# bob's. Nothing says so, and the types fit.
# Expected: the weighted degrees and weights, as in SciPy and NetworkX, and as gonum's own community.Q uses them.
# Seen: the row of the face is -1, 2, -1 and not -0.9, 1, -0.1; its share of ann is 0.5 and not 0.9. community.Q of the same
# graph changes with its weights.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'EOF_'
module finding

go 1.26

require gonum.org/v1/gonum v0.17.0
EOF_
cat >go.sum <<'EOF_'
gonum.org/v1/gonum v0.17.0 h1:VbpOemQlsSMrYmn7T2OUvQ4dqxQXU+ouZFQsZOx50z4=
gonum.org/v1/gonum v0.17.0/go.mod h1:El3tOrEuMpv2UdMrbNlKEh9vd86bmQ6vqIcDwxEOc1E=
EOF_
cat >main.go <<'EOF_'
package main

import (
	"fmt"
	"os"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/community"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/spectral"
)

// faces is ann, the face that is asked about, and bob.
func faces(ann, bob float64) *simple.WeightedUndirectedGraph {
	g := simple.NewWeightedUndirectedGraph(0, 0)
	for id, w := range map[int64]float64{0: ann, 2: bob} {
		g.SetWeightedEdge(g.NewWeightedEdge(simple.Node(id), simple.Node(1), w))
	}
	return g
}

func main() {
	g := faces(.9, .1)
	l := spectral.NewLaplacian(g)
	face := l.Index[1]
	row := []float64{l.At(face, l.Index[0]), l.At(face, face), l.At(face, l.Index[2])}
	share := -row[0] / row[1] // the harmonic solution: ann is 1, bob 0
	n := spectral.NewSymNormLaplacian(g)
	normed := n.At(n.Index[1], n.Index[0]) / n.At(n.Index[1], n.Index[2])
	fmt.Printf("row of the face: %g, share of ann: %g; ann by bob, normalised: %g\n", row, share, normed)
	pair := [][]graph.Node{{simple.Node(0), simple.Node(1)}, {simple.Node(2)}}
	q, other := community.Q(g, pair, 1), community.Q(faces(.5, .5), pair, 1)
	fmt.Printf("community.Q: %.3f, with equal weights %.3f\n", q, other)
	if row[0] != -1 || row[1] != 2 || row[2] != -1 || share != .5 || normed != 1 || q == other {
		os.Exit(1)
	}
}
EOF_
GOFLAGS=-mod=mod GOPATH="$dir/go" go run .
