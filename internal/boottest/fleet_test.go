// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"strings"
	"testing"
)

// The units of a fleet share people, as docs/fleet.md says: with a server that is stopped and
// killed meanwhile, each as a user of its own.
func TestFleet(t *testing.T) {
	s := boot(t)
	const units = "faceauth-fleet@home faceauth-fleet@hall faceauth-fleet-server"
	t.Cleanup(func() {
		s.try(t, "systemctl stop "+units+
			"; systemctl reset-failed; rm -rf /var/lib/faceauth-office /var/lib/faceauth-fleet "+
			"/var/lib/private/faceauth-fleet; sed -i '/of the fleet/d' /etc/hosts")
	})
	s.write(t, "/srv/share/fleet", `set -e
of() { echo --gallery /var/lib/faceauth-office/$1.db; }
# invited prints the last invitation of the server.
invited() { journalctl -q --no-pager -o cat -u faceauth-fleet-server | grep -o 'faceauth-fleet-1-.*' | tail -1; }
# shows waits until a command prints a text.
shows() { for i in $(seq 150); do eval "$2" 2>&1 | grep -q "$1" && return; sleep .2; done
echo "$2 does not print $1:"; eval "$2"; journalctl -q --no-pager -n 40 -u 'faceauth-fleet*'; exit 1; }
`)
	do := func(what, script string) string {
		t.Helper()
		out, code := s.try(t, ". /srv/share/fleet; "+script, "--setenv=FACEAUTH_MODELS=/srv/models")
		if code != 0 {
			t.Fatalf("%s: %s", what, out)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	do("the server", `echo "127.0.0.1 $(hostname) # of the fleet" >>/etc/hosts
		systemctl start faceauth-fleet-server
		shows faceauth-fleet-1- invited; old=$(invited); systemctl restart faceauth-fleet-server
		shows faceauth-fleet-1- "invited | grep -v $old"`)
	do("joining", `faceauth fleet join "$(invited)" $(of home)
		systemctl start faceauth-fleet@home; shows first.*connected "faceauth fleet devices $(of home)"
		faceauth fleet invite hall $(of home) | grep -o 'faceauth-fleet-1-.*' | faceauth fleet join - $(of hall)
		systemctl start faceauth-fleet@hall; shows hall.*connected "faceauth fleet devices $(of home)"`)
	do("enrolling", `faceauth enroll /srv/faces/vidtimit_rot/p2 --name alice $(of home)
		shows alice "faceauth people $(of hall)"`)
	do("without a server", `systemctl stop faceauth-fleet-server
		faceauth people rename alice anna $(of hall)
		systemctl kill -s KILL faceauth-fleet@hall; systemctl start faceauth-fleet-server
		shows anna "faceauth people $(of home)"
		systemctl kill -s KILL faceauth-fleet-server; faceauth people rename anna ann $(of home)
		shows ann$ "faceauth people $(of hall) | cut -d' ' -f1"`)
	if out := do("files", "stat -c '%a %U' /var/lib/faceauth-office /var/lib/faceauth-office/* "+
		"/var/lib/faceauth-fleet/ /var/lib/faceauth-fleet/server.json | sort -u"); out != "600 faceauth-fleet-server 600 faceauth-office "+
		"700 faceauth-fleet-server 700 faceauth-office" {
		t.Errorf("files: %s", out)
	}
	if out := do("rights", "for u in "+units+
		"; do grep -h '^CapEff\\|^Seccomp:\\|^NoNewPrivs' /proc/$(systemctl show -p "+
		"MainPID --value $u)/status; systemd-analyze security --no-pager --threshold=30 $u "+
		">/tmp/rights || "+
		"tail -1 /tmp/rights; done | sort | uniq -c"); out != "3 CapEff: 0000000000000000 3 "+
		"NoNewPrivs: 1 3 Seccomp: 2" {
		t.Errorf("rights: %s", out)
	}
	do("revoking", `faceauth people remove ann --yes $(of hall)
		shows 'nobody' "faceauth people $(of home)"
		faceauth fleet revoke hall $(of home)
		shows 'was revoked' "journalctl -q --no-pager -o cat -u faceauth-fleet@hall"
		faceauth-fleet-server backup /var/lib/faceauth-fleet /srv/share/books`)
	if out := do("stopping", "systemctl stop "+units+"; systemctl show -p Result --value "+
		units); out !=
		"success success success" {
		t.Errorf("stopped: %s", out)
	}
}
