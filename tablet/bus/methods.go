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
	call    func(s *service, by caller, args []any) ([]any, *dbus.Error)
}

const propertiesInterface = "org.freedesktop.DBus.Properties"

// does makes a method of a function. After the service and the caller it takes the arguments of the method; before an
// error of type *dbus.Error it returns the results.
func does(f any) method {
	v := reflect.ValueOf(f)
	t := v.Type()
	var m method
	for i := 2; i < t.NumIn(); i++ {
		m.in += dbus.SignatureOfType(t.In(i)).String()
	}
	last := t.NumOut() - 1
	for i := range last {
		m.out += dbus.SignatureOfType(t.Out(i)).String()
	}
	m.call = func(s *service, by caller, args []any) (results []any, _ *dbus.Error) {
		given := []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(by)}
		for i, x := range args {
			arg := reflect.New(t.In(i + 2))
			if err := dbus.Store([]any{x}, arg.Interface()); err != nil { // the signature is right
				return nil, dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", []any{"an argument cannot be read"})
			}
			given = append(given, arg.Elem())
		}
		all := v.Call(given)
		for _, x := range all[:last] {
			results = append(results, x.Interface())
		}
		return results, all[last].Interface().(*dbus.Error)
	}
	return m
}

// object is the object at a path: its interfaces, and the default one for calls without an interface.
type object struct {
	named      string
	interfaces map[string]map[string]method
}

// newObject returns an object with its own interface and the standard interfaces.
func newObject(named, xml string, methods map[string]method, properties func(*service) map[string]dbus.Variant) object {
	of := func(s *service, name string) map[string]dbus.Variant {
		if name != named {
			return map[string]dbus.Variant{}
		}
		return properties(s)
	}
	return object{named, map[string]map[string]method{
		named: methods,
		"org.freedesktop.DBus.Introspectable": {
			"Introspect": does(func(*service, caller) (string, *dbus.Error) { return xml, nil }),
		},
		"org.freedesktop.DBus.Peer": {"Ping": does(func(*service, caller) *dbus.Error { return nil })},
		propertiesInterface: {
			"Get": does(func(s *service, _ caller, named, name string) (dbus.Variant, *dbus.Error) {
				v, ok := of(s, named)[name]
				if !ok {
					return v, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty",
						[]any{"there is no such property"})
				}
				return v, nil
			}),
			"GetAll": does(func(s *service, _ caller, named string) (map[string]dbus.Variant, *dbus.Error) {
				return of(s, named), nil
			}),
			"Set": does(func(*service, caller, string, string, dbus.Variant) *dbus.Error {
				return dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"no property can be written"})
			}),
		},
	}}
}

// device is the object of [Interface].
var device = newObject(Interface, XML, methods, func(s *service) map[string]dbus.Variant {
	return map[string]dbus.Variant{"EnrollStages": dbus.MakeVariant(uint32(s.a.Stages()))}
})

// methods are the methods of [Interface].
var methods = map[string]method{
	"Claim": does(func(s *service, by caller, user string) *dbus.Error {
		return s.claimSelf(by, user)
	}),
	"ClaimFor":    does((*service).claimAs),
	"Release":     does((*service).release),
	"VerifyStart": does(func(s *service, by caller) *dbus.Error { return s.verifyStart(by, nil) }),
	"Prepare":     does(func(s *service, by caller) *dbus.Error { return s.verifyStart(by, make(chan struct{})) }),
	"Ask":         does((*service).ask),
	"VerifyStop":  does((*service).stop),
	"EnrollStart": does(func(s *service, by caller, mark string) *dbus.Error {
		return s.enrollStart(by, false, false, mark)
	}),
	"EnrollRootStart": does(func(s *service, by caller, mark string) *dbus.Error {
		return s.enrollStart(by, true, false, mark)
	}),
	"EnrollLookStart": does(func(s *service, by caller) *dbus.Error { return s.enrollStart(by, true, true, "") }),
	"EnrollStop":      does((*service).stop),
	"Status":          does((*service).status),
	"History":         does((*service).history),
	"Undo":            does((*service).undo),
	"Forget":          does((*service).forget),
	"PasswordUsed": does(func(s *service, by caller, user string) *dbus.Error {
		return s.passwordUsed(by, user, by.uid, "")
	}),
	"PasswordUsedFor": does((*service).passwordUsed),
	"Health":          does((*service).health),
}

// answer answers a call.
func (s *service) answer(by caller, m *dbus.Message) {
	path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	named, _ := m.Headers[dbus.FieldInterface].Value().(string)
	member, _ := m.Headers[dbus.FieldMember].Value().(string)
	signature, _ := m.Headers[dbus.FieldSignature].Value().(dbus.Signature)
	unknown := func(name, why string) { s.fail(m, dbus.NewError("org.freedesktop.DBus.Error."+name, []any{why})) }
	object := device
	if path != Path {
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
	if named == Interface && s.o.Broken != nil {
		s.fail(m, failure(internal, "nobody is recognised, because the store cannot be used: "+s.o.Broken.Error()))
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
func (s *service) fail(m *dbus.Message, e *dbus.Error) { s.reply(m, dbus.TypeError, e.Name, e.Body) }

// reply answers a call, if an answer is expected.
func (s *service) reply(m *dbus.Message, kind dbus.Type, name string, body []any) {
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
