#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gonum 0.17.0, amd64: floats.Sum, and stat.Mean and stat.Variance that use it, add the first number of a slice by itself
# if the slice does not begin at a multiple of 16 bytes. So the mean of the same numbers depends on where they lie: vectors
# of an odd number of values, packed behind one another in one slice, have other last bits than copies of them.
# floats.Dot, Norm and Distance do not.
# Expected: the same numbers in the same order have the same sum, bit for bit, in one program on one processor.
# Seen: of 1,000 vectors of 128 values, 600 to 750 have another mean one place further on, some another variance; no dot
# product, norm or distance differs.
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
	"math/rand"
	"os"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

func main() {
	names := []string{"Mean", "Variance", "Dot", "Norm", "Distance"}
	of := func(v, w []float64) []float64 {
		return []float64{stat.Mean(v, nil), stat.Variance(v, nil), floats.Dot(v, w), floats.Norm(v, 2),
			floats.Distance(v, w, 2)}
	}
	const n = 128
	r := rand.New(rand.NewSource(1))
	moved, other := make([]float64, n+1), make([]float64, n)
	differ := make([]int, len(names))
	for range 1000 {
		for i := range other {
			moved[i], other[i] = r.NormFloat64(), r.NormFloat64()
		}
		here := of(moved[:n], other)
		copy(moved[1:], moved[:n])
		there := of(moved[1:], other)
		for i := range names {
			if here[i] != there[i] {
				differ[i]++
			}
		}
	}
	for i, name := range names {
		fmt.Printf("%s: %d of 1000 differ\n", name, differ[i])
	}
	if differ[0] < 600 || differ[0] > 750 || differ[1] == 0 || differ[2]+differ[3]+differ[4] > 0 {
		os.Exit(1)
	}
}
EOF_
GOFLAGS=-mod=mod GOARCH=amd64 GOPATH="$dir/go" go run .
