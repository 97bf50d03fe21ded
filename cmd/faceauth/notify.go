// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
	"github.com/godbus/dbus/v5"
	"github.com/spf13/cobra"
)

// notify returns the command that shows one request on the desktop. The user's manager starts it
// for each connection to its socket (faceauth-notify.socket), which is its standard input.
func notify() *cobra.Command {
	return &cobra.Command{
		Use: "notify", Short: "show on the desktop that a face is asked for; systemd starts it",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conn, err := net.FileConn(os.Stdin)
			if err != nil {
				return fmt.Errorf("this is for systemd, whose faceauth-notify.socket starts it: %w",
					err)
			}
			defer conn.Close()
			at, ok := conn.(*net.UnixConn)
			if !ok {
				return errors.New("the standard input is no Unix socket")
			}
			peer, err := socket.Peer(at)
			if err != nil {
				return err
			}
			if daemon, err := user.Lookup("faceauth"); peer.Uid != 0 &&
				(err != nil || daemon.Uid != strconv.FormatUint(uint64(peer.Uid), 10)) {
				return fmt.Errorf("user %d is not the daemon", peer.Uid)
			}
			bus, err := dbus.ConnectSessionBus(dbus.WithContext(c.Context()))
			if err != nil {
				return fmt.Errorf("connecting to the session bus: %w", err)
			}
			defer bus.Close()
			return showNotice(c.Context(), bus, at, words.Of(os.Getenv))
		},
	}
}

// showNotice shows a request by org.freedesktop.Notifications, tells the daemon whether the person
// answers Not me, and then what came of it.
func showNotice(ctx context.Context, bus *dbus.Conn, daemon net.Conn, in words.Language) error {
	const name, path = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
	say := func(word string, args ...any) string {
		s, _ := in.Say(word, args...)
		return s
	}
	lines := bufio.NewScanner(daemon)
	n, err := socket.ReadNotice(lines)
	if err != nil {
		return err
	}
	signals := make(chan *dbus.Signal, 16)
	bus.Signal(signals)
	err = bus.AddMatchSignal(dbus.WithMatchInterface(name), dbus.WithMatchMember("ActionInvoked"))
	if err != nil {
		return err
	}
	var id uint32
	show := func(title, text string, actions ...string) error {
		const critical = byte(2) // stays until it is answered, also while others are held back
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(critical)}
		return bus.Object(name, path).CallWithContext(ctx, name+".Notify", 0, "faceauth", id,
			"dialog-password", title, text, actions, hints, int32(0)).Store(&id)
	}
	about := say("notice-from", n.Command, n.From)
	err = show(say("notice-asks", n.Service), about, socket.NotMe, say("notice-not-me"))
	if err != nil {
		return fmt.Errorf("showing a notification: %w", err)
	}
	if _, err := fmt.Fprintln(daemon, socket.Shown); err != nil {
		return err
	}
	ended := make(chan string, 1)
	go func() { // ends with the connection
		lines.Scan()
		ended <- lines.Text()
	}()
	for {
		select {
		case word := <-ended:
			if word == string(tablet.Match) {
				return show(say("notice-let-in", n.Service), about)
			}
			return bus.Object(name, path).CallWithContext(ctx, name+".CloseNotification", 0, id).Err
		case s := <-signals:
			if len(s.Body) == 2 && s.Body[0] == id && s.Body[1] == socket.NotMe {
				fmt.Fprintln(daemon, socket.NotMe)
			}
		}
	}
}
