// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
	"github.com/faceauth/faceauth/tablet/profile"
)

// quarantine is how long faces wait for the password.
const quarantine = time.Minute

// pending is what the last login leaves for the password.
type pending struct {
	user     string
	at       time.Time
	faces    [][]float32 // to be learned then
	unproven bool        // the user was seen, and lacks the password only
}

// learn shows the learner of a user the faces of one sighting that were earned: those of a match, or with the password,
// after which they may be less like the enrolled ones. The learner learns them if they confirm the user; see
// [sighting.Watcher]. If the drift alarm goes off, it learns nothing until a user undoes or enrols.
func (a *Authenticator) learn(user string, c *account, faces [][]float32, password bool) error {
	if c.Drifted || len(faces) == 0 {
		return nil
	}
	settings := a.o.Learner
	if password {
		settings.Learn = 0
	}
	l, err := unpacked(c.Learner, a.space, settings)
	if err != nil {
		return err
	}
	l.SetTime(a.o.Now())
	people, learned := sighting.NewWatcher(l), 0
	for _, x := range faces {
		seen, err := people.Judge(0, []face.Sample{{Vector: x}}, []int{1}, nil)
		if err != nil {
			return err
		}
		learned += len(seen[0].Lessons)
	}
	d, err := l.Drift(owner)
	if err != nil {
		return err
	}
	if c.Drifted = d.Alarm; d.Alarm {
		a.o.Log.Warn("drift: learning has stopped", "user", user)
		return nil
	}
	a.o.Log.Info("learned", "user", user, "faces", learned)
	c.Learner, err = l.MarshalBinary()
	return err
}

// unpacked returns the learner of a snapshot, or an empty one without a snapshot.
func unpacked(snapshot []byte, space face.Space, s online.Settings) (*online.Learner, error) {
	if snapshot == nil {
		return online.New(space, s)
	}
	l := new(online.Learner)
	if err := l.UnmarshalBinary(snapshot); err != nil {
		return nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	return l, l.Configure(s)
}
