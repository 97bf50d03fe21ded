// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"strings"
	"testing"
)

// xserver is the X server of a display manager: one without a screen, on a machine without
// consoles.
const xserver = `#!/bin/bash
# display managers give options for consoles, which this server does not know
args="-screen 0 800x600x24 +extension GLX"
while [ $# -gt 0 ]; do
	case $1 in
	:*) args="$args $1" ;;
	-auth|-displayfd) args="$args $1 $2"; shift ;;
	esac
	shift
done
exec Xvfb $args
`

// greeting types into a greeter: Enter, and when that lets in nobody, the password. It prints how
// alice got in.
const greeting = `export DISPLAY=:0
for i in {1..50}; do
	for a in $(pgrep -a Xvfb | head -1); do
		case $a in :*) DISPLAY=$a ;; /*) export XAUTHORITY=$a ;; esac
	done
	xdotool search --onlyvisible --any --name --class --classname . >/dev/null 2>&1 && break
	sleep .4
done
[ $i -lt 50 ] || { pgrep -a Xvfb; ls -l /tmp/.X11-unix /var/run/lightdm/root; ps ax | tail -n 30; exit; }
sleep 3
inside() { for i in {1..150}; do [ -e /tmp/in-session ] && return 0; sleep .1; done; return 1; }
enter
if inside; then echo by face; else xdotool type alice; xdotool key Return; inside && echo by password; fi
for i in {1..100}; do [ -e /tmp/in-session ] || break; rm -f /tmp/in-session; sleep .1; done
`

// graphics gives the system a seat with graphics, for display managers.
func (s *system) graphics(t *testing.T) {
	t.Helper()
	s.write(t, "/srv/share/xserver", xserver)
	s.run(t, "chmod 755 /srv/share/xserver; mkdir -p -m 1777 /tmp/.X11-unix; mkdir -p "+
		"/usr/share/xsessions; sed -i '/pam_loginuid/d' /etc/pam.d/*")
	// Display managers want a seat with graphics, and one without consoles for lack of them: logind
	// is told that a device belongs to one.
	s.run(t, "mkdir -p /run/udev && cd /run/udev && mkdir -p data tags/seat tags/master-of-seat && "+
		"touch tags/seat/c1:3 tags/master-of-seat/c1:3; printf 'I:1\\nE:ID_SEAT=seat1\\nG:seat\\n"+
		"G:master-of-seat\\n"+
		"Q:seat\\nQ:master-of-seat\\nV:1\\n"+
		"' >data/c1:3; systemctl restart systemd-logind; sleep 1; "+
		"loginctl list-seats | grep seat1; grep -q pam_systemd /etc/pam.d/common-session || "+
		"echo 'session optional pam_systemd.so' >>/etc/pam.d/common-session")
	t.Cleanup(func() { s.run(t, "rm -r /run/udev; systemctl restart systemd-logind") })
}

// Display managers, unchanged, with a display but without its screen: Enter and the face let in,
// and a typed password when somebody else is there; also SDDM, which gives one answer to all
// prompts.
func TestManagers(t *testing.T) {
	s := people(t)
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.trust(t)
	})
	s.graphics(t)
	s.write(t, "/usr/share/xsessions/marker.desktop",
		"[Desktop Entry]\nName=marker\nExec=/srv/share/marker\n"+
			"Type=Application\n")
	s.write(t, "/srv/share/marker", "#!/bin/sh\ntouch /tmp/in-session\n"+
		"while [ -e /tmp/in-session ]; do sleep .1; done\n")
	s.run(t, "chmod 755 /srv/share/marker")
	for _, c := range []struct {
		name, unit, program, config, text, enter string
	}{
		{"LightDM", "lightdm", "lightdm", "/etc/lightdm/lightdm.conf",
			"[LightDM]\nlogind-check-graphical=true\n" +
				"[Seat:*]\nxserver-command=/srv/share/xserver\n" +
				"greeter-session=lightdm-gtk-greeter\nuser-session=marker\n" +
				"greeter-hide-users=true\ngreeter-show-manual-login=true\n",
			"xdotool type alice; xdotool key Return; sleep 2; xdotool key Return"},
		{"SDDM", "sddm", "sddm", "/etc/sddm.conf",
			"[X11]\nServerPath=/srv/share/xserver\n[Users]\n" +
				"RememberLastUser=true\n",
			"xdotool key Return"},
	} {
		for _, camera := range []string{"p2", "p3"} {
			t.Run(c.name+", "+camera, func(t *testing.T) {
				needs(t, c.program, "Xvfb", "xdotool")
				s.write(t, c.config, c.text)
				s.run(t, "mkdir -p /var/lib/sddm; printf '[Last]\\nUser=alice\\n"+
					"Session=/usr/share/xsessions/marker.desktop\\n'"+
					" >/var/lib/sddm/state.conf; chown -R sddm: /var/lib/sddm; rm -f "+
					"/tmp/in-session")
				s.camera(t, "vidtimit_rot/"+camera)
				s.trust(t)
				s.run(t, "systemctl start "+c.unit)
				defer s.run(t, "systemctl kill -s KILL "+c.unit+"; systemctl stop "+c.unit+
					"; pkill Xvfb; true")
				out, _ := s.try(t, "enter() { "+c.enter+"; }\n"+greeting)
				want := map[string]string{"p2": "by face\n", "p3": "by password\n"}[camera]
				if !strings.HasSuffix(out, want) {
					t.Errorf("%s\n%s\n%s", out, s.run(t,
						"journalctl -q --no-pager -o cat -n 60 -u "+c.unit+
							"; loginctl; "+
							"tail -n 40 /var/log/lightdm/*.log || true"), s.journal(t))
				}
			})
		}
	}
}

// gnome finds gnome-shell's display of a user, and presses keys or a button there until a command
// prints a text: what is pressed too early, the shell does not see.
const gnome = `p=$(pgrep -x gnome-shell -u $user | head -n 1)
of() { tr '\0' '\n' </proc/$p/environ | sed -n "s/^$1=//p"; }
export DISPLAY=$(of DISPLAY) XAUTHORITY=$(of XAUTHORITY)
press() {
	for i in {1..90}; do
		((i % 10 != 1)) || xdotool $1
		sleep .5
		eval "$3" 2>&1 | grep -q "$2" && return
	done
	echo "$3 does not print $2"
}
`

// GDM's greeter, GNOME's lock screen and its dialog for polkit, all of gnome-shell on a display
// without a screen: Enter lets in by the face, and in the dialog, which sends no empty answer, a
// blank and Enter. Its notification says what asks from outside the session, and Not me ends that.
func TestGNOME(t *testing.T) {
	s := programs(t)
	needs(t, "gdm3", "gnome-shell", "Xvfb", "xdotool", "pkexec", "dbus-monitor", "sudo")
	s.graphics(t)
	s.write(t, "/etc/gdm3/daemon.conf", "[daemon]\nWaylandEnable=false\n")
	s.write(t, "/usr/share/xsessions/shell.desktop", "[Desktop Entry]\nName=shell\n"+
		"Exec=/usr/bin/gnome-shell --x11\nType=Application\nDesktopNames=GNOME\n")
	s.write(t, "/var/lib/AccountsService/users/alice",
		"[User]\nSession=shell\nXSession=shell\nSystemAccount=false\n")
	s.run(t, "for x in /usr/bin/Xorg /usr/lib/xorg/Xorg; do mkdir -p $(dirname $x); "+
		"ln -sf /srv/share/xserver $x; done; systemctl try-restart accounts-daemon; "+
		"faceauth login allow polkit-1 --challenge none; faceauth login allow sudo --challenge "+
		"turn; systemctl start gdm3")
	defer s.run(t, "systemctl kill -s KILL gdm3; systemctl stop gdm3; loginctl kill-user alice "+
		"-s KILL; pkill Xvfb; rm /usr/share/xsessions/shell.desktop; true")
	for _, c := range []struct{ name, user, script, want string }{
		{"the greeter", "Debian-gdm", `press "key Return" gnome-shell "pgrep -x -l -u alice gnome-shell"`,
			"service=gdm-password"},
		{"the lock screen", "alice", `id=$(of XDG_SESSION_ID)
# a shell that has just begun does not hear it yet
press "key Shift_L" LockedHint=yes "loginctl lock-session $id; loginctl show-session $id -p LockedHint"
press "key Return" LockedHint=no "loginctl show-session $id -p LockedHint"`, "from=session-"},
		{"the dialog for polkit", "alice", `rm -f /tmp/root
echo $BASHPID >/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$p/cgroup)/cgroup.procs
setpriv --reuid alice --regid alice --init-groups pkexec id -un >/tmp/root 2>&1 &
press "key space Return" root "cat /tmp/root"`, "service=polkit-1"},
		{"the notification", "alice", `as() { setpriv --reuid alice --regid alice --init-groups env XDG_RUNTIME_DIR=/run/user/$(id -u alice) \
	DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u alice)/bus "$@"; }
as dbus-monitor --session "member='Notify'" >/tmp/notices 2>&1 &
as systemd-run --user --quiet --collect --pipe --wait --unit=far \
	/usr/bin/python3 /srv/share/typist '|alice' sudo -k -u bob id -un >/tmp/bob 2>&1 &
for i in {1..300}; do grep -q 'sudo asks for your face' /tmp/notices && break; sleep .1; done
press "mousemove 400 146 click 1" "did not ask for this" "cat /tmp/bob"
grep -q '"/usr/bin/sudo -k -u bob id -un$' /tmp/notices || cat /tmp/notices
grep -q '^from far.service, ' /tmp/notices || cat /tmp/notices
faceauth login status --user alice | grep -q 'password first' || echo 'the face still counts'`,
			"did not ask; a face lets in nobody"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.run(t, "for i in {1..100}; do pgrep -x gnome-shell -u "+c.user+
				" && exit; sleep .5; done; exit 1")
			s.trust(t)
			if c.name == "the notification" { // a stranger, so that it looks until the button is pressed
				s.camera(t, "vidtimit_rot/p3")
			}
			out, _ := s.try(t, "user="+c.user+"\n"+gnome+c.script)
			last := s.run(t, "journalctl -q --no-pager -o cat -u faceauth | "+
				"grep 'msg=verify .*result=match\\|did not ask' | tail -n 1")
			if out != "" || !strings.Contains(last, c.want) {
				t.Fatalf("%s\n%s\n%s", out, s.run(t, "loginctl; journalctl -q --no-pager -o cat "+
					"-n 40 -u gdm"), s.journal(t))
			}
		})
	}
}
