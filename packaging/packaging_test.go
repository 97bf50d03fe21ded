// SPDX-License-Identifier: Apache-2.0

// Package packaging_test checks in seconds whatever needs no tree: the packages hold the files that
// the Makefile installs, and their scripts are valid. packaging/tree.sh checks the rest.
package packaging_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// makes runs make in the project's folder.
func makes(t *testing.T, args ...string) string {
	t.Helper()
	// This tells go test on which files its result depends: it does not see which files make reads.
	for _, path := range append(files(t, "../tablet/install"), "../../Makefile") {
		fixture.Must(os.ReadFile(filepath.Join("../tablet/install", path)))(t)
	}
	c := exec.Command("make", append([]string{"-s", "-C", ".."}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// files returns the files below a folder, by their paths in it.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	fixture.Check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(dir, path)
			all = append(all, path)
		}
		return err
	}))
	return all
}

// Every folder of cmd is a program that is built, installed and packaged.
func TestPrograms(t *testing.T) {
	b := fixture.Must(os.ReadFile("../Makefile"))(t)
	line := regexp.MustCompile(`(?m)^PROGRAMS = (.*)$`).FindSubmatch(b)
	if line == nil {
		t.Fatal("the Makefile has no PROGRAMS")
	}
	var folders []string
	mains, _ := filepath.Glob("../cmd/*/main.go")
	for _, path := range mains {
		folders = append(folders, filepath.Base(filepath.Dir(path)))
	}
	programs := append(strings.Fields(string(line[1])), "faceauth-models") // is for go run alone
	if !slices.Equal(programs, folders) {
		t.Errorf("the Makefile has the programs %q, cmd has %q", programs, folders)
	}
}

// The packages and the image of a release bring YuNet; what somebody else builds has it if it was
// installed before.
func TestYuNet(t *testing.T) {
	yunet := fixture.Must(models.Of(models.Detector, "yunet"))(t).File
	for _, there := range []bool{false, true} {
		dir, root := t.TempDir(), t.TempDir()
		want := []string{"fr_detect.onnx"}
		if there {
			want = []string{yunet, "fr_detect.onnx"}
		}
		for _, name := range want {
			fixture.Check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		makes(t, "install-models", "FACEAUTH_MODELS="+dir, "DESTDIR="+root)
		if got := files(t, filepath.Join(root, "usr/share/faceauth/models")); !slices.Equal(
			got, want) {
			t.Errorf("installed %q, want %q", got, want)
		}
	}
	for path, command := range map[string]string{"build.sh": yunet,
		"debian/faceauth-models.postrm":    yunet,
		"container/Dockerfile":             "faceauth models install yunet",
		"../.github/workflows/release.yml": "faceauth models install yunet"} {
		if b := fixture.Must(os.ReadFile(path))(t); !strings.Contains(string(b), command) {
			t.Errorf("%s has no %q", path, command)
		}
	}
}

// Each file that is installed without being built is in exactly one package, and an uninstall
// removes it.
func TestInstalledFilesArePackaged(t *testing.T) {
	root := t.TempDir()
	makes(t, "install-files", "DESTDIR="+root)
	// The files that are built, as make says that it would install them.
	installed := files(t, root)
	for _, name := range []string{"usr/share/man/man1/faceauth.1",
		"usr/share/bash-completion/completions/faceauth",
		"usr/share/zsh/vendor-completions/_faceauth",
		"usr/share/fish/vendor_completions.d/faceauth.fish",
		"usr/bin/faceauth", "usr/share/faceauth/licences/faceauth.txt",
		"usr/share/faceauth/demo/s1/1.pgm",
		"usr/lib/triplet/security/pam_faceauth.so", "usr/share/faceauth/models/fr_detect.onnx"} {
		installed = append(installed, name)
		path := filepath.Join(root, name)
		fixture.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		fixture.Check(t, os.WriteFile(path, nil, 0o600))
	}
	if len(installed) < 18 {
		t.Errorf("only %d files are installed", len(installed))
	}
	patterns := map[string][]string{} // by package
	lists, err := filepath.Glob("debian/*.install")
	if err != nil || len(lists) != 5 {
		t.Fatalf("%v, %v", lists, err)
	}
	used := map[string]bool{}
	for _, list := range lists {
		b := fixture.Must(os.ReadFile(list))(t)
		patterns[list] = strings.Fields(strings.NewReplacer("${env:SYSLIB}", "usr/lib",
			"${DEB_HOST_MULTIARCH}", "triplet").Replace(string(b)))
	}
	for _, name := range installed {
		var in []string
		for list, all := range patterns {
			for _, p := range all {
				if strings.HasPrefix(name, strings.TrimSuffix(p, "*")) {
					in = append(in, list)
					used[list+" "+p] = true
				}
			}
		}
		if len(in) != 1 {
			t.Errorf("%s is in %q", name, in)
		}
	}
	for list, all := range patterns {
		for _, p := range all {
			if !used[list+" "+p] {
				t.Errorf("%s has %s, and nothing is there", list, p)
			}
		}
	}
	makes(t, "uninstall", "DESTDIR="+root, "libdir=/usr/lib/triplet")
	// The administrator's list stays.
	if left := files(t, root); !slices.Equal(left, []string{"etc/faceauth/services"}) {
		t.Errorf("an uninstall leaves %q", left)
	}
}

// The caller chooses the folders of the installation and the flags of the compiler.
func TestMakeIsAsked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"install-files", "prefix=/opt/f", "sysconfdir=/opt/etc"},
			"/d/opt/etc/faceauth/services"},
		{[]string{"install-files", "unitdir=/opt/units"}, "/d/opt/units/faceauth.service"},
		{[]string{"uninstall", "libdir=/opt/lib"}, "/d/opt/lib/security/pam_faceauth.so"},
		{[]string{"uninstall", "pamdir=/opt/pam"}, "/d/opt/pam/pam_faceauth.so"},
		{[]string{"uninstall", "bindir=/opt/bin"}, "/d/opt/bin/faceauth"},
		{[]string{"pam-module", "CFLAGS=-O3 -flto"}, "-O3 -flto -fPIC"},
		{[]string{"pam-module", "LDFLAGS=-Wl,--as-needed"}, "relro,-z,now -Wl,--as-needed -o"},
		{[]string{"programs", "GO_BUILD=-trimpath"},
			"go build -tags osusergo -trimpath -o bin/faceauth-eye ./cmd/faceauth-eye"},
		{[]string{"-o", "build", "models", "FROM=a.tgz"}, `models install --from "a.tgz"`},
	} {
		if out := makes(t, append([]string{"-n", "DESTDIR=/d"},
			c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("make %s says nothing of %s:\n%s", strings.Join(c.args, " "), c.want, out)
		}
	}
	// From the environment, too, as dpkg-buildpackage gives them.
	t.Setenv("CFLAGS", "-O1 -g")
	if out := makes(t, "-n", "pam-module"); !strings.Contains(out, "-O1 -g -fPIC") {
		t.Errorf("CFLAGS of the environment are not used:\n%s", out)
	}
}

// The shell accepts the scripts, and so does shellcheck, if it is installed.
func TestScripts(t *testing.T) {
	var scripts []string
	for _, pattern := range []string{"*.sh", "inside/*.sh", "debian/*.p*", "../scripts/*.sh"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		scripts = append(scripts, found...)
	}
	for _, script := range scripts {
		if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("sh -n %s: %v\n%s", script, err, out)
		}
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Log("shellcheck is not installed")
		return
	}
	// Scripts of inside/ use definitions of other scripts there; set -e ends a script whose folder
	// is missing.
	out, err := exec.Command("shellcheck",
		append([]string{"-s", "sh", "-S", "warning", "-e", "SC2034,SC2154,SC2164"},
			scripts...)...).CombinedOutput()
	if err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

// The container fits the compose file and the example of a configuration beside it.
func TestContainer(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b := fixture.Must(os.ReadFile(filepath.Join("container", name)))(t)
		return string(b)
	}
	file := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read("Dockerfile"), "")
	file = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(file, "")
	instructions := make(map[string][]string)
	for line := range strings.Lines(file) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			instructions[name] = append(instructions[name], rest)
		}
	}
	known := []string{"ARG", "FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE",
		"HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
	for name := range instructions {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no instruction that is expected", name)
		}
	}
	one := func(name string) string { // the last one: of the second stage
		t.Helper()
		all := instructions[name]
		if len(all) == 0 {
			t.Fatalf("there is no %s", name)
		}
		return all[len(all)-1]
	}
	// Both stages are of one release.
	if got, want := instructions["FROM"], []string{"golang:1.26-${RELEASE} AS build",
		"debian:${RELEASE}-slim"}; !slices.Equal(got, want) {
		t.Errorf("FROM %q, want %q", got, want)
	}
	// The first stage installs what docs/packages.md does.
	builds, page := instructions["RUN"][0], fixture.Must(os.ReadFile("../docs/packages.md"))(t)
	list := regexp.MustCompile(`(?s)install --no-install-recommends (build-essential.*?) systemd `)
	for _, name := range strings.Fields(string(list.FindSubmatch(page)[1])) {
		if name != `\` && !strings.Contains(builds, " "+name+" ") {
			t.Errorf("the first stage does not install %s", name)
		}
	}
	run := one("RUN")
	for _, want := range []string{"--no-install-recommends", "rm -rf /var/lib/apt/lists/*",
		"/packages/faceauth_*.deb",
		"/packages/faceauth-models_*.deb", "--uid " + one("USER") + " "} {
		if !strings.Contains(run, want) {
			t.Errorf("RUN has no %s: %s", want, run)
		}
	}
	if !strings.HasSuffix(one("HEALTHCHECK"), "/"+one("EXPOSE")+`"]`) {
		t.Errorf("HEALTHCHECK %s", one("HEALTHCHECK"))
	}
	var compose struct {
		Services map[string]struct {
			Image, Restart    string
			Build             struct{ Context, Dockerfile string }
			Init              bool
			StopGracePeriod   string `yaml:"stop_grace_period"`
			Environment       map[string]string
			Volumes, Ports    []string
			ReadOnly          bool `yaml:"read_only"`
			Tmpfs             []string
			CapDrop           []string `yaml:"cap_drop"`
			SecurityOpt       []string `yaml:"security_opt"`
			Devices, GroupAdd []string
		}
		Volumes map[string]any
	}
	d := yaml.NewDecoder(strings.NewReader(read("compose.yaml")))
	d.KnownFields(true)
	fixture.Check(t, d.Decode(&compose))
	o := compose.Services["office"]
	if path := filepath.Join("container", o.Build.Context,
		o.Build.Dockerfile); path != filepath.Join("..", "packaging",
		"container", "Dockerfile") {
		t.Errorf("the Dockerfile is looked for at %s", path)
	}
	if _, there := compose.Volumes["state"]; !there ||
		!slices.Contains(o.Volumes, "state:"+one("VOLUME")) ||
		one("WORKDIR") != one("VOLUME") {
		t.Errorf("the volume is %s, and compose has %q", one("VOLUME"), o.Volumes)
	}
	var command []string
	if err := json.Unmarshal([]byte(one("CMD")), &command); err != nil ||
		!slices.Contains(o.Volumes, "./office.yaml:"+command[len(command)-1]+":ro") {
		t.Errorf("the configuration is read at %q, and compose has %q; %v", command, o.Volumes, err)
	}
	if len(o.Ports) != 1 || !strings.HasPrefix(o.Ports[0], "127.0.0.1:") ||
		!strings.HasSuffix(o.Ports[0], ":"+one("EXPOSE")) {
		t.Errorf("ports %q", o.Ports)
	}
	example := read("office.yaml")
	for _, want := range []string{"page: 0.0.0.0:" + one("EXPOSE") + " ", "\nstate: office\n",
		"\nsecrets:\n  token: "} {
		if !strings.Contains(example, want) {
			t.Errorf("office.yaml has no %q", want)
		}
	}
}

// The workflows call targets of make that exist, and pin what they fetch by its hash. make lint
// checks their syntax.
func TestWorkflows(t *testing.T) {
	paths, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(paths) < 2 {
		t.Fatal(paths, err)
	}
	action := regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	for _, path := range paths {
		b := fixture.Must(os.ReadFile(path))(t)
		var w struct {
			Jobs map[string]struct {
				Steps []struct{ Uses, Run string }
			}
		}
		fixture.Check(t, yaml.Unmarshal(b, &w))
		for name, job := range w.Jobs {
			for _, s := range job.Steps {
				if s.Uses != "" && !action.MatchString(s.Uses) {
					t.Errorf("%s: %s uses %s, which is not pinned by a hash", path, name, s.Uses)
				}
				if target, ok := strings.CutPrefix(s.Run, "make "); ok {
					makes(t, "-n", strings.Fields(target)[0])
				}
			}
		}
	}
}
