// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// locker is a screen locker that asks PAM as its user.
type locker struct {
	name, service string // without a service it asks by one of the system's, as it is
	programs      []string
	display       string // starts a display, with pid $x, and waits for it
	lock          string // locks it
	enter, type_  string // press Enter, and type a word
}

const xDisplay = `export DISPLAY=:7
Xvfb :7 -screen 0 640x480x24 >/tmp/xvfb 2>&1 &
x=$!
for i in {1..100}; do xdotool getmouselocation >/dev/null 2>&1 && break; sleep .1; done
`

// kdeDisplay has the widgets of Plasma that the built-in screen of KDE's locker imports. Without
// Plasma this locker shows that screen; it asks PAM as always, and answers all prompts with what
// stands in the field.
const kdeDisplay = xDisplay + `export QML2_IMPORT_PATH=/tmp/qml QT_QUICK_BACKEND=software
type() { d=/tmp/qml/$(dirname $1); n=$(basename $1); mkdir -p $d; echo "$n $2 $n.qml" >>$d/qmldir
printf 'import QtQuick 2.15\n%s' "$3" >$d/$n.qml; }
k=org/kde/plasma
rm -rf /tmp/qml
type QtQuick/Layouts/RowLayout 1.15 'Row {}'
type org/kde/kquickcontrolsaddons/Unused 2.0 'Item {}'
type $k/private/sessions/SessionsModel 2.0 'QtObject { property bool canSwitchUser; property bool canStartNewSession }'
type $k/core/FrameSvgItem 2.0 'Item { property string imagePath; property var margins: ({left: 0, right: 0, top: 0, bottom: 0}) }'
type $k/components/Label 2.0 'Text {}'
type $k/components/TextField 2.0 'TextInput { width: 200; height: 30 }'
type $k/components/Button 2.0 'Item { property string text; property string iconSource; signal clicked() }'
type $k/components/ButtonRow 2.0 'Row { property bool exclusive }'
type $k/components/PageStack 2.0 'Item { property Item initialPage; property Item currentPage: initialPage }'
type $k/components/ListItem 2.0 'Item { property Item content }'
type $k/components/Highlight 2.0 'Item { property bool hover }'
type $k/extras/ScrollArea 2.0 'Item {}'
unset -f type
`

const kdeLocker = "/usr/lib/x86_64-linux-gnu/libexec/kscreenlocker_greet"

var lockers = []locker{
	{"KDE's locker", "kde", []string{kdeLocker, "Xvfb", "xdotool"}, kdeDisplay, kdeLocker +
		" --testing", "xdotool key Return", "xdotool type "},
	{"i3lock", "i3lock", []string{"i3lock", "Xvfb", "xdotool"}, xDisplay, "i3lock -n",
		"xdotool key Return", "xdotool type "},
	// The first key wakes it, and is nothing else. It says that it asks from localhost.
	{"xsecurelock", "", []string{"xsecurelock", "Xvfb", "xdotool"}, xDisplay, "xsecurelock",
		"xdotool key Return; sleep 3; xdotool key Return",
		"xdotool key BackSpace; sleep 3; xdotool type "},
	{"swaylock", "swaylock", []string{"sway", "swaylock", "wtype"},
		`export WLR_BACKENDS=headless WLR_RENDERER=pixman
export WLR_LIBINPUT_NO_DEVICES=1 WAYLAND_DISPLAY=wayland-1
rm -f $XDG_RUNTIME_DIR/wayland-1*
sway -c /dev/null >/tmp/sway 2>&1 &
x=$!
for i in {1..100}; do [ -S $XDG_RUNTIME_DIR/wayland-1 ] && break; sleep .1; done
`, "swaylock", "wtype -s 300 -k Return", "wtype -s 300 -d 50 "},
}

// script locks a display, does something, and says how the locker ended.
func (l locker) script(keys string) string {
	return `export HOME=/home/$(id -un) XDG_RUNTIME_DIR=/run/user/$(id -u)
` + l.display + l.lock + ` >/tmp/locker 2>&1 &
lock=$!
enter() { ` + l.enter + `; }
word() { ` + l.type_ + `"$1"; }
gone() { for i in {1..80}; do kill -0 $lock 2>/dev/null || return 0; sleep .1; done; return 1; }
sleep 1.5
kill -0 $lock && echo locked
` + keys + `
kill $lock $x 2>/dev/null
wait
`
}

// Lockers that ask PAM as their user are unlocked by Enter and the face, with the module's prompt
// by the PAM file of their package, where there is one, and without it, and by the password when
// somebody else is there. Whoever types the password
// leaves no attempt behind, and is not locked out.
func TestLocker(t *testing.T) {
	s := people(t)
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.trust(t)
	})
	s.run(t, "mkdir -p -m 1777 /tmp/.X11-unix")
	const unlock = "enter\nif gone; then echo by face; else word alice; enter; gone && echo by " +
		"password; fi"
	for _, l := range lockers {
		for _, c := range []struct{ name, options, camera, said string }{
			{"the face, with noprompt", "noprompt", "p2", "locked\nby face\n"},
			{"the face, with a prompt", "", "p2", "locked\nby face\n"},
			{"somebody else, with a prompt", "", "p3", "locked\nby password\n"},
		} {
			t.Run(l.name+", "+c.name, func(t *testing.T) {
				needs(t, l.programs...)
				own, err := os.ReadFile(filepath.Join(base, "/etc/pam.d", l.service))
				switch {
				case l.service == "" && c.options != "":
					t.Skip("the system's own service asks with a prompt")
				case l.service == "":
				case c.options == "" && err == nil:
					s.write(t, "/etc/pam.d/"+l.service, string(own))
				default:
					s.write(t, "/etc/pam.d/"+l.service, "auth sufficient pam_faceauth.so "+
						c.options+"\nauth required "+
						"pam_unix.so try_first_pass\naccount required pam_permit.so\n")
				}
				s.camera(t, "vidtimit_rot/"+c.camera)
				s.trust(t)
				if out := s.session(t, "alice", atDevice, l.script(unlock)); !strings.HasSuffix(out,
					c.said) {
					t.Errorf("%s\n%s\n%s", out, s.run(t, "tail -n 20 /tmp/locker"), s.journal(t))
				}
			})
		}
		if l.service == "" {
			continue
		}
		t.Run(l.name+", six times by password", func(t *testing.T) {
			needs(t, l.programs...)
			s.camera(t, "vidtimit_rot/p2")
			s.trust(t)
			s.write(t, "/etc/pam.d/"+l.service,
				"auth sufficient pam_faceauth.so\nauth required pam_unix.so "+
					"try_first_pass\naccount required pam_permit.so\n")
			const history = "faceauth login history --user alice | tail -n "
			before := s.run(t, history+"1")
			again := "word alice; enter; gone && echo unlocked; " + l.lock +
				" >/tmp/locker 2>&1 &\nlock=$!; sleep 1.5\n"
			out := s.session(t, "alice", atDevice, l.script(strings.Repeat(again, 6)+unlock))
			if out != "locked\n"+strings.Repeat("unlocked\n", 6)+"by face\n" {
				t.Errorf("%s\n%s", out, s.journal(t))
			}
			if after := s.run(t, history+"2"); !strings.HasPrefix(after, before) ||
				!strings.HasSuffix(after, "  match\n") {
				t.Errorf("more than the face is in the history: %s", after)
			}
		})
	}
}

// Who presses Enter twice is looked at once: i3lock asks PAM again after it was let in.
func TestTwoEnters(t *testing.T) {
	needs(t, "i3lock", "Xvfb", "xdotool")
	s := people(t)
	defer s.trust(t)
	s.run(t, "mkdir -p -m 1777 /tmp/.X11-unix")
	s.write(t, "/etc/pam.d/i3lock",
		"auth sufficient pam_faceauth.so\nauth required pam_unix.so try_first_pass\n"+
			"account required pam_permit.so\n")
	s.trust(t)
	i := slices.IndexFunc(lockers, func(l locker) bool { return l.name == "i3lock" })
	looks := func() string {
		return s.run(t, "journalctl -q --no-pager -o cat -u faceauth | grep -c msg=verify || true")
	}
	before := looks()
	out := s.session(t, "alice", atDevice,
		lockers[i].script("xdotool key Return; sleep .1; enter; gone && echo by face"))
	var a, b int
	fmt.Sscan(before, &a)
	fmt.Sscan(looks(), &b)
	if out != "locked\nby face\n" || b != a+1 {
		t.Errorf("%d looks: %s\n%s", b-a, out, s.journal(t))
	}
}

// A locker that runs as its user asks for the gesture that the list names.
func TestLockerGesture(t *testing.T) {
	s := people(t)
	defer s.trust(t)
	s.write(t, "/etc/pam.d/vlock",
		"auth sufficient pam_faceauth.so noprompt\nauth required pam_deny.so\n")
	s.run(t, "faceauth login allow vlock --challenge turn")
	defer s.run(t, "faceauth login allow vlock --challenge none; rm /etc/pam.d/vlock")
	if out := s.session(t, "alice", atDevice,
		"pamtester vlock alice authenticate"); !strings.Contains(out, turning) {
		t.Errorf("%s\n%s", out, s.journal(t))
	}
}

// A session of hers that was left behind elsewhere, with a process that goes on, does not end
// unlocking by a display manager; and that unlocks only what is locked.
func TestLeftBehind(t *testing.T) {
	s := people(t)
	defer s.trust(t)
	s.session(t, "alice", elsewhere, "nohup setsid sleep 120 >/dev/null 2>&1 &")
	defer s.run(t, "pkill -u alice sleep || true")
	if out := s.run(t, "loginctl list-sessions --no-legend"); !strings.Contains(out, "alice") {
		t.Fatalf("no session is left: %s", out)
	}
	// Display managers that are not installed: systemd makes no unit of a name that there is.
	for manager, locked := range map[string]bool{"lxdm": true, "xdm": false} {
		s.run(t, "cp /etc/pam.d/login /etc/pam.d/"+manager)
		s.trust(t)
		s.run(t, "rm -f /tmp/ready /tmp/done")
		ended := make(chan string)
		go func() {
			ended <- s.session(t, "alice", atDevice,
				fmt.Sprintf("busctl call org.freedesktop.login1 "+
					"/org/freedesktop/login1/session/auto org.freedesktop.login1.Session "+
					"SetLockedHint b %t\n"+
					"touch /tmp/ready; for i in {1..300}; do [ -e /tmp/done ] && break; sleep "+
					".1; done", locked))
		}()
		s.run(t, "for i in {1..100}; do [ -e /tmp/ready ] && break; sleep .1; done")
		out, _ := s.try(t, prompted("",
			"pamtester -E XDG_SEAT=seat0 -I tty=:0 "+manager+" alice authenticate"),
			"--unit="+manager+".service")
		s.run(t, "touch /tmp/done")
		<-ended
		if a := parse(t, out); a.in != locked {
			t.Errorf("locked %t: let in %t: %s\n%s", locked, a.in, a.said, s.journal(t))
		}
		time.Sleep(200 * time.Millisecond)
	}
}
