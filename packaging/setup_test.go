// SPDX-License-Identifier: Apache-2.0

package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// If a step fails, its last line says why, and what to do.
func TestStepSays(t *testing.T) {
	for said, want := range map[string]string{
		"write /home/me/go/pkg/mod/x.zip: no space left on device":                "the disk is full at /home/me/go/pkg/mod/x.zip; make room",
		"/usr/bin/ld: final link failed: No space left on device":                 "the disk is full; make room",
		"dial tcp: lookup proxy.example: no such host":                            "a server cannot be reached; is there a network?",
		"proxyconnect tcp: dial tcp 10.0.0.1:3128: refused":                       "the proxy http://10.0.0.1:3128 does not let it through",
		"go: go.mod requires go >= 1.26.3 (running go 1.24.4; GOTOOLCHAIN=local)": "this Go is too old, and may fetch no",
		"x.go:3: undefined: y": "that is the end of what it said",
	} {
		c := exec.Command("sh", "../scripts/step.sh", "compiling", "sh", "-c", "echo '"+said+
			"'; exit 1")
		c.Env = append(os.Environ(), "https_proxy=http://me:secret@10.0.0.1:3128")
		out, err := c.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		last := lines[len(lines)-1]
		if err == nil || !strings.HasPrefix(last, "setup: this failed: compiling: ") ||
			!strings.Contains(last, want) ||
			strings.Contains(last, "secret") {
			t.Errorf("%s: %v, %q, want %q in it", said, err, last, want)
		}
	}
}

// machine returns a folder of commands in the place of those of a machine with only Go installed.
func machine(t *testing.T, commands map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"sh", "cat", "grep", "tail", "mktemp", "rm", "env", "ls",
		"printf", "sed", "awk",
		"df", "dirname", "head"} {
		path := fixture.Must(exec.LookPath(name))(t)
		if _, replaced := commands[name]; replaced {
			continue
		}
		fixture.Check(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	for name, script := range commands {
		fixture.Check(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"),
			0o700))
	}
	return bin
}

// If setup.sh cannot do its work, it says in one sentence why, and what to do.
func TestSetupSays(t *testing.T) {
	const (
		goes = "echo go1.26.0"
		root = "echo 0"
		user = "echo 1000"
		// says prints the messages of apt-get on standard error.
		says = `echo "$*" >>"$TMPDIR/asked"; echo "proxy ${http_proxy:-none}" >>"$TMPDIR/asked"; echo '`
		ends = `' >&2; exit 100`
	)
	// go test runs these tests again when a file that they have read has changed. It does not see
	// the files that the shell reads.
	fixture.Must(os.ReadFile("../scripts/setup.sh"))(t)
	pass := `while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"`
	for _, c := range []struct {
		name     string
		commands map[string]string
		env      []string
		want     string // on standard error
		asked    string // expected call of apt-get
	}{
		{"no Go", map[string]string{"id": root}, nil,
			"setup: Go is not installed; install Go 1.26 or newer", ""},
		{"an old Go", map[string]string{"go": "echo go1.19.8", "id": root}, nil,
			"is too old; install Go 1.26 or newer", ""},
		{"no apt-get", map[string]string{"go": goes, "id": root}, nil,
			"setup: there is no apt-get here; install by other means what", ""},
		{"neither root nor sudo", map[string]string{"go": goes, "id": user, "apt-get": "exit 1"},
			nil, "only root can install them; as root run: apt-get update && " +
				"apt-get install --no-install-recommends gcc g++ " +
				"pkg-config", ""},
		{"sudo refuses", map[string]string{"go": goes, "id": user, "apt-get": "exit 1",
			"sudo": says +
				"bob is not in the sudoers file." + ends}, nil,
			"(sudo refuses; ask an administrator to run: apt-get update && apt-get install " +
				"--no-install-recommends gcc",
			""},
		{"no network", map[string]string{"go": goes, "id": root, "apt-get": says +
			"W: Temporary failure resolving x" +
			ends},
			nil,
			"(its servers cannot be reached; is there a network? Behind a proxy run: " +
				"http_proxy=http://HOST:PORT HTTPS_PROXY=http://HOST:PORT make demo; all",
			"proxy none"},
		{"no proxy there", map[string]string{"go": goes, "id": root, "apt-get": says +
			"Could not connect to 10.0.0.1:3128" +
			ends},
			[]string{"HTTPS_PROXY=http://10.0.0.1:3128"},
			"(its servers cannot be reached through the proxy of http_proxy; " +
				"is that address right?; all", "proxy http://10.0.0.1:3128"},
		{"a proxy with a password", map[string]string{"go": goes, "id": root, "apt-get": says +
			"407  Proxy Authentication Required" + ends},
			[]string{"http_proxy=http://10.0.0.1:3128"},
			"(the proxy wants a user name and a password",
			"proxy http://10.0.0.1:3128"},
		{"a proxy and sudo", map[string]string{"go": goes, "id": user, "sudo": pass,
			"apt-get": says + "x" + ends},
			[]string{"HTTP_PROXY=http://10.0.0.1:3128"}, "(is there a network?; all",
			"proxy http://10.0.0.1:3128"},
		{"another apt-get", map[string]string{"go": goes, "id": root, "apt-get": says +
			"E: Could not get lock /var/lib/dpkg/lock-frontend." + ends}, nil,
			"(another program installs packages; wait until it has ended", ""},
		{"a full disk", map[string]string{"go": goes, "id": root, "apt-get": says +
			"W: Write error - write (28: No space left on device)" + ends}, nil,
			"(the disk is full; make room, then run make again", ""},
		{"too little room", map[string]string{"go": goes, "id": root,
			"df": "echo; echo x 1 2 1200000 5% /usr",
			"apt-get": `case "$*" in *--assume-no*) echo 'Need to get 20.1 MB/308 MB of archives.'; ` +
				`echo 'After this operation, 1,302 MB of additional disk space will be used.'; exit 1; esac`}, nil,
			" and 1200 MB are free there; make room, then run make again", ""},
		{"no room for the archives", map[string]string{"go": goes, "id": root,
			"df": `[ "$2" != /var/cache/apt/archives ] || { echo; echo x 1 2 300; exit; }; echo; echo y 1 2 9000000`,
			"apt-get": `case "$*" in *--assume-no*) echo 'Need to get 308 MB of archives.'; ` +
				`echo 'After this operation, 1.3 GB of additional disk space will be used.'; exit 1; esac`}, nil,
			"setup: 308 MB are needed in /var/cache/apt/archives, and 0 MB are free there", ""},
		{"a full folder of temporary files",
			map[string]string{"go": goes, "id": root, "apt-get": "exit 0",
				"mktemp": "echo 'No space left on device' >&2; exit 1"}, nil,
			"; is it full? TMPDIR names another folder", ""},
		{"another system", map[string]string{"go": goes, "id": root, "apt-get": says +
			"E: Unable to locate package libopencv-dev" + ends}, nil,
			"(this release does not have them; faceauth is made for Debian 12 and 13 and Ubuntu " +
				"24.04", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmp := t.TempDir()
			bin := machine(t, c.commands)
			cmd := exec.Command(filepath.Join(bin, "sh"), "../scripts/setup.sh")
			cmd.Env = append([]string{"PATH=" + bin, "TMPDIR=" + tmp, "HOME=" + tmp}, c.env...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err == nil {
				t.Fatalf("it went well: %s", out)
			}
			if !strings.Contains(stderr.String(), c.want) {
				t.Errorf("it said %q, want %q in it", stderr.String(), c.want)
			}
			last := strings.TrimSpace(stderr.String())
			if last = last[strings.LastIndexByte(last, '\n')+1:]; !strings.HasPrefix(last,
				"setup: ") {
				t.Errorf("its last line is %q", last)
			}
			asked, _ := os.ReadFile(filepath.Join(tmp, "asked"))
			if !strings.Contains(string(asked), c.asked) {
				t.Errorf("apt-get was asked with %q, want %q in it", asked, c.asked)
			}
		})
	}
}
