// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
	"golang.org/x/sys/unix"
)

const sanitizers = "-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined " +
	"-fno-sanitize-recover=all"

// pamLogin is a PAM service with the module alone, checked by sanitizers, and a program that logs
// in. What answers at its socket is up to the test.
type pamLogin struct {
	dir, program, service string
}

func newPAMLogin(t *testing.T, options string, flags ...string) *pamLogin {
	t.Helper()
	dir := t.TempDir()
	l := &pamLogin{dir: dir, program: filepath.Join(dir, "login"),
		service: fmt.Sprintf("faceauth-test-%d-%d", os.Getpid(), devices.Add(1))}
	so := module(t, dir, "CFLAGS="+strings.Join(append(flags, sanitizers), " "))
	c := exec.Command("sh", "-c", "gcc "+sanitizers+" -Wall -Werror -o "+l.program+" "+
		filepath.Join(fixture.Root(t), "cmd", "faceauth", "testdata", "login.c")+" -lpam")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join("/etc/pam.d", l.service)
	fixture.Check(t, os.WriteFile(path, []byte("auth required "+so+" "+options+"\n"), 0o644))
	t.Cleanup(func() { os.Remove(path) })
	services := "greeter " + l.service + " turn\n"
	fixture.Check(t, os.WriteFile(filepath.Join(dir, "services"), []byte(services), 0o644))
	return l
}

// nobodyAtAll is a user whom no system has, and so no system refuses.
const nobodyAtAll = "faceauth-test"

// command returns the program's logins, a number of them.
func (l *pamLogin) command(signals string, logins int, out *fixture.Log) *exec.Cmd {
	c := exec.Command(l.program, l.service, nobodyAtAll, signals, fmt.Sprint(logins))
	c.Env = append(os.Environ(), "ASAN_OPTIONS=exitcode=99",
		"UBSAN_OPTIONS=print_stacktrace=1:exitcode=99", "LC_ALL=C")
	c.Stdout, c.Stderr = out, out
	return c
}

// impostor listens in place of the daemon, and calls answer with each connection, which it then
// closes.
func (l *pamLogin) impostor(t *testing.T, answer func(net.Conn, *bufio.Reader)) {
	t.Helper()
	listener := fixture.Must(net.Listen("unix", filepath.Join(l.dir, "socket"+socket.ForRoot)))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answer(conn, bufio.NewReader(conn))
			}()
		}
	}()
}

// What the module asks for, and what it makes of each answer, in whatever pieces it comes.
func TestSystemModule(t *testing.T) {
	t.Parallel()
	where := "tty7" // behind the name of the unit in which the test runs
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for _, part := range strings.FieldsFunc(string(b), func(r rune) bool {
			return r == '/' || r == '\n'
		}) {
			if strings.HasSuffix(part, ".scope") || strings.HasSuffix(part, ".service") {
				where = part + ", tty7"
			}
		}
	}
	const success, refused, ignored = "answer 0 ", "answer 7 ", "answer 6 "
	for _, option := range []string{"", "noprompt"} {
		l := newPAMLogin(t, option)
		var mu sync.Mutex
		answer, piece := "", 0
		l.impostor(t, func(conn net.Conn, lines *bufio.Reader) {
			kind, _ := lines.ReadString('\t')
			fields, _ := lines.ReadString('\n')
			ask, _ := lines.ReadString('\n')
			if kind != "verify\t" || ask != "ask\n" ||
				fields != nobodyAtAll+"\t0\t"+l.service+"\tturn\t\t\t"+where+"\n" {
				t.Errorf("it asks %q, %q, %q", kind, fields, ask)
			}
			mu.Lock()
			defer mu.Unlock()
			for rest := answer; rest != ""; {
				n := min(piece, len(rest))
				conn.Write([]byte(rest[:n]))
				rest = rest[n:]
				time.Sleep(100 * time.Microsecond)
			}
		})
		for _, c := range []struct{ answer, want, says string }{
			{"end match\n", success, ""},
			{"say looking\n\n\nsay turn-left\nsay unheard-of\nend match\n", success,
				"Looking.\nTurn your head a little to your left.\n"},
			{"end no-match\n", refused, "Not recognised"},
			{"end taken-for-picture\n", refused, "taken for a picture"},
			{"end no-match\nend match\n", refused, "Not recognised"},
			{"end give-password\n", refused, "give your password once"},
			{"end no-face\n", ignored, "Nobody was seen"},
			{"end interrupted\n", ignored, "took the camera"},
			{"no TooSoon 3 wait\n", ignored, "Too soon after a failure"},
			{"no Unheard-of 0 x\n", ignored, ""},
			{"ok {}\nmatch\nend\n\x00end no-match\nend match\n", success, ""},
			{"say match\n", ignored, "has failed"},
			{"end match", ignored, "has failed"},
			{strings.Repeat("x", 1100) + "\nend match\n", ignored, "has failed"},
			{"no Internal 0 " + strings.Repeat("x", 900) + "\n", ignored, "Something went wrong"},
		} {
			for _, n := range []int{1, 1000} {
				mu.Lock()
				answer, piece = c.answer, n
				mu.Unlock()
				out := new(fixture.Log)
				if err := l.command("default", 1, out).Run(); err != nil ||
					!strings.Contains(out.String(), c.want) ||
					!strings.Contains(out.String(), c.says) {
					t.Errorf("%.60q, %d at once: %v, %s", c.answer, n, err, out)
				}
			}
		}
	}
}

// After a face that was not recognised the next module asks for the password, but not at a greeter
// that answers one prompt alone.
func TestSystemModuleOnce(t *testing.T) {
	t.Parallel()
	l := newPAMLogin(t, "")
	l.impostor(t, func(conn net.Conn, lines *bufio.Reader) {
		lines.ReadString('k') // of ask
		io.WriteString(conn, "end no-face\n")
	})
	path := filepath.Join("/etc/pam.d", l.service)
	stack := strings.Replace(string(fixture.Must(os.ReadFile(path))(t)), "required", "optional", 1)
	fixture.Check(t, os.WriteFile(path, []byte(stack+
		"auth required pam_exec.so quiet expose_authtok /bin/true\n"), 0o644))
	for kind, prompts := range map[string]int{"greeter": 2, "greeter-once": 1, "unheard-of": 1} {
		fixture.Check(t, os.WriteFile(filepath.Join(l.dir, "services"),
			[]byte(kind+" "+l.service+"\n"), 0o644))
		out := new(fixture.Log)
		err := l.command("default", 1, out).Run()
		if n := strings.Count(out.String(), "Password"); err != nil || n != prompts {
			t.Errorf("%s: %d prompts, want %d: %v, %s", kind, n, prompts, err, out)
		}
	}
}

// Whatever a daemon answers, the module has no fault that a sanitizer finds, and lets nobody in
// without a match.
func TestSystemModuleFuzzed(t *testing.T) {
	t.Parallel()
	l := newPAMLogin(t, "noprompt")
	words := []string{"say", "end", "no", "ok", "match", "no-match", "turn-left", "give-password",
		"TooSoon", "unasked",
		" ", " ", "\n", "\n", "\t", "\x00", "\xff", "%s%n", "\x1b[2J", strings.Repeat("x", 300),
		strings.Repeat("\n", 600)}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	l.impostor(t, func(conn net.Conn, _ *bufio.Reader) {
		mu.Lock()
		var pieces []string
		for range r.IntN(4) {
			var b strings.Builder
			for range r.IntN(12) {
				b.WriteString(words[r.IntN(len(words))])
			}
			pieces = append(pieces, b.String())
		}
		mu.Unlock()
		for strings.Contains(strings.Join(pieces, ""), "match") &&
			strings.Contains(strings.Join(pieces, ""), "end") {
			pieces = pieces[1:] // it might let in
		}
		for _, p := range pieces {
			conn.Write([]byte(p))
		}
	})
	const processes = 8
	logins := 120
	if testing.Short() {
		logins = 25
	}
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			out := new(fixture.Log)
			err := l.command("default", logins, out).Run()
			said := out.String()
			if err != nil || strings.Contains(said, "answer 0") ||
				strings.Count(said, "answer ") != logins {
				t.Errorf("%v\n%.3000s", err, said)
			}
		})
	}
	all.Wait()
}

// ^C ends the wait for the camera at once, and comes to the program if the program handles it. It
// does not if the program has blocked it, as sudo does, which would end after the right password. A
// daemon that stops answering ends it within three seconds, with a word.
func TestSystemModuleWaits(t *testing.T) {
	t.Parallel()
	l := newPAMLogin(t, "")
	looking, hangs := make(chan struct{}, 64), make(chan struct{})
	l.impostor(t, func(conn net.Conn, lines *bufio.Reader) {
		lines.ReadString('\n')
		lines.ReadString('\n') // Enter was pressed
		looking <- struct{}{}
		for {
			if _, err := conn.Write([]byte("\n")); err != nil {
				return
			}
			select {
			case <-hangs:
				io.Copy(io.Discard, conn)
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	for _, signals := range []string{"handle", "ignore", "block", "default",
		"a daemon that hangs"} {
		t.Run(signals, func(t *testing.T) {
			out := new(fixture.Log)
			c := l.command(signals, 1, out)
			fixture.Check(t, c.Start())
			select {
			case <-looking:
			case <-time.After(time.Minute):
				c.Process.Kill()
				t.Fatalf("it does not ask: %s", out)
			}
			time.Sleep(3500 * time.Millisecond) // longer than a silent daemon is waited for
			if !strings.Contains(out.String(), "Enter for face") ||
				strings.Contains(out.String(), "answer") {
				c.Process.Kill()
				t.Fatalf("it does not wait: %s", out)
			}
			begun := time.Now()
			if signals == "a daemon that hangs" {
				close(hangs)
			} else if err := c.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			err := c.Wait()
			// The module waits three seconds for a daemon that is silent, and a minute for one that
			// is not.
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("it ended after %v", took)
			}
			want := map[string]string{"handle": "interrupted 1", "ignore": "interrupted 0",
				"block":               "answer 6 interrupted 0",
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

// terminal opens a new terminal for a program, and returns both ends.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person = fixture.Must(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	fixture.Check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number := fixture.Must(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	program = fixture.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY,
		0))(t)
	t.Cleanup(func() { program.Close() })
	return person, program
}

// On a terminal the first key ends the look and is the first of the password, which is not shown; a
// second Enter is nothing. The terminal is as before then.
func TestSystemModuleTyped(t *testing.T) {
	t.Parallel()
	// the module waits a minute for a test that is slow
	l := newPAMLogin(t, "", "-DSILENCE=60000000")
	f := fixture.Must(os.OpenFile(filepath.Join("/etc/pam.d", l.service), os.O_APPEND|os.O_WRONLY,
		0))(t)
	fixture.Must(f.WriteString("auth required pam_exec.so expose_authtok stdout /bin/cat\n"))(t)
	fixture.Check(t, f.Close())
	ended := make(chan struct{}, 1)
	l.impostor(t, func(conn net.Conn, lines *bufio.Reader) {
		lines.ReadString('\n')
		lines.ReadString('\n')
		conn.Write([]byte("say looking\n"))
		go func() {
			for _, err := conn.Write([]byte("\n")); err == nil; _, err = conn.Write([]byte("\n")) {
				time.Sleep(time.Second)
			}
		}()
		io.Copy(io.Discard, conn)
		ended <- struct{}{}
	})
	for keys, password := range map[string]string{
		"secret\r": "secret", "\r\rse\u00fc\x7fcret\r": "secret", "wrong\x15right\n": "right",
		"a\x03": "", "\x04": "",
	} {
		person, program := terminal(t)
		before := fixture.Must(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t)
		out := new(fixture.Log)
		c := l.command("block", 1, out)
		c.Stdin, c.SysProcAttr = program, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		fixture.Check(t, c.Start())
		for end := time.Now().Add(time.Minute); !strings.Contains(out.String(), "Looking; "); {
			if time.Now().After(end) {
				t.Fatalf("it does not look: %s", out)
			}
			time.Sleep(10 * time.Millisecond)
		}
		fixture.Must(person.WriteString(keys))(t)
		<-ended
		fixture.Check(t, c.Wait())
		shown := make([]byte, 64)
		fd := int(person.Fd()) // each call makes it block
		fixture.Check(t, unix.SetNonblock(fd, true))
		n, _ := unix.Read(fd, shown)
		// The kernel sends the signal of ^C before it looks whether to show it, and the echo may be
		// on again by then.
		s := strings.TrimSuffix(strings.TrimSpace(string(shown[:max(n, 0)])), "^C")
		if s != "" {
			t.Errorf("%q: the terminal shows %q", keys, s)
		}
		if !strings.Contains(out.String(), "\n"+password+"answer 0 interrupted 0") &&
			!strings.Contains(out.String(), "\n"+password+"\nanswer 0 interrupted 0") {
			t.Errorf("%q: want the password %q: %q", keys, password, out)
		}
		after := fixture.Must(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t)
		if *after != *before {
			t.Errorf("%q: the terminal is %v, and was %v", keys, after, before)
		}
	}
}

// The line of consent says whom sudo makes of its user, and never less than what is allowed.
func TestSystemModuleTarget(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "target")
	c := exec.Command("sh", "-c", "gcc -D_GNU_SOURCE "+sanitizers+" -o "+program+" "+
		filepath.Join(fixture.Root(t), "cmd", "faceauth", "testdata", "target.c")+" -lpam -lcrypt")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for arguments, want := range map[string]string{
		"": "root", "id": "root", "-u bob id": "bob", "-ubob id": "bob", "-ku bob id": "bob",
		"--user=bob id": "bob",
		"--user bob id": "bob", "-u bob -u root id": "root", "-u": "root", "-p -u bob": "root",
		"-kp -u bob":  "root",
		"-g users id": "root", "-g users -u bob id": "bob", "-h -u bob id": "root",
		"-u bob --us root id": "root",
		"--prompt -u bob":     "root", "--prompt=x -u bob id": "root",
		"-u bob -- id -u root": "bob", "id -u bob": "root",
		"-u #0 id": "#0", "A=b -u bob id": "root", "-E -H -u bob id": "bob", "-u bob -i": "bob",
		"-i": "root",
	} {
		out, err := exec.Command(program,
			append([]string{"sudo"}, strings.Fields(arguments)...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("sudo %s: %v, %q, want %q", arguments, err, got, want)
		}
	}
}

// Where nobody can be told, nothing looks: sudo-rs without a terminal refuses every word.
func TestSystemModuleUntold(t *testing.T) {
	t.Parallel()
	l := newPAMLogin(t, "noprompt")
	l.impostor(t, func(conn net.Conn, lines *bufio.Reader) {
		conn.Write([]byte("say looking\nend match\n"))
	})
	out := new(fixture.Log)
	if err := l.command("deaf", 1, out).Run(); err != nil ||
		!strings.Contains(out.String(), "answer 6 ") {
		t.Errorf("%v: %s", err, out)
	}
}

// The compiler's analyzer finds nothing in the module, which brings no library but these into a
// program that asks PAM.
func TestSystemModuleAnalyzed(t *testing.T) {
	t.Parallel()
	f := fixture.Must(elf.Open(module(t, t.TempDir(), "CFLAGS=-O2 -fanalyzer")))(t)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if slices.Sort(libraries); err != nil ||
		!slices.Equal(libraries, []string{"libc.so.6", "libcrypt.so.1", "libpam.so.0"}) {
		t.Errorf("the module needs %v, %v", libraries, err)
	}
}
