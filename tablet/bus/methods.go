// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"cmp"
	"reflect"

	"github.com/godbus/dbus/v5"
)

// method is a method of an interface.
type method struct {
	in, out string // signatures
	call    func(s *Service, by caller, args []any) ([]any, *dbus.Error)
	after   func(s *Service, by caller) // called after an answer without error
}

const propertiesInterface = "org.freedesktop.DBus.Properties"

// types returns the signature of Go types.
func types(all ...reflect.Type) (signature string) {
	for _, t := range all {
		signature += dbus.SignatureOfType(t).String()
	}
	return signature
}

// act0 makes a method without arguments and results, act1 one with an argument, and so on.
func act0(f func(*Service, caller) *dbus.Error) method {
	return method{call: func(s *Service, by caller, _ []any) ([]any, *dbus.Error) { return nil, f(s, by) }}
}

func act1[A any](f func(*Service, caller, A) *dbus.Error) method {
	return method{in: types(reflect.TypeFor[A]()), call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		return nil, f(s, by, args[0].(A))
	}}
}

func act2[A, B any](f func(*Service, caller, A, B) *dbus.Error) method {
	in := types(reflect.TypeFor[A](), reflect.TypeFor[B]())
	return method{in: in, call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		return nil, f(s, by, args[0].(A), args[1].(B))
	}}
}

func act3[A, B, C any](f func(*Service, caller, A, B, C) *dbus.Error) method {
	in := types(reflect.TypeFor[A](), reflect.TypeFor[B](), reflect.TypeFor[C]())
	return method{in: in, call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		return nil, f(s, by, args[0].(A), args[1].(B), args[2].(C))
	}}
}

// ask0 makes a method with a result and no arguments, ask1 one with an argument, and so on.
func ask0[R any](f func(*Service, caller) (R, *dbus.Error)) method {
	out := types(reflect.TypeFor[R]())
	return method{out: out, call: func(s *Service, by caller, _ []any) ([]any, *dbus.Error) {
		x, failed := f(s, by)
		return []any{x}, failed
	}}
}

func ask1[A, R any](f func(*Service, caller, A) (R, *dbus.Error)) method {
	in, out := types(reflect.TypeFor[A]()), types(reflect.TypeFor[R]())
	return method{in: in, out: out, call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		x, failed := f(s, by, args[0].(A))
		return []any{x}, failed
	}}
}

func ask2[A, B, R any](f func(*Service, caller, A, B) (R, *dbus.Error)) method {
	in, out := types(reflect.TypeFor[A](), reflect.TypeFor[B]()), types(reflect.TypeFor[R]())
	return method{in: in, out: out, call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		x, failed := f(s, by, args[0].(A), args[1].(B))
		return []any{x}, failed
	}}
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
			"Introspect": ask0(func(*Service, caller) (string, *dbus.Error) { return xml, nil }),
		},
		"org.freedesktop.DBus.Peer": {"Ping": act0(func(*Service, caller) *dbus.Error { return nil })},
		propertiesInterface: {
			"Get": ask2(func(s *Service, _ caller, named, name string) (dbus.Variant, *dbus.Error) {
				v, ok := of(s, named)[name]
				if !ok {
					return v, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty",
						[]any{"there is no such property"})
				}
				return v, nil
			}),
			"GetAll": ask1(func(s *Service, _ caller, named string) (map[string]dbus.Variant, *dbus.Error) {
				return of(s, named), nil
			}),
			"Set": act3(func(*Service, caller, string, string, dbus.Variant) *dbus.Error {
				return dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"no property can be written"})
			}),
		},
	}}
}

// device is the object of [Interface] and [FleetInterface].
var device = newDevice()

func newDevice() object {
	o := newObject(Interface, XML, methods, func(s *Service) map[string]dbus.Variant {
		return map[string]dbus.Variant{"EnrollStages": dbus.MakeVariant(uint32(s.a.Stages()))}
	})
	o.interfaces[FleetInterface] = fleetMethods
	return o
}

// methods are the methods of [Interface].
var methods = map[string]method{
	"Claim": act1(func(s *Service, by caller, user string) *dbus.Error { return s.claimSelf(by, user, Interface) }),
	"ClaimFor": {in: "susss", call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		return nil, s.claimAs(by, args[0].(string), args[1].(uint32), args[2].(string), args[3].(string),
			args[4].(string))
	}},
	"Release":         act0(func(s *Service, by caller) *dbus.Error { return s.release(by, Interface) }),
	"VerifyStart":     act0(func(s *Service, by caller) *dbus.Error { return s.verifyStart(by, Interface) }),
	"Confirm":         act0((*Service).confirm),
	"VerifyStop":      act0((*Service).stop),
	"EnrollStart":     act0(func(s *Service, by caller) *dbus.Error { return s.enrollStart(by, false, false) }),
	"EnrollRootStart": act0(func(s *Service, by caller) *dbus.Error { return s.enrollStart(by, true, false) }),
	"EnrollLookStart": act0(func(s *Service, by caller) *dbus.Error { return s.enrollStart(by, true, true) }),
	"EnrollStop":      act0((*Service).stop),
	"Status":          ask1((*Service).status),
	"History":         ask1((*Service).history),
	"Undo":            ask2((*Service).undo),
	"Freeze":          act2((*Service).freeze),
	"Forget":          act1((*Service).forget),
	"Follow":          act3((*Service).follow),
	"Users":           ask0((*Service).users),
	"PasswordUsed": act1(func(s *Service, by caller, user string) *dbus.Error {
		return s.passwordUsed(by, user, by.uid, "", false)
	}),
	"PasswordUsedFor": {in: "susb", call: func(s *Service, by caller, args []any) ([]any, *dbus.Error) {
		return nil, s.passwordUsed(by, args[0].(string), args[1].(uint32), args[2].(string), args[3].(bool))
	}},
	"Health": ask0((*Service).health),
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
	unknown := func(name, why string) { s.fail(m, dbus.NewError("org.freedesktop.DBus.Error."+name, []any{why})) }
	object, ok := s.object(path)
	if !ok {
		unknown("UnknownObject", "the object is "+string(Path))
		return
	}
	named = cmp.Or(named, object.named)
	of, ok := object.interfaces[named]
	if !ok {
		unknown("UnknownInterface", "the object has no interface of that name")
		return
	}
	f, ok := of[member]
	if !ok {
		unknown("UnknownMethod", "the interface has no method of that name")
		return
	}
	if signature.String() != f.in {
		unknown("InvalidArgs", "the method takes arguments of the types "+f.in)
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
