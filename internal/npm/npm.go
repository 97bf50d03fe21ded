// SPDX-License-Identifier: Apache-2.0

// Package npm fetches packages from an npm registry, without npm: [Client.Fetch], and [Unpack].
//
// The registry is the one that npm itself would use: it is found in its variables of the environment, such as
// NPM_CONFIG_REGISTRY, and in the user's file npmrc, with the password that it has for it. A file npmrc in the present
// folder is not trusted. Without a configuration it is npm's own registry.
package npm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrConfig is wrapped if npm's configuration cannot be used.
var ErrConfig = errors.New("npm's configuration (NPM_CONFIG_REGISTRY, ~/.npmrc) cannot be used")

// variable is a variable of the environment in npmrc.
var variable = regexp.MustCompile(`\$\{\w+\}`)

// Registry is an npm registry.
type Registry struct {
	URL           string // http or https; it may have a user name and a password
	Authorization string // header of requests; "" for none
}

// configured returns the registry of packages without a scope. The error wraps [ErrConfig].
func configured() (Registry, error) {
	set, err := settings()
	if err != nil {
		return Registry{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := Registry{URL: set["registry"]}
	if r.URL == "" {
		r.URL = "https://registry.npmjs.org/"
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Registry{}, fmt.Errorf("%w: its registry is not an http or https URL", ErrConfig)
	}
	// A password is kept for the registry's address without its scheme, or for a part of it that ends at a slash.
	for at := "//" + u.Host + strings.TrimSuffix(u.Path, "/"); len(at) > 2; at = at[:strings.LastIndex(at, "/")] {
		token, basic, user := set[at+"/:_authToken"], set[at+"/:_auth"], set[at+"/:username"]
		password, err := base64.StdEncoding.DecodeString(set[at+"/:_password"])
		switch {
		case token != "":
			r.Authorization = "Bearer " + token
		case basic != "":
			r.Authorization = "Basic " + basic
		case user != "" && err == nil:
			r.Authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+string(password)))
		default:
			continue
		}
		break
	}
	return r, nil
}

// settings returns npm's settings. Variables of the environment go before the user's npmrc.
func settings() (map[string]string, error) {
	const prefix = "npm_config_"
	set, env := map[string]string{}, map[string]string{}
	for _, line := range os.Environ() {
		name, value, _ := strings.Cut(line, "=")
		if value == "" || !strings.HasPrefix(strings.ToLower(name), prefix) {
			continue
		}
		name = name[len(prefix):]
		if !strings.HasPrefix(name, "//") {
			name = strings.ToLower(name)
		}
		env[name] = value
	}
	path := env["userconfig"]
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return env, nil // without a home folder there is no file
		}
		path = filepath.Join(home, ".npmrc")
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		set[strings.TrimSpace(name)] = variable.ReplaceAllStringFunc(
			strings.Trim(strings.TrimSpace(value), `"'`), os.ExpandEnv)
	}
	for name, value := range env {
		set[name] = value
	}
	return set, nil
}
