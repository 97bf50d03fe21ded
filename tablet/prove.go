// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"fmt"
	"math"
	"slices"

	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

// witness is a labelled face of the learner from this camera. It was accepted as the user's because of faces of the
// fleet.
type witness struct {
	Vector []byte   `cbor:"vector"`
	By     [][]byte `cbor:"by"` // hashes of these faces of the fleet
}

// unproven reports whether the user must be found by faces of the fleet, because this camera has enrolled none.
func (c *account) unproven(user string) bool {
	return c.Follow != nil && len(c.Follow.Faces) > 0 && !c.learner.Knows(user)
}

// stranger returns a temporary learner that knows the user by the fleet's faces.
func (a *Authenticator) stranger(user string, c *account) (*online.Learner, error) {
	l, err := online.New(a.space, a.o.Learner)
	if err != nil {
		return nil, err
	}
	for _, r := range c.Follow.Faces {
		if err := l.Label(vector.Floats(r.Vector), user); err != nil {
			return nil, fmt.Errorf("face of the fleet: %w", err)
		}
	}
	return l, nil
}

// prove enrols faces that this camera saw at a login, after the password. The fleet's present faces must identify them
// as the user's.
func (a *Authenticator) prove(user string, c *account, faces [][]float32) error {
	if !c.unproven(user) {
		return nil
	}
	l, err := a.stranger(user, c)
	if err != nil {
		return err
	}
	var matching [][]float32
	for _, x := range faces {
		v, err := l.Judge(x)
		if err != nil {
			return err
		}
		if a.match(user, v) {
			matching = append(matching, x)
		}
	}
	if len(matching) < a.o.Policy.Needed {
		return nil
	}
	switch other, err := a.resembles(user, matching, colour); {
	case err != nil:
		return err
	case other:
		a.o.Log.Warn("the face that was seen is another user's; nothing is enrolled", "user", user)
		return nil
	}
	for _, x := range spread(matching, Stages, a.space.Scale) {
		w := witness{Vector: vector.Bytes(x)}
		for _, r := range c.Follow.Faces {
			if graph.Distance(x, vector.Floats(r.Vector), a.space.Scale) <= a.o.Anchor {
				w.By = append(w.By, r.hash())
			}
		}
		if err := c.learner.Label(x, user); err != nil {
			return err
		}
		c.Follow.Seen = append(c.Follow.Seen, w)
	}
	c.enrolled = a.o.Now().UTC()
	a.o.Log.Info("enrolled by the fleet's faces and the password", "user", user, "faces", len(c.Follow.Seen))
	return nil
}

// spread returns up to n different faces: the first one, and then always the face farthest from the chosen ones.
func spread(faces [][]float32, n int, scale float64) (chosen [][]float32) {
	left := slices.Clone(faces)
	away := make([]float64, len(left)) // distance to the nearest chosen face
	for i := range away {
		away[i] = math.Inf(1)
	}
	for len(chosen) < n && len(left) > 0 {
		far := 0
		for i := range left {
			if away[i] > away[far] {
				far = i
			}
		}
		if away[far] == 0 {
			break
		}
		chosen = append(chosen, left[far])
		for i := range left {
			away[i] = min(away[i], graph.Distance(left[i], left[far], scale))
		}
	}
	return chosen
}
