// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"time"

	"github.com/faceauth/faceauth/tablet"
	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
)

// method is a method of an interface.
type method struct {
	in, out string // signatures
	call    func(s *Service, by caller, args []any) ([]any, *dbus.Error)
	after   func(s *Service, by caller) // called after an answer without error
}

const propertiesInterface = "org.freedesktop.DBus.Properties"

// nothing makes a method without results.
func nothing(f func(s *Service, by caller, args []any) *dbus.Error) func(*Service, caller, []any) ([]any, *dbus.Error) {
	return func(s *Service, by caller, args []any) ([]any, *dbus.Error) { return nil, f(s, by, args) }
}

// one makes a method with one result.
func one[T any](
	f func(s *Service, by caller, args []any) (T, *dbus.Error),
) func(*Service, caller, []any) ([]any, *dbus.Error) {
	return func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		x, failed := f(s, by, args)
		return []any{x}, failed
	}
}

// object is the object at a path: its interfaces, and the default one for calls without an interface.
type object struct {
	named      string
	interfaces map[string]map[string]method
}

// newObject returns an object with its own interface and the standard interfaces.
func newObject(named, xml string, methods map[string]method, properties func(*Service) map[string]dbus.Variant) object {
	of := func(s *Service, name string) map[string]dbus.Variant {
		if name != named {
			return map[string]dbus.Variant{}
		}
		return properties(s)
	}
	return object{named, map[string]map[string]method{
		named: methods,
		"org.freedesktop.DBus.Introspectable": {
			"Introspect": {in: "", out: "s", call: one(func(*Service, caller, []any) (string, *dbus.Error) {
				return string(introspect.Introspectable(xml)), nil
			})},
		},
		"org.freedesktop.DBus.Peer": {
			"Ping": {in: "", out: "", call: nothing(func(*Service, caller, []any) *dbus.Error { return nil })},
		},
		propertiesInterface: {
			"Get": {in: "ss", out: "v", call: one(func(s *Service, _ caller, args []any) (dbus.Variant, *dbus.Error) {
				v, ok := of(s, args[0].(string))[args[1].(string)]
				if !ok {
					return v, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty",
						[]any{"there is no such property"})
				}
				return v, nil
			})},
			"GetAll": {
				in:  "s",
				out: "a{sv}",
				call: one(func(s *Service, _ caller, args []any) (map[string]dbus.Variant, *dbus.Error) {
					return of(s, args[0].(string)), nil
				}),
			},
			"Set": {in: "ssv", out: "", call: nothing(func(*Service, caller, []any) *dbus.Error {
				return dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"no property can be written"})
			})},
		},
	}}
}

// device is the object of [Interface] and [FleetInterface].
var device = newDevice()

func newDevice() object {
	o := newObject(Interface, XML, methods, func(*Service) map[string]dbus.Variant {
		return map[string]dbus.Variant{"EnrollStages": dbus.MakeVariant(uint32(tablet.Stages))}
	})
	o.interfaces[FleetInterface] = fleetMethods
	return o
}

// methods are the methods of [Interface]. Arguments have the types of the signature.
var methods = map[string]method{
	"Claim": {in: "s", out: "", call: nothing(func(s *Service, by caller, args []any) *dbus.Error {
		return s.claimSelf(by, args[0].(string), Interface)
	})},
	"ClaimFor": {in: "susss", out: "", call: nothing(func(s *Service, by caller, args []any) *dbus.Error {
		return s.claimAs(by, args[0].(string), args[1].(uint32), args[2].(string), args[3].(string),
			args[4].(string))
	})},
	"Release": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.release(by, Interface) }),
	},
	"VerifyStart": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.verifyStart(by, Interface) }),
	},
	"Confirm": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.confirm(by) }),
	},
	"VerifyStop": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.stop(by, Interface) }),
	},
	"EnrollStart": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.enrollStart(by, false, false) }),
	},
	"EnrollRootStart": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.enrollStart(by, true, false) }),
	},
	"EnrollLookStart": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.enrollStart(by, true, true) }),
	},
	"EnrollStop": {
		in:   "",
		out:  "",
		call: nothing(func(s *Service, by caller, _ []any) *dbus.Error { return s.stop(by, Interface) }),
	},
	"Status": {
		in:  "s",
		out: "a{sv}",
		call: one(func(s *Service, by caller, args []any) (map[string]dbus.Variant, *dbus.Error) {
			return s.status(by, args[0].(string))
		}),
	},
	"History": {
		in:  "s",
		out: "a(xsus)",
		call: one(func(s *Service, by caller, args []any) ([]event, *dbus.Error) {
			return s.history(by, args[0].(string))
		}),
	},
	"Undo": {in: "sx", out: "u", call: one(func(s *Service, by caller, args []any) (uint32, *dbus.Error) {
		return s.undo(by, args[0].(string), time.Unix(args[1].(int64), 0))
	})},
	"Freeze": {in: "sb", out: "", call: nothing(func(s *Service, by caller, args []any) *dbus.Error {
		return s.freeze(by, args[0].(string), args[1].(bool))
	})},
	"Forget": {
		in:   "s",
		out:  "",
		call: nothing(func(s *Service, by caller, args []any) *dbus.Error { return s.forget(by, args[0].(string)) }),
	},
	"Follow": {in: "ssb", out: "", call: nothing(func(s *Service, by caller, args []any) *dbus.Error {
		return s.follow(by, args[0].(string), args[1].(string), args[2].(bool))
	})},
	"Users": {
		in:   "",
		out:  "as",
		call: one(func(s *Service, by caller, _ []any) ([]string, *dbus.Error) { return s.users(by) }),
	},
	"PasswordUsed": {in: "s", out: "", call: nothing(func(s *Service, by caller, args []any) *dbus.Error {
		return s.passwordUsed(by, args[0].(string), by.uid, "", false)
	})},
	"PasswordUsedFor": {in: "susb", out: "", call: nothing(func(s *Service, by caller, args []any) *dbus.Error {
		return s.passwordUsed(by, args[0].(string), args[1].(uint32), args[2].(string), args[3].(bool))
	})},
	"Health": {
		in:   "",
		out:  "a{sv}",
		call: one(func(s *Service, by caller, _ []any) (map[string]dbus.Variant, *dbus.Error) { return s.health(by) }),
	},
}

// object returns the object at a path.
func (s *Service) object(path dbus.ObjectPath) (object, bool) {
	if path == Path {
		return device, true
	}
	if s.o.Fprint {
		o, ok := fprintObjects[path]
		return o, ok
	}
	return object{}, false
}

// answer answers a call.
func (s *Service) answer(by caller, m *dbus.Message) {
	path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	named, _ := m.Headers[dbus.FieldInterface].Value().(string)
	member, _ := m.Headers[dbus.FieldMember].Value().(string)
	signature, _ := m.Headers[dbus.FieldSignature].Value().(dbus.Signature)
	object, ok := s.object(path)
	if !ok {
		s.fail(m, dbus.NewError("org.freedesktop.DBus.Error.UnknownObject", []any{"the object is " + string(Path)}))
		return
	}
	if named == "" {
		named = object.named
	}
	of, ok := object.interfaces[named]
	if !ok {
		s.fail(
			m,
			dbus.NewError("org.freedesktop.DBus.Error.UnknownInterface",
				[]any{"the object has no interface of that name"}),
		)
		return
	}
	f, ok := of[member]
	if !ok {
		s.fail(
			m,
			dbus.NewError("org.freedesktop.DBus.Error.UnknownMethod",
				[]any{"the interface has no method of that name"}),
		)
		return
	}
	if signature.String() != f.in {
		s.fail(
			m,
			dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs",
				[]any{"the method takes arguments of the types " + f.in}),
		)
		return
	}
	if own := named == Interface || named == FleetInterface || named == FprintDevice; own && s.o.Broken != nil {
		s.fail(m, failure(internal, "nobody is recognised, because the store cannot be used: "+s.o.Broken.Error()))
		return
	}
	results, failed := f.call(s, by, m.Body)
	if failed != nil {
		s.fail(m, failed)
		return
	}
	s.reply(m, dbus.TypeMethodReply, "", results)
	if f.after != nil {
		f.after(s, by)
	}
}

// fail answers a call with an error.
func (s *Service) fail(m *dbus.Message, e *dbus.Error) { s.reply(m, dbus.TypeError, e.Name, e.Body) }

// reply answers a call, if an answer is expected.
func (s *Service) reply(m *dbus.Message, kind dbus.Type, name string, body []any) {
	if m.Flags&dbus.FlagNoReplyExpected != 0 {
		return
	}
	r := &dbus.Message{
		Type:  kind,
		Flags: dbus.FlagNoReplyExpected,
		Body:  body,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()),
			dbus.FieldDestination: m.Headers[dbus.FieldSender],
		},
	}
	if name != "" {
		r.Headers[dbus.FieldErrorName] = dbus.MakeVariant(name)
	}
	if len(body) > 0 {
		r.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	s.conn.Send(r, nil)
}
