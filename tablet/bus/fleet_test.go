// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/godbus/dbus/v5/introspect"
)

// The system user games stands in for faceauth-fleet, by a rule of the bus and by an option.
const (
	fleetRules = `<policy user="games">
<allow send_destination="org.faceauth" send_interface="org.faceauth.Fleet"/></policy>`
	bin = 2 // another user
)

var person = strings.Repeat("0a", 16)

func newFleetHouse(t *testing.T, o bus.Options, rules ...string) *house {
	t.Helper()
	return newHouseOn(t, fixture.StartBus(t, append(rules, fixture.LogindRules)...), tablet.Options{}, o)
}

// fleet calls the methods of the fleet as a user.
func (h *house) fleet(t *testing.T, uid int) *bus.Fleet {
	t.Helper()
	f, err := bus.NewFleet(t.Context(), dial(t, h.address, uid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func faces(all ...[]float32) (told []tablet.FleetFace) {
	for _, x := range all {
		told = append(told, tablet.FleetFace{Vector: x, Taken: time.Unix(1000, 0)})
	}
	return told
}

// Tests the whole way over the bus: an account follows a person, and the fleet's process sends faces. The first login
// ends with a word that asks for the password, later logins do not, and a forgotten person is removed.
func TestFleet(t *testing.T) {
	h := newFleetHouse(t, bus.Options{FleetUser: "games"}, fleetRules)
	root, fleet := h.client(t, 0), h.fleet(t, games)
	if err := root.Follow(t.Context(), "nobody", "Alice", false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-fleet.Daemon:
	case <-time.After(10 * time.Second):
		t.Fatal("the fleet's process is not told")
	}
	space, all, err := fleet.Followed(t.Context())
	if err != nil || space != stage.Space.ID ||
		!slices.Equal(all, []tablet.Followed{{User: "nobody", Asked: "Alice"}}) {
		t.Fatalf("%s, %v, %v", space, all, err)
	}
	if err := fleet.Found(t.Context(), "nobody", "Alice", person); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Faces(t.Context(), "nobody", person, space,
		faces(stage.Alice, stage.At(stage.Alice, .2))); err != nil {
		t.Fatal(err)
	}
	since := time.Unix(1700000000, 0).UTC()
	if err := fleet.Says(t.Context(), "nobody", bus.InStep, since); err != nil {
		t.Fatal(err)
	}
	if s, err := root.Status(t.Context(), "nobody"); err != nil || s.Fleet == nil ||
		*s.Fleet != (tablet.FleetStatus{Asked: "Alice", Number: person, Faces: 2, Word: bus.InStep, Since: since}) {
		t.Fatalf("%+v, %+v, %v", s, s.Fleet, err)
	}
	login := func(who []float32) string {
		t.Helper()
		var frames []face.Frame
		for i := range 9 {
			frames = append(frames, stage.Seen(stage.At(who, float32(i)/50), 1)...)
		}
		h.camera.Play(stage.Show{Frames: frames})
		c := h.client(t, 0)
		defer c.Close()
		word, err := c.Verify(t.Context(), "nobody", func(string) {})
		if err != nil {
			return name(err)
		}
		return word
	}
	if w := login(stage.Alice); w != "verify-give-password" {
		t.Fatal(w)
	}
	if err := root.PasswordUsed(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	if w := login(stage.Alice); w != "verify-match" {
		t.Error(w)
	}
	if err := fleet.Forgotten(t.Context(), "nobody", person); err != nil {
		t.Fatal(err)
	}
	if w := login(stage.Alice); w != "NoProfile" {
		t.Error(w)
	}
	if err := root.Follow(t.Context(), "nobody", "", false); name(err) != "NoProfile" {
		t.Error(err)
	}

	// The fleet gets the faces that this device enrols if an administrator allowed it.
	if err := root.Follow(t.Context(), "nobody", person, true); err != nil {
		t.Fatal(err)
	}
	for len(fleet.Daemon) > 0 {
		<-fleet.Daemon
	}
	h.enrol(t, "nobody", stage.Alice)
	select {
	case <-fleet.Daemon:
	case <-time.After(10 * time.Second):
		t.Error("the fleet's process is not told of an enrolment")
	}
	if own, err := fleet.Own(t.Context(), "nobody", person); err != nil || len(own) != 4 ||
		!slices.Equal(own[1].Vector, stage.At(stage.Alice, .01)) {
		t.Errorf("%v, %v", own, err)
	}
	if err := root.Follow(t.Context(), "nobody", person, false); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Own(t.Context(), "nobody", person); !bus.NotFollowed(err) {
		t.Errorf("they are given away after that has ended: %v", err)
	}
	fleet.Close()
	select {
	case <-fleet.Gone():
	case <-time.After(10 * time.Second):
		t.Error("the connection is not gone")
	}
	for _, secret := range []string{"confidence", "distance", "vector"} {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log speaks of a %s:\n%s", secret, h.log)
		}
	}
}

// A face that is taken back while a login uses it lets nobody in.
func TestFleetInterrupts(t *testing.T) {
	for name, tell := range map[string]func(context.Context, *bus.Fleet) error{
		"forgotten": func(ctx context.Context, f *bus.Fleet) error { return f.Forgotten(ctx, "nobody", person) },
		"retracted": func(ctx context.Context, f *bus.Fleet) error {
			return f.Faces(ctx, "nobody", person, stage.Space.ID, nil)
		},
		"revoked": func(ctx context.Context, f *bus.Fleet) error { return f.Revoked(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouseOn(t, fixture.StartBus(t, fixture.LogindRules),
				tablet.Options{Policy: tablet.Policy{Deadline: 30 * time.Second}}, bus.Options{})
			fleet := h.fleet(t, 0)
			if err := h.a.Follow("nobody", person, false); err != nil {
				t.Fatal(err)
			}
			if err := fleet.Faces(t.Context(), "nobody", person, stage.Space.ID, faces(stage.Alice)); err != nil {
				t.Fatal(err)
			}
			h.camera.Play(stage.Show{Pace: 20 * time.Millisecond})
			looking, word := make(chan struct{}, 100), make(chan string, 1)
			go func() {
				w, err := h.client(t, 0).Verify(t.Context(), "nobody", func(string) { looking <- struct{}{} })
				if err != nil {
					w = err.Error()
				}
				word <- w
			}()
			<-looking
			if err := tell(t.Context(), fleet); err != nil {
				t.Fatal(err)
			}
			select {
			case w := <-word:
				if w != "verify-interrupted" {
					t.Error(w)
				}
			case <-time.After(10 * time.Second):
				t.Error("it looks on")
			}
		})
	}
}

// Only the fleet's user and root may call the methods of the fleet: both the bus and the service refuse other users.
func TestFleetCallers(t *testing.T) {
	const denied = "PermissionDenied"
	allow := strings.ReplaceAll(fleetRules, "games", "bin") // a bus whose rules allow too much
	for _, c := range []struct {
		name, rules string
		uid         int
		want        string
	}{
		{"root", "", 0, ""},
		{"the fleet's user", fleetRules, games, ""},
		{"another user", "", bin, "bus"},
		{"another user whom the bus lets", allow, bin, denied},
		{"the user of the daemon's account", strings.ReplaceAll(fleetRules, "games", "nobody"), nobody, denied},
	} {
		h := newFleetHouse(t, bus.Options{FleetUser: "games"}, c.rules)
		if err := h.a.Follow("nobody", person, true); err != nil {
			t.Fatal(err)
		}
		f := h.fleet(t, c.uid)
		for _, x := range []struct {
			method string
			call   func() error
		}{
			{"Followed", func() error { _, _, err := f.Followed(t.Context()); return err }},
			{"Found", func() error { return f.Found(t.Context(), "nobody", person, person) }},
			{"Faces", func() error { return f.Faces(t.Context(), "nobody", person, stage.Space.ID, nil) }},
			{"Own", func() error { _, err := f.Own(t.Context(), "nobody", person); return err }},
			{"Says", func() error { return f.Says(t.Context(), "nobody", bus.Away, time.Now()) }},
			{"Revoked", func() error { return f.Revoked(t.Context()) }},
			{"Forgotten", func() error { return f.Forgotten(t.Context(), "nobody", person) }},
		} {
			if x.method == "Forgotten" && c.want == "" {
				continue // this call would end the following
			}
			got := name(x.call())
			if strings.Contains(got, "Rejected send message") {
				got = "bus"
			}
			if got != c.want {
				t.Errorf("%s by %s: %q, want %q", x.method, c.name, got, c.want)
			}
		}
		if s, err := h.a.Status("nobody"); err != nil || s.Fleet.Revoked != (c.want == "") {
			t.Errorf("%s: %+v, %v", c.name, s.Fleet, err)
		}
	}
}

// Invalid arguments are refused with an error that says why, and change nothing.
func TestFleetRefused(t *testing.T) {
	h := newFleetHouse(t, bus.Options{})
	f, conn := h.fleet(t, 0), dial(t, h.address, 0)
	if err := h.a.Follow("nobody", person, false); err != nil {
		t.Fatal(err)
	}
	if err := f.Faces(t.Context(), "nobody", person, stage.Space.ID, faces(stage.Alice)); err != nil {
		t.Fatal(err)
	}
	before, err := h.a.Status("nobody")
	if err != nil {
		t.Fatal(err)
	}
	call := func(method string, args ...any) error {
		return conn.Object(bus.Name, bus.Path).
			CallWithContext(t.Context(), bus.FleetInterface+"."+method, 0, args...).
			Err
	}
	type sent struct {
		Taken  int64
		Vector []byte
	}
	var many [][]float32
	for i := range 1000 {
		many = append(many, stage.At(stage.Alice, float32(i)/1000))
	}
	for _, c := range []struct {
		what string
		err  error
		says string
	}{
		{"not a number", f.Faces(t.Context(), "nobody", person, stage.Space.ID,
			faces(stage.Bob, stage.At(stage.Bob, float32(math.NaN())))), "face 2"},
		{"another space", f.Faces(t.Context(), "nobody", person, "other", faces(stage.Bob)), "another feature space"},
		{"too many", f.Faces(t.Context(), "nobody", person, stage.Space.ID, faces(many...)), "at most 32"},
		{"too long", f.Faces(t.Context(), "nobody", person, stage.Space.ID, faces(make([]float32, 1<<20))),
			"1048576 values, want 4"},
		{"half a value", call("Faces", "nobody", person, stage.Space.ID, []sent{{0, make([]byte, 15)}}),
			"face 1 has 15 bytes"},
		{"other types", call("Faces", "nobody", person, stage.Space.ID, "x"), "sssa(xay)"},
		{"another person", f.Faces(t.Context(), "nobody", strings.Repeat("0b", 16), stage.Space.ID, nil),
			"does not follow"},
		{"nobody's account", f.Faces(t.Context(), "games", person, stage.Space.ID, nil), "does not follow"},
		{"somebody unknown", f.Forgotten(t.Context(), "nobody", strings.Repeat("0b", 16)), "does not follow"},
		{"a name for a number", f.Found(t.Context(), "nobody", person, "alice"), "not a valid name or number"},
		{"a word of tomorrow", f.Says(t.Context(), "nobody", "tomorrow", time.Now()), "no such word"},
		{"an unknown method", call("Enroll"), "no method of that name"},
		{"a person that cannot be", h.client(t, 0).Follow(t.Context(), "nobody", "a\x01b", false),
			"neither the name nor the number"},
		{"no user", h.client(t, 0).Follow(t.Context(), "no such user", person, false), "no user of this system"},
		{"follows nobody", h.client(t, 0).Follow(t.Context(), "games", "", false), "no profile"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, c.err)
		}
		if after, err := h.a.Status("nobody"); err != nil || *after.Fleet != *before.Fleet {
			t.Fatalf("%s: %+v, %v", c.what, after.Fleet, err)
		}
	}
}

// The description names exactly the methods of the fleet.
func TestFleetDescription(t *testing.T) {
	h := newFleetHouse(t, bus.Options{})
	node, err := introspect.Call(dial(t, h.address, games).Object(bus.Name, bus.Path))
	if err != nil || len(node.Interfaces) != 2 || node.Interfaces[1].Name != bus.FleetInterface {
		t.Fatalf("%+v, %v", node, err)
	}
	there := bus.FleetSignatures()
	for _, m := range node.Interfaces[1].Methods {
		var got [2]string
		for _, a := range m.Args {
			got[map[string]int{"in": 0, "out": 1}[a.Direction]] += a.Type
		}
		if want, ok := there[m.Name]; !ok || want != got {
			t.Errorf("%s is described with %q, and has %q", m.Name, got, want)
		}
		delete(there, m.Name)
	}
	if len(there) > 0 {
		t.Errorf("not described: %v", there)
	}
	// A call that names no interface is a call of the device's interface.
	conn := dial(t, h.address, games)
	if err := conn.Object(bus.Name, bus.Path).CallWithContext(t.Context(), "Followed", 0).Err; err == nil {
		t.Error("the fleet's method is called without its interface")
	}
}
