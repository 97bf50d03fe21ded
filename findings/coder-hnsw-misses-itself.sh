#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coder/hnsw 0.6.1 (Go), an approximate index of vectors with its own settings: of 1,000 random vectors of length 1 in 128
# dimensions, every other one is not found when it is itself searched for, in the nearest five. Nothing says so, as five
# others come back. A gallery of faces kept in it does not know half of the pictures that were enrolled.
# Expected: a stored vector finds itself, but for one or two in a hundred. (hnswlib 0.6.2 with lists as short as these,
# 20 long: 999 of 1,000.)
# Seen, with the generator seeded by 1 to 3: fewer than 700 of 1,000; all 10 of 10, and 100 of 100 not.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'EOF_'
module finding

go 1.26

require github.com/coder/hnsw v0.6.1
EOF_
cat >go.sum <<'EOF_'
github.com/chewxy/math32 v1.10.1 h1:LFpeY0SLJXeaiej/eIp2L40VYfscTvKh/FSEZ68uMkU=
github.com/chewxy/math32 v1.10.1/go.mod h1:dOB2rcuFrCn6UHrze36WSLVPKtzPMRAQvBvUwkSsLqs=
github.com/coder/hnsw v0.6.1 h1:Dv76pjiFkgMYFqnTCOehJXd06irm2PRwcP/jMMPCyO0=
github.com/coder/hnsw v0.6.1/go.mod h1:wvRc/vZNkK50HFcagwnc/ep/u29Mg2uLlPmc8SD7eEQ=
github.com/google/renameio v1.0.1 h1:Lh/jXZmvZxb0BBeSY5VKEfidcbcbenKjZFzM/q0fSeU=
github.com/google/renameio v1.0.1/go.mod h1:t/HQoYBZSsWSNK35C6CO/TpPLDVWvxOHboWUAweKUpk=
github.com/viterin/partial v1.1.0 h1:iH1l1xqBlapXsYzADS1dcbizg3iQUKTU1rbwkHv/80E=
github.com/viterin/partial v1.1.0/go.mod h1:oKGAo7/wylWkJTLrWX8n+f4aDPtQMQ6VG4dd2qur5QA=
github.com/viterin/vek v0.4.2 h1:Vyv04UjQT6gcjEFX82AS9ocgNbAJqsHviheIBdPlv5U=
github.com/viterin/vek v0.4.2/go.mod h1:A4JRAe8OvbhdzBL5ofzjBS0J29FyUrf95tQogvtHHUc=
golang.org/x/exp v0.0.0-20240506185415-9bf2ced13842 h1:vr/HnozRka3pE4EsMEg1lgkXJkTFJCVUX+S/ZT6wYzM=
golang.org/x/exp v0.0.0-20240506185415-9bf2ced13842/go.mod h1:XtvwrStGgqGPLc4cjQfWqZHG1YFdYs6swckp8vpsjnc=
golang.org/x/sys v0.11.0 h1:eG7RXZHdqOJ1i+0lgLgCpSXAp6M3LYlAo6osgSi0xOM=
golang.org/x/sys v0.11.0/go.mod h1:oPkhp1MJrh7nUepCBck5+mAzfO9JrbApNNgaTdGDITg=
EOF_
cat >main.go <<'EOF_'
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"

	"github.com/coder/hnsw"
)

// itself returns how many of n vectors are in the nearest five of themselves.
func itself(n int, seed int64) (found int) {
	r := rand.New(rand.NewSource(seed))
	graph := hnsw.NewGraph[int]() // cosine, M 16, Ml 0.25, EfSearch 20
	graph.Rng = r
	vectors := make([][]float32, n)
	for i := range vectors {
		v, square := make([]float32, 128), 0.
		for j := range v {
			v[j] = float32(r.NormFloat64())
			square += float64(v[j] * v[j])
		}
		for j := range v {
			v[j] /= float32(math.Sqrt(square))
		}
		vectors[i] = v
		graph.Add(hnsw.MakeNode(i, v))
	}
	for i, v := range vectors {
		for _, near := range graph.Search(v, 5) {
			if near.Key == i {
				found++
			}
		}
	}
	return found
}

func main() {
	same := true
	for seed := int64(1); seed <= 3; seed++ {
		few, some, many := itself(10, seed), itself(100, seed), itself(1000, seed)
		fmt.Printf("found themselves: %d of 10, %d of 100, %d of 1000\n", few, some, many)
		same = same && few == 10 && some < 100 && many < 700
	}
	if !same {
		os.Exit(1)
	}
}
EOF_
GOFLAGS=-mod=mod GOPATH="$dir/go" go run .
