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
	frozen   bool // somebody stopped learning
	drifted  bool // the drift alarm did
	enrolled time.Time
	uid      *uint32 // of the user, where that is known
}

// kept is what a profile holds beside the learner.
type kept struct {
	Limits  []byte  `cbor:"limits"`
	Frozen  bool    `cbor:"frozen"`
	Drifted bool    `cbor:"drifted"`
	UID     *uint32 `cbor:"uid,omitempty"`
}

// unseal returns the profile of a user, and what it holds beside the learner, which it does not look at.
func (a *Authenticator) unseal(user string) (p profile.Profile, k kept, limits session.Limits, err error) {
	if p, err = a.store.Load(user); err != nil {
		return p, k, limits, err
	}
	if err := cbor.Unmarshal(p.Policy, &k); err != nil {
		return p, k, limits, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	if err := a.owns(user, k.UID); err != nil {
		return p, k, limits, err
	}
	if err := limits.UnmarshalBinary(k.Limits); err != nil {
		return p, k, limits, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	return p, k, limits, nil
}

func (a *Authenticator) load(user string) (*account, error) {
	p, k, limits, err := a.unseal(user)
	if err != nil {
		return nil, err
	}
	c := &account{learner: new(online.Learner), limits: limits, frozen: k.Frozen, drifted: k.Drifted, enrolled: p.Enrolled, uid: k.UID}
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
		return fmt.Errorf("%w: the one there is was another user's of that name", profile.ErrUnknown)
	}
	return nil
}

func (a *Authenticator) save(user string, c *account) error {
	learner, err := c.learner.MarshalBinary()
	if err != nil {
		return err
	}
	return a.seal(user, profile.Profile{Learner: learner, Enrolled: c.enrolled}, kept{nil, c.frozen, c.drifted, c.uid}, c.limits)
}

// seal keeps a profile with what it holds beside the learner.
func (a *Authenticator) seal(user string, p profile.Profile, k kept, limits session.Limits) (err error) {
	if k.Limits, err = limits.MarshalBinary(); err != nil {
		return err
	}
	if p.Policy, err = cbor.Marshal(k); err != nil {
		return err
	}
	return a.store.Save(user, p)
}

// limit changes the limits of a user. It is in the way of every login, so the learner stays as it was written.
func (a *Authenticator) limit(user string, change func(*session.Limits)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, k, limits, err := a.unseal(user)
	if err != nil {
		return err
	}
	change(&limits)
	return a.seal(user, p, k, limits)
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
	Drifted  bool            // nothing is learned, because what was learned had moved too far from the enrolled faces
	Refusal  session.Refusal // why a login may not begin now, or ""
	Wait     time.Duration   // until it may
}

// Status returns what may be told of a user's profile. The error wraps [profile.ErrUnknown] or [profile.ErrDamaged].
func (a *Authenticator) Status(user string) (Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return Status{}, err
	}
	d, err := c.learner.Drift(user)
	if err != nil {
		return Status{}, err
	}
	s := Status{Enrolled: c.enrolled, Labelled: c.learner.Counts().Labelled, Learned: d.Learned, Frozen: c.frozen, Drifted: c.drifted}
	s.Refusal, s.Wait = c.limits.Ask(a.o.Policy, a.o.Now())
	return s, nil
}

// Users returns the users who have a profile.
func (a *Authenticator) Users() ([]string, error) { return a.store.Users() }

// Password notes that a user gave the password: attempts begin anew, and faces of the user that were seen at a login
// within the last minute are learned. The error wraps [profile.ErrUnknown] where there is no profile.
func (a *Authenticator) Password(user string) error {
	now := a.o.Now()
	return a.update(user, func(c *account) error {
		c.limits.Password(now)
		faces := a.waiting.take(user, now.Add(-a.o.Quarantine))
		if len(faces) == 0 {
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

// Undo takes back what was learned of a user after a time, to the second, and returns how many faces that are.
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

// Forget removes the profile of a user and every trace of it.
func (a *Authenticator) Forget(user string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting.drop()
	return a.store.Delete(user)
}
