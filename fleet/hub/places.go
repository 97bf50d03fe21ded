// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
)

// Place is how far a device had read, and when it said so.
type Place struct {
	Seq  uint64    `json:"seq"`
	Seen time.Time `json:"seen"`
}

var placesKind = safefile.Kind{Magic: "faceauth places", Version: 1}

// readPlaces reads how far devices were. It is data for people: without it, or where it is damaged, they say so anew.
func (s *service) readPlaces() {
	b, err := safefile.ReadSealed(filepath.Join(s.Folder, "places"), placesKind)
	if err == nil {
		err = json.Unmarshal(b, &s.places)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("when devices were seen last is not known", "error", err)
	}
	if s.places == nil {
		s.places = make(map[string]Place)
	}
}

func (s *service) writePlaces() {
	s.mu.Lock()
	b, err := json.Marshal(s.places)
	s.mu.Unlock()
	if err == nil {
		err = safefile.WriteSealed(filepath.Join(s.Folder, "places"), placesKind, b)
	}
	if err != nil {
		s.Log.Warn("when devices were seen last is not kept", "error", err)
	}
}
