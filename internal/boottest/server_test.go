// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"strings"
	"testing"
)

// The server of a fleet runs as a service: it is off at first, admits devices, comes back after SIGKILL, and ends when
// it is stopped. If its disk was lost, its devices give back what they have.
func TestFleetServer(t *testing.T) {
	s := boot(t)
	const state = "/var/lib/faceauth-fleet-server"
	as := "runuser -u faceauth-fleet-server -- faceauth fleet "
	reached := "for i in $(seq 30); do " + as + "devices --timeout 5s --state " + state +
		" >/dev/null 2>&1 && break; sleep .5; done; "
	t.Cleanup(func() {
		s.try(t, "systemctl stop faceauth-fleet-server; systemctl reset-failed faceauth-fleet-server; "+
			"rm -rf "+state+" "+state+"-admin /etc/default/faceauth-fleet-server /root/door")
	})
	if out, _ := s.try(t, "systemctl is-enabled faceauth-fleet-server"); strings.TrimSpace(out) != "disabled" {
		t.Errorf("after an installation it is %s", out)
	}
	s.write(t, "/etc/default/faceauth-fleet-server", "FACEAUTH_FLEET_OPTIONS=--url tls://127.0.0.1:4222 --quota 16\n")
	s.run(t, "systemctl start faceauth-fleet-server; "+reached)
	join := "token=$(" + as + "invite --json --state " + state +
		` | sed 's/.*"token":"\([^"]*\)".*/\1/') && faceauth fleet join --token "$token"`
	s.run(t, join+" --name door --state /root/door")
	lists := func(when string) {
		t.Helper()
		if out := s.run(t, reached+as+"devices --state "+state); !strings.Contains(out, "\ndoor ") {
			t.Errorf("%s it lists %s", when, out)
		}
	}
	lists("at first")
	if out := s.run(t, "ls -ld "+state+"; stat -c '%a %U' "+state+"/*"); strings.Contains(out, "root") ||
		strings.Count(out, "600 faceauth-fleet-server") < 5 {
		t.Errorf("its files: %s", out)
	}
	if out := s.run(t, "journalctl -q --no-pager -o cat -u faceauth-fleet-server"); strings.Contains(out, "--token") ||
		!strings.Contains(out, "the fleet is at tls://127.0.0.1:4222") {
		t.Errorf("the journal: %s", out)
	}
	if out := s.run(t, "grep -h '^CapEff\\|^Seccomp:\\|^NoNewPrivs' /proc/$(systemctl show -p MainPID --value "+
		"faceauth-fleet-server)/status"); strings.Join(strings.Fields(out), " ") !=
		"CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2" {
		t.Errorf("its rights: %s", out)
	}
	s.run(t, "systemctl kill -s KILL faceauth-fleet-server; sleep 6; systemctl is-active faceauth-fleet-server")
	lists("after kill -9")
	if out := s.run(t, "systemctl stop faceauth-fleet-server; systemctl show -p Result -p ExecMainStatus --value "+
		"faceauth-fleet-server"); strings.Join(strings.Fields(out), " ") != "success 0" &&
		strings.Join(strings.Fields(out), " ") != "0 success" {
		t.Errorf("it ends with %s", out)
	}
	s.run(t, "rm -rf "+state+"/jetstream; systemctl start faceauth-fleet-server; "+reached+
		"systemctl is-active faceauth-fleet-server")
	s.run(t, "timeout 5 faceauth fleet follow --state /root/door --gallery /root/door/people || true")
	lists("after its disk was lost")
	if out := s.run(t, "systemd-analyze security --no-pager faceauth-fleet-server"); !strings.Contains(out,
		"for faceauth-fleet-server.service: 1.") &&
		!strings.Contains(out, "for faceauth-fleet-server.service: 0.") {
		t.Error(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:])
	}
}
