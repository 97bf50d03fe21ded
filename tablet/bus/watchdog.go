// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/faceauth/faceauth/internal/backoff"
)

// watchdog tells the service manager, at half the requested interval, that the bus still answers (sd_notify(3)). It
// returns at once if no interval is requested. It asks the bus for its ID, because everybody may do this; not everybody
// may ping it.
func (s *service) watchdog(ctx context.Context) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	every := interval / 2
	for {
		call, cancel := context.WithTimeout(ctx, every)
		err := s.asks.BusObject().CallWithContext(call, "org.freedesktop.DBus.GetId", 0).Err
		cancel()
		if err == nil {
			_, err = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		if err != nil && ctx.Err() == nil {
			s.o.Log.Warn("the watchdog is not told", "error", err)
		}
		if !backoff.Wait(ctx, every) {
			return
		}
	}
}
