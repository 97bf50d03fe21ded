// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// unlock locks a display with i3lock, presses Enter, and after a while types a password and presses Enter.
const unlock = `export DISPLAY=:7 HOME=/tmp
Xvfb :7 -screen 0 640x480x24 >/tmp/xvfb 2>&1 &
x=$!
for i in {1..100}; do xdotool getmouselocation >/dev/null 2>&1 && break; sleep .1; done
i3lock -n 2>&1 &
lock=$!
sleep 1
kill -0 $lock && echo locked
xdotool key Return
gone() { for i in {1..80}; do kill -0 $lock 2>/dev/null || return 0; sleep .1; done; return 1; }
if gone; then echo by face; else xdotool type alice; xdotool key Return; gone && echo by password; fi
kill $lock $x 2>/dev/null
`

// i3lock, which asks PAM as its user, is unlocked by Enter and the face, with the module's prompt and without it, and
// by the password when somebody else is there.
func TestLocker(t *testing.T) {
	from := fixture.Unpacked(t, "locker", "i3lock")
	s := people(t)
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.trust(t)
	})
	s.copy(t, from, "locker")
	s.run(t, "cp -r /srv/share/locker/usr/. /usr/; ldconfig; mkdir -p -m 1777 /tmp/.X11-unix")
	for _, c := range []struct{ name, options, camera, said string }{
		{"the face, with noprompt", "noprompt", "p2", "locked\nby face\n"},
		{"the face, with a prompt", "", "p2", "locked\nby face\n"},
		{"somebody else, with noprompt", "noprompt", "p3", "locked\nby password\n"},
		{"somebody else, with a prompt", "", "p3", "locked\nby password\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.write(t, "/etc/pam.d/i3lock", "auth sufficient pam_faceauth.so "+c.options+"\nauth required pam_unix.so "+
				"try_first_pass\naccount required pam_permit.so\n")
			s.camera(t, "vidtimit_rot/"+c.camera)
			s.trust(t)
			if out := s.session(t, "alice", atDevice, unlock); !strings.HasSuffix(out, c.said) {
				t.Errorf("%s\n%s", out, s.journal(t))
			}
		})
	}
}
