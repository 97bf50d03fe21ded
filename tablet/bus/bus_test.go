// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
)

// System users that exist on every Debian, and that no person uses.
const (
	nobody = 65534
	games  = 5
)

// dial connects to a bus as a user.
func dial(t *testing.T, address string, uid int) *dbus.Conn {
	t.Helper()
	// The bus learns from the kernel which user the connecting thread was.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
		t.Fatal(e)
	}
	err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: strings.TrimPrefix(address, "unix:path=")})
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 0, ^uintptr(0)); e != 0 {
		panic(e) // this thread would keep the other user's number for ever
	}
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "bus")
	defer f.Close()
	socket, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Over(context.Background(), socket, uid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// authority stands in for polkit: it allows the actions in its table.
type authority struct {
	mu    sync.Mutex
	allow map[string]bool // the keys are "uid action"
	hang  bool
	conn  *dbus.Conn
}

func (a *authority) set(uid int, action string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allow[fmt.Sprint(uid, " org.faceauth.", action)] = ok
}

// Subject is the subject of a call of polkit.
type Subject struct {
	Kind    string
	Details map[string]dbus.Variant
}

// Answer is polkit's answer.
type Answer struct {
	Authorized, Challenge bool
	Details               map[string]string
}

func (a *authority) CheckAuthorization(
	s Subject,
	action string,
	_ map[string]string,
	flags uint32,
	_ string,
) (Answer, *dbus.Error) {
	var uid uint32
	if err := a.conn.BusObject().Call("org.freedesktop.DBus.GetConnectionUnixUser", 0,
		s.Details["name"].Value()).Store(&uid); err != nil ||
		s.Kind != "system-bus-name" {
		return Answer{}, dbus.MakeFailedError(fmt.Errorf("subject %v: %w", s, err))
	}
	a.mu.Lock()
	ok, hang := a.allow[fmt.Sprint(uid, " ", action)], a.hang
	a.mu.Unlock()
	if hang {
		select {}
	}
	return Answer{Authorized: ok, Details: map[string]string{}}, nil
}

// house is a bus with polkit and the service.
type house struct {
	address string
	polkit  *authority
	logind  *fixture.Logind
	camera  stage.Camera
	a       *tablet.Authenticator
	log     *fixture.Log
	conn    *dbus.Conn // the connection of the service
	ended   chan error // receives the result of Serve
	stop    func() error
}

func newHouse(t *testing.T, o tablet.Options) *house {
	t.Helper()
	return newHouseWith(t, o, bus.Options{})
}

func newHouseWith(t *testing.T, o tablet.Options, served bus.Options) *house {
	t.Helper()
	return newHouseOn(t, fixture.StartBus(t, fixture.LogindRules), o, served)
}

func newHouseOn(t *testing.T, b fixture.Bus, o tablet.Options, served bus.Options) *house {
	t.Helper()
	h := &house{address: b.Address, log: new(fixture.Log)}
	h.polkit = &authority{allow: make(map[string]bool), conn: dial(t, h.address, 0)}
	if err := h.polkit.conn.Export(h.polkit, "/org/freedesktop/PolicyKit1/Authority",
		"org.freedesktop.PolicyKit1.Authority"); err != nil {
		t.Fatal(err)
	}
	if r, err := h.polkit.conn.RequestName("org.freedesktop.PolicyKit1", dbus.NameFlagDoNotQueue); err != nil ||
		r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(r, err)
	}
	h.logind = fixture.StandInLogind(t, dial(t, h.address, 0), nobody)
	store, err := profile.Open(filepath.Join(t.TempDir(), "profiles"), profile.NewKey(), stage.Space)
	if err != nil {
		t.Fatal(err)
	}
	if o.Policy.Deadline == 0 {
		o.Policy.Deadline = 2 * time.Second
	}
	o.EnrolmentLimit = 2 * time.Second
	o.Log = slog.New(slog.NewTextHandler(h.log, nil))
	if h.a, err = tablet.New(store, stage.Space, h.camera.Open, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	conn, asks := dial(t, h.address, 0), dial(t, h.address, 0)
	h.conn, h.ended, served.Log = conn, done, o.Log
	go func() {
		done <- bus.Serve(ctx, conn, asks, h.a, served, func() { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	h.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := h.stop(); err != nil && !errors.Is(err, bus.ErrBus) {
			t.Error(err)
		}
		h.a.Close()
		store.Close()
		if now, most := h.camera.Uses(); now != 0 || most > 1 {
			t.Errorf("%d cameras left open, %d at once", now, most)
		}
	})
	return h
}

func (h *house) client(t *testing.T, uid int) *bus.Client {
	t.Helper()
	return bus.NewClient(dial(t, h.address, uid))
}

// enrol enrols a user as root, and reports that the user gave the password.
func (h *house) enrol(t *testing.T, user string, who []float32) {
	t.Helper()
	h.camera.Play(stage.Show{Frames: stage.Enrolling(who)})
	c := h.client(t, 0)
	defer c.Close()
	if word, err := c.Enroll(t.Context(), user, "", func(string) {}); err != nil || word != "enroll-completed" {
		t.Fatalf("%q, %v\n%s", word, err, h.log)
	}
	if err := c.PasswordUsed(t.Context(), user); err != nil {
		t.Fatal(err)
	}
}

// name returns the name of an error of the service, without its prefix.
func name(err error) string {
	if e, ok := err.(*bus.Error); ok {
		return strings.TrimPrefix(e.Name, "org.faceauth.Error.")
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestVerify(t *testing.T) {
	h := newHouse(t, tablet.Options{})
	h.enrol(t, "nobody", stage.Alice)
	h.polkit.set(nobody, "verify", true)
	for _, c := range []struct {
		name string
		show stage.Show
		want string
	}{
		{"the user", stage.Show{Frames: stage.Seen(stage.Alice, 9)}, "verify-match"},
		{"nobody", stage.Show{}, "verify-no-face"},
		{"a fault", stage.Show{Fail: os.ErrNotExist}, "verify-no-camera"},
		{"somebody else", stage.Show{Frames: stage.Seen(stage.Bob, 9)}, "verify-no-match"},
	} {
		h.camera.Play(c.show)
		client := h.client(t, nobody)
		word, err := client.Verify(t.Context(), "", func(string) {})
		if err != nil || word != c.want {
			t.Errorf("%s: %q, %v", c.name, word, err)
		}
		client.Close()
	}
	if _, err := h.client(t, nobody).Verify(t.Context(), "", func(string) {}); name(err) != "TooSoon" {
		t.Error(err)
	}
	for _, want := range []string{"msg=verify user=nobody uid=65534 result=match", `result="no match"`,
		"msg=enroll user=nobody uid=0 result=enrolled", `msg="password used" user=nobody`} {
		if !strings.Contains(h.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, h.log)
		}
	}
	for _, secret := range []string{"confidence", "distance", "vector"} {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log speaks of a %s:\n%s", secret, h.log)
		}
	}
}

// If a face is taken for a picture, the user is told during the login and at its end, in words that have sentences.
func TestTakenForPicture(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{MinLiveness: .5}})
	scored := func(frames []face.Frame, score float32) []face.Frame {
		for i := range frames {
			frames[i].Samples = slices.Clone(frames[i].Samples)
			frames[i].Samples[0].Liveness = &score
		}
		return frames
	}
	h.camera.Play(stage.Show{Frames: scored(stage.Enrolling(stage.Alice), .1)})
	var said []string
	tell := func(word string) { said = append(said, word) }
	root := h.client(t, 0)
	if word, err := root.Enroll(t.Context(), "nobody", "", tell); err != nil || word == "enroll-completed" ||
		!slices.Contains(said, "enroll-not-live") {
		t.Errorf("enrolled with a picture: %q, %v, %q", word, err, said)
	}
	h.camera.Play(stage.Show{Frames: scored(stage.Enrolling(stage.Alice), .9)})
	if word, err := root.Enroll(t.Context(), "nobody", "", tell); err != nil || word != "enroll-completed" ||
		!slices.Contains(said, "enroll-took-tilt") {
		t.Fatalf("%q, %v, %q", word, err, said)
	}
	if err := root.PasswordUsed(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	root.Close()
	h.polkit.set(nobody, "verify", true)
	h.camera.Play(stage.Show{Frames: scored(stage.Seen(stage.Alice, 9), .1)})
	word, err := h.client(t, nobody).Verify(t.Context(), "", tell)
	if err != nil || word != "verify-taken-for-picture" || !slices.Contains(said, "verify-not-live") {
		t.Errorf("%q, %v, %q", word, err, said)
	}
	for _, w := range append(said, word) {
		if words.French.Sentence(w) == w {
			t.Errorf("%q has no sentence; said: %q", w, said)
		}
	}
	if log := h.log.String(); !strings.Contains(log, `result="taken for a picture"`) {
		t.Errorf("the log says:\n%s", log)
	}
}

// Calls every method as root, as the user and as another user, with and without permission.
func TestCallers(t *testing.T) {
	type row struct{ root, self, selfLeave, other, otherLeave string }
	const ok, denied = "", "PermissionDenied"
	calls := map[string]func(ctx context.Context, c *bus.Client) error{
		"Claim, VerifyStart": func(ctx context.Context, c *bus.Client) error {
			_, err := c.Verify(ctx, "nobody", func(string) {})
			return err
		},
		"Claim, EnrollStart": func(ctx context.Context, c *bus.Client) error {
			_, err := c.Enroll(ctx, "nobody", "", func(string) {})
			return err
		},
		"Status":  func(ctx context.Context, c *bus.Client) error { _, err := c.Status(ctx, "nobody"); return err },
		"History": func(ctx context.Context, c *bus.Client) error { _, err := c.History(ctx, "nobody"); return err },
		"Undo": func(ctx context.Context, c *bus.Client) error {
			_, err := c.Undo(ctx, "nobody", time.Now())
			return err
		},
		"PasswordUsed": func(ctx context.Context, c *bus.Client) error { return c.PasswordUsed(ctx, "nobody") },
		"PasswordUsedFor": func(ctx context.Context, c *bus.Client) error {
			return c.Call(ctx, "PasswordUsedFor", "nobody", uint32(0), "")
		},
		"ClaimFor": func(ctx context.Context, c *bus.Client) error {
			return c.Call(ctx, "ClaimFor", "nobody", uint32(0), "", "", "")
		},
		"Claim, EnrollRootStart": func(ctx context.Context, c *bus.Client) error {
			_, err := c.EnrollRoot(ctx, "root", "", func(string) {})
			return err
		},
		"Claim, EnrollLookStart": func(ctx context.Context, c *bus.Client) error {
			_, err := c.AddLook(ctx, "nobody", func(string) {})
			return err
		},
		"Health": func(ctx context.Context, c *bus.Client) error { _, err := c.Health(ctx); return err },
		"Forget": func(ctx context.Context, c *bus.Client) error { // must be the last: after it there is no profile
			return c.Forget(ctx, "nobody")
		},
	}
	want := map[string]row{
		"Claim, VerifyStart": {ok, denied, ok, denied, ok},
		"Claim, EnrollStart": {ok, denied, ok, denied, ok},
		"Status":             {ok, ok, ok, denied, ok},
		"History":            {ok, ok, ok, denied, ok},
		"Undo":               {ok, ok, ok, denied, ok},
		"PasswordUsed":       {ok, denied, denied, denied, denied},
		"PasswordUsedFor":    {ok, denied, denied, denied, denied},
		"ClaimFor":           {ok, denied, denied, denied, denied},
		// An administrator who is not root may not.
		"Claim, EnrollRootStart": {ok, denied, denied, denied, denied},
		"Claim, EnrollLookStart": {ok, denied, ok, denied, ok},
		"Health":                 {ok, denied, denied, denied, denied},
		"Forget":                 {ok, ok, ok, denied, ok},
	}
	h := newHouse(t, tablet.Options{})
	for method, call := range calls {
		for i, who := range []struct {
			name  string
			uid   int
			leave []string
			want  string
		}{
			{"root", 0, nil, want[method].root},
			{"the user", nobody, nil, want[method].self},
			{"the user with leave", nobody, []string{"verify", "enroll"}, want[method].selfLeave},
			{"another user", games, []string{"verify"}, want[method].other},
			{"an administrator", games, []string{"other-user", "enroll"}, want[method].otherLeave},
		} {
			h.enrol(t, "nobody", stage.Alice)
			for _, action := range []string{"verify", "enroll", "other-user"} {
				h.polkit.set(who.uid, action, false)
			}
			for _, action := range who.leave {
				h.polkit.set(who.uid, action, true)
			}
			h.camera.Play(stage.Show{Frames: append(stage.Seen(stage.Alice, 4), stage.Enrolling(stage.Alice)...)})
			c := h.client(t, who.uid)
			if err := call(t.Context(), c); name(err) != who.want {
				t.Errorf("%s by %s: %q, want %q", method, who.name, name(err), who.want)
			}
			c.Close()
			if _, err := h.a.Status("nobody"); (err != nil) != (method == "Forget" && who.want == ok) {
				t.Errorf("%s by %s, %d: afterwards %v", method, who.name, i, err)
			}
		}
	}
	described, err := introspectXML(h, t)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range described.Methods {
		covered := m.Name == "Release" ||
			strings.HasSuffix(m.Name, "Stop") || m.Name == "Prepare" || m.Name == "Ask" // see TestWithoutClaim
		for method := range want {
			covered = covered || strings.Contains(method, m.Name)
		}
		if !covered {
			t.Errorf("no test calls %s as other users", m.Name)
		}
	}
}

func introspectXML(h *house, t *testing.T) (introspect.Interface, error) {
	node, err := introspect.Call(dial(t, h.address, games).Object(bus.Name, bus.Path))
	if err != nil {
		return introspect.Interface{}, err
	}
	return node.Interfaces[0], nil
}

// signature returns the arguments of a method in the description.
func signature(m introspect.Method) (s string) {
	for _, a := range m.Args {
		s += a.Direction + a.Type + " "
	}
	return s
}

// The description names exactly the methods of the service, with their arguments.
func TestDescription(t *testing.T) {
	h := newHouse(t, tablet.Options{})
	described, err := introspectXML(h, t)
	if err != nil {
		t.Fatal(err)
	}
	there := bus.Signatures()
	for _, m := range described.Methods {
		got := signature(m)
		if want, ok := there[m.Name]; !ok || want != got {
			t.Errorf("%s is described with %q, and has %q", m.Name, got, there[m.Name])
		}
		delete(there, m.Name)
	}
	if len(there) > 0 {
		t.Errorf("not described: %v", there)
	}
	p, err := dial(t, h.address, games).Object(bus.Name, bus.Path).GetProperty(bus.Interface + ".EnrollStages")
	if err != nil || p.Value() != uint32(4) {
		t.Errorf("EnrollStages %v, %v", p, err)
	}
}

func TestWithoutClaim(t *testing.T) {
	h := newHouse(t, tablet.Options{})
	o := dial(t, h.address, 0).Object(bus.Name, bus.Path)
	for _, method := range []string{"Release", "VerifyStart", "Prepare", "Ask", "VerifyStop", "EnrollStart",
		"EnrollStop"} {
		var args []any
		if method == "EnrollStart" {
			args = []any{""}
		}
		if err := o.Call(bus.Interface+"."+method, 0, args...).Err; err == nil ||
			err.(dbus.Error).Name != "org.faceauth.Error.ClaimDevice" {
			t.Errorf("%s: %v", method, err)
		}
	}
	for call, want := range map[string]string{
		"no such method":     "org.freedesktop.DBus.Error.UnknownMethod",
		"the wrong argument": "org.freedesktop.DBus.Error.InvalidArgs",
	} {
		var err error
		if call == "no such method" {
			err = o.Call(bus.Interface+".Open", 0).Err
		} else {
			err = o.Call(bus.Interface+".Claim", 0).Err
		}
		if err == nil || err.(dbus.Error).Name != want {
			t.Errorf("%s: %v", call, err)
		}
	}
	c := h.client(t, 0)
	for user, want := range map[string]string{"no such user": "NoProfile", "": "NoProfile",
		strings.Repeat("x", 1<<16): "InvalidUser", "a\nb": "InvalidUser", "../root": "NoProfile"} {
		if _, err := c.Verify(t.Context(), user, func(string) {}); name(err) != want {
			t.Errorf("verifying %.20q: %v", user, err)
		}
		if _, err := c.Enroll(t.Context(), user, "", func(string) {}); user != "" && name(err) != "InvalidUser" {
			t.Errorf("enrolling %.20q: %v", user, err)
		}
	}
}

// With several clients at once, the newest has the camera. But a user's own login never loses the camera to another
// user who wants to become that user, nor to a program that is not a login.
func TestClaims(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: 20 * time.Second}})
	h.enrol(t, "nobody", stage.Alice)
	h.enrol(t, "games", stage.Bob)
	for _, uid := range []int{nobody, games} {
		h.polkit.set(uid, "verify", true)
	}
	type start struct {
		uid   int
		user  string
		asker int // -1 for a program that is not the PAM module
	}
	program := func(uid int, user string) start { return start{uid, user, -1} }
	own, greeter := start{0, "nobody", nobody}, start{0, "games", 0}
	other := start{0, "nobody", games}
	for _, c := range []struct {
		name         string
		first, newer start
		taken        bool
	}{
		{"two programs", program(nobody, "nobody"), program(games, "games"), true},
		{"a login, and a program", own, program(games, "games"), false},
		{"a program, and a login", program(games, "games"), own, true},
		{"two logins", greeter, own, true},
		{"two logins, the other way", own, greeter, true},
		{"a login, and somebody else's su", own, other, false},
		{"somebody else's su, and a login", other, own, true},
		{"somebody else's su, and a program", other, program(games, "games"), true},
		{"a program, and somebody else's su", program(nobody, "nobody"), other, false},
		{"two of somebody else's su", other, other, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.camera.Play(stage.Show{Pace: time.Millisecond})
			var conns [2]*dbus.Conn
			claim := func(i int, x start) string {
				conns[i] = dial(t, h.address, x.uid)
				o := conns[i].Object(bus.Name, bus.Path)
				method, args := ".Claim", []any{x.user}
				if x.asker >= 0 {
					method, args = ".ClaimFor", append(args, uint32(x.asker), "", "", "")
				}
				err := o.Call(bus.Interface+method, 0, args...).Err
				if err == nil {
					err = o.Call(bus.Interface+".VerifyStart", 0).Err
				}
				if err != nil {
					return strings.TrimPrefix(err.(dbus.Error).Name, "org.faceauth.Error.")
				}
				return ""
			}
			first := make(chan *dbus.Signal, 9)
			if e := claim(0, c.first); e != "" {
				t.Fatal(e)
			}
			conns[0].Signal(first)
			got := claim(1, c.newer)
			if taken := got == ""; taken != c.taken || !taken && got != "AlreadyInUse" {
				t.Errorf("the newer: %q", got)
			}
			if c.taken {
				for s := range first {
					if s.Body[1] == true {
						if s.Body[0] != "verify-interrupted" {
							t.Errorf("the first is told %q", s.Body[0])
						}
						break
					}
				}
			}
			// A claim that is only left open makes nobody wait.
			if !c.taken {
				if err := conns[0].Object(bus.Name, bus.Path).Call(bus.Interface+".VerifyStop", 0).Err; err != nil {
					t.Fatal(err)
				}
				if got := claim(1, c.newer); got != "" {
					t.Errorf("after the first had ended: %q", got)
				}
			}
			for _, conn := range conns {
				conn.Close()
			}
		})
	}
}

// A user who fails to log in as another user loses their own attempts, and not the attempts of the other user.
func TestForeignFailures(t *testing.T) {
	h := newHouse(t,
		tablet.Options{Policy: tablet.Policy{Failures: 2, Delay: time.Millisecond, Deadline: time.Second}})
	h.enrol(t, "nobody", stage.Alice)
	try := func(asker int) string {
		t.Helper()
		time.Sleep(5 * time.Millisecond) // the delay between attempts
		c := h.client(t, 0)
		defer c.Close()
		if err := c.Call(t.Context(), "ClaimFor", "nobody", uint32(asker), "", "", ""); err != nil {
			t.Fatal(err)
		}
		word, err := c.Verify(t.Context(), "", func(string) {})
		if err != nil {
			return name(err)
		}
		return word
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9)})
	for _, want := range []string{"verify-no-match", "verify-no-match", "PasswordNeeded"} {
		if got := try(games); got != want {
			t.Errorf("somebody else: %q, want %q", got, want)
		}
	}
	if got := try(13); got != "verify-no-match" {
		t.Errorf("a third: %q", got)
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	if got := try(nobody); got != "verify-match" {
		t.Errorf("the user: %q", got)
	}
	if got := try(0); got != "verify-match" {
		t.Errorf("at a greeter: %q", got)
	}
	if got := try(games); got != "PasswordNeeded" {
		t.Errorf("somebody else, after the user's match: %q", got)
	}
	if err := h.client(t, 0).Call(t.Context(), "PasswordUsedFor", "nobody", uint32(0), ""); err != nil {
		t.Fatal(err)
	}
	if got := try(games); got != "PasswordNeeded" {
		t.Errorf("somebody else, after the user's password: %q", got)
	}
	if err := h.client(t, 0).Call(t.Context(), "PasswordUsedFor", "nobody", uint32(games), ""); err != nil {
		t.Fatal(err)
	}
	if got := try(games); got != "verify-match" {
		t.Errorf("somebody else who knew the password: %q", got)
	}
}

// Root is not enrolled unless root says that it is known what that means.
func TestEnrolRoot(t *testing.T) {
	h := newHouse(t, tablet.Options{})
	h.camera.Play(stage.Show{Frames: stage.Enrolling(stage.Alice)})
	root := h.client(t, 0)
	defer root.Close()
	if _, err := root.Enroll(t.Context(), "root", "", func(string) {}); name(err) != "PermissionDenied" ||
		!strings.Contains(err.Error(), "a photograph of root's face could become root") {
		t.Errorf("enrolling root: %v", err)
	}
	root.Call(t.Context(), "Release")
	if word, err := root.EnrollRoot(t.Context(), "root", "", func(string) {}); err != nil ||
		word != "enroll-completed" {
		t.Errorf("enrolling root, knowing: %q, %v", word, err)
	}
}

// A service without a store says at once why nobody is recognised.
func TestBroken(t *testing.T) {
	b := fixture.StartBus(t)
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- bus.Serve(ctx, dial(t, b.Address, 0), dial(t, b.Address, 0), nil,
			bus.Options{Broken: profile.ErrDamaged}, func() { close(ready) })
	}()
	<-ready
	client := bus.NewClient(dial(t, b.Address, games))
	_, err := client.Status(t.Context(), "")
	if name(err) != "Internal" || !strings.HasSuffix(err.Error(), "the store cannot be used: damaged store") {
		t.Errorf("%v", err)
	}
	if _, err := client.Verify(t.Context(), "", func(string) {}); name(err) != "Internal" {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// When a client dies, the camera is released.
func TestClientDies(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	conn := dial(t, h.address, 0)
	o := conn.Object(bus.Name, bus.Path)
	for _, call := range []*dbus.Call{o.Call(bus.Interface+".Claim", 0, "nobody"),
		o.Call(bus.Interface+".VerifyStart", 0)} {
		if call.Err != nil {
			t.Fatal(call.Err)
		}
	}
	for now := 0; now == 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
	}
	conn.Close()
	for now := 1; now > 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("the camera stays open")
		}
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	if word, err := h.client(t, 0).Verify(t.Context(), "nobody", func(string) {}); err != nil ||
		word != "verify-match" {
		t.Errorf("the next: %q, %v", word, err)
	}
}

// A client that comes right after another client has gone does not wait for it.
func TestOneAfterTheOther(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	next := dial(t, h.address, 0)
	for i := range 20 {
		conn := next
		next = dial(t, h.address, 0)
		o := conn.Object(bus.Name, bus.Path)
		for _, call := range []*dbus.Call{o.Call(bus.Interface+".Claim", 0, "nobody"),
			o.Call(bus.Interface+".VerifyStart", 0)} {
			if call.Err != nil {
				t.Fatalf("client %d: %v", i, call.Err)
			}
		}
		conn.Close()
	}
}

// The camera is open from a start to a stop, and not during a mere claim. The results go only to the client that asked.
func TestCameraAndSignals(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 1), Pace: time.Millisecond})
	conn, spy := dial(t, h.address, 0), dial(t, h.address, games)
	seen := make(chan *dbus.Signal, 64)
	spy.Signal(seen)
	if err := spy.AddMatchSignal(dbus.WithMatchInterface(bus.Interface)); err != nil {
		t.Fatal(err)
	}
	o := conn.Object(bus.Name, bus.Path)
	call := func(method string, args ...any) {
		t.Helper()
		if err := o.Call(bus.Interface+"."+method, 0, args...).Err; err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	uses := func(want int, when string) {
		t.Helper()
		if now, _ := h.camera.Uses(); now != want {
			t.Errorf("%s: the camera is open %d times", when, now)
		}
	}
	call("Claim", "nobody")
	time.Sleep(20 * time.Millisecond)
	uses(0, "claimed")
	call("VerifyStart")
	if err := o.Call(bus.Interface+".VerifyStart", 0).Err; err == nil ||
		err.(dbus.Error).Name != "org.faceauth.Error.AlreadyInUse" {
		t.Errorf("started twice: %v", err)
	}
	for now := 0; now == 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
	}
	for s, _ := h.a.Status("nobody"); s.Refusal == ""; s, _ = h.a.Status("nobody") { // until Bob was judged
		time.Sleep(time.Millisecond)
	}
	call("VerifyStop")
	uses(0, "stopped")
	call("VerifyStop") // a second stop
	call("Release")
	if s, err := h.a.Status("nobody"); err != nil || s.Refusal != tablet.Wait {
		t.Errorf("a stopped attempt does not count: %+v, %v", s, err)
	}
	select {
	case s := <-seen:
		if strings.HasPrefix(s.Name, bus.Interface) {
			t.Errorf("somebody else was sent %s", s.Name)
		}
	case <-time.After(50 * time.Millisecond):
	}
}

// If polkit is missing or hangs, only root has permission, and nobody waits long.
func TestNoPolkit(t *testing.T) {
	h := newHouseWith(t, tablet.Options{}, bus.Options{Patience: 2 * time.Second})
	h.enrol(t, "nobody", stage.Alice)
	h.polkit.set(nobody, "verify", true)
	h.polkit.mu.Lock()
	h.polkit.hang = true
	h.polkit.mu.Unlock()
	var clients []*bus.Client
	for range 20 {
		clients = append(clients, h.client(t, nobody))
	}
	var all sync.WaitGroup
	counts := make(chan string, len(clients))
	for _, c := range clients { // all ask before the first are refused
		all.Go(func() {
			_, err := c.Verify(t.Context(), "", func(string) {})
			counts <- name(err)
		})
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	if word, err := h.client(t, 0).Verify(t.Context(), "nobody", func(string) {}); err != nil ||
		word != "verify-match" {
		t.Errorf("root: %q, %v", word, err)
	}
	all.Wait()
	close(counts)
	n := make(map[string]int)
	for c := range counts {
		n[c]++
	}
	if n["TooManyRequests"] != 16 || n["PermissionDenied"] != 4 {
		t.Errorf("refused: %v", n)
	}
	h.polkit.conn.Close()
	if _, err := h.client(t, nobody).Verify(t.Context(), "", func(string) {}); name(err) != "PermissionDenied" {
		t.Errorf("without polkit: %v", err)
	}
}

// During a flood of clients, with and without permission, root's login still succeeds in time.
func TestFlood(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: 5 * time.Second}})
	h.enrol(t, "nobody", stage.Alice)
	h.enrol(t, "games", stage.Bob)
	h.polkit.set(nobody, "verify", true)
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for i := range 40 {
		conn := dial(t, h.address, []int{nobody, games}[i%2])
		flood.Add(1)
		go func() {
			defer flood.Done()
			o := conn.Object(bus.Name, bus.Path)
			for ctx.Err() == nil {
				o.CallWithContext(ctx, bus.Interface+".Claim", 0, "")
				o.CallWithContext(ctx, bus.Interface+".VerifyStart", 0)
				o.CallWithContext(ctx, bus.Interface+".Status", 0, "games")
				o.CallWithContext(ctx, bus.Interface+".Release", 0)
			}
		}()
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9), Pace: 10 * time.Millisecond})
	c := h.client(t, 0)
	for i := range 5 {
		if word, err := c.Verify(t.Context(), "games", func(string) {}); err != nil || word != "verify-match" {
			t.Errorf("login %d in the flood: %q, %v", i, word, err)
		}
	}
	cancel()
	flood.Wait()
}

// A flood of calls that expect no answer delays nobody's login and takes no memory. The calls come from one connection
// and from many, of a user with permission and of a user without.
func TestSystemFloodWithoutReply(t *testing.T) {
	if testing.Short() {
		t.Skip("a flood of calls takes a while, and the race detector is too slow for it")
	}
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: 5 * time.Second}})
	h.enrol(t, "nobody", stage.Alice)
	h.enrol(t, "games", stage.Bob)
	h.polkit.set(nobody, "verify", true)
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9), Pace: 10 * time.Millisecond})
	// The quickest of three logins.
	login := func(t *testing.T) time.Duration {
		t.Helper()
		best := time.Hour
		for i := range 3 {
			c := h.client(t, 0)
			begun := time.Now()
			if word, err := c.Verify(t.Context(), "games", func(string) {}); err != nil || word != "verify-match" {
				t.Errorf("login %d: %q, %v", i, word, err)
			}
			best = min(best, time.Since(begun))
			c.Close()
		}
		return best
	}
	quiet := login(t)
	for _, connections := range []int{1, 60} {
		t.Run(fmt.Sprintf("connections=%d", connections), func(t *testing.T) {
			f := startFlood(t, h, connections)
			for f.sent.Load() < 5000 {
				time.Sleep(time.Millisecond)
			}
			goroutines, took := runtime.NumGoroutine(), login(t)
			// This process makes the flood itself; in the boot test another process does.
			if took > 20*quiet {
				t.Errorf("the quickest login took %v, and %v without the flood", took, quiet)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapInuse > 100<<20 {
				t.Errorf("%d MB of heap", m.HeapInuse>>20)
			}
			t.Logf("a login took %v, and %v without the flood; %d calls, %d goroutines, %d MB", took, quiet,
				f.sent.Load(), goroutines, m.HeapInuse>>20)
			f.stop()
		})
	}
}

// flood is many calls that expect no answer.
type flood struct {
	sent atomic.Int64
	stop func()
}

// startFlood sends up to 10,000 calls a second on some connections of two users. After five bursts it waits until the
// service has read them: on a machine too slow for the rate, the bus would keep more and more calls, and every login
// would wait behind them.
func startFlood(t *testing.T, h *house, connections int) *flood {
	const burst = 60
	ctx, cancel := context.WithCancel(t.Context())
	var f flood
	var running sync.WaitGroup
	f.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(f.stop)
	turns := make(chan struct{})
	root := dial(t, h.address, 0)
	running.Go(func() {
		defer root.Close()
		for ctx.Err() == nil {
			if err := root.Object(bus.Name, bus.Path).Call(bus.Interface+".Health", 0).Err; err != nil {
				t.Error(err)
				cancel()
			}
			for range 5 {
				select {
				case turns <- struct{}{}:
				case <-ctx.Done():
				}
			}
		}
	})
	for i := range connections {
		conn := dial(t, h.address, []int{nobody, games}[i%2])
		pause := time.Second / 10000 * burst * time.Duration(connections)
		running.Go(func() {
			defer conn.Close()
			o := conn.Object(bus.Name, bus.Path)
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
				}
				select {
				case <-ctx.Done():
					return
				case <-turns:
				}
				for range burst / 3 {
					o.Go(bus.Interface+".Claim", dbus.FlagNoReplyExpected, nil, strings.Repeat("x", 200))
					o.Go(bus.Interface+".Claim", dbus.FlagNoReplyExpected, nil, "")
					o.Go(bus.Interface+".VerifyStart", dbus.FlagNoReplyExpected, nil)
				}
				f.sent.Add(burst)
			}
		})
	}
	return &f
}

// When the service ends, it ends everything that it started.
func TestStop(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	c := h.client(t, 0)
	word := make(chan string, 1)
	go func() {
		w, _ := c.Verify(t.Context(), "nobody", func(string) {})
		word <- w
	}()
	for now := 0; now == 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	h.conn.Close() // as when the process ends; otherwise the client waits for the answer to its release
	if w := <-word; w != "verify-error" {
		t.Errorf("%q", w)
	}
}

func TestTwoServices(t *testing.T) {
	h := newHouse(t, tablet.Options{})
	err := bus.Serve(t.Context(), dial(t, h.address, 0), dial(t, h.address, 0), h.a, bus.Options{},
		func() { t.Error("it began") })
	if err != bus.ErrRunning {
		t.Error(err)
	}
	if err := bus.Serve(t.Context(), dial(t, h.address, nobody), dial(t, h.address, nobody), h.a, bus.Options{},
		func() {
			t.Error("it began")
		}); err == nil ||
		!strings.Contains(err.Error(), "check that the policy file is installed") {
		t.Errorf("as another user: %v", err)
	}
}

// Each word has a sentence.
func TestSentence(t *testing.T) {
	for _, w := range regexp.MustCompile(`(verify|enroll)-[a-z-]*[a-z]`).FindAllString(bus.XML, -1) {
		if words.German.Sentence(w) == w {
			t.Errorf("%s has no sentence", w)
		}
	}
	if words.English.Sentence("verify-of-tomorrow") != "verify-of-tomorrow" {
		t.Error("an unknown word changes")
	}
}

// A service without calls ends after a while, and not while it is in use.
func TestIdle(t *testing.T) {
	h := newHouseWith(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Second}},
		bus.Options{Idle: 400 * time.Millisecond})
	h.camera.Play(stage.Show{Frames: stage.Enrolling(stage.Alice)})
	c := h.client(t, 0)
	for range 4 {
		time.Sleep(200 * time.Millisecond)
		if _, err := c.Health(t.Context()); err != nil {
			t.Fatalf("while it is asked: %v", err)
		}
	}
	select {
	case err := <-h.ended:
		if err != nil {
			t.Error(err)
		}
		h.ended <- nil // the end of the test waits for this
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}

// While the device goes to sleep the camera is not used.
func TestSleep(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	sleep := func(on bool) {
		t.Helper()
		if err := h.logind.Sleep(on); err != nil {
			t.Fatal(err)
		}
	}
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	word := make(chan string, 1)
	c := h.client(t, 0)
	go func() {
		w, err := c.Verify(t.Context(), "nobody", func(string) {})
		word <- fmt.Sprint(w, err)
	}()
	for now := 0; now == 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
	}
	sleep(true)
	if w := <-word; w != "verify-interrupted<nil>" {
		t.Errorf("what was looked for: %s", w)
	}
	if _, err := h.client(t, 0).Verify(t.Context(), "nobody", func(string) {}); name(err) != "AlreadyInUse" ||
		!strings.Contains(err.Error(), "sleep") {
		t.Errorf("while it goes to sleep: %v", err)
	}
	sleep(false)
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		w, err := h.client(t, 0).Verify(t.Context(), "nobody", func(string) {})
		if w == "verify-match" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("awake: %q, %v", w, err)
		}
	}
}

// A client notices at once that the service has gone.
func TestServiceGone(t *testing.T) {
	h := newHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	ended := make(chan error, 1)
	c := h.client(t, 0)
	go func() {
		_, err := c.Verify(t.Context(), "nobody", func(string) {})
		ended <- err
	}()
	for now := 0; now == 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
	}
	h.conn.Close() // as when it is killed
	select {
	case err := <-ended:
		if !errors.Is(err, bus.ErrNoService) || !strings.Contains(err.Error(), "try again") {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it is waited for")
	}
	if err := h.stop(); !errors.Is(err, bus.ErrBus) {
		t.Errorf("the service: %v", err)
	}
}
