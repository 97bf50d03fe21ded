// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/fxamacker/cbor/v2"
)

// account is the unsealed profile of a user.
type account struct {
	Enrolled time.Time `cbor:"enrolled"` // to the second, in UTC
	Learner  []byte    `cbor:"learner"`  // snapshot of the learner
	Infrared []byte    `cbor:"infrared"` // that of the infrared faces; nil if there are none

	Limits limits `cbor:"limits"`
	// limits of other users who tried to log in as this user
	Others map[uint32]limits `cbor:"others,omitempty"`
	// Outside are the limits of attempts from outside the sessions ([Attempt].Outside), by asker: 0
	// is the user.
	Outside map[uint32]limits `cbor:"outside,omitempty"`
	Drifted bool              `cbor:"drifted"` // the drift alarm stopped learning
	UID     uint32            `cbor:"uid"`     // number of the user
	// Bound is the mark of the system's account whose face this is; "" until it is known. Told is
	// the mark of the account that the system has now; "" until a program of root told it.
	Bound   string  `cbor:"bound,omitempty"`
	Told    string  `cbor:"told,omitempty"`
	History []Event `cbor:"history,omitempty"` // oldest first
}

// snapshots are those of the learners of the spaces.
func (c *account) snapshots() [2]*[]byte { return [2]*[]byte{&c.Learner, &c.Infrared} }

// owner is the user of a profile in its learner, which knows nobody else.
const owner = 1

// Event is an attempt to log in as a user, a password, or an enrolment. From and Outside are those
// of [Attempt].
type Event struct {
	At      time.Time `cbor:"at" json:"at"`
	Service string    `cbor:"service" json:"service"` // of PAM, or "" if it is not known
	// number of the asking user if that is not the user, otherwise 0
	Asker uint32 `cbor:"asker" json:"asker"`
	// the last word of the session, [passwordGiven], or [Enrolled]
	Result  string `cbor:"result" json:"result"`
	From    string `cbor:"from,omitempty" json:"from"`
	Outside bool   `cbor:"outside,omitempty" json:"outside"`

	// the infrared camera looked, not the one in colour
	Infrared bool `cbor:"infrared,omitempty" json:"infrared"`
}

// passwordGiven is the result of an [Event] without a face.
const passwordGiven = "password"

// mostEvents is the number of events that a profile remembers.
const mostEvents = 64

// note adds an event.
func (c *account) note(e Event) {
	c.History = append(c.History, e)
	c.History = c.History[max(0, len(c.History)-mostEvents):]
}

// untold returns the attempts from outside the sessions, oldest first, of which the user was not
// told: those since an event that [Event.tells] them.
func (c *account) untold() (all []Event) {
	for _, e := range slices.Backward(c.History) {
		if e.tells() {
			break
		}
		if e.Outside && e.Result != passwordGiven {
			all = append(all, e)
		}
	}
	slices.Reverse(all)
	return all
}

// tells reports whether e is a match of the user by a PAM service at the device: they are told then
// what came from outside the sessions.
func (e Event) tells() bool {
	return Word(e.Result) == Match && e.Service != "" && e.Asker == 0 && !e.Outside
}

// moved reports whether nothing shows that the face belongs to the system's present account: it was
// enrolled by no program of root, or its user has another password, or was removed, and somebody
// else got the name and the number.
func (c *account) moved() bool { return c.Told != c.Bound }

// mostOthers is the greatest number of other askers that a profile remembers.
const mostOthers = 64

// ask returns why an asker may not try now, if so; 0 is the user. Only the user's own limits decide
// when the password is due, and then nobody may try, except the user if a match lets in only with
// the password. If too many askers are remembered, a new one may not try.
func (c *account) ask(asker uint32, p Policy, now moment) (why Refusal, wait time.Duration) {
	own := c.Limits
	if asker == 0 && c.moved() {
		own = own.knowing(now)
	}
	why, wait = own.ask(p, now)
	if asker == 0 || why == due {
		return why, wait
	}
	l, ok := c.Others[asker]
	if !ok && len(c.Others) >= mostOthers {
		return tooManyFailures, 0
	}
	why, wait = l.knowing(now).ask(p, now)
	if why == "" && c.moved() {
		return due, 0
	}
	return why, wait
}

// askOutside returns why an asker may not try now from outside the sessions, if so: one failure
// ends that until a password.
func (c *account) askOutside(asker uint32, p Policy, now moment) (why Refusal, wait time.Duration) {
	why, wait = c.ask(asker, p, now)
	l, ok := c.Outside[asker]
	if why == "" && (l.Failures > 0 || !ok && len(c.Outside) >= mostOthers) {
		return tooManyFailures, 0
	}
	return why, wait
}

// changed changes the limits of an asker.
func (c *account) changed(asker uint32, outside bool, change func(*limits)) {
	of := &c.Others
	switch {
	case outside:
		of = &c.Outside
	case asker == 0:
		change(&c.Limits)
		return
	}
	if *of == nil {
		*of = make(map[uint32]limits)
	}
	l := (*of)[asker]
	change(&l)
	(*of)[asker] = l
}

// own reports whether an asker is the user, or a program of the user's own manager.
func (c *account) own(asker uint32) bool { return asker == 0 || asker == c.UID }

// load returns the profile of a user. Callers hold the lock.
func (a *Authenticator) load(user string) (*account, error) {
	b, err := a.store.Load(user)
	if err != nil {
		return nil, err
	}
	c := new(account)
	if err := cbor.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("profile: %w: %w", profile.ErrDamaged, err)
	}
	switch uid, err := a.o.UID(user); {
	case err != nil:
		return c, fmt.Errorf("looking for the user: %w", err)
	case uid != c.UID: // who was enrolled has left, and another user has got the name
		return c, fmt.Errorf("%w: the stored profile belongs to an earlier user of that name",
			profile.ErrUnknown)
	}
	return c, nil
}

func (a *Authenticator) save(user string, c *account) error {
	b, err := cbor.Marshal(c)
	if err != nil {
		return err
	}
	return a.store.Save(user, b)
}

// update changes the account of a user. If change returns an error, the account stays as it was.
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

// moved is the refusal in [Status] while nothing shows that the face belongs to the system's
// account: see [Attempt].
const moved Refusal = "the password is another one since the enrolment, or was not known then; " +
	"look into the camera, and log in with the password within a minute"

// Status is the public part of a user's profile.
type Status struct {
	Enrolled time.Time `json:"enrolled"` // to the second, in UTC
	Labelled int       `json:"labelled"` // number of faces taken at the enrolment
	Learned  int       `json:"learned"`  // number of stored faces that were learned since
	// learning is stopped: the learned faces had moved far from the enrolled ones
	Drifted bool    `json:"drifted"`
	Refusal Refusal `json:"refusal"` // why a login may not begin now, or ""
	Wait    int     `json:"wait"`    // seconds until a login may begin, rounded up
	// Here is true if the program that asks is at the device, and not root's. Package socket knows
	// it.
	Here bool `json:"here"`
}

// Status returns the public part of a user's profile. The error wraps [profile.ErrUnknown] or
// [profile.ErrDamaged].
func (a *Authenticator) Status(user string) (Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return Status{}, err
	}
	l, err := unpacked(c.Learner, a.spaces[0], a.o.Learner)
	if err != nil {
		return Status{}, err
	}
	d, err := l.Drift(owner)
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Enrolled: c.Enrolled.UTC(),
		Labelled: int(l.Counts().Labelled),
		Learned:  int(d.Learned),
		Drifted:  c.Drifted,
	}
	var wait time.Duration
	s.Refusal, wait = c.ask(0, a.o.Policy, a.moment())
	s.Wait = int(math.Ceil(wait.Seconds()))
	if s.Refusal == "" && c.moved() {
		s.Refusal = moved
	}
	return s, nil
}

// History returns the latest attempts to log in as a user, at most 64, and the passwords among
// them, oldest first. The error is as for [Authenticator.Status].
func (a *Authenticator) History(user string) ([]Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := a.load(user)
	if err != nil {
		return nil, err
	}
	return c.History, nil
}

// Password records that a user gave the password: failures are forgotten, an attempt that is under
// way is not charged, and faces from a login of this user within the last minute are learned. Asker
// is the user who gave it, as for Verify; failures of other askers stay. The error wraps
// [profile.ErrUnknown] without a profile.
//
// Mark is that of [Attempt], or "". If the user's face was seen within the last minute in a login
// that ended with [unproven], it binds the profile.
func (a *Authenticator) Password(user string, asker uint32, mark string) error {
	now := a.o.Now()
	return a.update(user, func(c *account) error {
		c.note(Event{At: now, Asker: asker, Result: passwordGiven})
		c.Told = cmp.Or(mark, c.Told)
		delete(c.Outside, asker)
		if asker != 0 {
			delete(c.Others, asker)
			return nil
		}
		maps.DeleteFunc(c.Others, func(by uint32, _ limits) bool { return c.own(by) })
		c.Limits.password(a.moment())
		w := a.waiting
		a.waiting = pending{}
		switch {
		case w.user != user || w.at.Before(now.Add(-quarantine)):
			return nil
		case w.unproven:
			c.Bound = cmp.Or(mark, c.Bound)
			return nil
		}
		return a.learn(user, c, w.faces, true)
	})
}

// PasswordOutside records that a password was given outside the sessions ([Attempt].Outside): it
// ends the failures there, and nothing else. The error is that of [Authenticator.Password].
func (a *Authenticator) PasswordOutside(user string, asker uint32) error {
	return a.update(user, func(c *account) error {
		c.note(Event{At: a.o.Now(), Asker: asker, Result: passwordGiven, Outside: true})
		delete(c.Outside, asker)
		return nil
	})
}

// Lock has a face let in nobody as a user until the password is given: the person at the device
// says that an attempt is not theirs.
func (a *Authenticator) Lock(user string, asker uint32, service, from string) error {
	return a.update(user, func(c *account) error {
		c.note(Event{At: a.o.Now(), Service: service, Asker: asker, Result: string(Objected),
			From: from, Outside: true})
		c.Limits.Given = false
		a.waiting = pending{}
		return nil
	})
}

// Undo removes the faces of a user that were learned after a time, to the second, and returns their
// number. Learning goes on, also after the drift alarm.
func (a *Authenticator) Undo(user string, since time.Time) (faces int, err error) {
	err = a.update(user, func(c *account) error {
		c.Drifted = false
		l, err := unpacked(c.Learner, a.spaces[0], a.o.Learner)
		if err != nil {
			return err
		}
		faces, err = l.UndoSince(since, a.o.Now())
		if err != nil {
			return err
		}
		c.Learner, err = l.MarshalBinary()
		return err
	})
	return faces, err
}

// Forget removes the profile of a user completely, from disk and memory.
func (a *Authenticator) Forget(user string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = pending{}
	err := a.store.Delete(user)
	a.o.Wipe()
	return err
}

// quarantine is how long faces wait for the password.
const quarantine = time.Minute

// pending is what the last login leaves for the password.
type pending struct {
	user     string
	at       time.Time
	faces    [][]float32 // to be learned then
	unproven bool        // the user was seen, and lacks the password only
}

// learn shows the learner of a user the faces of one sighting that were earned: those of a match,
// or with the password, after which they may be less like the enrolled ones. The learner learns
// them if they confirm the user; see [sighting.Watcher]. If the drift alarm goes off, it learns
// nothing until a user undoes or enrols.
func (a *Authenticator) learn(user string, c *account, faces [][]float32, password bool) error {
	if c.Drifted || len(faces) == 0 {
		return nil
	}
	settings := a.o.Learner
	if password {
		settings.Learn = 0
	}
	l, err := unpacked(c.Learner, a.spaces[0], settings)
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
	c.Drifted = d.Alarm
	if d.Alarm {
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
