// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
)

// MostFaces is the greatest number of a fleet's faces of one person in a profile.
const MostFaces = 32

// Errors of the methods about a fleet.
var (
	ErrFollow = errors.New("no account follows this person of the fleet")
	ErrPerson = errors.New("not a valid name or number of a person of a fleet")
	ErrFaces  = errors.New("unusable faces of a fleet")
)

// Followed is an account that follows a person of a fleet.
type Followed struct {
	User   string
	Asked  string // the given name or number
	Number string // number of the person: 32 hexadecimal digits; "" until it is known
	Share  bool   // the fleet gets the faces that this device enrols
}

// FleetFace is a labelled face of a person of a fleet.
type FleetFace struct {
	Vector []float32
	Taken  time.Time // zero for unknown
}

// FleetStatus is the public part of an account's link to a person of a fleet.
type FleetStatus struct {
	Asked    string    `json:"asked"`    // name or number from the administrator
	Number   string    `json:"number"`   // number of the person; "" until it is known
	Share    bool      `json:"share"`    // the fleet gets the faces that this device enrols
	Faces    uint32    `json:"faces"`    // number of the fleet's faces of the person, in this space
	Enrolled uint32    `json:"enrolled"` // number of faces from this camera that rest on them
	Revoked  bool      `json:"revoked"`  // the fleet has revoked this device
	Word     string    `json:"word"`     // the last word of [Authenticator.FleetSays] in this run; "" for none
	Since    time.Time `json:"since"`    // time of the word
}

// following is the part of a profile about the followed person.
type following struct {
	Asked   string      `cbor:"asked"`
	Number  string      `cbor:"number,omitempty"`
	Share   bool        `cbor:"share,omitempty"`
	Revoked bool        `cbor:"revoked,omitempty"`
	Faces   []reference `cbor:"faces,omitempty"`
	Seen    []witness   `cbor:"seen,omitempty"`
}

// reference is a face of the fleet. It identifies the user, and lets nobody log in.
type reference struct {
	Vector []byte `cbor:"vector"` // little-endian float32
	Taken  int64  `cbor:"taken,omitempty"`
}

// news is a word of FleetSays about an account, in memory only.
type news struct {
	word  string
	since time.Time
}

func (r reference) hash() []byte {
	h := sha256.Sum256(r.Vector)
	return h[:16]
}

// number reports whether s is the number of a person of a fleet.
func number(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 16 && hex.EncodeToString(b) == s
}

// Follow lets a user's account follow a person of a fleet, by number or by the name in the fleet. Everything that rests
// on another followed person is removed. A user without a profile gets one. With share the fleet gets the faces that
// this device enrols ([Authenticator.FleetOwn]). The caller must check the right to do this.
//
// The error wraps [ErrPerson] or [online.ErrName]; nothing has changed then.
func (a *Authenticator) Follow(user, person string, share bool) error {
	if err := online.CheckName(user); err != nil {
		return err
	}
	if err := online.CheckName(person); err != nil {
		return fmt.Errorf("%w: %q", ErrPerson, person)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	switch {
	case errors.Is(err, profile.ErrUnknown):
		if c, err = a.empty(user); err != nil {
			return err
		}
	case err != nil:
		return err
	case c.Follow != nil && (c.Follow.Asked == person || c.Follow.Number == person) && !c.Follow.Revoked:
		if c.Follow.Share == share {
			return nil
		}
		c.Follow.Share = share
		return a.save(user, c)
	}
	if err := a.unfollow(c); err != nil {
		return err
	}
	c.Follow = &following{Asked: person, Share: share}
	if number(person) {
		c.Follow.Number = person
	}
	delete(a.news, user)
	return a.save(user, c)
}

// empty returns the account of a user without data.
func (a *Authenticator) empty(user string) (*account, error) {
	l, err := online.New(a.space, a.o.Learner)
	if err != nil {
		return nil, err
	}
	c := &account{learner: l, enrolled: a.o.Now().UTC()}
	if a.o.UID != nil {
		uid, err := a.o.UID(user)
		if err != nil {
			return nil, fmt.Errorf("looking for the user: %w", err)
		}
		c.UID = &uid
	}
	return c, nil
}

// Unfollow ends the link of a user's account to a person of a fleet. It removes everything that rests on the fleet's
// faces, and an empty profile. The error wraps [profile.ErrUnknown] or [ErrFollow].
func (a *Authenticator) Unfollow(user string) error {
	return a.withFollower(user, func(c *account) (changed bool, err error) {
		if err := a.unfollow(c); err != nil {
			return false, err
		}
		c.Follow = nil
		return true, nil
	})
}

// unfollow removes everything that rests on the fleet's faces from an account.
func (a *Authenticator) unfollow(c *account) error {
	if c.Follow == nil {
		return nil
	}
	c.Follow.Faces = nil
	return a.removeUnsupported(c)
}

// withFollower changes an account that follows a person, removes an empty account, and drops faces that wait to be
// learned.
func (a *Authenticator) withFollower(user string, change func(*account) (changed bool, err error)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return err
	}
	if c.Follow == nil {
		return fmt.Errorf("%w: %s", ErrFollow, user)
	}
	changed, err := change(c)
	if err != nil || !changed {
		return err
	}
	if a.waiting.user == user {
		a.waiting.drop()
	}
	defer a.o.Wipe()
	if c.Follow == nil && !c.learner.Knows(user) {
		delete(a.news, user)
		return a.store.Delete(user)
	}
	return a.save(user, c)
}

// ofPerson does the same as withFollower for an account that must follow the person with this number.
func (a *Authenticator) ofPerson(user, number string, change func(*account) (changed bool, err error)) error {
	return a.withFollower(user, func(c *account) (bool, error) {
		if c.Follow.Number != number || number == "" {
			return false, fmt.Errorf("%w: %s does not follow %s", ErrFollow, user, number)
		}
		return change(c)
	})
}

// Followed returns the accounts that follow a person. It leaves out profiles that cannot be read.
func (a *Authenticator) Followed() (all []Followed, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	users, err := a.store.Users()
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		p, c, err := a.unseal(user)
		clear(p.Learner)
		switch {
		case err != nil:
			a.o.Log.Warn("a profile cannot be read", "user", user, "error", err)
		case c.Follow != nil:
			all = append(all, Followed{user, c.Follow.Asked, c.Follow.Number, c.Follow.Share})
		}
	}
	return all, nil
}

// Space returns the ID of the feature space.
func (a *Authenticator) Space() string { return a.space.ID }

// FleetFound sets the number of the person whose name an account follows. The error wraps [ErrPerson], or [ErrFollow]
// if the account follows another person meanwhile.
func (a *Authenticator) FleetFound(user, asked, found string) error {
	if !number(found) {
		return fmt.Errorf("%w: %q", ErrPerson, found)
	}
	return a.withFollower(user, func(c *account) (bool, error) {
		if c.Follow.Asked != asked || c.Follow.Number != "" && c.Follow.Number != found {
			return false, fmt.Errorf("%w: %s follows another person meanwhile", ErrFollow, user)
		}
		if c.Follow.Number == found {
			return false, nil
		}
		c.Follow.Number = found
		return true, nil
	})
}

// FleetFaces replaces the fleet's labelled faces of the person whom an account follows. Everything that rests on a
// missing face is removed. It reports whether anything changed.
//
// The error wraps [ErrFollow] or [ErrFaces]; nothing has changed then.
func (a *Authenticator) FleetFaces(user, number, space string, faces []FleetFace) (changed bool, err error) {
	if space != a.space.ID {
		return false, fmt.Errorf("%w: they are of another feature space: %s", ErrFaces, a.space.Mismatch(space))
	}
	if len(faces) > MostFaces {
		return false, fmt.Errorf("%w: got %d of one person, and at most %d are allowed", ErrFaces, len(faces),
			MostFaces)
	}
	all := make([]reference, 0, len(faces))
	for i, f := range faces {
		if err := a.space.Check(f.Vector); err != nil {
			return false, fmt.Errorf("%w: face %d: %w", ErrFaces, i+1, err)
		}
		r := reference{Vector: vector.Bytes(f.Vector)}
		if !f.Taken.IsZero() {
			r.Taken = f.Taken.Unix()
		}
		if !slices.ContainsFunc(all, func(o reference) bool { return bytes.Equal(o.Vector, r.Vector) }) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y reference) int { return bytes.Compare(x.Vector, y.Vector) })
	same := func(x, y reference) bool { return bytes.Equal(x.Vector, y.Vector) && x.Taken == y.Taken }
	err = a.ofPerson(user, number, func(c *account) (bool, error) {
		if !c.Follow.Revoked && slices.EqualFunc(c.Follow.Faces, all, same) {
			return false, nil
		}
		changed = true
		c.Follow.Faces, c.Follow.Revoked = all, false
		return true, a.removeUnsupported(c)
	})
	return changed && err == nil, err
}

// removeUnsupported removes labelled faces without a face of the fleet to rest on. All learned faces are removed with
// them, because it is unknown which of them they led to.
func (a *Authenticator) removeUnsupported(c *account) error {
	there := make(map[string]bool)
	for _, r := range c.Follow.Faces {
		there[string(r.hash())] = true
	}
	gone := make(map[string]bool)
	var stay []witness
	for _, w := range c.Follow.Seen {
		if slices.ContainsFunc(w.By, func(h []byte) bool { return there[string(h)] }) {
			stay = append(stay, w)
		} else {
			gone[string(w.Vector)] = true
		}
	}
	if c.Follow.Seen = stay; len(gone) == 0 {
		return nil
	}
	l, err := online.New(a.space, a.o.Learner)
	if err != nil {
		return err
	}
	for _, label := range c.learner.Labels() {
		x := c.learner.Vector(label.ID)
		if label.Negative || gone[string(vector.Bytes(x))] {
			continue
		}
		if err := l.Label(x, label.Name); err != nil {
			return err
		}
	}
	c.learner, c.Drifted = l, false
	return nil
}

// followed returns an account's link to its person, without the learner. It is called with the mutex held.
func (a *Authenticator) followed(user string) (*following, error) {
	p, c, err := a.unseal(user)
	clear(p.Learner)
	switch {
	case err != nil:
		return nil, err
	case c.Follow == nil:
		return nil, fmt.Errorf("%w: %s", ErrFollow, user)
	}
	return c.Follow, nil
}

// FleetForgot removes the profile of an account whose person the fleet has forgotten. The error wraps [ErrFollow] or
// [profile.ErrUnknown].
func (a *Authenticator) FleetForgot(user, number string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := a.followed(user)
	switch {
	case err != nil:
		return err
	case f.Number != number || number == "":
		return fmt.Errorf("%w: %s does not follow %s", ErrFollow, user, number)
	}
	return a.forget(user)
}

// FleetRevoked removes everything that rests on faces of a fleet that has revoked this device, and returns the changed
// accounts. They get the fleet's faces again with the next FleetFaces.
func (a *Authenticator) FleetRevoked() (users []string, err error) {
	all, err := a.Followed()
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		err := a.withFollower(f.User, func(c *account) (bool, error) {
			if c.Follow.Revoked {
				return false, nil
			}
			users = append(users, f.User)
			if err := a.unfollow(c); err != nil {
				return false, err
			}
			c.Follow.Revoked = true
			return true, nil
		})
		if err != nil && !errors.Is(err, ErrFollow) &&
			!errors.Is(err, profile.ErrUnknown) { // the account no longer follows the person
			return users, err
		}
	}
	return users, nil
}

// FleetSays records a word about the person whom an account follows, for its status.
func (a *Authenticator) FleetSays(user, word string, since time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.followed(user); err != nil {
		return err
	}
	if a.news == nil {
		a.news = make(map[string]news)
	}
	a.news[user] = news{word, since}
	return nil
}

// fleetStatus returns the public part of an account's link to a person.
func (a *Authenticator) fleetStatus(user string, c *account) *FleetStatus {
	if c.Follow == nil {
		return nil
	}
	n := a.news[user]
	return &FleetStatus{
		Asked: c.Follow.Asked, Number: c.Follow.Number, Share: c.Follow.Share, Faces: uint32(len(c.Follow.Faces)),
		Enrolled: uint32(len(c.Follow.Seen)), Revoked: c.Follow.Revoked, Word: n.word, Since: n.since,
	}
}

// FleetOwn returns the faces of a user that an enrolment at this device took, for the fleet; not those that rest on the
// fleet's faces. The error wraps [profile.ErrUnknown], or [ErrFollow], also if an administrator has not allowed
// sharing.
func (a *Authenticator) FleetOwn(user, number string) (faces []FleetFace, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return nil, err
	}
	if c.Follow == nil || c.Follow.Number != number || number == "" || !c.Follow.Share || c.Follow.Revoked {
		return nil, fmt.Errorf("%w: %s does not share its faces with %s", ErrFollow, user, number)
	}
	rest := make(map[string]bool)
	for _, w := range c.Follow.Seen {
		rest[string(w.Vector)] = true
	}
	for _, label := range c.learner.Labels() {
		if x := c.learner.Vector(label.ID); label.Name == user && !label.Negative && !rest[string(vector.Bytes(x))] {
			faces = append(faces, FleetFace{Vector: slices.Clone(x), Taken: c.enrolled})
		}
	}
	return faces, nil
}
