// SPDX-License-Identifier: Apache-2.0

// Package processors_test tests that each processor gives the same verdicts. It imports little, so
// that it is soon compiled for another one.
package processors_test

import (
	"encoding/gob"
	"fmt"
	"hash/fnv"
	"image"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// verdicts enrols the first faces of all films but the last, shows a watcher each film, and returns
// a line for each face: who it is, the trust, what was learned, and the distance.
func verdicts(t *testing.T, space face.Space, k int, films [][]face.Sample) string {
	t.Helper()
	check := func(err error) {
		fixture.Check(t, err)
	}
	l, err := online.New(space, online.Settings{K: k})
	check(err)
	for p, film := range films[:len(films)-1] {
		for _, x := range film[:4] {
			check(l.Label(x.Vector, online.Person(p+1)))
		}
	}
	var lines strings.Builder
	for _, film := range films {
		w := sighting.NewWatcher(l)
		for n, x := range film {
			seen, err := w.See(time.Duration(n)*40*time.Millisecond, []face.Sample{x}, nil)
			check(err)
			s := seen[0]
			fmt.Fprintln(&lines, s.Belief.Person, s.Trust, s.Lessons, s.Verdict.Person,
				s.Verdict.Reason, s.Verdict.Stored, s.Verdict.Distance)
		}
	}
	fmt.Fprintln(&lines, l.Counts().Learned, l.Graph().Len(), l.Graph().R())
	return lines.String()
}

// Every processor gives the same verdicts and the same bits of distances, even of vectors whose
// distances are equal but for rounding: permutations of a vector's values, as mirrored pictures
// are. The number holds for arm64 and each GOAMD64 (TestProcessors in package pipeline runs this
// there). It changes if a distance is summed in another order.
func TestSame(t *testing.T) {
	const dim = 37
	r := rand.New(rand.NewPCG(3, 6))
	space := face.Space{ID: "ties", Dim: dim, Scale: 1, Sigma: 1, Gamma: 1e-3, Reach: 4}
	films := make([][]face.Sample, 3)
	for i := range films {
		base := make([]float32, dim)
		for q := range base {
			base[q] = 20*float32(i%2) + []float32{.1, .4, .9}[r.IntN(3)]
		}
		if i == 2 {
			base = slices.Clone(films[0][0].Vector)
			slices.Reverse(base[dim/2:])
		}
		for range 60 {
			x, from := slices.Clone(base), r.IntN(dim-8)
			r.Shuffle(8, func(a, b int) { x[from+a], x[from+b] = x[from+b], x[from+a] })
			films[i] = append(films[i], face.Sample{Box: image.Rect(0, 0, 100, 100), Vector: x})
		}
	}
	all, sum := verdicts(t, space, 6, films), fnv.New64a()
	sum.Write([]byte(all))
	if got := fmt.Sprintf("%x", sum.Sum64()); got != "9b447d102ff5fba4" {
		t.Errorf("verdicts %s:\n%s", got, all)
	}
}

// faces are what TestProcessors puts into a file.
type faces struct {
	Space face.Space
	Films [][]face.Sample
}

func TestFile(t *testing.T) {
	f, err := os.Open(os.Getenv("FACEAUTH_FACES"))
	if err != nil {
		t.Skip("FACEAUTH_FACES names no file of faces")
	}
	defer f.Close()
	var all faces
	fixture.Check(t, gob.NewDecoder(f).Decode(&all))
	fmt.Print(verdicts(t, all.Space, 30, all.Films))
}
