// SPDX-License-Identifier: Apache-2.0

// Package display asks whether there is a display for a window.
package display

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrNone is wrapped by the errors of [Answers].
var ErrNone = errors.New("no display to open a window on")

// Answers returns nil if the display named by the environment answers. Otherwise the error wraps [ErrNone].
func Answers() error {
	try := func(network, address string) bool {
		c, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if name := os.Getenv("WAYLAND_DISPLAY"); name != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), name)
		}
		if try("unix", name) {
			return nil
		}
	}
	display := os.Getenv("DISPLAY")
	if display == "" {
		return fmt.Errorf("%w: neither DISPLAY nor WAYLAND_DISPLAY is set", ErrNone)
	}
	host, number, ok := strings.Cut(display, ":")
	number, _, _ = strings.Cut(number, ".")
	if ok && host == "" && try("unix", "/tmp/.X11-unix/X"+number) {
		return nil
	}
	var port int
	if _, err := fmt.Sscanf(number, "%d", &port); ok && host != "" && err == nil && port >= 0 && port < 60000 &&
		try("tcp", net.JoinHostPort(host, fmt.Sprint(6000+port))) {
		return nil
	}
	return fmt.Errorf("%w: DISPLAY=%s does not answer", ErrNone, display)
}
