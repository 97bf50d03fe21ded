// SPDX-License-Identifier: Apache-2.0

package npm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The registry is that of npm's variables, else of the user's npmrc, else npm's own. A file npmrc in the present folder
// says nothing.
func TestRegistry(t *testing.T) {
	for _, c := range []struct {
		name, upper, lower, npmrc string
		url, authorization        string
		err                       string
	}{
		{name: "npm's own"},
		{"a mirror", "https://mirror.example/npm", "", "", "https://mirror.example/npm", "", ""},
		{"small letters", "", "http://127.0.0.1:4873/", "", "http://127.0.0.1:4873/", "", ""},
		{"a password", "https://u:p@a.example", "", "", "https://u:p@a.example", "", ""},
		{"npmrc", "", "", "registry=https://b.example/\n//b.example/:_authToken=made-up\n",
			"https://b.example/", "Bearer made-up", ""},
		{"npmrc with a user", "", "", "registry=https://b.example/\n//b.example/:username=u\n" +
			"//b.example/:_password=cA==\n",
			"https://b.example/", "Basic dTpw", ""},
		{"npmrc with a part of the address", "", "", "; npm's\nregistry = \"https://b.example/npm/all/\"\n" +
			"//b.example/npm/:_authToken=${TOKEN}\n",
			"https://b.example/npm/all/", "Bearer made-up", ""},
		{"a token for another host", "", "", "registry=https://b.example/\n//b.example.org/:_authToken=made-up\n",
			"https://b.example/", "", ""},
		{"both", "https://a.example/", "", "registry=https://b.example/\n//b.example/:_authToken=made-up\n",
			"https://a.example/", "", ""},
		{"no URL", "mirror.example", "", "", "", "", "is not an http or https URL"},
		{"a file", "file:///etc", "", "", "", "", "is not an http or https URL"},
		{"no host", "https://%zz", "", "", "", "", "is not an http or https URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("NPM_CONFIG_REGISTRY", c.upper)
			t.Setenv("npm_config_registry", c.lower)
			t.Setenv("TOKEN", "made-up")
			for name, value := range map[string]string{"NPM_CONFIG_REGISTRY": c.upper, "npm_config_registry": c.lower} {
				if value == "" {
					os.Unsetenv(name) // t.Setenv restores it
				}
			}
			for dir, text := range map[string]string{home: c.npmrc, t.TempDir(): "registry=https://bad.example/\n"} {
				if err := os.WriteFile(filepath.Join(dir, ".npmrc"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if dir != home {
					t.Chdir(dir)
				}
			}
			got, err := NewClient()
			switch {
			case c.err != "":
				if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v", err)
				}
			case c.url == "":
				if err != nil || got.registry != "https://registry.npmjs.org/" || got.authorization != "" {
					t.Errorf("%+v, %v", got, err)
				}
			case err != nil || got.registry != c.url || got.authorization != c.authorization:
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
