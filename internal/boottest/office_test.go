// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"bytes"
	"encoding/base64"
	"github.com/faceauth/faceauth/internal/fixture"
	"image"
	"image/jpeg"
	"strings"
	"testing"
)

// An office runs as a service with a user of its own. Its eyes work in the service's sandbox, its
// configuration is for that user alone, and a wrong one does not make it restart for ever.
func TestOffice(t *testing.T) {
	s := boot(t)
	const unit, config = "faceauth-office@home", "/etc/faceauth/office-home.yaml"
	t.Cleanup(func() {
		s.try(t, "systemctl stop "+unit+"; systemctl reset-failed "+unit+
			"; rm -rf /var/lib/faceauth-office "+config)
	})
	var grey bytes.Buffer
	fixture.Check(t, jpeg.Encode(&grey, image.NewGray(image.Rect(0, 0, 320, 240)), nil))
	s.run(t, "echo "+base64.StdEncoding.EncodeToString(grey.Bytes())+
		" | base64 -d >/srv/share/grey.jpg")
	s.write(t, config, "cameras:\n"+
		"  - {name: door, source: \"rtsp://127.0.0.1:9/x\", password: made-up-word, user: me}\n"+
		"page: 127.0.0.1:8090\nlearn: true\n")
	s.run(t, "chmod 600 "+config+"; chown faceauth-office "+config+"; systemctl start "+unit)
	const curl = "curl -s --max-time 20 http://127.0.0.1:8090"
	if out := s.run(t, "for i in $(seq 60); do "+curl+
		"/api/now >/tmp/now && grep -q door /tmp/now && break; sleep .5; done; cat /tmp/now"); !strings.Contains(out,
		`"camera":"door"`) {
		t.Fatalf("the page says %s; %s", out, s.run(t, "journalctl -q --no-pager -o cat -u "+unit))
	}
	if out := s.run(t, curl+
		"/api/recognise -H 'Content-Type: image/jpeg' --data-binary @/srv/share/grey.jpg"); strings.
		TrimSpace(out) != `{"size":[320,240],"faces":[]}` {
		t.Errorf("a picture: %s", out)
	}
	if out := s.run(t,
		"stat -c '%a %U' /var/lib/faceauth-office /var/lib/faceauth-office/home.db"); strings.Join(
		strings.Fields(out), " ") != "700 faceauth-office 600 faceauth-office" {
		t.Errorf("its files: %s", out)
	}
	if out := s.run(t,
		"grep -h '^CapEff\\|^Seccomp:\\|^NoNewPrivs' /proc/$(systemctl show -p MainPID --value "+
			unit+
			")/status"); strings.Join(strings.Fields(out),
		" ") != "CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2" {
		t.Errorf("its rights: %s", out)
	}
	if out := s.run(t, "systemctl kill -s KILL "+unit+"; sleep 6; systemctl is-active "+unit+
		"; systemctl stop "+unit+
		"; systemctl show -p Result --value "+unit); strings.Join(strings.Fields(out),
		" ") != "active success" {
		t.Errorf("after kill -9 and stop: %s", out)
	}
	if out := s.run(t, "journalctl -q --no-pager -o cat -u "+unit); strings.Contains(out,
		"made-up-word") {
		t.Errorf("the journal: %s", out)
	}
	s.write(t, config, "cameras: nonsense\n")
	if out, _ := s.try(t, "systemctl start "+unit+"; sleep 7; systemctl show -p NRestarts --value "+
		unit+
		"; systemctl is-failed "+unit); strings.Join(strings.Fields(out), " ") != "0 failed" {
		t.Errorf("with a wrong configuration: %s", out)
	}
	if out, code := s.try(t, "systemd-analyze security --no-pager --threshold=35 "+
		unit); code != 0 {
		t.Errorf("%s", out)
	}
}
