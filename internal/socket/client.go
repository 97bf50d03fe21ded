// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
)

// ErrNoService is wrapped by the errors of a [Client] if no daemon answers.
var ErrNoService = errors.New("the faceauth daemon does not run")

// Client asks the daemon at a socket. It is safe for concurrent use.
type Client string

// Error is the daemon's refusal of a request: why it is not done.
type Error struct {
	Name    string // for example NoProfile; package words has a sentence for it
	Message string // what is to be said besides, or ""
	Wait    uint32 // seconds until the next try is allowed; 0 if not known
}

func (e *Error) Error() string { return words.English.Refusal(e.Name, e.Message, e.Wait) }

// silence is how long a daemon may send nothing: it may have to be started.
const silence = 30 * time.Second

// ask sends a request and returns the last answer without its first word. Tell is called with the
// words before it.
func (c Client) ask(ctx context.Context, tell func(word string), fields ...string) (string, error) {
	for _, f := range fields {
		if strings.ContainsAny(f, "\t\n") {
			return "", noUser
		}
	}
	path := string(c)
	if os.Geteuid() == 0 {
		path += ForRoot
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return "", fmt.Errorf("%w (%w); start it with: systemctl start faceauth.socket",
			ErrNoService, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// A daemon that refuses may do so, and end, before it reads.
	conn.Write([]byte(strings.Join(fields, "\t") + "\nask\n"))
	lines := bufio.NewScanner(conn)
	for conn.SetDeadline(time.Now().Add(silence)) == nil && lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "say":
			tell(rest)
		case "ok", "end":
			return rest, nil
		case "no":
			name, rest, _ := strings.Cut(rest, " ")
			wait, message, _ := strings.Cut(rest, " ")
			n, _ := strconv.ParseUint(wait, 10, 32)
			return "", &Error{name, message, uint32(n)}
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return "", fmt.Errorf(
		"%w any more: it ended during the request; try again, and if it ends again, read: "+
			"journalctl -u faceauth -u faceauth-key", ErrNoService)
}

// Verify verifies a user and returns the last word. An empty user means the caller. Tell is called
// with the earlier words.
func (c Client) Verify(ctx context.Context, user string, tell func(word string)) (string, error) {
	return c.ask(ctx, tell, "verify", user, "", "", "", "", "", "")
}

// Enroll enrols a user and returns the last word; only root may call it. More keeps the enrolled
// faces: for another look of the user, as with glasses. Mark is that of the account, or "": see
// [tablet.Attempt]. Tell is called with the earlier words.
func (c Client) Enroll(ctx context.Context, user, mark string, more bool,
	tell func(word string)) (string, error) {
	return c.ask(ctx, tell, "enroll", user, mark, strconv.FormatBool(more))
}

// data asks for data.
func data[T any](ctx context.Context, c Client, fields ...string) (x T, err error) {
	answer, err := c.ask(ctx, func(string) {}, fields...)
	if err == nil {
		err = json.Unmarshal([]byte(answer), &x)
	}
	return x, err
}

// Status returns the public part of a user's profile. An empty user means the caller.
func (c Client) Status(ctx context.Context, user string) (tablet.Status, error) {
	return data[tablet.Status](ctx, c, "status", user)
}

// History returns the latest attempts to log in as a user, oldest first. An empty user means the
// caller.
func (c Client) History(ctx context.Context, user string) ([]tablet.Event, error) {
	return data[[]tablet.Event](ctx, c, "history", user)
}

// Undo removes the faces of a user that were learned after a time, and returns their number.
func (c Client) Undo(ctx context.Context, user string, since time.Time) (faces int, err error) {
	return data[int](ctx, c, "undo", user, strconv.FormatInt(since.Unix(), 10))
}

// Forget removes the profile of a user.
func (c Client) Forget(ctx context.Context, user string) error {
	_, err := data[bool](ctx, c, "forget", user)
	return err
}
