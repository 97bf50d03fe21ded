// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/faceauth/faceauth/tablet/session"
	"github.com/fxamacker/cbor/v2"
)

// account is the profile of a user, unsealed.
type account struct {
	learner  *online.Learner
	limits   session.Limits
	others   map[uint32]session.Limits // of those who asked to be the user and are not
	frozen   bool                      // somebody stopped learning
	drifted  bool                      // the drift alarm did
	enrolled time.Time
	uid      *uint32    // of the user, where that is known
	follow   *following // a person of a fleet, or nil
}

// kept is what a profile holds beside the learner.
type kept struct {
	Limits  []byte            `cbor:"limits"`
	Others  map[uint32][]byte `cbor:"others,omitempty"`
	Frozen  bool              `cbor:"frozen"`
	Drifted bool              `cbor:"drifted"`
	UID     *uint32           `cbor:"uid,omitempty"`
	Follow  *following        `cbor:"follow,omitempty"`
}

// mostOthers is how many askers are remembered of a user.
const mostOthers = 64

// limitsOf returns the limits of an asker, 0 being the user. When the password is due is the user's business. Of more
// askers than are remembered, those who are new may not try.
func (c *account) limitsOf(asker uint32, p session.Policy, now session.Moment) (why session.Refusal, wait time.Duration) {
	if asker == 0 {
		return c.limits.Ask(p, now)
	}
	if why, _ := c.limits.Ask(p, now); why == session.PasswordDue {
		return why, 0
	}
	l, ok := c.others[asker]
	switch {
	case !ok && len(c.others) >= mostOthers:
		return session.TooManyFailures, 0
	case !ok:
		return "", 0
	}
	switch why, wait := l.Ask(p, now); why {
	case session.PasswordDue: // theirs says nothing
		return "", 0
	default:
		return why, wait
	}
}

// ask is limitsOf, but that the password is due is no reason against a login that lets nobody in without it.
func (c *account) ask(user string, asker uint32, p session.Policy, now session.Moment) (why session.Refusal, wait time.Duration) {
	why, wait = c.limitsOf(asker, p, now)
	if why == session.PasswordDue && asker == 0 && c.unproven(user) {
		return c.limits.AskUnproven(p, now)
	}
	return why, wait
}

// changed changes the limits of an asker.
func (c *account) changed(asker uint32, change func(*session.Limits)) {
	if asker == 0 {
		change(&c.limits)
		return
	}
	if c.others == nil {
		c.others = make(map[uint32]session.Limits)
	}
	l := c.others[asker]
	change(&l)
	c.others[asker] = l
}

// unseal returns the profile of a user, and an account without its learner, which it does not look at.
func (a *Authenticator) unseal(user string) (p profile.Profile, c *account, err error) {
	if p, err = a.store.Load(user); err != nil {
		return p, nil, err
	}
	var k kept
	if err := cbor.Unmarshal(p.Policy, &k); err != nil {
		return p, nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	if err := a.owns(user, k.UID); err != nil {
		return p, nil, err
	}
	c = &account{frozen: k.Frozen, drifted: k.Drifted, enrolled: p.Enrolled, uid: k.UID, follow: k.Follow}
	if err := c.limits.UnmarshalBinary(k.Limits); err != nil {
		return p, nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	for asker, b := range k.Others {
		var l session.Limits
		if err := l.UnmarshalBinary(b); err != nil {
			return p, nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
		}
		c.changed(asker, func(to *session.Limits) { *to = l })
	}
	if p.Stale {
		c.limits.Void()
	}
	return p, c, nil
}

func (a *Authenticator) load(user string) (*account, error) {
	p, c, err := a.unseal(user)
	if err != nil {
		return nil, err
	}
	defer clear(p.Learner)
	c.learner = new(online.Learner)
	if err := c.learner.UnmarshalBinary(p.Learner); err != nil {
		return nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	return c, c.learner.Configure(a.o.Learner)
}

// owns returns nil where the user of a name is the one who was enrolled under it: not where that one has left, and the
// name was given to somebody else.
func (a *Authenticator) owns(user string, enrolled *uint32) error {
	if a.o.UID == nil || enrolled == nil {
		return nil
	}
	switch uid, err := a.o.UID(user); {
	case err != nil:
		return fmt.Errorf("looking for the user: %w", err)
	case uid != *enrolled:
		return fmt.Errorf("%w: the stored profile belongs to an earlier user of that name", profile.ErrUnknown)
	}
	return nil
}

func (a *Authenticator) save(user string, c *account) error {
	learner, err := c.learner.MarshalBinary()
	if err != nil {
		return err
	}
	defer clear(learner)
	return a.seal(user, profile.Profile{Learner: learner, Enrolled: c.enrolled}, c)
}

// seal keeps a profile with what an account holds beside the learner.
func (a *Authenticator) seal(user string, p profile.Profile, c *account) (err error) {
	k := kept{Frozen: c.frozen, Drifted: c.drifted, UID: c.uid, Follow: c.follow}
	if k.Limits, err = c.limits.MarshalBinary(); err != nil {
		return err
	}
	for asker, l := range c.others {
		if k.Others == nil {
			k.Others = make(map[uint32][]byte)
		}
		if k.Others[asker], err = l.MarshalBinary(); err != nil {
			return err
		}
	}
	if p.Policy, err = cbor.Marshal(k); err != nil {
		return err
	}
	return a.store.Save(user, p)
}

// limit changes the limits of a user and an asker. It is in the way of every login, so the learner stays as it was
// written.
func (a *Authenticator) limit(user string, asker uint32, change func(*session.Limits)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, c, err := a.unseal(user)
	if err != nil {
		return err
	}
	defer clear(p.Learner)
	c.changed(asker, change)
	return a.seal(user, p, c)
}

// update changes the account of a user, or leaves it as it is where change returns an error.
func (a *Authenticator) update(user string, change func(*account) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return err
	}
	if err := change(c); err != nil {
		return err
	}
	return a.save(user, c)
}

// Status is what may be told of a user's profile.
type Status struct {
	Enrolled time.Time       // when
	Labelled int64           // faces taken at the enrolment
	Learned  float64         // faces learned since that are stored
	Frozen   bool            // nothing is learned, because somebody said so
	Drifted  bool            // nothing is learned, because the learned faces had moved too far from the enrolled faces
	Refusal  session.Refusal // why a login may not begin now, or ""
	Wait     time.Duration   // until it may
	Fleet    *FleetStatus    // where the account follows a person of a fleet
}

// Status returns what may be told of a user's profile. The error wraps [profile.ErrUnknown] or [profile.ErrDamaged].
func (a *Authenticator) Status(user string) (Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return Status{}, err
	}
	var d online.Drift
	if c.learner.Knows(user) {
		if d, err = c.learner.Drift(user); err != nil {
			return Status{}, err
		}
	}
	s := Status{Fleet: a.fleetStatus(user, c), Enrolled: c.enrolled, Labelled: c.learner.Counts().Labelled, Learned: d.Learned, Frozen: c.frozen, Drifted: c.drifted}
	s.Refusal, s.Wait = c.ask(user, 0, a.o.Policy, a.moment())
	return s, nil
}

// Users returns the users who have a profile.
func (a *Authenticator) Users() ([]string, error) { return a.store.Users() }

// Password notes that a user gave the password: attempts begin anew, and faces of the user that were seen at a login
// within the last minute are learned. Asker is who gave it, as for Verify: failures of others stay. The error wraps
// [profile.ErrUnknown] where there is no profile.
func (a *Authenticator) Password(user string, asker uint32) error {
	now, moment := a.o.Now(), a.moment()
	return a.update(user, func(c *account) error {
		if asker != 0 {
			delete(c.others, asker)
			return nil
		}
		c.limits.Password(moment)
		faces, unproven := a.waiting.take(user, now.Add(-a.o.Quarantine))
		if unproven {
			return a.prove(user, c, faces)
		}
		if len(faces) == 0 || !c.learner.Knows(user) {
			return nil
		}
		// The password vouches for faces that are less like the enrolled ones than a match alone could.
		s := a.o.Learner
		s.Learn = 0
		if err := c.learner.Configure(s); err != nil {
			return err
		}
		if err := a.learn(user, c, faces, now); err != nil {
			return err
		}
		return c.learner.Configure(a.o.Learner)
	})
}

// Undo takes back the faces learned of a user after a time, to the second, and returns how many faces that are.
func (a *Authenticator) Undo(user string, since time.Time) (faces int, err error) {
	err = a.update(user, func(c *account) error {
		faces, err = c.learner.UndoSince(since)
		return err
	})
	return faces, err
}

// Freeze stops learning for a user, or lets it go on, also where the drift alarm has stopped it.
func (a *Authenticator) Freeze(user string, on bool) error {
	return a.update(user, func(c *account) error {
		c.frozen = on
		if !on {
			c.drifted = false
		}
		return nil
	})
}

// Forget removes the profile of a user and every trace of it, on disk and in memory.
func (a *Authenticator) Forget(user string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.forget(user)
}

func (a *Authenticator) forget(user string) error {
	a.waiting.drop()
	delete(a.news, user)
	err := a.store.Delete(user)
	a.o.Wipe()
	return err
}
