// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"fmt"
	"testing"
)

// keys starts a program on a terminal of its own, presses Enter at the prompt and ^C a second later, and prints how
// many milliseconds later the program asks for the password or ends.
const keys = `import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
def until(word):
    global said
    try:
        while word not in said:
            said += os.read(terminal, 4096)
    except OSError:  # it has ended
        pass
until(b"press Enter")
first, said = said, b""
os.write(terminal, b"\n")
time.sleep(1)
over = os.waitpid(pid, os.WNOHANG)[0] or b"assword" in said
os.write(terminal, b"\x03")
begun = time.monotonic()
until(b"assword")
print("over" if over else "waited", int((time.monotonic() - begun) * 1000), first, said)
`

// ^C ends the wait for the camera at once in su and sudo.
func TestInterrupted(t *testing.T) {
	s := people(t)
	defer func() {
		s.camera(t, "vidtimit_rot/p2")
		s.run(t, "faceauth login allow sudo --off")
		s.trust(t)
	}()
	s.camera(t, "vidtimit_rot/p3")
	s.write(t, "/srv/share/keys", keys)
	for _, c := range []struct{ program, user, command string }{
		{"su", "bob", "su alice -c true"}, {"sudo", "alice", "sudo -k -u bob true"},
	} {
		t.Run(c.program, func(t *testing.T) {
			if c.program == "sudo" {
				needs(t, "sudo")
				s.run(t, "echo 'alice ALL=(ALL) ALL' >/etc/sudoers; chmod 440 /etc/sudoers; "+
					"faceauth login allow sudo --challenge none")
			}
			s.trust(t)
			out := s.session(t, c.user, atDevice, "/usr/bin/python3 /srv/share/keys "+c.command)
			var took int
			if _, err := fmt.Sscanf(out, "waited %d", &took); err != nil || took > 1000 {
				t.Errorf("%s\n%s", out, s.journal(t))
			}
		})
	}
}
