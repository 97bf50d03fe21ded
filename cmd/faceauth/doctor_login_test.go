// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/tablet"
)

// Whatever is missing for a login by face, the first line names the first reason.
func TestDoctorLogin(t *testing.T) {
	services, err := os.ReadFile(filepath.Join(fixture.Root(t), "tablet", "install", "services"))
	fixture.Check(t, err)
	const unit, module = "usr/lib/systemd/system/faceauth.service",
		"usr/lib/x86_64-linux-gnu/security/pam_faceauth.so"
	const auth, list = "etc/pam.d/common-auth", "etc/faceauth/services"
	refused := func(name string) error { return &socket.Error{Name: name, Message: name} }
	for _, c := range []struct {
		name, without string
		status        tablet.Status
		err           error
		desktop       string
		want          string // in the verdict
		notes         string
	}{
		{"everything", "", tablet.Status{Here: true}, nil, "GNOME", "works here",
			"counts in this terminal"},
		{"no unit", unit, tablet.Status{}, nil, "",
			"service: the unit faceauth.service is not installed", ""},
		{"no daemon", "", tablet.Status{}, errors.New("the faceauth daemon does not run"), "",
			"daemon: the faceauth daemon", ""},
		{"a damaged store", "", tablet.Status{}, refused("Internal"), "", "daemon: Internal", ""},
		{"not enrolled", "", tablet.Status{}, refused("NoProfile"), "", "account: alice: NoProfile",
			""},
		{"the password is due", "", tablet.Status{Refusal: "too many failures"}, nil, "",
			"account: alice: log in with the password first: too many failures", ""},
		{"no module", module, tablet.Status{}, nil, "", "module: pam_faceauth.so is not installed",
			""},
		{"PAM does not ask", auth, tablet.Status{}, nil, "", "PAM: no service asks", ""},
		{"no list", list, tablet.Status{}, nil, "", "services: the list cannot be read", ""},
		{"a terminal of GNOME", "", tablet.Status{}, nil, "GNOME", "works here",
			"terminal: "},
		{"a desktop that is not listed", "", tablet.Status{}, nil, "ubuntu:X-Cinnamon",
			"sudo faceauth login allow cinnamon", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			text := string(services)
			if strings.Contains(c.desktop, "Cinnamon") {
				text = strings.ReplaceAll(text, "cinnamon", "other")
			}
			for path, text := range map[string]string{unit: "", module: "", list: text,
				auth: "auth [success=end default=ignore] pam_faceauth.so\n"} {
				if path == c.without {
					continue
				}
				at := filepath.Join(root, path)
				fixture.Check(t, os.MkdirAll(filepath.Dir(at), 0o755))
				fixture.Check(t, os.WriteFile(at, []byte(text), 0o644))
			}
			d := diagnosed(loginFindings(root, func(name string) string {
				if name == "XDG_CURRENT_DESKTOP" {
					return c.desktop
				}
				return ""
			}, "alice", c.status, c.err))
			if d.Works != (c.want == "works here") || !strings.Contains(d.Verdict, c.want) {
				t.Errorf("%t, %q, want %q", d.Works, d.Verdict, c.want)
			}
			said := ""
			for _, f := range d.Findings {
				said += f.What + ": " + f.Text + "\n"
			}
			if !strings.Contains(said, c.notes) {
				t.Errorf("%q is not in\n%s", c.notes, said)
			}
		})
	}
}
