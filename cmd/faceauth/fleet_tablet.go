// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/spf13/cobra"
)

func newFleetTablet() *cobra.Command {
	var m memberFlags
	c := &cobra.Command{
		Use:   "tablet",
		Short: "give the faces of followed people to the login daemon of this device",
		Long: "Tablet takes part in the fleet for the login daemon (faceauth daemon), which has no network. Over\n" +
			"the system bus it gives the daemon the labelled faces of followed people (faceauth tablet follow),\n" +
			"and says who was forgotten. It runs until it is interrupted, as root or as the user " + bus.FleetUser +
			"; docs/tablet.md says how.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return m.tell(c) },
	}
	deviceFolderFlag(c.Flags(), &m.state, "state")
	return c
}

// The longest time of a call to the daemon, which the bus may have to start, and the wait before the next attempt.
const (
	daemonPatience = 30 * time.Second
	daemonRetry    = 2 * time.Second
)

// tell keeps the daemon up to date until the context ends.
func (f *memberFlags) tell(c *cobra.Command) (err error) {
	daemon, err := bus.DialFleet(c.Context())
	if err != nil {
		return err
	}
	defer daemon.Close()
	f.fleet = true
	part, err := f.join(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.close()) }()
	t := teller{c: c, daemon: daemon, device: part.Device, told: make(map[string]heardOf)}
	last := ""
	for {
		if err := t.round(c.Context()); err != nil && c.Context().Err() == nil {
			if s := err.Error(); s != last { // it repeats its attempts
				last = s
				warn(c, s+"; it is tried again")
			}
			t.again = time.Now().Add(daemonRetry)
		}
		select {
		case <-c.Context().Done():
			return nil
		case <-daemon.Gone():
			return errors.New("the system bus has closed the connection")
		case err, open := <-part.Ended:
			if !open {
				return nil
			}
			if errors.Is(err, fleet.ErrRevoked) {
				err = errors.Join(err, t.revoked(c.Context()))
			}
			return memberFailure(err)
		case <-daemon.Daemon:
			t.stale = true
		case <-part.Device.Changed():
			t.news = true
		case <-time.After(time.Second):
		}
	}
}

// heardOf is what the daemon was last told about an account.
type heardOf struct {
	number    string
	space     string
	faces     []fleet.FaceID
	forgotten bool
	word      string
}

// teller tells the daemon about the people whom its accounts follow.
type teller struct {
	c      *cobra.Command
	daemon *bus.Fleet
	device *fleet.Device

	owner    string // the daemon that was told
	asked    bool   // followed is an answer of the daemon
	stale    bool   // the answer may be old
	space    string
	followed []tablet.Followed
	told     map[string]heardOf // by user
	arrived  bool               // the device had the fleet's state once since this program started
	owes     bool               // shared faces could not be given to the fleet yet
	news     bool               // people may have changed since the last full round
	state    fleet.State        // state of the fleet in the last full round
	was      bool               // connected, at the last check
	since    time.Time          // time of the last change of was
	again    time.Time          // no attempt before this time
}

// round tells the daemon about changes. If the daemon has ended because nobody uses it, it is started only for changes
// that it must store.
func (t *teller) round(ctx context.Context) error {
	if time.Now().Before(t.again) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	state := t.device.State()
	t.arrived = t.arrived || state.InStep
	if here := state.Connected; here != t.was || t.since.IsZero() {
		t.was, t.since = here, time.Now()
	}
	asked := t.stale || !t.asked
	if asked {
		t.stale = false
		owner, err := t.daemon.Owner(ctx)
		if err != nil {
			return err
		}
		if owner != "" && owner != t.owner { // its profiles may be older
			t.told = make(map[string]heardOf)
		}
		if t.owner = owner; owner != "" || !t.asked {
			if t.space, t.followed, err = t.daemon.Followed(ctx); err != nil {
				t.stale = true
				return err
			}
			t.asked = true
			if t.owner, err = t.daemon.Owner(ctx); err != nil {
				return err
			}
			for user, was := range t.told {
				if !slices.ContainsFunc(t.followed, func(f tablet.Followed) bool {
					return f.User == user &&
						f.Number == was.number
				}) {
					delete(t.told, user)
				}
			}
		}
	}
	// The people are read only if something may have changed, because there may be thousands.
	same := state.Connected == t.state.Connected && state.InStep == t.state.InStep && state.Keys == t.state.Keys
	if len(t.followed) == 0 || !asked && !t.news && same {
		return nil
	}
	t.news = true // until everything is told
	retry := asked
	defer func() { t.stale = t.stale || retry }()
	people := t.device.People()
	shares := asked || t.owes
	t.owes = false
	for _, f := range t.followed {
		err := t.about(ctx, f, people, state)
		if err == nil && shares && t.owner != "" && f.Share {
			err = t.share(ctx, f, people)
		}
		if bus.NotFollowed(err) {
			t.stale = true
		} else if err != nil {
			return err
		}
	}
	t.news, t.state, retry = false, state, false
	return nil
}

// about tells the daemon about one account.
func (t *teller) about(ctx context.Context, f tablet.Followed, people []fleet.Person, state fleet.State) error {
	was := t.told[f.User]
	if !t.arrived {
		return t.says(ctx, f, was, bus.Away)
	}
	if f.Number == "" {
		p, word := byName(people, f.Asked, state)
		if word != "" {
			return t.says(ctx, f, was, word)
		}
		if err := t.daemon.Found(ctx, f.User, f.Asked, p.ID.String()); err != nil {
			return err
		}
		t.stale = true
		return nil
	}
	id, err := fleet.ParseID(f.Number)
	if err != nil {
		return err
	}
	if t.device.Forgotten(id) {
		if was.forgotten {
			return nil
		}
		if err := t.daemon.Forgotten(ctx, f.User, f.Number); err != nil {
			return err
		}
		t.told[f.User] = heardOf{number: f.Number, forgotten: true}
		t.stale = true
		return nil
	}
	faces, ids, word, whole := facesOf(people, id, t.space, state)
	if whole && (was.number != f.Number || was.space != t.space || !slices.Equal(was.faces, ids)) {
		if err := t.daemon.Faces(ctx, f.User, f.Number, t.space, faces); err != nil {
			return err
		}
		was = heardOf{number: f.Number, space: t.space, faces: ids}
		t.told[f.User] = was
		if t.owner == "" { // the daemon was started for this call
			t.stale = true
		}
	}
	if !state.Connected {
		word = bus.Away
	}
	return t.says(ctx, f, was, word)
}

// share gives the faces that this device has enrolled to the fleet, except faces that the fleet has, took back or
// denied.
func (t *teller) share(ctx context.Context, f tablet.Followed, people []fleet.Person) error {
	id, err := fleet.ParseID(f.Number)
	if err != nil { // the fleet does not know the person yet; Followed changes when it does
		return nil
	}
	i := slices.IndexFunc(people, func(p fleet.Person) bool { return p.ID == id || slices.Contains(p.IDs, id) })
	if !t.arrived || i < 0 || people[i].Sealed > 0 { // the fleet's faces of the person are not known yet
		t.owes = true
		return nil
	}
	own, err := t.daemon.Own(ctx, f.User, f.Number)
	if err != nil {
		return err
	}
	news := newFaces(people[i], t.space, own)
	if len(news) == 0 {
		return nil
	}
	if err := t.device.Label(id, t.space, news); err != nil {
		return fmt.Errorf("giving the fleet the faces of %s: %w", f.User, err)
	}
	return nil
}

// newFaces returns the faces that the person of the fleet never had.
func newFaces(p fleet.Person, space string, own []tablet.FleetFace) (all []fleet.Face) {
	for _, x := range own {
		id := fleet.NewFaceID(space, x.Vector)
		had := func(f fleet.PersonFace) bool { return f.ID == id }
		if !slices.ContainsFunc(p.Faces, had) && !slices.ContainsFunc(p.Denied, had) && !slices.Contains(p.Gone, id) {
			all = append(all, fleet.Face{Vector: x.Vector, Taken: x.Taken})
		}
	}
	return all
}

// says tells the daemon the state of an account, if it changed and a daemon runs.
func (t *teller) says(ctx context.Context, f tablet.Followed, was heardOf, word string) error {
	if was.word == word || t.owner == "" {
		return nil
	}
	if err := t.daemon.Says(ctx, f.User, word, t.since); err != nil {
		return err
	}
	was.word = word
	t.told[f.User] = was
	return nil
}

// revoked tells the daemon that the fleet has revoked this device, and repeats it until the daemon has heard it.
func (t *teller) revoked(ctx context.Context) error {
	for {
		call, cancel := context.WithTimeout(ctx, daemonPatience)
		err := t.daemon.Revoked(call)
		cancel()
		if err == nil || ctx.Err() != nil {
			return nil
		}
		warn(t.c, fmt.Sprintf("the daemon is not told that this device was revoked: %v; it is tried again", err))
		select {
		case <-ctx.Done():
			return nil
		case <-t.daemon.Gone():
			return errors.New("the system bus has closed the connection, and the daemon was not told")
		case <-time.After(daemonRetry):
		}
	}
}

// byName returns the person with this name in the fleet, or a word that says why there is none.
func byName(people []fleet.Person, name string, state fleet.State) (p fleet.Person, word string) {
	for _, p := range people {
		if p.Shown == name {
			return p, ""
		}
	}
	if state.Keys > 0 {
		return p, bus.Keyless
	}
	return p, bus.Nobody
}

// facesOf returns the faces of a person for a daemon, in the order of their numbers, and the state of the person as a
// word. If there are too many, the newest are taken. Whole is true if all entries about the person could be read.
func facesOf(people []fleet.Person, id fleet.ID, space string, state fleet.State) (faces []tablet.FleetFace,
	ids []fleet.FaceID, word string, whole bool) {
	i := slices.IndexFunc(people, func(p fleet.Person) bool { return p.ID == id || slices.Contains(p.IDs, id) })
	switch {
	case i < 0:
		return nil, nil, bus.Nobody, state.InStep
	case people[i].Sealed > 0:
		return nil, nil, bus.Keyless, false
	}
	all := slices.DeleteFunc(slices.Clone(people[i].Faces), func(f fleet.PersonFace) bool { return f.Space != space })
	if word = bus.InStep; len(all) == 0 && len(people[i].Faces) > 0 {
		word = bus.OtherSpace
	}
	slices.SortStableFunc(all, func(x, y fleet.PersonFace) int {
		return cmp.Or(y.Taken.Compare(x.Taken), slices.Compare(x.ID[:], y.ID[:]))
	})
	all = all[:min(len(all), tablet.MostFaces)]
	slices.SortFunc(all, func(x, y fleet.PersonFace) int { return slices.Compare(x.ID[:], y.ID[:]) })
	for _, f := range all {
		faces, ids = append(faces, tablet.FleetFace{Vector: f.Vector, Taken: f.Taken}), append(ids, f.ID)
	}
	return faces, ids, word, true
}
