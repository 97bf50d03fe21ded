// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"time"

	"github.com/godbus/dbus/v5"
)

// about returns the user of a request. The caller needs the permission for the given actions, and for another user also
// the permission of an administrator.
func (s *service) about(by caller, name string, actions ...string) (user string, failed *dbus.Error) {
	user, self, failed := by.subject(name)
	if failed != nil {
		return "", failed
	}
	if !self {
		actions = append(actions, otherAction)
	}
	return user, s.may(by, true, actions...)
}

func (s *service) status(by caller, name string) (map[string]dbus.Variant, *dbus.Error) {
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

func (s *service) history(by caller, name string) ([]event, *dbus.Error) {
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

func (s *service) undo(by caller, name string, since int64) (uint32, *dbus.Error) {
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

func (s *service) forget(by caller, name string) *dbus.Error {
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

// passwordUsed records that a password was given. Mark is the account's, or "" if it is not known. The module has
// checked that it was given at the device: a program that logs in may have ended before that could be asked here.
func (s *service) passwordUsed(by caller, user string, asker uint32, mark string) *dbus.Error {
	if failed := s.root(by); failed != nil {
		return failed
	}
	if len(mark) > mostMark {
		return longMark()
	}
	c := claim{by: by, user: user, asker: asker}
	err := s.a.Password(user, c.foreign(), mark)
	if err == nil {
		s.o.Log.Info("password used", "user", user, "asker", asker)
	}
	return s.told(err)
}

// mostMark is the greatest length of a mark of an account.
const mostMark = 256

// account records the mark of the system's account of a user, unless it is empty.
func (s *service) account(user, mark string) *dbus.Error {
	if mark == "" {
		return nil
	}
	if len(mark) > mostMark {
		return longMark()
	}
	return s.told(s.a.Account(user, mark))
}

func longMark() *dbus.Error { return failure(internal, "the mark of an account is too long") }

// seconds rounds up.
func seconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }
