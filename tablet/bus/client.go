// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/faceauth/faceauth/tablet"
	"github.com/godbus/dbus/v5"
)

// ErrNoService is wrapped by the errors of a [Client] if no daemon answers.
var ErrNoService = errors.New("the faceauth daemon does not run")

// Client calls the daemon. One goroutine may use it at a time. [Dial] makes one; close it.
type Client struct {
	conn    *dbus.Conn
	signals chan *dbus.Signal
	claimed bool // by Call, not by Verify or Enroll
}

// Dial connects to the system bus.
func Dial(ctx context.Context) (*Client, error) {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("connecting to the system bus: %w", err)
	}
	return NewClient(conn), nil
}

// NewClient returns a client on a connection, which it closes.
func NewClient(conn *dbus.Conn) *Client {
	c := &Client{conn: conn, signals: make(chan *dbus.Signal, 64)}
	conn.Signal(c.signals)
	return c
}

// Close ends the connection, and so its claim.
func (c *Client) Close() error { return c.conn.Close() }

// Error is the daemon's refusal of a request.
type Error struct {
	Name    string // for example org.faceauth.Error.NoProfile
	Message string
	Wait    uint32 // seconds until the next try is allowed; 0 if not known
}

func (e *Error) Error() string { return e.Message }

// call calls a method, and stores its results.
func (c *Client) call(ctx context.Context, method string, args, results []any) error {
	return c.ask(ctx, Interface, method, args, results)
}

// ask does the same as call for any interface.
func (c *Client) ask(ctx context.Context, of, method string, args, results []any) error {
	err := c.conn.Object(Name, Path).CallWithContext(ctx, of+"."+method, 0, args...).Store(results...)
	var failed dbus.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failed):
		return fmt.Errorf("asking the daemon: %w", err)
	case strings.HasPrefix(failed.Name, errorPrefix):
		e := &Error{Name: failed.Name, Message: failed.Error()}
		if len(failed.Body) > 1 {
			e.Wait, _ = failed.Body[1].(uint32)
		}
		return e
	case failed.Name == "org.freedesktop.DBus.Error.ServiceUnknown",
		failed.Name == "org.freedesktop.DBus.Error.NameHasNoOwner":
		return fmt.Errorf("%w; start it with: systemctl start faceauth", ErrNoService)
	case failed.Name == "org.freedesktop.DBus.Error.TimedOut": // of the bus, which has waited for the start
		return fmt.Errorf("%w, and does not start; read: journalctl -u faceauth -u faceauth-key", ErrNoService)
	case failed.Name == "org.freedesktop.DBus.Error.NoReply":
		return ended()
	}
	return fmt.Errorf("asking the daemon: %w", failed)
}

// ended returns the error for a daemon that ends before it answers.
func ended() error {
	return fmt.Errorf("%w any more: it ended during the request; try again, and if it ends again, read: journalctl -u "+
		"faceauth", ErrNoService)
}

// Call calls a method without results. After ClaimFor, Verify verifies the user of that claim.
func (c *Client) Call(ctx context.Context, method string, args ...any) error {
	err := c.call(ctx, method, args, nil)
	c.claimed = c.claimed || err == nil && method == "ClaimFor"
	return err
}

// Verify verifies a user and returns the last word. An empty user means the caller. Tell is called with the earlier
// words.
func (c *Client) Verify(ctx context.Context, user string, tell func(word string)) (string, error) {
	return c.run(ctx, user, "VerifyStart", nil, "VerifyStatus", tell)
}

// Enroll enrols a user and returns the last word. An empty user means the caller. Mark is that of the account, which
// only root can tell, or "": see [tablet.Authenticator.Account]. Tell is called with the earlier words.
func (c *Client) Enroll(ctx context.Context, user, mark string, tell func(word string)) (string, error) {
	return c.run(ctx, user, "EnrollStart", []any{mark}, "EnrollStatus", tell)
}

// EnrollRoot does the same also for root, whose face could become root by itself. Only root may call it.
func (c *Client) EnrollRoot(ctx context.Context, user, mark string, tell func(word string)) (string, error) {
	return c.run(ctx, user, "EnrollRootStart", []any{mark}, "EnrollStatus", tell)
}

// AddLook does the same as Enroll, and keeps the enrolled faces: for another look of the user, as with glasses.
func (c *Client) AddLook(ctx context.Context, user string, tell func(word string)) (string, error) {
	return c.run(ctx, user, "EnrollLookStart", nil, "EnrollStatus", tell)
}

// silence is how long a daemon may send nothing: longer than any step of an enrolment.
const silence = 90 * time.Second

// run claims the device, starts work, and waits for the last signal. It notices at once when the daemon ends.
func (c *Client) run(ctx context.Context, user, start string, args []any, status string, tell func(string)) (string,
	error) {
	owner := ownerChanged(Name)
	if err := c.conn.AddMatchSignalContext(ctx, owner...); err != nil {
		return "", fmt.Errorf("asking the bus: %w", err)
	}
	defer c.conn.RemoveMatchSignalContext(context.WithoutCancel(ctx), owner...)
	if !c.claimed {
		if err := c.call(ctx, "Claim", []any{user}, nil); err != nil {
			return "", err
		}
	}
	c.claimed = false
	gone := false
	defer func() {
		if gone { // a call would start a new daemon without the claim
			return
		}
		if ctx.Err() != nil { // release the camera at once, without waiting for the answer
			c.conn.Object(Name, Path).Go(Interface+".Release", dbus.FlagNoReplyExpected, nil)
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		c.call(ctx, "Release", nil, nil) // if the daemon has ended, it has released the camera
	}()
	// Any program may send this one a signal that looks the same, so check the sender.
	var daemon string
	reply := c.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, Name)
	if err := reply.Store(&daemon); err != nil {
		return "", fmt.Errorf("asking the bus: %w", err)
	}
	// If the daemon ends meanwhile, the bus answers this.
	if err := c.call(ctx, start, args, nil); err != nil {
		gone = errors.Is(err, ErrNoService)
		return "", err
	}
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-c.conn.Context().Done():
			return "", fmt.Errorf("%w any more: the bus has closed the connection; try again", ErrNoService)
		case <-timer.C:
			return "", fmt.Errorf("%w any more: it has sent nothing for %v; try again", ErrNoService, silence)
		case sig := <-c.signals:
			switch {
			case sig == nil:
			case sig.Sender == "org.freedesktop.DBus" &&
				sig.Name == "org.freedesktop.DBus.NameOwnerChanged" && len(sig.Body) == 3 &&
				sig.Body[0] == Name && sig.Body[2] != daemon:
				gone = true
				return "", ended()
			case sig.Sender == daemon && sig.Name == Interface+"."+status && len(sig.Body) == 2:
				word, ok := sig.Body[0].(string)
				done, isBool := sig.Body[1].(bool)
				if !ok || !isBool {
					continue
				}
				if done {
					return word, nil
				}
				tell(word)
				timer.Reset(silence)
			}
		}
	}
}

// Status is the public part of a user's profile.
type Status struct {
	Enrolled time.Time `json:"enrolled"`
	Labelled uint32    `json:"labelled"`
	Learned  uint32    `json:"learned"`
	Drifted  bool      `json:"drifted"`
	Refusal  string    `json:"refusal"` // reason why no login may begin now, or ""
	Wait     uint32    `json:"wait"`    // seconds until a login may begin
}

// Status returns the public part of a user's profile. An empty user means the caller.
func (c *Client) Status(ctx context.Context, user string) (s Status, err error) {
	var m map[string]dbus.Variant
	if err := c.call(ctx, "Status", []any{user}, []any{&m}); err != nil {
		return s, err
	}
	var enrolled int64
	for key, to := range map[string]any{
		"enrolled": &enrolled, "labelled": &s.Labelled, "learned": &s.Learned,
		"drifted": &s.Drifted, "refusal": &s.Refusal, "wait": &s.Wait,
	} {
		if err := m[key].Store(to); err != nil {
			return s, fmt.Errorf("the daemon's status has no usable %s: %w", key, err)
		}
	}
	s.Enrolled = time.Unix(enrolled, 0).UTC()
	return s, nil
}

// History returns the latest attempts to log in as a user, oldest first. An empty user means the caller.
func (c *Client) History(ctx context.Context, user string) ([]tablet.Event, error) {
	var all []event
	if err := c.call(ctx, "History", []any{user}, []any{&all}); err != nil {
		return nil, err
	}
	events := make([]tablet.Event, len(all))
	for i, e := range all {
		events[i] = tablet.Event{At: time.Unix(e.At, 0).UTC(), Service: e.Service, Asker: e.Asker, Result: e.Result,
			Infrared: e.Infrared}
	}
	return events, nil
}

// Undo removes the faces of a user that were learned after a time, and returns their number.
func (c *Client) Undo(ctx context.Context, user string, since time.Time) (faces uint32, err error) {
	err = c.call(ctx, "Undo", []any{user, since.Unix()}, []any{&faces})
	return faces, err
}

// Forget removes the profile of a user.
func (c *Client) Forget(ctx context.Context, user string) error {
	return c.call(ctx, "Forget", []any{user}, nil)
}

// PasswordUsed reports that a user gave the password. Only root may call it.
func (c *Client) PasswordUsed(ctx context.Context, user string) error {
	return c.call(ctx, "PasswordUsed", []any{user}, nil)
}

// Health is the state of the daemon, for root.
type Health struct {
	Resident uint64 `json:"resident"` // memory, in bytes
	Sessions uint64 `json:"sessions"` // number of verifications since the start
}

// Health returns the state of the daemon. Only root may call it.
func (c *Client) Health(ctx context.Context) (h Health, err error) {
	var m map[string]dbus.Variant
	if err := c.call(ctx, "Health", nil, []any{&m}); err != nil {
		return h, err
	}
	err = errors.Join(m["resident"].Store(&h.Resident), m["sessions"].Store(&h.Sessions))
	return h, err
}
