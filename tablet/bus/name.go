// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

// name calls the bus about a name.
func (s *service) name(method, name string, flags dbus.Flags, more ...any) *dbus.Message {
	body := append([]any{name}, more...)
	m := &dbus.Message{Type: dbus.TypeMethodCall, Flags: flags, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(
			dbus.ObjectPath("/org/freedesktop/DBus")), dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldMember: dbus.MakeVariant(method), dbus.FieldDestination: dbus.MakeVariant("org.freedesktop.DBus"),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}}
	s.conn.Send(m, nil)
	return m
}

// requestName requests a name, and returns calls that came before the answer of the bus.
func (s *service) requestName(messages <-chan *dbus.Message, wanted string) (early []*dbus.Message, err error) {
	asked := s.name("RequestName", wanted, 0, uint32(dbus.NameFlagDoNotQueue)).Serial()
	timer := time.NewTimer(s.o.Patience)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil, fmt.Errorf("asking the bus for the name %s: it does not answer", wanted)
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case m, ok := <-messages:
			if !ok {
				return nil, ErrBus
			}
			if m.Type == dbus.TypeMethodCall && len(early) < messagesRead {
				early = append(early, m)
				continue
			}
			if serial, _ := m.Headers[dbus.FieldReplySerial].Value().(uint32); serial != asked {
				continue
			}
			if m.Type == dbus.TypeError {
				name, _ := m.Headers[dbus.FieldErrorName].Value().(string)
				return nil, fmt.Errorf("asking the bus for the name %s: %w; check that the policy file is installed",
					wanted, dbus.Error{Name: name, Body: m.Body})
			}
			if len(m.Body) != 1 || m.Body[0] != uint32(dbus.RequestNameReplyPrimaryOwner) {
				return early, ErrRunning
			}
			return early, nil
		}
	}
}

// leave releases the name, and answers the calls that came before.
func (s *service) leave() {
	s.name("ReleaseName", Name, dbus.FlagNoReplyExpected)
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		if s.desk.idle(time.Now()) >= 50*time.Millisecond && s.held() == nil {
			return
		}
	}
}
