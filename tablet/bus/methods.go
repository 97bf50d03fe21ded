// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"time"

	"github.com/faceauth/faceauth/tablet/enrolment"
	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
)

// method is one of an interface.
type method struct {
	in, out string // signatures
	call    func(s *Service, by caller, args []any) ([]any, *dbus.Error)
}

const propertiesInterface = "org.freedesktop.DBus.Properties"

// nothing makes a method of one that returns nothing.
func nothing(f func(s *Service, by caller, args []any) *dbus.Error) func(*Service, caller, []any) ([]any, *dbus.Error) {
	return func(s *Service, by caller, args []any) ([]any, *dbus.Error) { return nil, f(s, by, args) }
}

// one makes a method of one that returns one thing.
func one[T any](f func(s *Service, by caller, args []any) (T, *dbus.Error)) func(*Service, caller, []any) ([]any, *dbus.Error) {
	return func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		x, failed := f(s, by, args)
		return []any{x}, failed
	}
}

// methods are those of the interfaces of the object. Arguments are of the types that in says when they are called.
var methods = map[string]map[string]method{
	Interface: {
		"Claim": {"s", "", nothing(func(s *Service, by caller, args []any) *dbus.Error { return s.claimFor(by, args[0].(string), by.uid) })},
		"ClaimFor": {"su", "", nothing(func(s *Service, by caller, args []any) *dbus.Error {
			return s.claimAs(by, args[0].(string), args[1].(uint32))
		})},
		"Release":     {"", "", nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.release(by) })},
		"VerifyStart": {"", "", nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.verifyStart(by) })},
		"VerifyStop":  {"", "", nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.stop(by) })},
		"EnrollStart": {"", "", nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.enrollStart(by) })},
		"EnrollStop":  {"", "", nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.stop(by) })},
		"Status": {"s", "a{sv}", one(func(s *Service, by caller, args []any) (map[string]dbus.Variant, *dbus.Error) {
			return s.status(by, args[0].(string))
		})},
		"Undo": {"sx", "u", one(func(s *Service, by caller, args []any) (uint32, *dbus.Error) {
			return s.undo(by, args[0].(string), time.Unix(args[1].(int64), 0))
		})},
		"Freeze": {"sb", "", nothing(func(s *Service, by caller, args []any) *dbus.Error {
			return s.freeze(by, args[0].(string), args[1].(bool))
		})},
		"Forget": {"s", "", nothing(func(s *Service, by caller, args []any) *dbus.Error { return s.forget(by, args[0].(string)) })},
		"Users":  {"", "as", one(func(s *Service, by caller, _ []any) ([]string, *dbus.Error) { return s.users(by) })},
		"PasswordUsed": {"s", "", nothing(func(s *Service, by caller, args []any) *dbus.Error {
			return s.passwordUsed(by, args[0].(string), by.uid)
		})},
		"PasswordUsedFor": {"su", "", nothing(func(s *Service, by caller, args []any) *dbus.Error {
			return s.passwordUsed(by, args[0].(string), args[1].(uint32))
		})},
		"Health": {"", "a{sv}", one(func(s *Service, by caller, _ []any) (map[string]dbus.Variant, *dbus.Error) { return s.health(by) })},
	},
	"org.freedesktop.DBus.Introspectable": {
		"Introspect": {"", "s", one(func(*Service, caller, []any) (string, *dbus.Error) {
			return string(introspect.Introspectable(XML)), nil
		})},
	},
	"org.freedesktop.DBus.Peer": {
		"Ping": {"", "", nothing(func(*Service, caller, []any) *dbus.Error { return nil })},
	},
	propertiesInterface: {
		"Get": {"ss", "v", one(func(_ *Service, _ caller, args []any) (dbus.Variant, *dbus.Error) {
			v, ok := properties(args[0].(string))[args[1].(string)]
			if !ok {
				return v, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", []any{"there is no such property"})
			}
			return v, nil
		})},
		"GetAll": {"s", "a{sv}", one(func(_ *Service, _ caller, args []any) (map[string]dbus.Variant, *dbus.Error) {
			return properties(args[0].(string)), nil
		})},
		"Set": {"ssv", "", nothing(func(*Service, caller, []any) *dbus.Error {
			return dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"no property can be written"})
		})},
	},
}

// properties are those of an interface.
func properties(of string) map[string]dbus.Variant {
	if of != Interface {
		return map[string]dbus.Variant{}
	}
	return map[string]dbus.Variant{"EnrollStages": dbus.MakeVariant(uint32(enrolment.Stages))}
}

// answer answers a call.
func (s *Service) answer(by caller, m *dbus.Message) {
	path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	named, _ := m.Headers[dbus.FieldInterface].Value().(string)
	member, _ := m.Headers[dbus.FieldMember].Value().(string)
	signature, _ := m.Headers[dbus.FieldSignature].Value().(dbus.Signature)
	if named == "" {
		named = Interface
	}
	if path != Path {
		s.fail(m, dbus.NewError("org.freedesktop.DBus.Error.UnknownObject", []any{"the object is " + string(Path)}))
		return
	}
	of, ok := methods[named]
	if !ok {
		s.fail(m, dbus.NewError("org.freedesktop.DBus.Error.UnknownInterface", []any{"the object has no interface of that name"}))
		return
	}
	f, ok := of[member]
	if !ok {
		s.fail(m, dbus.NewError("org.freedesktop.DBus.Error.UnknownMethod", []any{"the interface has no method of that name"}))
		return
	}
	if signature.String() != f.in {
		s.fail(m, dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", []any{"the method takes arguments of the types " + f.in}))
		return
	}
	results, failed := f.call(s, by, m.Body)
	if failed != nil {
		s.fail(m, failed)
		return
	}
	s.reply(m, dbus.TypeMethodReply, "", results)
}

// fail answers a call with an error.
func (s *Service) fail(m *dbus.Message, e *dbus.Error) { s.reply(m, dbus.TypeError, e.Name, e.Body) }

// reply answers a call, where an answer is expected.
func (s *Service) reply(m *dbus.Message, kind dbus.Type, name string, body []any) {
	if m.Flags&dbus.FlagNoReplyExpected != 0 {
		return
	}
	r := &dbus.Message{Type: kind, Flags: dbus.FlagNoReplyExpected, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()),
		dbus.FieldDestination: m.Headers[dbus.FieldSender],
	}}
	if name != "" {
		r.Headers[dbus.FieldErrorName] = dbus.MakeVariant(name)
	}
	if len(body) > 0 {
		r.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	s.conn.Send(r, nil)
}
