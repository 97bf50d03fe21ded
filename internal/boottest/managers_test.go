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
args="-screen 0 800x600x24"
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

// Display managers, unchanged, with a display but without its screen: Enter and the face let in,
// and a typed password when somebody else is there; also SDDM, which gives one answer to all
// prompts.
func TestManagers(t *testing.T) {
	s := people(t)
	t.Cleanup(func() {
		s.camera(t, "vidtimit_rot/p2")
		s.trust(t)
	})
	s.write(t, "/srv/share/xserver", xserver)
	s.run(t, "chmod 755 /srv/share/xserver; mkdir -p -m 1777 /tmp/.X11-unix; mkdir -p "+
		"/usr/share/xsessions; sed -i '/pam_loginuid/d' /etc/pam.d/*")
	s.write(t, "/usr/share/xsessions/marker.desktop",
		"[Desktop Entry]\nName=marker\nExec=/srv/share/marker\n"+
			"Type=Application\n")
	s.write(t, "/srv/share/marker", "#!/bin/sh\ntouch /tmp/in-session\n"+
		"while [ -e /tmp/in-session ]; do sleep .1; done\n")
	s.run(t, "chmod 755 /srv/share/marker")
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
