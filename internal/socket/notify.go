// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Notifiers is the folder in which each user's manager has a socket for faceauth login notify, by
// the user's number.
const Notifiers = "/run/faceauth-notify"

// Notice is what the person at the device is told of a request from outside the sessions.
type Notice struct {
	Service string // of PAM
	Command string // with its arguments
	From    string // where it runs; its user may have chosen the name
}

// Lines of a notifier and of the daemon.
const (
	Shown = "shown"  // the notice is on the screen
	NotMe = "not-me" // the person did not ask
)

// errObjected is why the context of a claim ends when the person at the device did not ask.
var errObjected = errors.New("the person at the device did not ask")

// noNotifier is the refusal of a request of which nobody can be told.
var noNotifier = &Error{Name: "NoNotifier"}

// notify tells a user of a request, and returns when this is on the screen. While it stands there,
// what the person answers, or the end of the notifier, ends the claim. Over ends the notice, with
// the last word.
func (s *service) notify(c *claim, uid uint32, n Notice) (over func(word string), err error) {
	conn, err := dialNotifier(c.ctx, filepath.Join(s.o.Notifiers, fmt.Sprint(uid)), uid)
	if err != nil {
		s.o.Log.Warn("nobody is told of a request from outside the sessions", "uid", uid, "error",
			err)
		return nil, noNotifier
	}
	stop := context.AfterFunc(c.ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	lines := bufio.NewScanner(conn)
	conn.SetReadDeadline(time.Now().Add(noticePatience))
	fmt.Fprintf(conn, "%s\t%s\t%s\n", n.Service, n.Command, n.From)
	if !lines.Scan() || lines.Text() != Shown {
		stop()
		conn.Close()
		s.o.Log.Warn("nobody is told of a request from outside the sessions", "uid", uid, "error",
			lines.Err())
		return nil, noNotifier
	}
	conn.SetReadDeadline(time.Time{})
	s.running.Go(func() { // ends with the connection
		why := errors.New("the notifier has ended")
		if lines.Scan() && lines.Text() == NotMe {
			why = errObjected
		}
		c.cancel(why)
	})
	return func(word string) {
		stop()
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		fmt.Fprintln(conn, word)
		conn.Close()
	}, nil
}

// noticePatience is the longest time until a notice is on the screen: the notifier may have to be
// started.
const noticePatience = 10 * time.Second

// dialNotifier connects to the notifier of a user: anybody may make a socket of that name, but
// nobody of that number.
func dialNotifier(ctx context.Context, path string, uid uint32) (*net.UnixConn, error) {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	any, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	conn := any.(*net.UnixConn)
	peer, err := Peer(conn)
	if err == nil && peer.Uid != uid {
		err = fmt.Errorf("the socket is that of user %d", peer.Uid)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// Peer returns who is at the other end of a connection, as the kernel knows it.
func Peer(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	err = control(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	return peer, err
}

// ReadNotice reads the request of a connection to a notifier.
func ReadNotice(lines *bufio.Scanner) (n Notice, err error) {
	if !lines.Scan() {
		return n, errors.Join(lines.Err(), errors.New("nothing is asked"))
	}
	f := strings.Split(lines.Text(), "\t")
	if len(f) != 3 {
		return n, errors.New("the daemon is of another version")
	}
	service, command, from := f[0], f[1], f[2]
	return Notice{Service: service, Command: command, From: from}, nil
}
