// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Connect connects to the system bus for [Serve]. It reads in large pieces: package dbus alone needs five system calls
// per message, which is too slow under a flood of messages.
func Connect(ctx context.Context) (*dbus.Conn, error) {
	address := cmp.Or(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=/run/dbus/system_bus_socket")
	path, ok := strings.CutPrefix(address, "unix:path=")
	if !ok || strings.ContainsAny(path, ",;%") { // not a plain Unix socket
		conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("connecting to the system bus: %w", err)
		}
		return conn, nil
	}
	var d net.Dialer
	socket, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connecting to the system bus: %w", err)
	}
	conn, err := Over(ctx, socket, os.Getuid())
	if err != nil {
		return nil, fmt.Errorf("connecting to the system bus: %w", err)
	}
	return conn, nil
}

// Over returns a connection over a socket to a bus that knows the user at this end. It closes the socket.
func Over(ctx context.Context, socket net.Conn, uid int) (*dbus.Conn, error) {
	conn, err := dbus.NewConn(pieces{bufio.NewReaderSize(socket, 1<<16), socket}, dbus.WithContext(ctx))
	if err != nil {
		socket.Close()
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(uid))}); err != nil {
		conn.Close()
		return nil, err
	}
	if err := conn.Hello(); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// pieces is a connection that reads in large pieces.
type pieces struct {
	*bufio.Reader
	io.WriteCloser
}
