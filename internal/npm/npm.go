// SPDX-License-Identifier: Apache-2.0

// Package npm finds the npm registry where npm itself would: in its variables of the environment, such as
// NPM_CONFIG_REGISTRY, and in its files npmrc, with the password that they have for it. npm is not needed, and without
// a configuration it is npm's own registry.
package npm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/faceauth/faceauth/models"
	"github.com/google/osv-scalibr/clients/datasource"
)

// ErrConfig is wrapped if npm's configuration cannot be used.
var ErrConfig = errors.New("npm's configuration (NPM_CONFIG_REGISTRY, ~/.npmrc) cannot be used")

// Registry returns the registry of packages without a scope. The error wraps [ErrConfig].
func Registry() (models.Registry, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/" // a folder without a configuration; the folder in which the program runs is not trusted
	}
	c, err := datasource.LoadNPMRegistryConfig(home)
	if err != nil {
		return models.Registry{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := models.Registry{URL: c.ScopeURLs[""]}
	if u, err := url.Parse(r.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return models.Registry{}, fmt.Errorf("%w: its registry is not an http or https URL", ErrConfig)
	}
	switch a := c.Auths.GetAuth(r.URL); {
	case a == nil:
	case a.BearerToken != "":
		r.Authorization = "Bearer " + a.BearerToken
	case a.BasicAuth != "":
		r.Authorization = "Basic " + a.BasicAuth
	default:
		r.Authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Password))
	}
	return r, nil
}
