// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"time"

	"github.com/godbus/dbus/v5"
)

// about returns the user of a request. The caller needs the permission for the given actions, and for another user also
// the permission of an administrator.
func (s *Service) about(by caller, name string, actions ...string) (user string, failed *dbus.Error) {
	user, self, failed := by.subject(name)
	if failed != nil {
		return "", failed
	}
	if !self {
		actions = append(actions, otherAction)
	}
	return user, s.may(by, true, actions...)
}

func (s *Service) status(by caller, name string) (map[string]dbus.Variant, *dbus.Error) {
	user, failed := s.about(by, name)
	if failed != nil {
		return nil, failed
	}
	st, err := s.a.Status(user)
	if err != nil {
		return nil, s.told(err)
	}
	return map[string]dbus.Variant{
		"enrolled": dbus.MakeVariant(st.Enrolled.Unix()),
		"labelled": dbus.MakeVariant(uint32(st.Labelled)),
		"learned":  dbus.MakeVariant(uint32(st.Learned)),
		"frozen":   dbus.MakeVariant(st.Frozen),
		"drifted":  dbus.MakeVariant(st.Drifted),
		"refusal":  dbus.MakeVariant(string(st.Refusal)),
		"wait":     dbus.MakeVariant(seconds(st.Wait)),
	}, nil
}

// event is a [tablet.Event] on the bus.
type event struct {
	At       int64
	Service  string
	Asker    uint32
	Result   string
	Infrared bool
}

func (s *Service) history(by caller, name string) ([]event, *dbus.Error) {
	user, failed := s.about(by, name)
	if failed != nil {
		return nil, failed
	}
	all, err := s.a.History(user)
	events := make([]event, len(all))
	for i, e := range all {
		events[i] = event{e.At.Unix(), e.Service, e.Asker, e.Result, e.Infrared}
	}
	return events, s.told(err)
}

func (s *Service) undo(by caller, name string, since int64) (uint32, *dbus.Error) {
	user, failed := s.about(by, name)
	if failed != nil {
		return 0, failed
	}
	n, err := s.a.Undo(user, time.Unix(since, 0))
	if err == nil {
		s.o.Log.Info("undo", "user", user, "uid", by.uid, "faces", n)
	}
	return uint32(n), s.told(err)
}

func (s *Service) freeze(by caller, name string, on bool) *dbus.Error {
	var actions []string
	if !on {
		actions = append(actions, enrollAction)
	}
	user, failed := s.about(by, name, actions...)
	if failed != nil {
		return failed
	}
	err := s.a.Freeze(user, on)
	if err == nil {
		s.o.Log.Info("freeze", "user", user, "uid", by.uid, "on", on)
	}
	return s.told(err)
}

func (s *Service) forget(by caller, name string) *dbus.Error {
	user, failed := s.about(by, name)
	if failed != nil {
		return failed
	}
	if held := s.held(); held != nil && held.user == user {
		s.interrupt(held) // it uses the faces
	}
	err := s.a.Forget(user)
	if err == nil {
		s.o.Log.Info("forget", "user", user, "uid", by.uid)
	}
	return s.told(err)
}

func (s *Service) users(by caller) ([]string, *dbus.Error) {
	if failed := s.may(by, true, otherAction); failed != nil {
		return nil, failed
	}
	users, err := s.a.Users()
	return users, s.told(err)
}

// passwordUsed records that a password was given. Mark is the account's, or "" if it is not known; together says that
// this login has ended with [tablet.Unproven] before.
func (s *Service) passwordUsed(by caller, user string, asker uint32, mark string, together bool) *dbus.Error {
	if failed := s.root(by); failed != nil {
		return failed
	}
	if failed := s.account(user, mark, together); failed != nil {
		return failed
	}
	c := claim{by: by, user: user, asker: asker}
	err := s.a.Password(user, c.foreign())
	if err == nil {
		s.o.Log.Info("password used", "user", user, "asker", asker)
	}
	return s.told(err)
}

// mostMark is the greatest length of a mark of an account.
const mostMark = 256

// account records the mark of the system's account of a user, unless it is empty.
func (s *Service) account(user, mark string, together bool) *dbus.Error {
	if mark == "" {
		return nil
	}
	if len(mark) > mostMark {
		return failure(internal, "the mark of an account is too long")
	}
	return s.told(s.a.Account(user, mark, together))
}

// seconds rounds up.
func seconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }
