// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"

	"github.com/godbus/dbus/v5"
)

// loginManager is logind's interface, which reports that the device goes to sleep.
const loginManager = "org.freedesktop.login1.Manager"

// watchSleep subscribes to logind's signal about sleep. Without logind, there is no signal.
func (s *service) watchSleep() {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	err := s.asks.AddMatchSignalContext(ctx, dbus.WithMatchSender("org.freedesktop.login1"),
		dbus.WithMatchInterface(loginManager), dbus.WithMatchMember("PrepareForSleep"))
	if err != nil {
		s.o.Log.Warn("the bus does not answer", "error", err)
	}
}

// sleep ends all claims, and refuses new ones, while the device goes to sleep.
func (s *service) sleep(on bool) {
	s.mu.Lock()
	s.asleep = on
	held := s.claim
	s.mu.Unlock()
	if on && held != nil {
		s.o.Log.Info("the device goes to sleep", "uid", held.by.uid)
		s.running.Go(func() {
			s.interrupt(held)
		})
	}
}
