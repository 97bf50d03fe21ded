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

// Place is the last reported position of a device in the log, and the time of the report.
type Place struct {
	Seq  uint64    `json:"seq"`
	Seen time.Time `json:"seen"`
}

var placesKind = safefile.Kind{Magic: "faceauth places", Version: 1}

// readPlaces reads the positions of devices. They are for people only: if the file is damaged, devices report again.
func (s *service) readPlaces() {
	b, err := safefile.ReadSealed(filepath.Join(s.Folder, "places"), placesKind)
	if err == nil {
		err = json.Unmarshal(b, &s.places)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("the file with the positions of devices cannot be read; devices report them again", "error", err)
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
		s.Log.Warn("the file with the positions of devices cannot be written", "error", err)
	}
}
