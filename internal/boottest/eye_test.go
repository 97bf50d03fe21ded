// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
)

// eyes is a script that lists the processes of eyes.
const eyes = `for p in $(systemctl show -p MainPID --value 'faceauth-eye@*' | grep -v '^0*$'); do `

// The daemon and its eyes are processes of different users, both without root's rights, and the
// daemon has no camera.
func TestEyesUser(t *testing.T) {
	s := people(t)
	out := s.run(
		t,
		`faceauth login try --user alice >/dev/null 2>&1 &
		sleep .3
		user() { id -nu $(grep ^Uid: /proc/$1/status | cut -f2); }
		daemon=$(systemctl show -p MainPID --value faceauth)
		echo daemon $(user $daemon) $(grep ^Groups: /proc/$daemon/status)
		`+eyes+`echo eye $(user $p) $(grep ^Seccomp: /proc/$p/status) $(grep ^NoNewPrivs: /proc/$p/status); done
		grep -c 'libopencv\|libav' /proc/$daemon/maps; id -Gn faceauth; id -Gn faceauth-eye; ls -l /run/faceauth-eye`,
	)
	t.Log(out)
	for _, want := range []string{" faceauth Groups:", "eye faceauth-eye Seccomp: 2 NoNewPrivs: 1",
		"\n0\nfaceauth\nfaceauth-eye video\n", "srw-------", " faceauth root "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	// Only the daemon gets an answer: other users cannot connect, and an eye checks its caller.
	for _, user := range []string{"bob", "faceauth-eye"} {
		if out, code := s.try(t, "python3 -c 'import socket; "+
			"socket.socket(socket.AF_UNIX).connect(\"/run/faceauth-eye\")'", "--property=User="+
			user); code == 0 {
			t.Errorf("%s reaches an eye: %s", user, out)
		}
	}
	out = s.run(t,
		`python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("/run/faceauth-eye")
s.settimeout(10); print("answer", len(s.recv(1)))'`)
	if !strings.Contains(out, "answer 0") {
		t.Errorf("root, who is not the daemon, is answered: %s", out)
	}
}

// Whatever is wrong with the camera, a login by face ends in time, lets nobody in, and spoils no
// later login.
func TestCameraFaults(t *testing.T) {
	s := people(t)
	var black bytes.Buffer
	fixture.Check(t, png.Encode(&black, image.NewGray(image.Rect(0, 0, 512, 384))))
	fixture.Check(t, os.WriteFile(filepath.Join(s.dir, "black.png"), black.Bytes(), 0o644))
	s.run(t, "rm -rf /srv/share/bad-*; mkdir /srv/share/bad-empty")
	const fill = "mkdir $d; for i in {100..250}; do "
	for name, how := range map[string]string{
		"gone":  "true",
		"empty": "true",
		"noise": fill + "head -c 9000 /dev/urandom >$d/$i.jpg; done",
		"cut": fill +
			"head -c 3000 $(ls -d /srv/faces/vidtimit_rot/p2/* | head -1) >$d/$i.jpg; done",
		"black":      fill + "cp /srv/share/black.png $d/$i.png; done",
		"unreadable": "cp -rL /srv/faces/vidtimit_rot/p2 $d; chmod 000 $d",
		"silent":     "mkfifo $d",
	} {
		t.Run(name, func(t *testing.T) {
			s.trust(t)
			s.run(t, "d=/srv/share/bad-"+name+"; "+how+"; ln -sfn $d /srv/share/camera")
			// Five seconds of the login, and the three at most by which pam_unix delays a refusal.
			if a := s.console(t, "login", "", 0); a.in || a.total > 12*time.Second {
				t.Errorf("let in %t after %v: %s\n%s", a.in, a.total, a.said, s.journal(t))
			}
			s.camera(t, "vidtimit_rot/p2")
			s.trust(t)
			if a := s.console(t, "login", "", 0); !a.in {
				t.Errorf("afterwards: %s\n%s", a.said, s.journal(t))
			}
		})
	}
}

// Eyes that hang do not stop a later login, their login ends soon, and they end with the daemon.
func TestEyesHang(t *testing.T) {
	s := people(t)
	defer func() {
		s.camera(t, "vidtimit_rot/p2")
		s.trust(t)
	}()
	for range 4 {
		s.camera(t, "vidtimit_rot/p3")
		s.trust(t)
		out, _ := s.try(t, `faceauth login try --user alice >/srv/share/said 2>&1 & verify=$!
			sleep .4; systemctl kill -s STOP 'faceauth-eye@*'; begun=$(date +%s%N); wait $verify; code=$?
			echo code $code $((($(date +%s%N)-begun)/1000000)); cat /srv/share/said`)
		var code, took int
		if _, err := fmt.Sscanf(out, "code %d %d", &code, &took); err != nil || code == 0 ||
			took > 3000 {
			t.Errorf("a login whose eye hangs: %s", out)
		}
	}
	s.camera(t, "vidtimit_rot/p2")
	s.trust(t)
	if out, code := s.try(t, "faceauth login try --user alice"); code != 0 {
		t.Errorf("the fifth login: %s\n%s", out, s.journal(t))
	}
	if out := s.run(t,
		"systemctl show -p RuntimeMaxUSec --value 'faceauth-eye@*' | sort -u"); strings.TrimSpace(
		out) != "2min 30s" {
		t.Errorf("the eyes may run for %s", out)
	}
	if n := strings.Count(s.run(t, "pgrep -u faceauth-eye -c; pgrep -u faceauth-eye"),
		"\n"); n < 5 {
		t.Errorf("%d lines about eyes that hang", n)
	}
	s.run(t, "systemctl restart faceauth")
	if out := s.run(t, "sleep .5; ps -o stat= -u faceauth-eye || true"); strings.Contains(out,
		"T") {
		t.Errorf("after a restart: %s", out)
	}
}

// A damaged store, or one that cannot be written, is named at once to who asks.
func TestBrokenStore(t *testing.T) {
	s := people(t)
	s.run(t, "systemctl stop faceauth; cp -a /var/lib/faceauth /root/before")
	defer func() {
		s.run(t, "systemctl stop faceauth; umount /var/lib/faceauth/profiles 2>/dev/null; rm -rf "+
			"/var/lib/faceauth/*; cp -a /root/before/. /var/lib/faceauth/; rm -r /root/before; "+
			"systemctl reset-failed faceauth || true")
		s.trust(t)
	}()
	for _, c := range []struct{ name, how, says string }{
		{"damaged", "head -c 5000 /dev/urandom >/var/lib/faceauth/profiles",
			"not a faceauth database"},
		{"read-only",
			"cp -a /root/before/. /var/lib/faceauth/; mount --bind /var/lib/faceauth/profiles " +
				"/var/lib/faceauth/profiles; mount -o remount,bind,ro /var/lib/faceauth/profiles",
			"read-only file system"},
	} {
		out, _ := s.try(t, "systemctl stop faceauth; "+c.how+
			"; begun=$(date +%s%N); faceauth login status --user "+
			"alice; echo code $? $((($(date +%s%N)-begun)/1000000)) ms")
		var code, took int
		last := out[strings.LastIndex("\n"+out, "\ncode "):]
		if _, err := fmt.Sscanf(last, "code %d %d", &code, &took); err != nil || code == 0 ||
			took > 1000 ||
			!strings.Contains(out, c.says) {
			t.Errorf("%s: %s", c.name, out)
		}
	}
	// Nobody waits for a full disk, the password lets in, and the store is whole afterwards.
	s.run(t, "systemctl stop faceauth; umount /var/lib/faceauth/profiles; rm -rf "+
		"/var/lib/faceauth/*; mount -t tmpfs -o size=8M,mode=700,uid=$(id -u faceauth),gid=$(id "+
		"-g faceauth) full /var/lib/faceauth; "+
		"cp -a /root/before/. /var/lib/faceauth/; dd if=/dev/zero of=/var/lib/faceauth/rest "+
		"status=none || true")
	defer s.run(t, "systemctl stop faceauth; umount /var/lib/faceauth")
	if out, code := s.try(t, "echo >/var/lib/faceauth/more"); code == 0 {
		t.Errorf("the disk is not full: %s", out)
	}
	for _, lines := range []string{"", "alice", "|alice", ""} {
		if a := s.console(t, "login", lines, 0); lines == "alice" && !a.in ||
			a.total > 12*time.Second {
			t.Errorf("a full disk, %q: let in %t after %v: %s\n%s", lines, a.in, a.total, a.said,
				s.journal(t))
		}
	}
	s.run(t, "systemctl stop faceauth; rm /var/lib/faceauth/rest")
	s.trust(t)
	if a := s.console(t, "login", "", 0); !a.in {
		t.Errorf("after a full disk: %s\n%s", a.said, s.journal(t))
	}
}
