// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/godbus/dbus/v5"
)

// FleetInterface is the interface for the process that connects to a fleet, at [Path].
const FleetInterface = "org.faceauth.Fleet"

// FleetUser is the user of that process.
const FleetUser = "faceauth-fleet"

// Words about the person whom an account follows, for [Fleet.Says] and [tablet.FleetStatus].
const (
	InStep     = "in-step"     // this device has all faces of the person
	Away       = "away"        // there is no connection to the fleet
	Nobody     = "nobody"      // the fleet has no person with this name or number
	Keyless    = "no-key"      // this device has no key for the person yet
	OtherSpace = "other-space" // all faces of the person are of another feature space
)

// fleetWords are these words.
var fleetWords = map[string]bool{InStep: true, Away: true, Nobody: true, Keyless: true, OtherSpace: true}

// fleetMethods are the methods of [FleetInterface]. Each is called only for its callers.
var fleetMethods = func() map[string]method {
	all := map[string]method{
		"Followed": does(func(s *Service, _ caller) (string, []tablet.Followed, *dbus.Error) {
			all, err := s.a.Followed()
			return s.a.Space(), all, s.told(err)
		}),
		"Found": does(func(s *Service, _ caller, user, asked, person string) *dbus.Error {
			err := s.a.FleetFound(user, asked, person)
			if err == nil {
				s.o.Log.Info("a person of the fleet was found", "user", user, "person", person)
			}
			return s.toldFleet(err)
		}),
		"Faces": does((*Service).fleetFaces),
		"Own": does(func(s *Service, _ caller, user, number string) ([]sentFace, *dbus.Error) {
			faces, err := s.a.FleetOwn(user, number)
			if err != nil {
				return nil, s.toldFleet(err)
			}
			s.o.Log.Info("faces enrolled here are given to the fleet", "user", user, "faces", len(faces))
			return pack(faces), nil
		}),
		"Forgotten": does(func(s *Service, _ caller, user, number string) *dbus.Error {
			s.interruptFor(user)
			err := s.a.FleetForgot(user, number)
			if err == nil {
				s.o.Log.Info("forgotten in the fleet: the profile is removed", "user", user)
			}
			return s.toldFleet(err)
		}),
		"Revoked": does(func(s *Service, _ caller) *dbus.Error {
			users, err := s.a.FleetRevoked()
			for _, user := range users {
				s.interruptFor(user)
				s.o.Log.Warn("the fleet has revoked this device: everything that rests on its faces is removed",
					"user", user)
			}
			return s.toldFleet(err)
		}),
		"Says": does(func(s *Service, _ caller, user, word string, since int64) *dbus.Error {
			if !fleetWords[word] {
				return failure(fleetRefused, "there is no such word about a person of a fleet")
			}
			return s.toldFleet(s.a.FleetSays(user, word, time.Unix(since, 0)))
		}),
	}
	for name, m := range all {
		call := m.call
		m.call = func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
			if failed := s.byFleet(by); failed != nil {
				return nil, failed
			}
			return call(s, by, args)
		}
		all[name] = m
	}
	return all
}()

// byFleet returns nil for the process of the fleet and for root.
func (s *Service) byFleet(by caller) *dbus.Error {
	if by.root() {
		return nil
	}
	if uid, err := UID(s.o.FleetUser); err == nil && uid == by.uid {
		return nil
	}
	s.o.Log.Warn("denied", "uid", by.uid, "action", "the fleet's")
	return failure(permissionDenied, "only "+s.o.FleetUser+" and root may speak for the fleet")
}

// toldFleet returns an error with its text for the process of the fleet, which has the faces anyway.
func (s *Service) toldFleet(err error) *dbus.Error {
	switch {
	case errors.Is(err, tablet.ErrFollow), errors.Is(err, profile.ErrUnknown):
		return failure(notFollowed, "the account does not follow that person; it may have been changed meanwhile")
	case errors.Is(err, tablet.ErrFaces), errors.Is(err, tablet.ErrPerson):
		s.o.Log.Warn("the fleet's process was refused", "error", err)
		return failure(fleetRefused, err.Error())
	}
	return s.told(err)
}

// interruptFor ends present work that uses the faces of a user.
func (s *Service) interruptFor(user string) {
	if held := s.held(); held != nil && held.user == user {
		s.interrupt(held)
	}
}

// sentFace is a face in a message.
type sentFace struct {
	Taken  int64 // seconds since 1970, or 0
	Vector []byte
}

func pack(faces []tablet.FleetFace) []sentFace {
	all := make([]sentFace, len(faces))
	for i, x := range faces {
		if !x.Taken.IsZero() {
			all[i].Taken = x.Taken.Unix()
		}
		all[i].Vector = vector.Bytes(x.Vector)
	}
	return all
}

// unpack returns faces, and overwrites their bytes. The error wraps [tablet.ErrFaces].
func unpack(sent []sentFace) ([]tablet.FleetFace, error) {
	faces := make([]tablet.FleetFace, len(sent))
	for i, f := range sent {
		if len(f.Vector)%4 != 0 {
			return nil, fmt.Errorf("%w: face %d has %d bytes", tablet.ErrFaces, i+1, len(f.Vector))
		}
		faces[i].Vector = vector.Floats(f.Vector)
		clear(f.Vector)
		if f.Taken != 0 {
			faces[i].Taken = time.Unix(f.Taken, 0)
		}
	}
	return faces, nil
}

// fleetFaces stores all faces of a person from the fleet.
func (s *Service) fleetFaces(_ caller, user, number, space string, sent []sentFace) *dbus.Error {
	if len(sent) > tablet.MostFaces { // check before decoding
		return s.toldFleet(
			fmt.Errorf("%w: got %d of one person, and at most %d are allowed", tablet.ErrFaces, len(sent),
				tablet.MostFaces),
		)
	}
	faces, err := unpack(sent)
	if err != nil {
		return s.toldFleet(err)
	}
	changed, err := s.a.FleetFaces(user, number, space, faces)
	if changed {
		s.interruptFor(user) // it may use a face that was removed
		s.o.Log.Info("faces of the fleet", "user", user, "faces", len(faces))
	}
	return s.toldFleet(err)
}

// follow lets an account follow a person of a fleet. An empty person ends the link. With share the fleet gets the faces
// that this device enrols.
func (s *Service) follow(by caller, name, person string, share bool) *dbus.Error {
	user, failed := s.about(by, name, enrollAction)
	if failed != nil {
		return failed
	}
	var err error
	if person == "" {
		s.interruptFor(user)
		err = s.a.Unfollow(user)
	} else {
		switch uid, err := UID(user); {
		case err != nil:
			return failure(invalidUser, "no user of this system has that name; look at how it is written")
		case uid == 0:
			return failure(permissionDenied, rootsFace)
		}
		s.interruptFor(user)
		err = s.a.Follow(user, person, share)
	}
	switch {
	case errors.Is(err, tablet.ErrFollow):
		return failure(notFollowed, "this account follows no person of a fleet")
	case errors.Is(err, tablet.ErrPerson):
		return failure(fleetRefused,
			"that can be neither the name nor the number of a person of a fleet; "+
				"see faceauth people --fleet on another device")
	case err != nil:
		return s.told(err)
	}
	s.o.Log.Info("follow", "user", user, "uid", by.uid, "person", person, "share", share)
	s.followChanged()
	return nil
}

// followChanged tells the process of the fleet to read the links again.
func (s *Service) followChanged() {
	s.conn.Send(&dbus.Message{
		Type: dbus.TypeSignal, Flags: dbus.FlagNoReplyExpected,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath: dbus.MakeVariant(Path), dbus.FieldInterface: dbus.MakeVariant(FleetInterface),
			dbus.FieldMember: dbus.MakeVariant("Changed"),
		},
	}, nil)
}

// followingFields returns where the fields of a link are, by their names in a message. Since is in seconds, or 0.
func followingFields(f *tablet.FleetStatus, since *int64) map[string]any {
	return map[string]any{"asked": &f.Asked, "number": &f.Number, "share": &f.Share, "faces": &f.Faces,
		"enrolled": &f.Enrolled, "revoked": &f.Revoked, "word": &f.Word, "since": since}
}

// followingOf returns the link of an account to a person of a fleet in the form of a message.
func followingOf(f *tablet.FleetStatus) map[string]dbus.Variant {
	m := make(map[string]dbus.Variant)
	if f == nil {
		return m
	}
	since := int64(0)
	if !f.Since.IsZero() {
		since = f.Since.Unix()
	}
	for key, field := range followingFields(f, &since) {
		m[key] = dbus.MakeVariant(reflect.ValueOf(field).Elem().Interface())
	}
	return m
}

// readFollowing decodes the result of followingOf.
func readFollowing(m map[string]dbus.Variant) (*tablet.FleetStatus, error) {
	if len(m) == 0 {
		return nil, nil
	}
	f, since := new(tablet.FleetStatus), int64(0)
	for key, field := range followingFields(f, &since) {
		if err := m[key].Store(field); err != nil {
			return nil, fmt.Errorf("the daemon's status has no usable %s of the fleet: %w", key, err)
		}
	}
	if since != 0 {
		f.Since = time.Unix(since, 0).UTC()
	}
	return f, nil
}

// Fleet calls the daemon for a fleet. One goroutine may use it at a time. [DialFleet] or [NewFleet] makes one; close
// it.
type Fleet struct {
	client *Client
	// Daemon gets a value when a daemon has started or ended, or when the link of an account has changed.
	Daemon <-chan struct{}
	ended  chan struct{}
}

// DialFleet connects to the system bus.
func DialFleet(ctx context.Context) (*Fleet, error) {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("connecting to the system bus: %w", err)
	}
	return NewFleet(ctx, conn)
}

// NewFleet returns a Fleet on a connection, which it closes.
func NewFleet(ctx context.Context, conn *dbus.Conn) (*Fleet, error) {
	signals, changed := make(chan *dbus.Signal, 64), make(chan struct{}, 1)
	f := &Fleet{client: &Client{conn: conn}, Daemon: changed, ended: make(chan struct{})}
	conn.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		ownerChanged(Name),
		{dbus.WithMatchSender(Name), dbus.WithMatchInterface(FleetInterface), dbus.WithMatchMember("Changed")},
	} {
		if err := conn.AddMatchSignalContext(ctx, match...); err != nil {
			conn.Close()
			return nil, fmt.Errorf("asking the bus: %w", err)
		}
	}
	go func() { // it ends with the connection: dbus closes the channel
		defer close(f.ended)
		for range signals {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return f, nil
}

// Gone is closed when the connection to the bus is lost.
func (f *Fleet) Gone() <-chan struct{} { return f.ended }

// Close ends the connection.
func (f *Fleet) Close() error { return f.client.Close() }

// Owner returns the connection of the running daemon, or "". It starts no daemon.
func (f *Fleet) Owner(ctx context.Context) (owner string, err error) {
	err = f.client.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, Name).Store(&owner)
	var failed dbus.Error
	if errors.As(err, &failed) && failed.Name == "org.freedesktop.DBus.Error.NameHasNoOwner" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking the bus: %w", err)
	}
	return owner, nil
}

// Followed returns the accounts with a link, and the ID of their feature space.
func (f *Fleet) Followed(ctx context.Context) (space string, all []tablet.Followed, err error) {
	err = f.client.ask(ctx, FleetInterface, "Followed", nil, []any{&space, &all})
	return space, all, err
}

// Found sets the number of the person whose name an account follows.
func (f *Fleet) Found(ctx context.Context, user, asked, number string) error {
	return f.client.ask(ctx, FleetInterface, "Found", []any{user, asked, number}, nil)
}

// Faces replaces all labelled faces of a person from the fleet.
func (f *Fleet) Faces(ctx context.Context, user, number, space string, faces []tablet.FleetFace) error {
	return f.client.ask(ctx, FleetInterface, "Faces", []any{user, number, space, pack(faces)}, nil)
}

// Own returns the faces that this device has enrolled of a user who shares them. If they must not be shared,
// [NotFollowed] is true for the error.
func (f *Fleet) Own(ctx context.Context, user, number string) ([]tablet.FleetFace, error) {
	var sent []sentFace
	if err := f.client.ask(ctx, FleetInterface, "Own", []any{user, number}, []any{&sent}); err != nil {
		return nil, err
	}
	return unpack(sent)
}

// Forgotten reports that the fleet has forgotten a person.
func (f *Fleet) Forgotten(ctx context.Context, user, number string) error {
	return f.client.ask(ctx, FleetInterface, "Forgotten", []any{user, number}, nil)
}

// Revoked reports that the fleet has revoked this device.
func (f *Fleet) Revoked(ctx context.Context) error {
	return f.client.ask(ctx, FleetInterface, "Revoked", nil, nil)
}

// Says reports the state of the person whom an account follows, and since when.
func (f *Fleet) Says(ctx context.Context, user, word string, since time.Time) error {
	return f.client.ask(ctx, FleetInterface, "Says", []any{user, word, since.Unix()}, nil)
}

// NotFollowed reports whether an error of a [Fleet] or [Client] means that an account does not follow the person.
func NotFollowed(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Name == errorPrefix+notFollowed
}
