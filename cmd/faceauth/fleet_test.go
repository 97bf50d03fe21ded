// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
)

// spoken is the output of a running command so far.
type spoken struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// fleetServer runs faceauth fleet serve until stop is called. stop returns the exit code.
func fleetServer(t *testing.T, args ...string) (out *spoken, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, words := &spoken{}, &spoken{}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"fleet", "serve", "--listen", "127.0.0.1:0"}, args...), out, words)
	}()
	var once sync.Once
	code := 0
	stop = func() int {
		once.Do(func() { cancel(); code = <-done })
		return code
	}
	t.Cleanup(func() { stop() })
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s := out.String(); strings.Contains(s, "--token ") && strings.HasSuffix(s, "\n") ||
			strings.Contains(s, "faceauth fleet invite") {
			return out, stop
		}
		select {
		case c := <-done:
			done <- c
			t.Fatalf("serve ended with %d: %s", c, words)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("serve says nothing: %s %s", out, words)
		}
	}
}

// One command starts a fleet, and each device joins with one command.
func TestFleetCommands(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	dir := t.TempDir()
	do := func(want int, args ...string) (out, words string) {
		t.Helper()
		var o, e bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if code := run(ctx, append([]string{"fleet"}, args...), &o, &e); code != want {
			t.Fatalf("fleet %s: exit code %d, want %d: %s%s", strings.Join(args, " "), code, want, &o, &e)
		}
		return o.String(), e.String()
	}
	says := func(text, pattern string) {
		t.Helper()
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%q does not match %s", text, pattern)
		}
	}
	_, words := do(badUsage, "devices")
	says(words, `there is no server of a fleet in .*fleet-server; run: faceauth fleet serve`)

	out, stop := fleetServer(t)
	says(out.String(), `^the admin key of the fleet is .*\n.*\nthe fleet is at tls://127\.0\.0\.1:\d+\n  id: A[A-Z0-9]{55}\n  devices: 0\non the device that is to join, until \S+ \S+, once:\n  faceauth fleet join --token \S+\n$`)
	token := strings.Fields(out.String()[strings.Index(out.String(), "--token "):])[1]
	_, words = do(0, "devices")
	says(words, "no device has joined yet")
	door := filepath.Join(dir, "door")
	printed, _ := do(0, "join", "--token", token, "--name", "door", "--state", door)
	says(printed, `^this device is door, U[A-Z0-9]{55}, in fleet A[A-Z0-9]{55}\nit shares all people;`)
	if info, err := os.Stat(filepath.Join(door, "device.nk")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of the device: %v, %v", info, err)
	}
	_, words = do(refused, "join", "--token", token, "--name", "hall", "--state", filepath.Join(dir, "hall"))
	says(words, `this token was used already`)
	_, words = do(badUsage, "join", "--token", token[:40], "--name", "x", "--state", filepath.Join(dir, "x"))
	says(words, "incomplete or has a wrong character")
	_, words = do(refused, "join", "--token", token, "--name", "x", "--state", filepath.Join(dir, "y"))
	says(words, "used already")
	_, words = do(badUsage, "join", "http://x", "--token", token, "--name", "x", "--state", filepath.Join(dir, "x"))
	says(words, `begins with "http"`)
	_, words = do(badUsage, "join", "--token", token, "--name", "a\tb", "--state", filepath.Join(dir, "x"))
	says(words, "unusable name of a device")

	printed, _ = do(0, "invite", "--json", "--expires", "2h", "--people", strings.Repeat("0f", 16))
	var invited struct{ Token string }
	if err := json.Unmarshal([]byte(printed), &invited); err != nil {
		t.Fatal(err)
	}
	_, words = do(badUsage, "invite", "--people", "alice")
	says(words, "alice")
	_, words = do(badUsage, "invite", "--expires", "1s")
	says(words, "1m")
	printed, _ = do(0, "join", "--token", invited.Token, "--name", "tablet", "--state", filepath.Join(dir, "tablet"))
	says(printed, "it shares 1 person, and those it enrols")
	printed, _ = do(0, "devices")
	says(printed, `(?m)^NAME +ID +SINCE +LAST SEEN +PEOPLE +STATE\ndoor +U\S+ +\d{4}-\d\d-\d\d +\S.* +all +`)
	printed, _ = do(failed, "check")
	says(printed, `(?m)^door: .*`)

	d, err := fleet.Open(door, fleet.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	follow, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(follow, d.Dial) }()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		printed, _ = do(0, "devices")
		if regexp.MustCompile(`(?m)^door +\S+ +\S+ +now +all +in step$`).MatchString(printed) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the device is not in step: %s", printed)
		}
	}
	end()
	<-ended
	printed, _ = do(0, "allow", "door")
	says(printed, "^door can forget more people today\n$")
	_, words = do(badUsage, "allow", "kitchen")
	says(words, `no device of that name or id: "kitchen"; for a list: faceauth fleet devices`)
	printed, _ = do(0, "revoke", "door")
	says(printed, "^door is revoked\n$")
	do(0, "revoke", "door") // again
	_, words = do(badUsage, "revoke", "kitchen")
	says(words, `no device of that name or id: "kitchen"; for a list: faceauth fleet devices`)
	printed, _ = do(0, "devices")
	says(printed, `(?m)^door .*revoked$`)
	if code := stop(); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
	_, words = do(badUsage, "devices")
	says(words, "does not run, or does not answer; start it: faceauth fleet serve")

	// After a restart it is the same fleet.
	out, stop = fleetServer(t)
	says(out.String(), `devices: 1\nfor another device, print a token: faceauth fleet invite`)
	if code := stop(); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
	for _, args := range [][]string{
		{"serve", "--quota", "0"}, {"serve", "--replicas", "0"}, {"serve", "--replicas", "3"},
		{"serve", "--most-devices", "0"}, {"serve", "x"},
		{"serve", "--nats", "tls://a:1", "--listen", ":1"}, {"revoke"},
		{"join", "a", "b"}, {"join", "--timeout", "0s", "--token", token, "--name", "x"},
		{"invite", "--timeout", "-1s"},
	} {
		do(badUsage, args...)
	}
	do(badUsage, "serve", "--listen", "here")
}

// The lists of devices say what is wrong with each, and why the server or other devices hold it back.
func TestFleetDeviceLists(t *testing.T) {
	now := time.Now()
	well := &fleet.Status{InStep: true}
	device := func(id string, s *fleet.Status) hub.Device {
		return hub.Device{Member: fleet.Member{ID: id, Name: id, Scope: fleet.Scope{All: true}, Admitted: now},
			State: hub.State{Connected: s != nil, Status: s}}
	}
	liar := device("liar", well)
	liar.Limited = "it sends too much and is slowed down"
	off := device("off", nil)
	off.Seen = now.Add(-73 * time.Hour)
	liar.Skipped = map[string]string{"door": "unsigned", "hall": "unsigned", "old": "newer"}
	all := []hub.Device{device("door", well), liar, device("keyless", &fleet.Status{InStep: true, Keys: 2}),
		device("hall", &fleet.Status{InStep: true, Refused: map[string]string{"liar": "unsigned"}}), off}
	var out bytes.Buffer
	if err := printDevices(&out, all, now); err != nil {
		t.Fatal(err)
	}
	const skipped = `values of it are skipped by 1 device: "newer"; values of it are skipped by 2 devices: "unsigned"`
	day := now.Local().Format("2006-01-02")
	for _, want := range []string{
		"door      door      " + day + "   now          all      in step\n",
		"in step; it sends too much and is slowed down; " + skipped + "\n", "all      lacks 2 keys\n",
		"off       off       " + day + "   3 days ago   all      away\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	out.Reset()
	err := printCheck(&out, all, now, false)
	const want = "door: ok\nliar: it sends too much and is slowed down; " + skipped + "\n" +
		"keyless: it lacks the keys of 2 people; another full device must be online to give them\n" +
		"hall: it skips values of \"liar\": \"unsigned\"\noff: not reachable, last seen: 3 days ago\n"
	if out.String() != want || err == nil || err.Error() != "4 of 5 devices need attention" {
		t.Errorf("%v\n%s", err, &out)
	}
}
