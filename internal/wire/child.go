// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// LineVariable is the environment variable of a child with the number of the file to which the
// child sends the descriptor of a seccomp listener. With the listener, the program makes the
// child's connections.
const LineVariable = "FACEAUTH_EYE_LINE"

// Peer returns the user at the other end of a Unix socket.
func Peer(conn net.Conn) (uid int, err error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	control := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	err = errors.Join(control, err)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
