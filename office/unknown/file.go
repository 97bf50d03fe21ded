// SPDX-License-Identifier: Apache-2.0

package unknown

import (
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Read].
var (
	ErrDamaged = safefile.ErrDamaged
	ErrVersion = safefile.ErrVersion
	ErrSpace   = errors.New("file of unknown faces has another feature space")
)

var kind = safefile.Kind{Magic: "faceauth unknown", Version: 1}

type content struct {
	Space  string   `cbor:"space"`
	Last   uint64   `cbor:"last"`
	Begun  uint64   `cbor:"begun"`
	Off    bool     `cbor:"off"`
	Groups []*Group `cbor:"groups"`
}

// encoding is the encoding of all files with an [Album].
var encoding = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.Time = cbor.TimeRFC3339Nano
	m, err := o.EncMode()
	if err != nil {
		panic("unknown: " + err.Error()) // constants
	}
	return m
}()

// Read reads the set at path, for faces of a space. The error wraps fs.ErrNotExist, [ErrDamaged], [ErrVersion] or
// [ErrSpace].
func Read(path string, space face.Space, s Settings) (*Groups, error) {
	body, err := safefile.ReadSealed(path, kind)
	if err != nil {
		return nil, fmt.Errorf("reading unknown faces %s: %w", path, err)
	}
	g := New(space, s)
	if err := g.decode(body); err != nil {
		return nil, fmt.Errorf("reading unknown faces %s: %w", path, err)
	}
	return g, nil
}

func (g *Groups) decode(body []byte) error {
	var c content
	if err := cbor.Unmarshal(body, &c); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if c.Space != g.space.ID {
		return fmt.Errorf("%w: the file has the space %q, and the gallery %q", ErrSpace, c.Space, g.space.ID)
	}
	groups, faces := make(map[uint64]bool), make(map[uint64]bool)
	given := func(numbers map[uint64]bool, id, last uint64) error {
		if id == 0 || id > last || numbers[id] {
			return fmt.Errorf("%w: face number %d occurs twice, or was never given", ErrDamaged, id)
		}
		numbers[id] = true
		return nil
	}
	for _, p := range c.Groups {
		if p == nil || len(p.Album.Faces) == 0 {
			return fmt.Errorf("%w: a group has no faces", ErrDamaged)
		}
		if err := given(groups, p.ID, c.Begun); err != nil {
			return err
		}
		for _, f := range p.Album.Faces {
			if err := given(faces, f.ID, c.Last); err != nil {
				return err
			}
			if err := g.space.Check(f.Vector); err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		if over := len(p.Album.Faces) - g.s.Faces; over > 0 { // the limit was larger before
			p.Album.Faces = p.Album.Faces[:g.s.Faces]
		}
	}
	g.last, g.begun, g.off, g.groups = c.Last, c.Begun, c.Off, c.Groups
	g.shed(0)
	return nil
}

// Save writes g to path. On error the file is unchanged.
func (g *Groups) Save(path string) error {
	body, err := encoding.Marshal(
		content{Space: g.space.ID, Last: g.last, Begun: g.begun, Off: g.off, Groups: g.groups})
	if err != nil {
		return fmt.Errorf("saving unknown faces: %w", err)
	}
	if err := safefile.WriteSealed(path, kind, body); err != nil {
		return fmt.Errorf("saving unknown faces: %w", err)
	}
	g.dirty = false
	return nil
}
