// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/sighting"
)

// learn shows the learner of a user the faces of one sighting that were earned. The learner learns them if they confirm
// the user; see [sighting.Watcher]. If the drift alarm goes off, they are removed, and learning stops until a user
// undoes or enrols.
func (a *Authenticator) learn(user string, c *account, faces [][]float32, now time.Time) error {
	if c.Drifted {
		return nil
	}
	before, err := c.learner.MarshalBinary()
	if err != nil {
		return err
	}
	c.learner.SetTime(now)
	people, learned := sighting.NewWatcher(c.learner, sighting.Settings{}, sighting.Rules{}), 0
	for _, x := range faces {
		seen, err := people.Judge(0, []face.Sample{{Vector: x}}, []int{1}, nil)
		if err != nil {
			return err
		}
		learned += len(seen[0].Lessons)
	}
	d, err := c.learner.Drift(owner)
	if err != nil {
		return err
	}
	if d.Alarm {
		c.Drifted = true
		a.o.Log.Warn("drift: learning has stopped", "user", user)
		return c.learner.UnmarshalBinary(before)
	}
	a.o.Log.Info("learned", "user", user, "faces", learned)
	return nil
}

// quarantine holds the faces of one user from the last login. The zero value is empty.
type quarantine struct {
	user  string
	at    time.Time
	faces [][]float32
	// unproven faces let nobody log in: the profile is not bound to the account yet.
	unproven bool
}

// most is the greatest number of waiting faces.
const most = 64

// put replaces the waiting faces.
func (q *quarantine) put(user string, at time.Time, faces [][]float32, unproven bool) {
	q.drop()
	q.user, q.at, q.faces, q.unproven = user, at, faces[max(0, len(faces)-most):], unproven
}

// take returns the faces of a user from after a moment, and empties the quarantine.
func (q *quarantine) take(user string, after time.Time) (faces [][]float32, unproven bool) {
	faces, unproven = q.faces, q.unproven
	if q.user != user || q.at.Before(after) {
		faces, unproven = nil, false
	}
	q.user, q.faces, q.unproven = "", nil, false
	return faces, unproven
}

// drop overwrites the faces.
func (q *quarantine) drop() {
	for _, x := range q.faces {
		clear(x)
	}
	q.user, q.faces, q.unproven = "", nil, false
}
