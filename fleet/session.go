// SPDX-License-Identifier: Apache-2.0

package fleet

import (
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

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/backoff"
)

// Session is the part that a program takes in a fleet while it runs.
type Session struct {
	*Part
	Ended <-chan error // gets the error of [Device.Run], and is closed after it

	stop, deaf func()
}

// Enter opens the folder of a device, and keeps the device in step with the server until [Session.Close]. Meanwhile
// other programs can ask this one ([AskWithdraw]). Tell of the settings also gets the sentences of the [Part]. The
// errors are those of [Open] and [NewPart].
func Enter(ctx context.Context, folder string, s Settings) (*Session, error) {
	d, err := Open(folder, s)
	if err != nil {
		return nil, err
	}
	part, err := NewPart(d, "", d.s.Tell)
	if err != nil {
		d.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	x := &Session{Part: part, Ended: ended, stop: stop}
	go func() {
		defer close(ended)
		ended <- d.Run(ctx, d.Dial)
	}()
	if x.deaf, err = x.listen(ctx, folder); err != nil {
		x.deaf = func() {}
		d.s.Tell("other commands cannot ask this one while it runs: " + err.Error())
	}
	return x, nil
}

// Close disconnects, and closes the device. What waits is sent next time. The error is that of [Device.Run], if nobody
// has received it, or of the disk.
func (s *Session) Close() error {
	s.deaf()
	s.stop()
	return errors.Join(<-s.Ended, s.Device.Close())
}

// InStep waits until the device and the fleet have the same state and the device has all keys, or reports false when
// ctx ends.
func (s *Session) InStep(ctx context.Context) bool {
	for {
		if x := s.Device.State(); x.InStep && x.Keys == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.Device.Changed():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Sent waits until the fleet has what the device says, or reports false when ctx ends.
func (s *Session) Sent(ctx context.Context) bool {
	for s.Device.State().Waiting > 0 {
		if !backoff.Wait(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return true
}

// Follow brings an open gallery and the fleet in line whenever either changes, and saves the gallery. It calls took
// after each exchange that changed something, and reached when the server is reached or lost. It returns nil when ctx
// ends; the errors are those of the device and the gallery.
func (s *Session) Follow(ctx context.Context, g *gallery.Gallery, took func(Reconciled), reached func(bool)) error {
	connected, news := false, true
	for {
		if err := g.Update(); err != nil {
			return err
		}
		if news || g.News().Changed {
			x, err := s.Device.KeepOpen(g, Reconciling{Publish: true})
			if err != nil {
				return err
			}
			s.tellRefused(x.Refused)
			if x.Took+x.Published > 0 {
				took(x)
			}
		}
		news = false
		if now := s.Device.State().Connected; now != connected {
			connected = now
			reached(now)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.Ended:
			return err
		case <-s.Device.Changed():
			news = true
		case <-time.After(time.Second):
		}
	}
}

// Withdraw takes back the lessons of a device, given by name or id, and returns its name. The error wraps [ErrNobody],
// or is that of [Device.Withdraw].
func (s *Session) Withdraw(device string, mute bool) (name string, err error) {
	var found []Member
	for _, m := range s.Device.Members() {
		if m.Name == device || m.ID == device {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%w: %d devices of the fleet are called %q; give the id of one: faceauth fleet devices",
			ErrNobody, len(found), device)
	}
	return found[0].Name, s.Device.Withdraw(found[0].ID, mute)
}

// One program at a time uses the folder of a device, for example an office that runs all the time. Other programs pass
// their requests to it through a socket in the folder, which only the folder's owner can reach: JSON of an asking, and
// of an [Answer].
const askSocket = "ask"

// The longest time for a request, the part of it for sending, and its greatest length in bytes.
const (
	askPatience = 10 * time.Second
	askSending  = 5 * time.Second
	askLongest  = 4096
)

// asking is a request to take back the lessons of a device.
type asking struct {
	Device string `json:"device"` // name or id
	Mute   bool   `json:"mute"`
}

// Answer is what the program that uses a folder has done.
type Answer struct {
	Name   string `json:"name"`             // of the device
	Sent   bool   `json:"sent"`             // the fleet has it; otherwise it is sent when the fleet can be reached
	Error  string `json:"error,omitempty"`  // why nothing was done; "" for success
	Nobody bool   `json:"nobody,omitempty"` // because of [ErrNobody]
}

// listen answers requests of other programs until the returned function is called.
func (s *Session) listen(ctx context.Context, folder string) (end func(), err error) {
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
				work.Go(func() { s.answer(ctx, conn) })
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
func (s *Session) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(askPatience))
	var q asking
	var a Answer
	err := json.NewDecoder(io.LimitReader(conn, askLongest)).Decode(&q)
	if err != nil {
		err = fmt.Errorf("the request is damaged: %w", err)
	} else {
		a.Name, err = s.Withdraw(q.Device, q.Mute)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, askSending)
		defer cancel()
		a.Sent = s.Sent(ctx)
	} else {
		a = Answer{Error: err.Error(), Nobody: errors.Is(err, ErrNobody)}
	}
	json.NewEncoder(conn).Encode(a)
}

// AskWithdraw lets the program that uses a folder take back the lessons of a device, as [Session.Withdraw] does.
func AskWithdraw(ctx context.Context, folder, device string, mute bool) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(folder, askSocket))
	if err != nil {
		return a, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(asking{device, mute}); err != nil {
		return a, err
	}
	err = json.NewDecoder(io.LimitReader(conn, askLongest)).Decode(&a)
	return a, err
}
