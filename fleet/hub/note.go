// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
)

// serverNote tells the administrator's commands how to reach the running server.
type serverNote struct {
	URL   string `json:"url"`
	Fleet string `json:"fleet"`
	Pin   []byte `json:"pin,omitempty"`
	Creds string `json:"creds,omitempty"`
	Key   string `json:"key"`
}

const noteFile = "server.json"

func (s *service) note(local string) error {
	creds, key := s.Creds, s.AdminKey
	for _, p := range []*string{&creds, &key} {
		if *p != "" {
			whole, err := filepath.Abs(*p)
			if err != nil {
				return err
			}
			*p = whole
		}
	}
	b, err := json.Marshal(serverNote{URL: local, Fleet: s.names.fleet, Pin: s.pin, Creds: creds, Key: key})
	if err != nil {
		return err
	}
	return safefile.Write(filepath.Join(s.Folder, noteFile), append(b, '\n'))
}
