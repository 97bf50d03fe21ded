// SPDX-License-Identifier: Apache-2.0

package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The pages and completions of the programs are the same on every machine, each command has one,
// and groff finds nothing wrong with them.
func TestSystemPrograms(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("there is no groff to check the pages with; apt-get install groff-base")
	}
	for _, p := range []struct {
		name, dir string
		pages     map[string][]string // what they say
	}{
		{"faceauth", "../..", map[string][]string{
			"faceauth.1": {`"FACEAUTH" "1" "Nov 2023" "faceauth 0.`, "130  interrupted",
				".SH ENVIRONMENT"},
			"faceauth-replay.1":       {`"~/.local/share/faceauth/models"`},
			"faceauth-login-enroll.1": {"faceauth-login(1)"},
		}},
		{"faceauth-lab", "../../lab", map[string][]string{"faceauth-lab-trial-login.1": nil}},
	} {
		out := filepath.Join(t.TempDir(), "share")
		for _, dir := range []string{out, filepath.Join(t.TempDir(), "again")} {
			c := exec.Command("go", "run", "-tags", "man,osusergo", "./cmd/"+p.name, dir)
			c.Dir, c.Env = p.dir, append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000",
				"CGO_ENABLED=1", "FACEAUTH_MODELS="+dir)
			if said, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v %s", p.name, err, said)
			}
			if said, err := exec.Command("diff", "-r", out, dir).CombinedOutput(); err != nil {
				t.Errorf("%s: other pages in another folder: %.500s", p.name, said)
			}
		}
		for _, f := range []string{"bash-completion/completions/" + p.name,
			"zsh/vendor-completions/_" + p.name,
			"fish/vendor_completions.d/" + p.name + ".fish"} {
			text, err := os.ReadFile(filepath.Join(out, f))
			if err != nil || !strings.Contains(string(text), p.name) {
				t.Errorf("%s: %v", f, err)
			}
		}
		for page, want := range p.pages {
			text, err := os.ReadFile(filepath.Join(out, "man/man1", page))
			if err != nil {
				t.Error(err)
			}
			for _, w := range want {
				if !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), w) {
					t.Errorf("%s has no %q:\n%.3000s", page, w, text)
				}
			}
		}
		all, err := filepath.Glob(filepath.Join(out, "man/man1/*.1"))
		if err != nil || len(all) < len(p.pages) {
			t.Errorf("pages %q, %v", all, err)
		}
		if groff == "" {
			continue
		}
		args := append([]string{"-t", "-man", "-Tutf8", "-ww", "-z"}, all...)
		said, err := exec.Command(groff, args...).CombinedOutput()
		if err != nil || len(said) > 0 {
			t.Errorf("groff says of %s: %.2000s %v", p.name, said, err)
		}
	}
}
