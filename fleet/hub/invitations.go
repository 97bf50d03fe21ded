// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
)

// invitation is the server's record of a token. It has the token's public key and not its secret.
type invitation struct {
	Key     string       `json:"key"`
	Made    time.Time    `json:"made"`
	Expires time.Time    `json:"expires"`
	Scope   ledger.Scope `json:"scope"`
	Device  string       `json:"device,omitempty"` // the device that it has admitted or is about to admit
	Name    string       `json:"name,omitempty"`
	Used    time.Time    `json:"used,omitzero"`
}

// remembered is how long the server remembers a used or expired token, so that it can tell its bearer the reason.
const remembered = 30 * 24 * time.Hour

// mostInvitations limits the size of the file.
const mostInvitations = 10000

var invitationsKind = safefile.Kind{Magic: "faceauth invitations", Version: 1}

// invitations holds the tokens of a fleet, in a file. Methods can be called at once.
type invitations struct {
	path string
	mu   sync.Mutex
	all  map[string]invitation
}

func openInvitations(path string) (*invitations, error) {
	safefile.Sweep(path)
	v := &invitations{path: path, all: make(map[string]invitation)}
	b, err := safefile.ReadSealed(path, invitationsKind)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &v.all)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file: unused tokens are then void", path, err)
	}
	return v, nil
}

// change makes a change and writes it to disk, or makes no change.
func (v *invitations) change(now time.Time, do func(all map[string]invitation) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make(map[string]invitation, len(v.all))
	for key, i := range v.all {
		if now.Before(i.Expires.Add(remembered)) {
			all[key] = i
		}
	}
	if err := do(all); err != nil {
		return err
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := safefile.WriteSealed(v.path, invitationsKind, b); err != nil {
		return fmt.Errorf("the invitations cannot be written: %w", err)
	}
	v.all = all
	return nil
}

func (v *invitations) add(i invitation) error {
	return v.change(i.Made, func(all map[string]invitation) error {
		if len(all) >= mostInvitations {
			return fmt.Errorf("there are %d tokens already; each is removed %d days after it expires", len(all),
				remembered/(24*time.Hour))
		}
		all[i.Key] = i
		return nil
	})
}

// find returns the record of a token.
func (v *invitations) find(key string) (invitation, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, known := v.all[key]
	return i, known
}

// bearers returns the time until which each token's bearer may connect.
func (v *invitations) bearers() map[string]time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make(map[string]time.Time, len(v.all))
	for key, i := range v.all {
		all[key] = i.Expires.Add(remembered)
	}
	return all
}
