// SPDX-License-Identifier: Apache-2.0

// Package socket offers an authenticator to other programs on a Unix socket, and is the client to
// it.
//
// [Serve] answers until its context ends; a [Client] asks. A connection carries one request, a line
// of fields with tabs between them, and its answers, a line each. The end of the connection is the
// end of what was asked for.
//
//	verify USER ASKER SERVICE CHALLENGE MARK COMMAND FROM
//	                   look for a user, but tell and count nothing before a second line,
//	                   ask. CHALLENGE may be empty. Of root's PAM modules count the asking
//	                   user's number, the service, the account's mark, the command with its
//	                   arguments, and the unit and terminal where it runs, too
//	enroll USER MARK MORE            MORE is true to keep the enrolled faces
//	status USER, history USER, undo USER SECONDS, forget USER
//	password USER ASKER MARK PLACE   the password was given; PLACE is outside if it
//	                                 was outside the sessions
//
//	say WORD               what the person must do; behind asked-outside stands what was asked
//	                       from outside the sessions since the last login
//	end WORD               the result of verify and enroll
//	ok JSON                the result of the others
//	no NAME WAIT MESSAGE   a refusal; WAIT is the number of seconds until the next try is
//	                       allowed, or 0
//
// An empty line each second says that the daemon is there while the camera looks.
//
// # Who may do what
//
// The kernel tells who calls. Root may do everything. Others may verify themselves where they are
// at the device, see and undo what is kept of them, and forget it. Only root may enrol, and ask
// about other users.
package socket

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
	"golang.org/x/time/rate"
)

// Path is the socket of the daemon. Root has one of its own, with [ForRoot] behind it, which users
// cannot keep busy.
const (
	Path    = "/run/faceauth"
	ForRoot = "-root"
)

// Options of [Serve].
type Options struct {
	// audit: callers, requests and results; never a score or a face. Default none
	Log  *slog.Logger
	Idle time.Duration // Serve returns after this time without requests. Default never
	Bus  string        // address of the bus of logind and systemd. Default: the system bus
	// Notifiers is the folder of the sockets of notifiers. Default: the constant of that name.
	Notifiers string
	// Broken says why there is no authenticator, which is nil then: every request is refused with
	// it. Default: there is one.
	Broken error
}

// Listen returns the sockets of the service manager, and without them makes those at a path:
// everybody may connect to the first, and root to the second.
func Listen(path string) (all []*net.UnixListener, err error) {
	given, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("taking the sockets of the service manager: %w", err)
	}
	for _, l := range given {
		unix, ok := l.(*net.UnixListener)
		if !ok {
			return nil, fmt.Errorf("the service manager gives %v, which is no Unix socket",
				l.Addr())
		}
		all = append(all, unix)
	}
	if len(all) > 0 {
		return all, nil
	}
	for name, mode := range map[string]os.FileMode{path: 0o666, path + ForRoot: 0o600} {
		if s, err := os.Stat(name); err == nil && s.Mode().Type() == os.ModeSocket {
			os.Remove(name) // of a daemon that has ended: two cannot have the same store
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(name, mode); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Quotas of users other than root.
const (
	openPerUser       = 8   // connections at once
	openOfUsers       = 512 // of all users
	openOfRoot        = 256
	perSecond, atOnce = 20, 60 // requests
	usersKnown        = 1024   // whose requests are counted
	longestLine       = 4096   // bytes
	requestPatience   = 5 * time.Second
	patience          = 2 * time.Second // for answers of logind, systemd, or a source of users
	heartbeat         = time.Second
	longestBeat       = 10 * time.Second // between two signs of life for the service manager
)

// quota is what a user has asked for.
type quota struct {
	open    int
	rate    *rate.Limiter  // of requests
	told    rate.Sometimes // that they are too many
	refused rate.Sometimes // that one was refused
}

// service answers requests.
type service struct {
	a   *tablet.Authenticator
	o   Options
	ctx context.Context

	running sync.WaitGroup

	mu       sync.Mutex
	users    map[uint32]*quota
	requests uint64
	open     int       // connections
	last     time.Time // when the last one ended
	held     *claim    // who uses the camera, or nil
}

// Serve answers requests at sockets until ctx ends, or until there were none for some time; then it
// ends all work, and returns nil. It closes the sockets.
func Serve(ctx context.Context, at []*net.UnixListener, a *tablet.Authenticator, o Options) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Notifiers = cmp.Or(o.Notifiers, Notifiers)
	ctx, cancel := context.WithCancel(ctx)
	s := &service{a: a, o: o, ctx: ctx, users: make(map[uint32]*quota), last: time.Now()}
	defer s.running.Wait()
	defer cancel()
	for _, l := range at {
		context.AfterFunc(ctx, func() { l.Close() })
		s.running.Go(func() { s.accept(l) })
	}
	beat := longestBeat
	if o.Idle > 0 {
		beat = min(beat, o.Idle/4)
	}
	if watchdog, err := daemon.SdWatchdogEnabled(false); err == nil && watchdog > 0 {
		beat = min(beat, watchdog/2)
	}
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for state := daemon.SdNotifyReady; ; state = daemon.SdNotifyWatchdog {
		if _, err := daemon.SdNotify(false, state); err != nil {
			o.Log.Warn("the service manager is not told", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case now := <-beats.C:
			if s.idle(now) {
				o.Log.Info("nobody asks for anything")
				return nil
			}
		}
	}
}

// accept takes the requests at a socket until it is closed.
func (s *service) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
			s.take(conn)
		case s.ctx.Err() != nil:
			return
		default:
			s.o.Log.Warn("taking a request", "error", err) // too many open files, for example
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// idle reports whether there were no requests for a while.
func (s *service) idle(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Idle > 0 && s.open == 0 && now.Sub(s.last) >= s.o.Idle
}

// take answers the request of a connection, if its user has not too many.
func (s *service) take(conn *net.UnixConn) {
	c, err := called(conn)
	if err != nil || !s.admit(c) {
		c.refuse(&Error{Name: "TooManyRequests"})
		conn.Close()
		return
	}
	s.running.Go(func() {
		defer s.leave(c)
		defer conn.Close()
		stop := context.AfterFunc(s.ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		s.serve(c)
	})
}

// admit counts a request, and reports whether it is answered.
func (s *service) admit(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.users[c.uid]
	if q == nil {
		for uid, other := range s.users {
			if len(s.users) >= usersKnown && other.open == 0 {
				delete(s.users, uid)
			}
		}
		q = &quota{rate: rate.NewLimiter(perSecond, atOnce),
			told:    rate.Sometimes{Interval: time.Minute},
			refused: rate.Sometimes{Interval: time.Minute}}
		s.users[c.uid] = q
	}
	full := q.open >= openPerUser || s.open >= openOfUsers || !q.rate.Allow()
	if full && !c.root() || q.open >= openOfRoot {
		q.told.Do(func() { s.o.Log.Warn("too many requests", "uid", c.uid) })
		return false
	}
	q.open, s.open, s.requests = q.open+1, s.open+1, s.requests+1
	c.number = s.requests
	return true
}

func (s *service) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[c.uid].open--
	s.open--
	s.last = time.Now()
}

// serve reads a request and answers it.
func (s *service) serve(c *call) {
	c.conn.SetReadDeadline(time.Now().Add(requestPatience))
	c.lines = bufio.NewReaderSize(c.conn, longestLine)
	line, err := c.lines.ReadSlice('\n')
	if err != nil || s.ctx.Err() != nil {
		return // it said nothing, or too much
	}
	f := strings.Split(strings.TrimSuffix(string(line), "\n"), "\t")
	action := f[0]
	do, ok := requests[action]
	if !ok || len(f) != 1+do.fields {
		c.refuse(&Error{Name: internal,
			Message: "the daemon does not know this request; it is of another version"})
		return
	}
	if s.o.Broken != nil {
		c.refuse(&Error{Name: internal,
			Message: "nobody is recognised, because the store cannot be used: " +
				s.o.Broken.Error()})
		return
	}
	var result any
	named := f[1]
	user, err := c.subject(named)
	if err == nil {
		result, err = do.answer(s, c, user, f[2:])
	}
	if errors.Is(err, onlyRoot) {
		s.mu.Lock()
		s.users[c.uid].refused.Do(func() {
			s.o.Log.Warn("refused", "uid", c.uid, "action", action, "user", named)
		})
		s.mu.Unlock()
	}
	switch {
	case err != nil:
		c.refuse(s.told(err))
	case result != nil:
		b, _ := json.Marshal(result) // of numbers and texts
		c.send("ok " + string(b))
	}
}

// requests are what can be asked for, with the number of fields. The first one is the user.
var requests = map[string]struct {
	fields int
	answer func(s *service, c *call, user string, f []string) (result any, err error)
}{
	"verify": {7, (*service).verify}, "enroll": {3, (*service).enroll},
	"status":  {1, (*service).status},
	"history": {1, (*service).history}, "undo": {2, (*service).undo},
	"forget":   {1, (*service).forget},
	"password": {4, (*service).password},
}

// call is a connection, with who is at its other end, as the kernel knows it.
type call struct {
	uid    uint32
	pid    int32  // 0 if it is in another namespace
	number uint64 // the newer, the greater
	conn   *net.UnixConn
	lines  *bufio.Reader // what the client says

	sending sync.Mutex
	word    string // the last one that was said
}

func called(conn *net.UnixConn) (*call, error) {
	c := &call{conn: conn}
	peer, err := Peer(conn)
	if err == nil {
		c.uid, c.pid = peer.Uid, peer.Pid
	}
	return c, err
}

func control(conn *net.UnixConn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

func (c *call) root() bool { return c.uid == 0 }

// send writes a line. It is safe for concurrent use.
func (c *call) send(line string) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := c.conn.Write([]byte(line + "\n"))
	return err
}

func (c *call) refuse(e *Error) {
	c.send(fmt.Sprintf("no %s %d %s", e.Name, e.Wait, strings.ReplaceAll(e.Message, "\n", " ")))
}

// say sends a word, but not the same one twice.
func (c *call) say(word string) {
	if c.word != word {
		c.word = word
		c.send("say " + word)
	}
}

// Refusals that have several reasons.
const internal = "Internal"

var (
	onlyRoot = &Error{Name: "PermissionDenied"}
	noUser   = &Error{Name: "InvalidUser"}
	noNumber = &Error{Name: internal, Message: "the asker or the time is no number"}
)

// told returns the refusal for an error. Details that an unprivileged caller must not see go to the
// log only.
func (s *service) told(err error) *Error {
	var e *Error
	var r *tablet.Refused
	var gone user.UnknownUserError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &gone) || errors.Is(err, face.ErrName):
		return noUser
	case errors.As(err, &r) && r.Why == tablet.Wait:
		return &Error{Name: "TooSoon", Wait: uint32(math.Ceil(r.Wait.Seconds()))}
	case errors.As(err, &r):
		return &Error{Name: "PasswordNeeded"}
	case errors.Is(err, profile.ErrUnknown):
		return &Error{Name: "NoProfile"}
	case errors.Is(err, tablet.ErrLooks):
		return &Error{Name: "TooManyLooks"}
	case errors.Is(err, online.ErrJournal):
		return &Error{Name: internal,
			Message: "the learned faces of so long ago cannot be taken back; forget the profile " +
				"and enrol again"}
	}
	s.o.Log.Error("failed", "error", err)
	return &Error{Name: internal}
}
