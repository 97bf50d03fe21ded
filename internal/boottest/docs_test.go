// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// documented returns the commands below a heading of docs/login.md, in order and without their
// comments.
func documented(t testing.TB, heading string) (commands []string) {
	t.Helper()
	b := fixture.Must(os.ReadFile(filepath.Join(fixture.Root(t), "docs", "login.md")))(t)
	_, rest, ok := strings.Cut(string(b), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/login.md has no %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			command, _, _ = strings.Cut(command, " #")
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if len(commands) == 0 {
		t.Fatalf("docs/login.md has no commands below %q", heading)
	}
	return commands
}

// install follows docs/login.md as alice, who may use sudo. Programs are built outside the system.
func (s *system) install(t testing.TB) {
	t.Helper()
	for _, command := range documented(t, "Install") {
		if rest, ok := strings.CutPrefix(command, "make "); ok {
			if base != "" {
				continue // it was built there
			}
			c := exec.Command("make", append([]string{"-s", "-C", fixture.Root(t)},
				strings.Fields(rest)...)...)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
			continue
		}
		s.asAlice(t, command)
	}
}

// asAlice runs a command: as root for alice if it begins with sudo, and otherwise as alice in a
// session at the device.
func (s *system) asAlice(t testing.TB, command string) string {
	t.Helper()
	if rest, ok := strings.CutPrefix(command, "sudo "); ok {
		return s.run(t, "cd /srv/project && "+rest, "--setenv=USER=alice",
			"--setenv=FACEAUTH_MODELS=/srv/models", "--setenv=DEBIAN_FRONTEND=noninteractive")
	}
	out := s.session(t, "alice", atDevice, "export USER=alice\n"+command+"\necho code $?")
	if !strings.HasSuffix(out, "code 0\n") {
		t.Errorf("%s: %s", command, out)
	}
	return out
}

// The commands in docs/login.md do what the page says. All tests begin with the commands that
// install faceauth.
func TestDocs(t *testing.T) {
	s := people(t)
	want := map[string]string{
		"faceauth login try":          "recognised",
		"faceauth login status":       "it learns at each login",
		"faceauth login history":      "  match\n",
		"faceauth login undo 12h":     "taken back",
		"sudo journalctl -u faceauth": "result=match",
		"faceauth login forget":       "the profile is gone",
	}
	if out := s.session(t, "alice", atDevice, "faceauth doctor --login"); !strings.HasPrefix(out,
		"a login by face works") || !strings.Contains(out, "a face counts in this terminal") {
		t.Errorf("doctor: %s", out)
	}
	seen := 0
	for _, command := range documented(t, "Try it") {
		out := s.asAlice(t, command)
		if w, ok := want[command]; !ok || !strings.Contains(out, w) {
			t.Errorf("%s: %q is not in %s", command, w, out)
		}
		seen++
	}
	if seen != len(want) {
		t.Errorf("%d of %d commands are documented", seen, len(want))
	}
	if out := s.session(t, "alice", atDevice, "faceauth doctor --login"); !strings.HasPrefix(out,
		"a login by face does not work: account: alice: ") {
		t.Errorf("doctor, after the profile is gone: %s", out)
	}
	if out := s.session(t, "alice", atDevice,
		"LC_ALL=de_DE.UTF-8 faceauth login try"); !strings.Contains(out,
		"für diesen Benutzer ist kein Gesicht registriert") {
		t.Errorf("in German: %s", out)
	}
	// Every flag in the pages exists.
	pages, err := filepath.Glob(filepath.Join(fixture.Root(t), "docs", "login*.md"))
	if err != nil || len(pages) != 4 {
		t.Fatal(pages, err)
	}
	var b []byte
	for _, p := range pages {
		text := fixture.Must(os.ReadFile(p))(t)
		b = append(b, text...)
	}
	help := s.run(t,
		"faceauth daemon --help; faceauth-lab trial login --help; faceauth doctor --help; "+
			"faceauth login allow --help; faceauth login enroll --help")
	flags := regexp.MustCompile("--[a-z][a-z-]+").FindAllString(string(b), -1)
	slices.Sort(flags)
	for _, f := range slices.Compact(flags) {
		if !strings.Contains(help, f) &&
			!slices.Contains([]string{"--enable", "--disable", "--name", "--user", "--now",
				"--create", "--unit"}, f) {
			t.Errorf("docs/login.md names %s, which is no option", f)
		}
	}
	for _, command := range documented(t, "It does not work") {
		if strings.HasPrefix(command, "sudo") { // the others were tried above
			s.asAlice(t, command)
		}
	}
	// Search only where a system keeps programs, settings and data, as the project itself may lie
	// anywhere else. Other tests write services of PAM into the machine's own /etc.
	find := "find /etc /usr /opt /var -xdev -newer /etc/machine-id -not -path '/var/tmp/*' -not " +
		"-name 'faceauth-test-*' -name '*faceauth*' -print 2>/dev/null; grep -rl " +
		"--exclude='faceauth-test-*' faceauth " +
		"/etc/pam.d"
	if out, _ := s.try(t, find); strings.Contains(out, "pam.d/common") {
		t.Errorf("it is still in use: %s", out)
	} else if left := strings.Fields(out); !slices.Equal(left,
		[]string{"/etc/default/faceauth"}) { // of the tests
		t.Errorf("this is left: %q", left)
	}
	if a := s.console(t, "login", "alice", 0); !a.in || strings.Contains(a.said, "camera") {
		t.Errorf("without it: %+v", a)
	}
	s.write(t, "/etc/default/faceauth", "FACEAUTH_OPTIONS=--source /srv/share/camera\n")
	s.install(t)
	if out, code := s.try(t, "faceauth login status --user alice"); code != 0 {
		t.Errorf("installed again: %s", out)
	}
}
