// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
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
	c.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+l.bus.Address, "ASAN_OPTIONS=exitcode=99",
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

// Whatever a daemon answers, the module has no fault that a sanitizer finds, and lets nobody in without a match.
func TestSystemModuleFuzzed(t *testing.T) {
	t.Parallel()
	l := newPAMLogin(t, "noprompt timeout=1")
	names := []string{"org.faceauth.Error.", "org.faceauth.Error.ClaimDevice", "org.faceauth.Error.TooSoon",
		"org.freedesktop.DBus.Error.Failed", "a.b", "org.faceauth." + strings.Repeat("x", 200)}
	words := []string{"", "verify-", "verify-match", "verify-no-match", "verify-looking", "verify-turn-left", "x",
		"verify-give-password", "enroll-completed", strings.Repeat("verify-", 9000), "verify-\x01\x1b[2J%s%n"}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	anything := func() []any {
		body := [][]any{
			nil, {words[r.IntN(len(words))], r.IntN(2) == 0}, {words[r.IntN(len(words))], true},
			{words[r.IntN(len(words))]}, {true, "verify-match"}, {uint32(1), []string{"verify-match"}},
			{"verify-match", uint32(1)}, {[]byte(strings.Repeat("x", 1<<16))},
			{dbus.MakeVariant("verify-match"), true},
		}[r.IntN(9)]
		if len(body) == 2 && body[0] == "verify-match" && body[1] == true { // the only one that lets in
			return nil
		}
		return body
	}
	impostor(t, l.bus.Address, func(conn *dbus.Conn, m *dbus.Message) {
		mu.Lock()
		defer mu.Unlock()
		for range r.IntN(4) {
			if body := anything(); body != nil {
				status(conn, m, body...)
			}
		}
		switch r.IntN(4) {
		case 0:
			reply(conn, m, names[r.IntN(len(names))], anything()...)
		case 1, 2:
			reply(conn, m, "", anything()...)
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

// busClient builds the module's client of the bus, checked by sanitizers, in a program that testdata/bus.c describes.
func busClient(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "bus")
	out, err := exec.Command("sh", "-c", "cd "+fixture.Root(t)+" && gcc -D_GNU_SOURCE -Drecv=feed -Dsend=keep "+
		sanitizers+" -Wall -Werror -o "+program+" cmd/faceauth/testdata/bus.c tablet/pam/bus.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// read has the client read streams, and returns the lines that it prints.
func read(t *testing.T, program string, streams ...[][]byte) []string {
	t.Helper()
	var all bytes.Buffer
	for _, pieces := range streams {
		for _, p := range append(slices.Clip(pieces), nil) {
			all.Write(binary.NativeEndian.AppendUint32(nil, uint32(len(p))))
			all.Write(p)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Stdin = &all
	var out, failed bytes.Buffer
	c.Stdout, c.Stderr = &out, &failed
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %.3000s", err, failed.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// encode makes a message of a bus with fields of its header, and the line that the client prints for it.
func encode(t *testing.T, order binary.ByteOrder, kind dbus.Type, fields map[dbus.HeaderField]any,
	body ...any) ([]byte,
	string) {
	t.Helper()
	m := &dbus.Message{Type: kind, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{}}
	for f, x := range fields {
		m.Headers[f] = dbus.MakeVariant(x)
	}
	if len(body) > 0 && fields[dbus.FieldSignature] == nil {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var b bytes.Buffer
	if err := m.EncodeTo(&b, order); err != nil {
		t.Fatal(err)
	}
	serial, _ := m.Headers[dbus.FieldReplySerial].Value().(uint32)
	line := fmt.Sprintf("%d|%d|", kind, serial)
	for f := dbus.FieldPath; f <= dbus.FieldSignature; f++ {
		line += "|"
		if v, ok := m.Headers[f]; ok && f != dbus.FieldReplySerial {
			line += strings.Trim(fmt.Sprint(v.Value()), `@"`)
		}
	}
	if sig, _ := m.Headers[dbus.FieldSignature].Value().(dbus.Signature); slices.Contains([]string{"s", "sb", "sss"},
		sig.String()) {
		for _, x := range body {
			line += "|" + strings.NewReplacer("true", "1", "false", "0").Replace(fmt.Sprint(x))
		}
	}
	return b.Bytes(), line
}

const greeting = "DATA\r\nOK 1234\r\n"

// The client understands what a bus sends, in whatever pieces it comes, and nothing that is malformed.
func TestSystemModuleReads(t *testing.T) {
	t.Parallel()
	program := busClient(t)
	r := rand.New(rand.NewPCG(5, 6))
	text := func() string { return strings.Repeat("xyz", 30)[:r.IntN(90)] }
	orders := []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}
	full := map[dbus.HeaderField]any{dbus.FieldPath: dbus.ObjectPath("/"), dbus.FieldInterface: "a.b",
		dbus.FieldMember: "M", dbus.FieldErrorName: "a.b.c", dbus.FieldReplySerial: uint32(0x01020304),
		dbus.FieldDestination: ":1.23", dbus.FieldSender: ":1.4567", dbus.FieldUnixFDs: uint32(7)}
	const gone = "Connection reset by peer"
	var want []string
	stream := []byte(greeting)
	for range 400 {
		fields := map[dbus.HeaderField]any{}
		for f, x := range full {
			if r.IntN(3) > 0 || f < dbus.FieldDestination { // each kind needs some of them
				fields[f] = x
			}
		}
		body := [][]any{nil, {text()}, {text(), r.IntN(2) == 0}, {text(), text(), text()}, {true, text()},
			{uint32(1), text()}, {strings.Repeat("x", 9000)}}[r.IntN(7)]
		m, line := encode(t, orders[r.IntN(2)], dbus.Type(2+r.IntN(3)), fields, body...)
		if stream = append(stream, m...); len(m) <= 8192 {
			want = append(want, line)
		}
	}
	var pieces [][]byte
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN([]int{1, 20, 500}[r.IntN(3)]))
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	got := read(t, program, pieces)
	for i, line := range append(want, gone) {
		if i >= len(got) || got[i] != line {
			t.Fatalf("message %d: %q, not %q", i, got[min(i, len(got)-1)], line)
		}
	}

	// The longest message that is read has 8192 bytes.
	sized := func(size int) ([]byte, string) {
		fields := map[dbus.HeaderField]any{dbus.FieldReplySerial: uint32(2)}
		m, _ := encode(t, orders[0], dbus.TypeMethodReply, fields, "")
		return encode(t, orders[0], dbus.TypeMethodReply, fields, strings.Repeat("x", size-len(m)))
	}
	last, lastLine := sized(200)
	most, mostLine := sized(8192)
	more, _ := sized(8193)
	// raw is a message whose parts the test makes: the fields of the header, of length n, and the body.
	raw := func(head, fields string, n uint32, body string) []byte {
		b := binary.LittleEndian.AppendUint32([]byte(head), uint32(len(body)))
		b = binary.LittleEndian.AppendUint32(append(b, "\x01\x00\x00\x00"...), n)
		b = append(b, fields...)
		return append(append(b, make([]byte, (8-len(b)%8)%8)...), body...)
	}
	const (
		head    = "l\x02\x00\x01"
		huge    = "\xf0\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00"
		serial  = "\x05\x01u\x00\x02\x00\x00\x00"
		one     = serial + "\x08\x01g\x00\x01s\x00"
		three   = serial + "\x08\x01g\x00\x03sss\x00"
		hi      = "\x02\x00\x00\x00hi\x00"
		nothing = "2|2|||||||||s" // no arguments
	)
	answer := func(fields, body string) []byte { return raw(head, fields, uint32(len(fields)), body) }
	for name, c := range map[string]struct {
		start string
		bytes []byte
		want  []string // before the last message, if it is read
		end   string   // why it is not
	}{
		"good":                    {greeting, answer(one, hi), []string{nothing + "|hi"}, ""},
		"of 8192 bytes":           {greeting, most, []string{mostLine}, ""},
		"of 8193 bytes":           {greeting, more, nil, ""},
		"another version":         {greeting, raw("l\x02\x00\x02", one, uint32(len(one)), hi), nil, "Bad message"},
		"another order":           {greeting, raw("x\x02\x00\x01", one, uint32(len(one)), hi), nil, "Bad message"},
		"4 GB of fields":          {greeting, raw(head, one, 1<<32-1, hi), nil, gone},
		"4 GB of a body":          {greeting, []byte(head + huge), nil, gone},
		"text beyond the body":    {greeting, answer(one, "\x03\x00\x00\x00hi\x00"), []string{nothing}, ""},
		"4 GB of text":            {greeting, answer(one, "\xff\xff\xff\xffhi\x00"), []string{nothing}, ""},
		"text without its end":    {greeting, answer(one, "\x02\x00\x00\x00hix"), []string{nothing}, ""},
		"text, no byte after it":  {greeting, answer(one, "\x02\x00\x00\x00hi"), []string{nothing}, ""},
		"text with an end inside": {greeting, answer(one, "\x03\x00\x00\x00h\x00i\x00"), []string{nothing}, ""},
		"a body of half a word":   {greeting, answer(one, "\x00\x00"), []string{nothing}, ""},
		"no body":                 {greeting, answer(one, ""), []string{nothing}, ""},
		"one text of three":       {greeting, answer(three, hi), []string{"2|2|||||||||sss"}, ""},
		"an unknown field":        {greeting, answer(one+"\x00\xc8\x01s\x00"+hi, hi), []string{nothing + "|hi"}, ""},
		"an unknown type":         {greeting, answer(one+"\x00\x07\x01v\x00"+hi, hi), nil, ""},
		"two types":               {greeting, answer(one+"\x00\x07\x02ss\x00"+hi, hi), nil, ""},
		"a type without its end":  {greeting, answer(one+"\x00\x07\x01ss\x00\x00\x00"+hi, hi), nil, ""},
		"a field without its end": {greeting, answer(one+"\x00\x07\x01s\x00\x02\x00\x00\x00hix", hi), nil, ""},
		"half a field":            {greeting, answer(one+"\x00\x07\x01s", hi), nil, ""},
		"a field into the body":   {greeting, answer(one+"\x00\x07\x01s\x00\x05\x00\x00\x00:1", "456\x00"), nil, ""},
		"a refusal":               {"REJECTED EXTERNAL\r\n", nil, nil, "Permission denied"},
		"a refusal after DATA":    {"DATA\r\nERROR\r\n", nil, nil, "Permission denied"},
		"another word":            {"DATA\r\nOKAY\r\n", nil, nil, "Permission denied"},
		"a line without end":      {strings.Repeat("D", 9000), nil, nil, gone},
	} {
		t.Run(name, func(t *testing.T) {
			alone, want := slices.Concat(c.want, []string{c.end}), slices.Concat(c.want, []string{c.end})
			if c.end == "" {
				alone, want = slices.Concat(c.want, []string{gone}), slices.Concat(c.want, []string{lastLine, gone})
			}
			start := []byte(c.start)
			if got := read(t, program, [][]byte{slices.Concat(start, c.bytes, last)}); !slices.Equal(got, want) {
				t.Errorf("%q, not %q", got, want)
			}
			if got := read(t, program, [][]byte{start, c.bytes}); !slices.Equal(got, alone) { // nothing is behind it
				t.Errorf("alone: %q, not %q", got, alone)
			}
		})
	}
}

// The client writes calls as the bus wants them, whatever the lengths of their texts, and all of a call or nothing.
func TestSystemModuleCalls(t *testing.T) {
	t.Parallel()
	program := busClient(t)
	const room = 1 << 20
	call := func(room int, types string, texts ...string) ([]byte, syscall.Errno) {
		t.Helper()
		var out, failed bytes.Buffer
		c := exec.Command(program, "call", fmt.Sprint(room), types, texts[0], "305419896", texts[1], texts[2],
			texts[3])
		c.Stdout, c.Stderr = &out, &failed
		if err := c.Run(); c.ProcessState == nil || failed.Len() > 0 {
			t.Fatalf("%v: %.3000s", err, failed.String())
		}
		return out.Bytes(), syscall.Errno(c.ProcessState.ExitCode())
	}
	for n := range 9 {
		texts := make([]string, 4)
		for i := range texts {
			texts[i] = strings.Repeat("abcde", 9)[:n*(i+1)]
		}
		all := []any{texts[0], uint32(0x12345678), texts[1], texts[2], texts[3]}
		for i, types := range []string{"", "s", "su", "sus", "suss", "susss"} {
			b, errno := call(room, types, texts...)
			m, err := dbus.DecodeMessage(bytes.NewReader(b))
			if err != nil || errno != 0 {
				t.Fatalf("%q of %d: %v, %v: %q", types, n, err, errno, b)
			}
			want, _ := encode(t, binary.LittleEndian, dbus.TypeMethodCall, map[dbus.HeaderField]any{
				dbus.FieldPath: dbus.ObjectPath("/p"), dbus.FieldDestination: "a.b", dbus.FieldInterface: "c.d",
				dbus.FieldMember: "M"}, all[:i]...)
			w, err := dbus.DecodeMessage(bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			if len(b) != len(want) || m.Serial() != 1 || m.Type != w.Type || m.Flags != w.Flags ||
				!reflect.DeepEqual(m.Headers, w.Headers) || !slices.Equal(m.Body, w.Body) {
				t.Errorf("%q of %d: %v, not %v", types, n, m, w)
			}
		}
	}
	// A call of 2048 bytes is sent, and a longer one is not, nor is a part of one.
	some, _ := call(room, "s", strings.Repeat("x", 1000), "", "", "")
	for _, c := range []struct {
		more, room int
		want       syscall.Errno
	}{{0, room, 0}, {1, room, syscall.E2BIG}, {5000, room, syscall.E2BIG}, {0, 2047, syscall.EAGAIN},
		{0, 0, syscall.EAGAIN}} {
		b, errno := call(c.room, "s", strings.Repeat("x", 1000+2048-len(some)+c.more), "", "", "")
		if errno != c.want || errno == 0 && len(b) != 2048 || errno == syscall.E2BIG && len(b) > 0 {
			t.Errorf("%d more bytes, with room for %d: %v, %d bytes sent", c.more, c.room, errno, len(b))
		}
	}
	if b, errno := call(room, "susss", strings.Repeat("x", 5000), "", "", ""); errno != syscall.E2BIG || len(b) > 0 {
		t.Errorf("a long text before short ones: %v, %d bytes sent", errno, len(b))
	}
	// Without a bus there is an error and no socket; and no socket where a program writes what it says.
	b := fixture.StartBus(t)
	for _, c := range []struct {
		address string
		want    syscall.Errno
	}{
		{b.Address, 0}, {b.Address + ",guid=0;unix:path=/nowhere", 0}, {"unix:path=/nowhere", syscall.ENOENT},
		{"unix:path=/" + strings.Repeat("x", 99), syscall.ENOENT},
		{"unix:path=/" + strings.Repeat("x", 999), syscall.ENAMETOOLONG},
	} {
		open := exec.Command("sh", "-c", `exec "$0" open <&- >&-`, program)
		var failed bytes.Buffer
		open.Env, open.Stderr = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+c.address), &failed
		err := open.Run()
		if got := syscall.Errno(open.ProcessState.ExitCode()); got != c.want || failed.Len() > 0 {
			t.Errorf("%.40s: %d (%v), not %v: %s", c.address, got, err, c.want, failed.String())
		}
	}
}

// Whatever bytes a bus sends, in whatever pieces, the client reads nothing else.
func TestSystemModuleBytes(t *testing.T) {
	t.Parallel()
	program := busClient(t)
	r := rand.New(rand.NewPCG(3, 4))
	message := func(types string, body ...any) []byte {
		m, _ := encode(t, []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}[r.IntN(2)],
			dbus.Type(2+r.IntN(3)),
			map[dbus.HeaderField]any{
				dbus.FieldSender:      []string{":1.1", "org.freedesktop.DBus", ""}[r.IntN(3)],
				dbus.FieldReplySerial: uint32(1 + r.IntN(5)), dbus.FieldPath: bus.Path,
				dbus.FieldInterface: bus.Interface,
				dbus.FieldMember:    []string{"VerifyStatus", "NameOwnerChanged"}[r.IntN(2)],
				dbus.FieldErrorName: "org.faceauth.Error.TooSoon",
				dbus.FieldSignature: dbus.ParseSignatureMust(types),
			}, body...)
		return m
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
	arguments := 0
	for _, line := range read(t, program, streams...) {
		if strings.Count(line, "|") > 10 {
			arguments++
		}
	}
	if arguments < 1000 {
		t.Errorf("the arguments of %d messages were read", arguments)
	}
}

// A verdict by another program than the daemon does not count.
func TestSystemModuleForged(t *testing.T) {
	l := newPAMLogin(t, "noprompt timeout=60")
	forger, err := dbus.Connect(l.bus.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer forger.Close()
	heard := make(chan *dbus.Signal, 99)
	forger.Signal(heard)
	impostor(t, l.bus.Address, func(conn *dbus.Conn, m *dbus.Message) {
		reply(conn, m, "")
		if m.Headers[dbus.FieldMember].Value() != "Prepare" {
			return
		}
		// The bus has the daemon's answers before it has the forged signal, and this before the daemon's verdict.
		status(conn, &dbus.Message{Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldSender: dbus.MakeVariant(forger.Names()[0])}}, "go on", false)
		for s := range heard {
			if s.Name == bus.Interface+".VerifyStatus" {
				break
			}
		}
		status(forger, m, "verify-no-match", true)
		if err := forger.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil {
			t.Error(err)
		}
		status(conn, m, "verify-match", true)
	})
	out := new(fixture.Log)
	if err := l.command(nobodyAtAll, "default", out).Run(); err != nil || !strings.Contains(out.String(),
		"answer 0") {
		t.Errorf("%v: %s", err, out)
	}
}

// A daemon that says that the camera looks, or answers that it is there, is waited for as long as the option says, and
// no longer.
func TestSystemModuleTimeout(t *testing.T) {
	t.Parallel()
	l := newPAMLogin(t, "noprompt timeout=6")
	for _, says := range []string{"looking", "Ping"} {
		t.Run(says, func(t *testing.T) {
			l.bus = fixture.StartBus(t)
			impostor(t, l.bus.Address, func(conn *dbus.Conn, m *dbus.Message) {
				member := m.Headers[dbus.FieldMember].Value()
				if member != "Ping" || says == "Ping" {
					reply(conn, m, "")
				}
				for member == "Prepare" && says == "looking" && conn.Context().Err() == nil {
					status(conn, m, "verify-looking", false)
					time.Sleep(50 * time.Millisecond)
				}
			})
			out, begun := new(fixture.Log), time.Now()
			err := l.command(nobodyAtAll, "default", out).Run()
			if took := time.Since(begun); err != nil || !strings.Contains(out.String(), "answer ") ||
				took < 6*time.Second || took > 30*time.Second {
				t.Errorf("%v after %v: %s", err, took, out)
			}
		})
	}
}

// ^C ends the wait for the camera at once, and comes to the program, also if the program handles or ignores it as sudo
// and login do. A daemon that stops answering ends it within three seconds, with a word.
func TestSystemModuleWaits(t *testing.T) {
	t.Parallel()
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
		if m.Headers[dbus.FieldMember].Value() == "Prepare" {
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

// The compiler's analyzer finds nothing in the module, which brings no library but these into a program that asks PAM.
func TestSystemModuleAnalyzed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pam_faceauth.so")
	out, err := exec.Command("make", "-s", "-C", fixture.Root(t), "pam-module", "CFLAGS=-O2 -fanalyzer",
		"PAM_MODULE="+path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if slices.Sort(libraries); err != nil ||
		!slices.Equal(libraries, []string{"libc.so.6", "libcrypt.so.1", "libpam.so.0"}) {
		t.Errorf("the module needs %v, %v", libraries, err)
	}
}
