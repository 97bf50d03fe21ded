// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Load].
var (
	ErrDamaged = safefile.ErrDamaged
	ErrVersion = safefile.ErrVersion
)

var kind = safefile.Kind{Magic: "faceauth search", Version: 1}

// Recording is the result of scanning a video. It is not valid if the size or time of the file, or the space, has
// changed.
type Recording struct {
	Path      string     `cbor:"path"`
	Size      int64      `cbor:"size"`
	Modified  int64      `cbor:"modified"` // in nanoseconds since 1970
	Space     string     `cbor:"space"`
	FPS       float64    `cbor:"fps"` // scanned frames per second; 0 for all
	Sightings []Sighting `cbor:"sightings"`
	Part      *Part      `cbor:"part,omitempty"` // the result so far, if the scan is incomplete; it holds the sightings
}

// Save writes r to a file that only its owner can read. It holds faces, and is not encrypted.
func (r Recording) Save(path string) error {
	body, err := cbor.Marshal(r)
	if err != nil {
		return fmt.Errorf("saving the index of %s: %w", r.Path, err)
	}
	if err := safefile.WriteSealed(path, kind, body); err != nil {
		return fmt.Errorf("saving the index of %s: %w", r.Path, err)
	}
	return nil
}

// Load reads a file of [Recording.Save]. The error wraps fs.ErrNotExist, [ErrDamaged] or [ErrVersion].
func Load(path string, space face.Space) (r Recording, err error) {
	body, err := safefile.ReadSealed(path, kind)
	if err != nil {
		return r, err
	}
	if err := cbor.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if r.Space != space.ID {
		return r, fmt.Errorf("%w: it is of the space %q, and not %q", ErrVersion, r.Space, space.ID)
	}
	all := r.Sightings
	if r.Part != nil {
		all = append(all, r.Part.Sightings...)
	}
	for _, s := range all {
		for _, f := range s.Album.Faces {
			if err := space.Check(f.Vector); err != nil {
				return r, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
	}
	return r, nil
}
