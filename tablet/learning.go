// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/sighting"
)

// learn shows the learner of a user faces that were earned, of one sighting. It learns them where they confirm the user,
// as [sighting.Watcher] says. Where the drift alarm goes off they are taken back, and
// learning stops until somebody lets it go on.
func (a *Authenticator) learn(user string, c *account, faces [][]float32, now time.Time) error {
	if c.frozen || c.drifted {
		return nil
	}
	before, err := c.learner.MarshalBinary()
	if err != nil {
		return err
	}
	c.learner.SetTime(now)
	people, learned := sighting.NewWatcher(c.learner, sighting.Settings{}, sighting.Rules{}), 0
	for _, x := range faces {
		seen, err := people.Judge(0, []face.Sample{{Vector: x}}, []int{1}, func(int) bool { return false })
		if err != nil {
			return err
		}
		learned += len(seen[0].Lessons)
	}
	d, err := c.learner.Drift(user)
	if err != nil {
		return err
	}
	if d.Alarm {
		c.drifted = true
		a.o.Log.Warn("drift: learning has stopped", "user", user)
		return c.learner.UnmarshalBinary(before)
	}
	a.o.Log.Info("learned", "user", user, "faces", learned)
	return nil
}

// quarantine holds the faces that one user was seen with at the last login. The zero value is empty.
type quarantine struct {
	user  string
	at    time.Time
	faces [][]float32
	// unproven faces are like those of a fleet, and nobody was let in by them.
	unproven bool
}

// most is how many faces wait, at the most.
const most = 64

// put keeps faces in place of those that are there.
func (q *quarantine) put(user string, at time.Time, faces [][]float32, unproven bool) {
	q.drop()
	q.user, q.at, q.faces, q.unproven = user, at, faces[max(0, len(faces)-most):], unproven
}

// take returns the faces of a user that came after a moment, and keeps none.
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
