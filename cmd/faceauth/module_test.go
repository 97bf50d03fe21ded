// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/godbus/dbus/v5"
)

const sanitizers = "-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"

// pamLogin is a PAM service with the module alone, checked by sanitizers, and a program that logs in. What answers on
// its bus is up to the test.
type pamLogin struct {
	bus              fixture.Bus
	program, service string
}

func newPAMLogin(t *testing.T, options string) *pamLogin {
	t.Helper()
	dir := t.TempDir()
	services, so := filepath.Join(dir, "services"), filepath.Join(dir, "pam_faceauth.so")
	l := &pamLogin{bus: fixture.StartBus(t), program: filepath.Join(dir, "login"),
		service: fmt.Sprintf("faceauth-test-%d-%d", os.Getpid(), devices.Add(1))}
	for _, c := range []*exec.Cmd{
		exec.Command("make", "-s", "-C", fixture.Root(t), "pam-module", "CFLAGS="+sanitizers,
			fmt.Sprintf(`CPPFLAGS=-DSERVICES='"%s"'`, services), "PAM_MODULE="+so),
		exec.Command("sh", "-c", "gcc "+sanitizers+" -Wall -Werror -o "+l.program+" "+
			filepath.Join(fixture.Root(t), "cmd", "faceauth", "testdata", "login.c")+" -lpam"),
	} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", c.Args, err, out)
		}
	}
	path := filepath.Join("/etc/pam.d", l.service)
	if err := os.WriteFile(path, []byte("auth required "+so+" "+options+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	if err := os.WriteFile(services, []byte("greeter "+l.service+" turn\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return l
}

// command returns the program's login of a user.
func (l *pamLogin) command(user, signals string, out *fixture.Log) *exec.Cmd {
	c := exec.Command(l.program, l.service, user, signals)
	// PAM's and the bus's libraries keep memory until the program ends.
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+l.bus.Address, "ASAN_OPTIONS=detect_leaks=0:exitcode=99",
		"UBSAN_OPTIONS=print_stacktrace=1:exitcode=99", "LC_ALL=C")
	c.Stdout, c.Stderr = out, out
	return c
}

// impostor has the daemon's name on a bus, and calls answer for each call to it.
func impostor(t *testing.T, address string, answer func(*dbus.Conn, *dbus.Message)) {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if r, err := conn.RequestName(bus.Name, dbus.NameFlagDoNotQueue); err != nil ||
		r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(r, err)
	}
	messages := make(chan *dbus.Message, 1024)
	conn.Eavesdrop(messages)
	t.Cleanup(func() { conn.Eavesdrop(nil) })
	go func() {
		for {
			select {
			case <-conn.Context().Done():
				return
			case m := <-messages:
				if m.Type == dbus.TypeMethodCall {
					answer(conn, m)
				}
			}
		}
	}()
}

// reply answers a call, with an error if it has a name.
func reply(conn *dbus.Conn, m *dbus.Message, failed string, body ...any) {
	r := &dbus.Message{Type: dbus.TypeMethodReply, Flags: dbus.FlagNoReplyExpected, Body: body,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()), dbus.FieldDestination: m.Headers[dbus.FieldSender],
		}}
	if failed != "" {
		r.Type = dbus.TypeError
		r.Headers[dbus.FieldErrorName] = dbus.MakeVariant(failed)
	}
	if len(body) > 0 {
		r.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	conn.Send(r, nil)
}

// status sends a signal about a verification to the sender of a call.
func status(conn *dbus.Conn, m *dbus.Message, body ...any) {
	conn.Send(&dbus.Message{Type: dbus.TypeSignal, Flags: dbus.FlagNoReplyExpected, Body: body,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath: dbus.MakeVariant(bus.Path), dbus.FieldInterface: dbus.MakeVariant(bus.Interface),
			dbus.FieldMember: dbus.MakeVariant("VerifyStatus"), dbus.FieldDestination: m.Headers[dbus.FieldSender],
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
		}}, nil)
}

// nobodyAtAll is a user whom no system has, and so no system refuses.
const nobodyAtAll = "faceauth-test"

// Whatever a daemon answers, the module has no fault that a sanitizer finds, and lets nobody in without a match that
// was confirmed.
func TestModuleFuzzed(t *testing.T) {
	l := newPAMLogin(t, "noprompt timeout=1")
	names := []string{"org.faceauth.Error.", "org.faceauth.Error.MatchVoid", "org.faceauth.Error.TooSoon",
		"org.freedesktop.DBus.Error.Failed", "a.b", "org.faceauth." + strings.Repeat("x", 200)}
	words := []string{"", "verify-", "verify-match", "verify-no-match", "verify-looking", "verify-turn-left", "x",
		"verify-give-password", "enroll-completed", strings.Repeat("verify-", 9000), "verify-\x01\x1b[2J%s%n"}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	anything := func() []any {
		return [][]any{
			nil, {words[r.IntN(len(words))], r.IntN(2) == 0}, {words[r.IntN(len(words))], true},
			{words[r.IntN(len(words))]}, {true, "verify-match"}, {uint32(1), []string{"verify-match"}},
			{"verify-match", uint32(1)}, {[]byte(strings.Repeat("x", 1<<16))}, {dbus.MakeVariant("verify-match"), true},
		}[r.IntN(9)]
	}
	impostor(t, l.bus.Address, func(conn *dbus.Conn, m *dbus.Message) {
		mu.Lock()
		defer mu.Unlock()
		for range r.IntN(4) {
			if body := anything(); body != nil {
				status(conn, m, body...)
			}
		}
		confirm := m.Headers[dbus.FieldMember].Value() == "Confirm"
		switch r.IntN(4) {
		case 0:
			reply(conn, m, names[r.IntN(len(names))], anything()...)
		case 1, 2:
			if !confirm { // the only answer that lets in
				reply(conn, m, "", anything()...)
			}
		}
		for range r.IntN(3) {
			if body := anything(); body != nil {
				status(conn, m, body...)
			}
		}
	})
	logins := 200
	if testing.Short() {
		logins = 24
	}
	var all sync.WaitGroup
	room := make(chan struct{}, 8)
	for i := range logins {
		all.Add(1)
		room <- struct{}{}
		go func() {
			defer all.Done()
			defer func() { <-room }()
			out := new(fixture.Log)
			err := l.command(nobodyAtAll, "default", out).Run()
			if said := out.String(); err != nil || strings.Contains(said, "answer 0") ||
				!strings.Contains(said, "answer ") {
				t.Errorf("login %d: %v\n%.3000s", i, err, out)
			}
		}()
	}
	all.Wait()
}

// Whatever bytes a bus sends, in whatever pieces, the module's client reads nothing else.
func TestModuleBytes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bus")
	if out, err := exec.Command("sh", "-c", "cd "+fixture.Root(t)+" && gcc -D_GNU_SOURCE -Drecv=feed "+sanitizers+
		" -Wall -Werror -o "+program+" cmd/faceauth/testdata/bus.c tablet/pam/bus.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := rand.New(rand.NewPCG(3, 4))
	message := func(types string, body ...any) []byte {
		m := &dbus.Message{Type: dbus.Type(2 + r.IntN(3)), Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldSender:      dbus.MakeVariant([]string{":1.1", "org.freedesktop.DBus", ""}[r.IntN(3)]),
			dbus.FieldReplySerial: dbus.MakeVariant(uint32(1 + r.IntN(5))),
			dbus.FieldPath:        dbus.MakeVariant(bus.Path), dbus.FieldInterface: dbus.MakeVariant(bus.Interface),
			dbus.FieldMember:    dbus.MakeVariant([]string{"VerifyStatus", "NameOwnerChanged"}[r.IntN(2)]),
			dbus.FieldErrorName: dbus.MakeVariant("org.faceauth.Error.TooSoon"),
			dbus.FieldSignature: dbus.MakeVariant(dbus.ParseSignatureMust(types)),
		}}
		var b bytes.Buffer
		order := []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}[r.IntN(2)]
		if err := m.EncodeTo(&b, order); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const greeting = "DATA\r\nOK 1234\r\n"
	// read has the client read streams, and returns the number of understood messages and of those with read arguments.
	read := func(streams ...[][]byte) (understood, arguments int) {
		var all bytes.Buffer
		for _, pieces := range streams {
			for _, p := range append(pieces, nil) {
				all.Write(binary.NativeEndian.AppendUint32(nil, uint32(len(p))))
				all.Write(p)
			}
		}
		c := exec.Command(program)
		c.Stdin = &all
		out, err := c.CombinedOutput()
		if _, scan := fmt.Sscan(string(out), &understood, &arguments); err != nil || scan != nil {
			t.Fatalf("%v: %.3000s", err, out)
		}
		return understood, arguments
	}
	// A message that is too long is left out, and no other.
	status, long := message("sb", "verify-match", true), message("s", strings.Repeat("x", 1<<16))
	if understood, arguments := read([][]byte{[]byte(greeting), status, long, message(""), status},
		[][]byte{[]byte("REJECTED\r\n"), status}); understood != 3 || arguments != 2 {
		t.Errorf("%d messages understood, the arguments of %d", understood, arguments)
	}
	var streams [][][]byte
	for range 3000 {
		pieces := [][]byte{[]byte(greeting)}
		if r.IntN(8) == 0 {
			pieces[0] = bytes.Repeat([]byte{'D'}, 9000) // a line that does not end
		}
		for range r.IntN(20) {
			body := [][]any{nil, {"verify-match", true}, {"verify-looking", false}, {bus.Name, ":1.1", ""},
				{strings.Repeat("x", 7700+r.IntN(500))}}[r.IntN(5)] // about as much as the client reads at once
			types := dbus.SignatureOf(body...).String()
			if r.IntN(4) == 0 {
				types = []string{"", "sb", "s", "sss"}[r.IntN(4)]
			}
			m := message(types, body...)
			for range r.IntN(3) {
				m[r.IntN(min(len(m), 240))] = []byte{0, 1, 2, 's', 'g', 'u', 0x1f, 0xff}[r.IntN(8)]
			}
			pieces = append(pieces, m)
		}
		streams = append(streams, pieces)
	}
	if understood, arguments := read(streams...); arguments < 1000 {
		t.Errorf("%d messages understood, the arguments of %d", understood, arguments)
	}
}

// A match lets in only after the daemon's answer to Confirm, however often it says that there is one.
func TestModuleConfirms(t *testing.T) {
	l := newPAMLogin(t, "noprompt timeout=1")
	asked := make(chan bool, 99)
	impostor(t, l.bus.Address, func(conn *dbus.Conn, m *dbus.Message) {
		confirm := m.Headers[dbus.FieldMember].Value() == "Confirm"
		if confirm {
			asked <- true
		} else {
			reply(conn, m, "")
		}
		for range 3 {
			status(conn, m, "verify-match", true)
		}
	})
	out := new(fixture.Log)
	if err := l.command(nobodyAtAll, "default", out).Run(); err != nil || strings.Contains(out.String(), "answer 0") ||
		!strings.Contains(out.String(), "answer ") || len(asked) == 0 {
		t.Errorf("%v, asked %d times: %s", err, len(asked), out)
	}
}

// ^C ends the wait for the camera at once, and comes to the program, also if the program handles or ignores it as sudo
// and login do. A daemon that stops answering ends it within three seconds, with a word.
func TestModuleWaits(t *testing.T) {
	l := newPAMLogin(t, "")
	var mu sync.Mutex
	hangs := false
	looking := make(chan struct{}, 64)
	impostor(t, l.bus.Address, func(conn *dbus.Conn, m *dbus.Message) {
		mu.Lock()
		defer mu.Unlock()
		if hangs {
			return
		}
		reply(conn, m, "")
		if m.Headers[dbus.FieldMember].Value() == "VerifyStart" {
			looking <- struct{}{}
		}
	})
	for _, signals := range []string{"handle", "ignore", "default", "a daemon that hangs"} {
		t.Run(signals, func(t *testing.T) {
			out := new(fixture.Log)
			c := l.command(nobodyAtAll, signals, out)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-looking:
			case <-time.After(10 * time.Second):
			}
			time.Sleep(3500 * time.Millisecond) // longer than a silent daemon is waited for
			if !strings.Contains(out.String(), "press Enter") || strings.Contains(out.String(), "answer") {
				c.Process.Kill()
				t.Fatalf("it does not wait: %s", out)
			}
			begun, most := time.Now(), time.Second
			if signals == "a daemon that hangs" {
				mu.Lock()
				hangs = true
				mu.Unlock()
				most = 3 * time.Second
			} else if err := c.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			err := c.Wait()
			if took := time.Since(begun); took > most {
				t.Errorf("it ended after %v", took)
			}
			want := map[string]string{"handle": "interrupted 1", "ignore": "interrupted 0",
				"a daemon that hangs": "The camera or the service has failed"}[signals]
			if signals == "default" {
				if err == nil {
					t.Errorf("the signal did not come to the program: %s", out)
				}
			} else if err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The compiler's analyzer finds nothing in the module.
func TestModuleAnalyzed(t *testing.T) {
	out, err := exec.Command("make", "-s", "-C", fixture.Root(t), "pam-module", "CFLAGS=-O2 -fanalyzer",
		"PAM_MODULE="+filepath.Join(t.TempDir(), "pam_faceauth.so")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
