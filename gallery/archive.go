// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// ErrArchive is wrapped by the errors of [Gallery.Import] if the bytes are not an archive of people, or are damaged.
var ErrArchive = errors.New("not an archive of people, or a damaged one")

var archive = safefile.Kind{Magic: "faceauth people", Version: 1}

// exported is the content of an archive.
type exported struct {
	Space  string           `cbor:"space"`
	People []exportedPerson `cbor:"people"`
}

// exportedPerson is a person in an archive.
type exportedPerson struct {
	Name     string    `cbor:"name"`
	Enrolled time.Time `cbor:"enrolled"`
	Faces    [][]byte  `cbor:"faces"` // little-endian float32
}

// Export returns an archive of the enrolled faces of these people, or of all people if no name is given: the bytes
// "faceauth people", a version, a CBOR map, and a checksum. It does not contain learned faces. The archive is not
// encrypted, and holds faces. The error wraps [online.ErrUnknown], or [ErrNoFaces] if nobody is enrolled.
func (g *Gallery) Export(names ...string) ([]byte, error) {
	for _, name := range names {
		if !g.learner.Knows(name) {
			return nil, fmt.Errorf("exporting: %w: %s", online.ErrUnknown, name)
		}
	}
	stored, err := g.learner.Stored("")
	if err != nil {
		return nil, err
	}
	e := exported{Space: g.Space().ID}
	for _, p := range g.People() {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		d := exportedPerson{Name: p.Name, Enrolled: p.Enrolled}
		for _, s := range stored {
			if s.Labelled && !s.Negative && s.Name == p.Name {
				d.Faces = append(d.Faces, vector.Bytes(s.Vector))
			}
		}
		e.People = append(e.People, d)
	}
	if len(e.People) == 0 {
		return nil, fmt.Errorf("exporting: %w", ErrNoFaces)
	}
	opt := cbor.CoreDetEncOptions()
	opt.Time = cbor.TimeRFC3339Nano
	mode, err := opt.EncMode()
	if err != nil {
		return nil, err
	}
	body, err := mode.Marshal(e)
	if err != nil {
		return nil, err
	}
	return safefile.Seal(archive, body), nil
}

// Import enrols the people of an archive from [Gallery.Export], and returns their names. If a name is already enrolled,
// add adds the missing faces; without add Import refuses the archive. It imports all people or none.
//
// The error wraps [ErrArchive], [ErrSpace], [ErrExists], or comes from [Gallery.Enroll]. On error g is unchanged.
func (g *Gallery) Import(data []byte, add bool) (names []string, err error) {
	body, err := safefile.Unseal(archive, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	var e exported
	if err := cbor.Unmarshal(body, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	if e.Space != g.Space().ID {
		return nil, fmt.Errorf("importing: %w: %s", ErrSpace, g.Space().Mismatch(e.Space))
	}
	err = g.Attempt(func() error {
		names, err = g.take(e.People, add)
		return err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// take enrols the people of an archive.
func (g *Gallery) take(people []exportedPerson, add bool) (names []string, err error) {
	for _, d := range people {
		known := g.learner.Knows(d.Name)
		if known && !add {
			return nil, fmt.Errorf("importing %s: %w", d.Name, ErrExists)
		}
		var faces [][]float32
		for _, b := range d.Faces {
			if len(b) != 4*g.Space().Dim {
				return nil, fmt.Errorf("importing %s: %w: a face has %d bytes", d.Name, ErrArchive, len(b))
			}
			x := vector.Floats(b)
			if known {
				near, err := g.learner.Nearest(x, d.Name)
				if err != nil {
					return nil, fmt.Errorf("importing %s: %w", d.Name, err)
				}
				if near == 0 {
					continue
				}
			}
			faces = append(faces, x)
		}
		if known && len(faces) == 0 {
			names = append(names, d.Name)
			continue
		}
		// The faces were accepted as one person when they were enrolled.
		if err := g.Label(d.Name, faces, d.Enrolled); err != nil {
			return nil, err
		}
		names = append(names, d.Name)
	}
	return names, nil
}
