// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/cli"
)

// One program at a time uses the folder of a device, for example an office that runs all the time. Other commands pass
// their requests to this program through a socket in the folder, which only the folder's owner can reach.
const askSocket = "ask"

// The longest time for a request, and its greatest length in bytes.
const (
	askPatience = 10 * time.Second
	askLongest  = 4096
)

// withdrawal is a request to take back the lessons of a device.
type withdrawal struct {
	Device string `json:"device"` // name or id
	Mute   bool   `json:"mute"`
}

// withdrawn is the answer to a withdrawal.
type withdrawn struct {
	Name  string `json:"name"`  // of the device
	Sent  bool   `json:"sent"`  // the fleet has it; otherwise it is sent when the fleet can be reached
	Error string `json:"error"` // why nothing was done; "" for success
	Code  int    `json:"code"`  // exit code of the command
}

// withdraw takes back the lessons of a device, given by name or id, and returns its name.
func (m *member) withdraw(w withdrawal) (name string, err error) {
	var found []fleet.Member
	for _, d := range m.device.Members() {
		if d.Name == w.Device || d.ID == w.Device {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return "", fail(badUsage, fmt.Errorf("%d devices of the fleet are called %q; give the id of one: "+
			"faceauth fleet devices", len(found), w.Device))
	}
	err = m.device.Withdraw(found[0].ID, w.Mute)
	return found[0].Name, fail(refused, err)
}

// listen answers requests of other commands until the returned function is called.
func (m *member) listen(ctx context.Context, folder string) (end func(), err error) {
	path := filepath.Join(folder, askSocket)
	// An earlier program may have been killed. The folder is this program's now.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	socket, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := socket.Accept()
			switch {
			case err == nil:
				work.Go(func() { m.answer(ctx, conn) })
			case !backoff.Wait(ctx, 100*time.Millisecond): // perhaps too many files were open
				return
			}
		}
	})
	return func() {
		cancel()
		socket.Close()
		work.Wait()
	}, nil
}

// answer answers one request.
func (m *member) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(askPatience))
	var w withdrawal
	if err := json.NewDecoder(io.LimitReader(conn, askLongest)).Decode(&w); err != nil {
		json.NewEncoder(conn).Encode(withdrawn{Error: "the request is damaged: " + err.Error(), Code: badUsage})
		return
	}
	name, err := m.withdraw(w)
	if err != nil {
		json.NewEncoder(conn).Encode(withdrawn{Error: err.Error(), Code: cmp.Or(cli.Code(err), failed)})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	json.NewEncoder(conn).Encode(withdrawn{Name: name, Sent: m.sent(ctx)})
}

// askRunning passes a request to the program that uses the folder of the device.
func askRunning(ctx context.Context, folder string, w withdrawal) (a withdrawn, err error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(folder, askSocket))
	if err != nil {
		return a, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(w); err != nil {
		return a, err
	}
	err = json.NewDecoder(io.LimitReader(conn, askLongest)).Decode(&a)
	return a, err
}
