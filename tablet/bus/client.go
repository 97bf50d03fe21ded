// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// ErrNoService is wrapped by the errors of a [Client] where no daemon answers.
var ErrNoService = errors.New("the faceauth daemon does not run")

// Client talks to the daemon. It is used by one goroutine at a time. Get one from [Dial], and close it.
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

// Close ends the connection, and so whatever was claimed.
func (c *Client) Close() error { return c.conn.Close() }

// Error is what the daemon refused a request with.
type Error struct {
	Name    string // org.faceauth.Error.NoProfile, for instance
	Message string
	Wait    uint32 // seconds until it may be asked again, where that is known
}

func (e *Error) Error() string { return e.Message }

// call calls a method, and stores what it returns.
func (c *Client) call(ctx context.Context, method string, args, results []any) error {
	return c.ask(ctx, Interface, method, args, results)
}

// ask is call for an interface.
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
	case failed.Name == "org.freedesktop.DBus.Error.ServiceUnknown" || failed.Name == "org.freedesktop.DBus.Error.NameHasNoOwner":
		return fmt.Errorf("%w; start it with: systemctl start faceauth", ErrNoService)
	}
	return fmt.Errorf("asking the daemon: %w", failed)
}

// Call calls a method that returns nothing. After ClaimFor, Verify looks for the user of that claim.
func (c *Client) Call(ctx context.Context, method string, args ...any) error {
	err := c.call(ctx, method, args, nil)
	c.claimed = c.claimed || err == nil && method == "ClaimFor"
	return err
}

// Verify has a user verified, the caller where it is empty, and returns the last word. Tell is told of the words
// before.
func (c *Client) Verify(ctx context.Context, user string, tell func(word string)) (string, error) {
	return c.run(ctx, user, "Verify", tell)
}

// Enroll has a user enrolled, the caller where it is empty, and returns the last word. Tell is told of the words
// before.
func (c *Client) Enroll(ctx context.Context, user string, tell func(word string)) (string, error) {
	return c.run(ctx, user, "Enroll", tell)
}

// silence is how long a daemon may say nothing: more than any step of an enrolment takes.
const silence = 90 * time.Second

// run claims the device, starts something, and waits for the last signal. It notices at once when the daemon goes.
func (c *Client) run(ctx context.Context, user, what string, tell func(word string)) (string, error) {
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
		if gone { // the bus would start another one, to be told what it does not know
			return
		}
		if ctx.Err() != nil { // the camera is released at once, and nobody waits for the answer
			c.conn.Object(Name, Path).Go(Interface+".Release", dbus.FlagNoReplyExpected, nil)
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		c.call(ctx, "Release", nil, nil) // a daemon that has gone has released it
	}()
	// Anybody may send this program a signal that looks the same.
	var daemon string
	if err := c.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, Name).Store(&daemon); err != nil {
		return "", fmt.Errorf("asking the bus: %w", err)
	}
	// A daemon that goes meanwhile does not answer this: the bus does.
	if err := c.call(ctx, what+"Start", nil, nil); err != nil {
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
			return "", fmt.Errorf("%w any more: it has not said anything for %v; try again", ErrNoService, silence)
		case sig := <-c.signals:
			switch {
			case sig == nil:
			case sig.Sender == "org.freedesktop.DBus" && sig.Name == "org.freedesktop.DBus.NameOwnerChanged" && len(sig.Body) == 3 &&
				sig.Body[0] == Name && sig.Body[2] != daemon:
				gone = true
				return "", fmt.Errorf("%w any more: it ended while it looked; try again, and if it ends again, see: journalctl -u faceauth", ErrNoService)
			case sig.Sender == daemon && sig.Name == Interface+"."+what+"Status" && len(sig.Body) == 2:
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

// Status is what the daemon tells of a user's profile.
type Status struct {
	Enrolled time.Time `json:"enrolled"`
	Labelled uint32    `json:"labelled"`
	Learned  uint32    `json:"learned"`
	Frozen   bool      `json:"frozen"`
	Drifted  bool      `json:"drifted"`
	Refusal  string    `json:"refusal"` // why no login may begin now, or ""
	Wait     uint32    `json:"wait"`    // seconds until one may
	// Fleet is about the person of a fleet whom the account follows; nil where it follows nobody.
	Fleet *Following `json:"fleet,omitempty"`
}

// Status returns what may be told of a user's profile, the caller's where it is empty.
func (c *Client) Status(ctx context.Context, user string) (s Status, err error) {
	var m map[string]dbus.Variant
	if err := c.call(ctx, "Status", []any{user}, []any{&m}); err != nil {
		return s, err
	}
	var enrolled int64
	var fleet map[string]dbus.Variant
	for key, to := range map[string]any{
		"enrolled": &enrolled, "labelled": &s.Labelled, "learned": &s.Learned, "frozen": &s.Frozen, "drifted": &s.Drifted,
		"refusal": &s.Refusal, "wait": &s.Wait,
		"fleet": &fleet,
	} {
		if err := m[key].Store(to); err != nil {
			return s, fmt.Errorf("the daemon's status has no usable %s: %w", key, err)
		}
	}
	s.Enrolled = time.Unix(enrolled, 0).UTC()
	s.Fleet, err = readFollowing(fleet)
	return s, err
}

// Undo takes back the faces learned of a user after a time, and returns how many faces that are.
func (c *Client) Undo(ctx context.Context, user string, since time.Time) (faces uint32, err error) {
	err = c.call(ctx, "Undo", []any{user, since.Unix()}, []any{&faces})
	return faces, err
}

// Freeze stops learning for a user, or lets it go on.
func (c *Client) Freeze(ctx context.Context, user string, on bool) error {
	return c.call(ctx, "Freeze", []any{user, on}, nil)
}

// Follow has the account of a user follow a person of a fleet, by name or number, or nobody where person is empty.
// With share the faces that this device enrols become the fleet's.
func (c *Client) Follow(ctx context.Context, user, person string, share bool) error {
	return c.call(ctx, "Follow", []any{user, person, share}, nil)
}

// Forget removes the profile of a user.
func (c *Client) Forget(ctx context.Context, user string) error {
	return c.call(ctx, "Forget", []any{user}, nil)
}

// Users returns who has a profile.
func (c *Client) Users(ctx context.Context) (users []string, err error) {
	err = c.call(ctx, "Users", nil, []any{&users})
	return users, err
}

// PasswordUsed says that a user gave the password. Only root may.
func (c *Client) PasswordUsed(ctx context.Context, user string) error {
	return c.call(ctx, "PasswordUsed", []any{user}, nil)
}

// Health is what the daemon tells root of itself.
type Health struct {
	Resident uint64 `json:"resident"` // memory, in bytes
	Sessions uint64 `json:"sessions"` // verifications since it started
}

// Health returns what the daemon tells root of itself.
func (c *Client) Health(ctx context.Context) (h Health, err error) {
	var m map[string]dbus.Variant
	if err := c.call(ctx, "Health", nil, []any{&m}); err != nil {
		return h, err
	}
	if err := m["resident"].Store(&h.Resident); err != nil {
		return h, err
	}
	return h, m["sessions"].Store(&h.Sessions)
}
