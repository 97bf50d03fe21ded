// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/introspect"
)

// fprintRules allow root to own fprintd's names on the bus of a test.
const fprintRules = `<policy user="root"><allow own="net.reactivated.Fprint"/></policy>
	<policy context="default"><allow send_destination="net.reactivated.Fprint"/></policy>`

// fprintHouse is a house whose service has fprintd's names. Everybody is in the session of a greeter, where programs of
// root are answered, too.
type fprintHouse struct{ *house }

func newFprintHouse(t *testing.T, o tablet.Options) *fprintHouse {
	t.Helper()
	b := fixture.StartBus(t, fixture.LogindRules, fprintRules)
	h := &fprintHouse{newHouseOn(t, b, o, bus.Options{Fprint: true})}
	h.logind.Place("", fixture.Session{UID: nobody, Class: "greeter", Active: true, Seat: "seat0"})
	return h
}

// run runs a program of fprintd as a user, and returns what it printed, and its exit code.
func (h *fprintHouse) run(t *testing.T, uid int, name string, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	args = append([]string{"--reuid", fmt.Sprint(uid), "--regid", fmt.Sprint(uid), "--clear-groups", name}, args...)
	if uid == 0 {
		args = args[5:]
	} else {
		args = append([]string{"setpriv"}, args...)
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+h.address, "LC_ALL=C")
	b, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%q hangs: %s", args, b)
	case errors.As(err, &exit):
		return string(b), exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return string(b), 0
}

// programs returns the folder of fprintd's clients, which other users can read.
func programs(t *testing.T) string {
	t.Helper()
	from := fixture.Fprintd(t)
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	for _, name := range []string{"verify", "list", "enroll", "delete"} {
		b, err := os.ReadFile(filepath.Join(from, "usr", "bin", "fprintd-"+name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "fprintd-"+name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Tests fprintd's own programs, unchanged, as a user and as root.
func TestFprintPrograms(t *testing.T) {
	dir := programs(t)
	h := newFprintHouse(t, tablet.Options{Policy: tablet.Policy{Delay: time.Millisecond}})
	h.enrol(t, "nobody", stage.Alice)
	for _, c := range []struct {
		name    string
		uid     int
		leave   bool
		show    stage.Show
		command string
		code    int
		says    []string
	}{
		{"list", nobody, false, stage.Show{}, "fprintd-list nobody", 0,
			[]string{"found 1 devices", "right-index-finger"}},
		{"list one without a profile", 0, false, stage.Show{}, "fprintd-list games", 0,
			[]string{"User games has no fingers enrolled"}},
		{"list another", games, false, stage.Show{}, "fprintd-list nobody", 1, []string{"polkit does not allow"}},
		{"match", nobody, true, stage.Show{Frames: stage.Seen(stage.Alice, 9)}, "fprintd-verify", 0,
			[]string{"verify-match (done)"}},
		{"match by root", 0, true, stage.Show{Frames: stage.Seen(stage.Alice, 9)}, "fprintd-verify nobody", 0,
			[]string{"verify-match (done)"}},
		{"match by name", nobody, true, stage.Show{Frames: stage.Seen(stage.Alice, 9)},
			"fprintd-verify -f right-index-finger", 0, []string{"verify-match (done)"}},
		{"another finger", nobody, true, stage.Show{}, "fprintd-verify -f left-thumb", 1, []string{"left-thumb"}},
		{"no leave", nobody, false, stage.Show{}, "fprintd-verify", 1,
			[]string{"polkit does not allow org.faceauth.verify"}},
		{"somebody else asks", games, true, stage.Show{}, "fprintd-verify nobody", 1,
			[]string{"polkit does not allow org.faceauth.other-user"}},
		{"nobody seen", nobody, true, stage.Show{}, "fprintd-verify", 1, []string{"verify-unknown-error (done)"}},
		{"no profile", games, true, stage.Show{}, "fprintd-verify", 1, []string{"there is no profile of that user"}},
		{"enrol", nobody, true, stage.Show{}, "fprintd-enroll", 1, []string{"faceauth tablet enroll"}},
		{"delete", nobody, true, stage.Show{}, "fprintd-delete nobody", 1, []string{"faceauth tablet forget"}},
		{"no match", nobody, true, stage.Show{Frames: stage.Seen(stage.Bob, 9)}, "fprintd-verify", 1,
			[]string{"verify-no-match (done)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, uid := range []int{nobody, games} {
				h.polkit.set(uid, "verify", c.leave)
			}
			h.camera.Play(c.show)
			words := strings.Fields(c.command)
			out, code := h.run(t, c.uid, filepath.Join(dir, words[0]), words[1:]...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, out)
			}
			for _, s := range c.says {
				if !strings.Contains(out, s) {
					t.Errorf("%q is not in %s", s, out)
				}
			}
		})
	}
	if _, err := h.a.Status("nobody"); err != nil {
		t.Errorf("the profile: %v", err)
	}
}

// pam returns the name of a PAM service that uses only pam_fprintd, with options.
func pam(t *testing.T, options string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(fixture.Fprintd(t), "lib", "*", "security", "pam_fprintd.so"))
	if more, _ := filepath.Glob(filepath.Join(fixture.Fprintd(t), "usr", "lib", "*", "security",
		"pam_fprintd.so")); len(more) > 0 {
		found = append(found, more...)
	}
	if err != nil || len(found) == 0 {
		t.Fatal("there is no pam_fprintd.so")
	}
	if _, err := exec.LookPath("pamtester"); err != nil {
		fixture.Missing(t, "%v; sh scripts/setup.sh test installs it", err)
	}
	service := fmt.Sprintf("faceauth-test-%d-fprintd", os.Getpid())
	if err := os.WriteFile("/etc/pam.d/"+service, []byte("auth required "+found[0]+" "+options+"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove("/etc/pam.d/" + service) })
	return service
}

// Tests fprintd's own PAM module, unchanged. GDM and KDE use this module.
func TestFprintModule(t *testing.T) {
	service := pam(t, "timeout=10 max-tries=3")
	h := newFprintHouse(t, tablet.Options{})
	h.enrol(t, "nobody", stage.Alice)
	login := func() (string, bool) {
		out, code := h.run(t, 0, "pamtester", service, "nobody", "authenticate")
		return out, code == 0
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	for range 20 { // the module would fail if a signal came before the answer to its call
		if out, in := login(); !in || !strings.Contains(out, "Place your finger on the fingerprint reader") {
			t.Fatalf("the user: %s\n%s", out, h.log)
		}
	}
	h.camera.Play(stage.Show{})
	begun := time.Now()
	if out, in := login(); in || strings.Contains(out, "Failed to match") || time.Since(begun) > 5*time.Second {
		t.Errorf("nobody is seen: %s after %v", out, time.Since(begun))
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Bob, 9)})
	if out, in := login(); in || strings.Count(out, "Failed to match") != 1 { // a second try would come too soon
		t.Errorf("somebody else: %s", out)
	}
	if st, err := h.a.Status("nobody"); err != nil || st.Wait == 0 {
		t.Errorf("the failure was not counted: %+v, %v", st, err)
	}
	h.camera.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	if out, in := login(); in {
		t.Errorf("the user, too soon after a failure: %s", out)
	}
	root := h.client(t, 0)
	if err := root.PasswordUsed(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	if out, in := login(); !in {
		t.Errorf("after the password: %s", out)
	}
	// The module notices at once that the service has gone.
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	done := make(chan time.Duration, 1)
	go func() {
		begun := time.Now()
		login()
		done <- time.Since(begun)
	}()
	for now := 0; now == 0; now, _ = h.camera.Uses() {
		time.Sleep(time.Millisecond)
	}
	h.conn.Close()
	if took := <-done; took > 5*time.Second {
		t.Errorf("the module waited %v for a service that had gone", took)
	}
	h.stop()
}

// finger is a client that uses fprintd's names.
type finger struct {
	conn    *dbus.Conn
	o       dbus.BusObject
	signals chan *dbus.Signal
}

func (h *fprintHouse) finger(t *testing.T, uid int) finger {
	t.Helper()
	conn := dial(t, h.address, uid)
	f := finger{conn, conn.Object(bus.FprintName, bus.FprintPath), make(chan *dbus.Signal, 64)}
	conn.Signal(f.signals)
	return f
}

func (f finger) call(method string, args ...any) error {
	return f.o.Call(bus.FprintDevice+"."+method, 0, args...).Err
}

// verify starts a verification, and returns its last result.
func (f finger) verify(t *testing.T) string {
	t.Helper()
	if err := f.call("VerifyStart", "any"); err != nil {
		return err.Error()
	}
	selected := false
	for {
		select {
		case sig := <-f.signals:
			switch {
			case sig.Name == bus.FprintDevice+".VerifyFingerSelected":
				selected = true
			case sig.Name == bus.FprintDevice+".VerifyStatus" && sig.Body[1] == true:
				if !selected {
					t.Error("no finger was selected")
				}
				return sig.Body[0].(string)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no last word comes")
		}
	}
}

func errorName(err error) string {
	var failed dbus.Error
	if errors.As(err, &failed) {
		return failed.Name
	}
	return fmt.Sprint(err)
}

// The service refuses the same calls as fprintd, with errors of the same names.
func TestFprintErrors(t *testing.T) {
	h := newFprintHouse(t, tablet.Options{Policy: tablet.Policy{Deadline: time.Minute}})
	h.enrol(t, "nobody", stage.Alice)
	h.polkit.set(nobody, "verify", true)
	h.camera.Play(stage.Show{Pace: time.Millisecond})
	f, other := h.finger(t, nobody), h.finger(t, nobody)
	want := func(f finger, name, method string, args ...any) {
		t.Helper()
		got := strings.TrimPrefix(errorName(f.call(method, args...)), "net.reactivated.Fprint.Error.")
		if got != name {
			t.Errorf("%s %v: %s, want %s", method, args, got, name)
		}
	}
	const fine = "<nil>"
	for _, method := range []string{"Release", "VerifyStop"} {
		want(f, "ClaimDevice", method)
	}
	want(f, "ClaimDevice", "VerifyStart", "any")
	want(f, fine, "Claim", "")
	want(f, "AlreadyInUse", "Claim", "")
	want(f, "NoActionInProgress", "VerifyStop")
	want(f, "NoActionInProgress", "EnrollStop")
	want(f, "InvalidFingername", "VerifyStart", "left-thumb")
	want(f, fine, "VerifyStart", "any")
	want(f, "AlreadyInUse", "VerifyStart", "any")
	want(other, "AlreadyInUse", "VerifyStart", "any")
	want(other, "AlreadyInUse", "VerifyStop")
	want(f, fine, "VerifyStop")
	want(f, "NoActionInProgress", "VerifyStop")
	want(f, "PermissionDenied", "EnrollStart", "right-thumb")
	want(f, "PermissionDenied", "DeleteEnrolledFingers2")
	want(f, "PermissionDenied", "DeleteEnrolledFinger", "right-index-finger")
	want(f, "PermissionDenied", "DeleteEnrolledFingers", "nobody")
	want(f, fine, "Release")
	want(f, "ClaimDevice", "Release")
	// A claim on one interface is no claim on the other interface.
	want(f, fine, "Claim", "nobody")
	own := f.conn.Object(bus.Name, bus.Path)
	for _, method := range []string{"Release", "VerifyStart", "VerifyStop", "EnrollStart"} {
		if err := own.Call(bus.Interface+"."+method, 0).Err; errorName(err) != "org.faceauth.Error.ClaimDevice" {
			t.Errorf("%s by the other interface: %v", method, err)
		}
	}
	if err := own.Call(bus.Interface+".Claim", 0, "").Err; errorName(err) != "org.faceauth.Error.AlreadyInUse" {
		t.Errorf("a second claim by the other interface: %v", err)
	}
	want(f, fine, "Release")
}

// The quotas of all calls apply to fprintd's names, too.
func TestFprintFlood(t *testing.T) {
	h := newFprintHouse(t, tablet.Options{})
	h.enrol(t, "nobody", stage.Alice)
	f := h.finger(t, games)
	refused := 0
	for range 300 {
		err := f.o.Call("org.freedesktop.DBus.Properties.GetAll", 0, bus.FprintDevice).Err
		if errorName(err) == "org.faceauth.Error.TooManyRequests" {
			refused++
		} else if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if refused > 0 {
			return
		}
	}
	t.Error("300 calls at once were all answered")
}

// The interface is described as fprintd describes it.
func TestFprintDescription(t *testing.T) {
	h := newFprintHouse(t, tablet.Options{})
	conn := dial(t, h.address, games)
	for path, named := range map[dbus.ObjectPath]string{bus.FprintPath: bus.FprintDevice,
		"/net/reactivated/Fprint/Manager": bus.FprintManager} {
		node, err := introspect.Call(conn.Object(bus.FprintName, path))
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(filepath.Join(fixture.Fprintd(t), "usr/share/dbus-1/interfaces", named+".xml"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var theirs introspect.Node
		d := xml.NewDecoder(file)
		d.Strict = false // the texts of the description are entities
		if err := d.Decode(&theirs); err != nil {
			t.Fatal(err)
		}
		if got, want := summary(node.Interfaces[0]), summary(theirs.Interfaces[0]); !slices.Equal(got, want) {
			t.Errorf("%s has\n%q, and fprintd's\n%q", named, got, want)
		}
	}
	var all map[string]dbus.Variant
	if err := conn.Object(bus.FprintName, bus.FprintPath).Call("org.freedesktop.DBus.Properties.GetAll", 0,
		bus.FprintDevice).Store(&all); err != nil ||
		len(all) != 5 {
		t.Errorf("%v, %v", all, err)
	}
	if all["scan-type"].Value() != "press" || all["num-enroll-stages"].Value() != int32(4) ||
		all["finger-needed"].Value() != false {
		t.Errorf("properties %v", all)
	}
}

// summary lists the members of an interface, in order.
func summary(i introspect.Interface) (all []string) {
	args := func(list []introspect.Arg) (s string) {
		for _, a := range list {
			s += " " + strings.TrimPrefix(a.Direction, "out") + a.Type
		}
		return s
	}
	for _, m := range i.Methods {
		all = append(all, m.Name+args(m.Args))
	}
	for _, x := range i.Signals {
		all = append(all, x.Name+args(x.Args))
	}
	for _, p := range i.Properties {
		all = append(all, p.Name+" "+p.Type)
	}
	slices.Sort(all)
	return all
}

// fprintd's names are off by default. If another service has the names already, as with a real reader, it keeps them.
func TestFprintOff(t *testing.T) {
	h := newHouseOn(t, fixture.StartBus(t, fixture.LogindRules, fprintRules), tablet.Options{}, bus.Options{})
	conn := dial(t, h.address, 0)
	if err := conn.Object(bus.FprintName, bus.FprintPath).Call(bus.FprintDevice+".Claim", 0, "").Err; errorName(
		err) != "org.freedesktop.DBus.Error.ServiceUnknown" {
		t.Error(err)
	}
	// The names are not offered under the service's own name either.
	if err := conn.Object(bus.Name, bus.FprintPath).Call(bus.FprintDevice+".Claim", 0, "").Err; err == nil {
		t.Error("claimed")
	}
	// A reader's own service keeps its name, and logins continue under our name.
	b := fixture.StartBus(t, fixture.LogindRules, fprintRules)
	reader := dial(t, b.Address, 0)
	if r, err := reader.RequestName(bus.FprintName, dbus.NameFlagDoNotQueue); err != nil ||
		r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(r, err)
	}
	h = newHouseOn(t, b, tablet.Options{}, bus.Options{Fprint: true})
	if !strings.Contains(h.log.String(), "another program has the name net.reactivated.Fprint") {
		t.Errorf("the log says %s", h.log)
	}
	h.enrol(t, "nobody", stage.Alice)
}
