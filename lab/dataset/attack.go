// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// Portraits are aligned pictures of people, by name, that an attacker could have. The caller closes
// them.
type Portraits map[string][]*facedet.Picture

// Close frees the pictures.
func (p Portraits) Close() {
	for _, pictures := range p {
		for _, img := range pictures {
			img.Close()
		}
	}
}

// Blends returns the vectors of n blends between the i-th picture of one person and the j-th of
// another. Blend k, from 1 to n, holds a share of k/n of the second picture. Such blends lead a
// recogniser that learns from one person to another (Biggio et al. 2012; Lovisotto et al. 2020).
func (p Portraits) Blends(e preprocess.Extractor, from string, i int, to string, j,
	n int) (all [][]float32, err error) {
	if i < 0 || j < 0 || i >= len(p[from]) || j >= len(p[to]) {
		return nil, fmt.Errorf("there is no picture %d of %q or %d of %q to blend", i+1, from, j+1,
			to)
	}
	for k := 1; k <= n; k++ {
		mixed, err := blend(p[from][i], p[to][j], float64(k)/float64(n))
		if err != nil {
			return nil, err
		}
		x, _, err := e.Vector(mixed)
		mixed.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// blend returns (1 - share) times a picture plus share times another of the same size.
func blend(a, b *facedet.Picture, share float64) (*facedet.Picture, error) {
	x, err := a.BGR()
	if err != nil {
		return nil, err
	}
	y, err := b.BGR()
	if err != nil {
		return nil, err
	}
	for i := range x {
		x[i] = uint8(math.RoundToEven((1-share)*float64(x[i]) + share*float64(y[i])))
	}
	return facedet.FromBGR(a.Size(), x)
}

// Attackers is [Reader.Identities] that also returns pictures of the first faces of each identity
// that are good enough to enrol.
func (r *Reader) Attackers(ctx context.Context, dir string,
	enrolled int) ([]evaluate.Identity, Portraits, error) {
	portraits := Portraits{}
	ids, err := r.Identities(ctx, dir, func(name string) pipeline.Options {
		return pipeline.Options{Show: func(img *facedet.Picture, f face.Frame) error {
			if len(f.Samples) == 0 || len(portraits[name]) == enrolled {
				return nil
			}
			s := f.Samples[0]
			if s.Vector == nil || preprocess.EnrolGate.Check(s.Quality) != "" {
				return nil
			}
			aligned, err := r.Extractor.Align(img, s.Box, s.Landmarks)
			if err == nil {
				portraits[name] = append(portraits[name], aligned)
			}
			return err
		}}
	})
	if err != nil {
		portraits.Close()
		return nil, nil, err
	}
	return ids, portraits, nil
}

// Replays returns the replay attack (see [evaluate.Replay]) on each identity in dir that has normal
// recordings and attacks. The person is enrolled with the normal recordings, and then the attacks
// are shown.
func (r *Reader) Replays(
	ctx context.Context, dir string, enrolled int, l *preprocess.Liveness,
) (all []evaluate.Attack, err error) {
	paths, err := entries(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		recordings, err := sessions(path, r.warn)
		if err != nil {
			return nil, err
		}
		attacks := slices.DeleteFunc(slices.Clone(recordings), func(p string) bool {
			return !IsAttack(p)
		})
		if len(attacks) == 0 {
			continue
		}
		o := pipeline.Options{Liveness: l}
		user, err := r.Identity(ctx, NameOf(path), slices.DeleteFunc(recordings, IsAttack), o)
		if err != nil {
			return nil, err
		}
		attacker, err := r.Identity(ctx, user.Name+", replayed", attacks, o)
		if err != nil {
			return nil, err
		}
		a, err := evaluate.Replay(user, enrolled, attacker.Faces)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf(
			"%w: %s has no folder with a recording whose name begins with %q beside others; "+
				"a replay attack needs both", footage.ErrNone, dir, AttackPrefix)
	}
	return all, nil
}
