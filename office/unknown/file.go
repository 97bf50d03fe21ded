package unknown

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/atomicfile"
	"github.com/faceauth/faceauth/internal/regular"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Read].
var (
	ErrDamaged = errors.New("damaged file of unknown faces")
	ErrVersion = errors.New("file of unknown faces of another version")
	ErrSpace   = errors.New("file of unknown faces of another feature space")
)

const (
	magic   = "faceauth unknown"
	version = 1
	largest = 1 << 28 // bytes that are read of a file
)

type content struct {
	Space  string   `cbor:"space"`
	Last   uint64   `cbor:"last"`
	Begun  uint64   `cbor:"begun"`
	Off    bool     `cbor:"off"`
	Groups []*Group `cbor:"groups"`
}

var encoding, _ = cbor.CoreDetEncOptions().EncMode() // constants, which the package's tests have seen

// Read reads a set that was saved at path, for faces of a space. The error wraps fs.ErrNotExist where there is none,
// [ErrDamaged], [ErrVersion] or [ErrSpace].
func Read(path string, space face.Space, s Settings) (*Groups, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading unknown faces: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largest))
	if err != nil {
		return nil, fmt.Errorf("reading unknown faces: %w", err)
	}
	g := New(space, s)
	if err := g.decode(data); err != nil {
		return nil, fmt.Errorf("reading %s: %w; move it away to begin anew", path, err)
	}
	return g, nil
}

func (g *Groups) decode(data []byte) error {
	head := len(magic) + 4
	if len(data) < head+sha256.Size || !bytes.HasPrefix(data, []byte(magic)) {
		return fmt.Errorf("%w: it is none, or cut off", ErrDamaged)
	}
	if v := binary.BigEndian.Uint32(data[len(magic):]); v != version {
		return fmt.Errorf("%w: it is %d, and this program reads %d", ErrVersion, v, version)
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	var c content
	if err := cbor.Unmarshal(body[head:], &c); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if c.Space != g.space.ID {
		return fmt.Errorf("%w: it holds %q, and the gallery %q", ErrSpace, c.Space, g.space.ID)
	}
	groups, faces := make(map[uint64]bool), make(map[uint64]bool)
	given := func(numbers map[uint64]bool, id, last uint64) error {
		if id == 0 || id > last || numbers[id] {
			return fmt.Errorf("%w: the number %d is there twice, or was never given", ErrDamaged, id)
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
		if over := len(p.Album.Faces) - g.s.Faces; over > 0 { // the bound was larger
			p.Album.Faces = p.Album.Faces[:g.s.Faces]
		}
	}
	g.last, g.begun, g.off, g.groups = c.Last, c.Begun, c.Off, c.Groups
	g.shed(0)
	return nil
}

// Save writes g to path. On error the file is as it was.
func (g *Groups) Save(path string) error {
	body, err := encoding.Marshal(content{Space: g.space.ID, Last: g.last, Begun: g.begun, Off: g.off, Groups: g.groups})
	if err != nil {
		return fmt.Errorf("saving unknown faces: %w", err)
	}
	data := binary.BigEndian.AppendUint32([]byte(magic), version)
	data = append(data, body...)
	sum := sha256.Sum256(data)
	if err := atomicfile.Write(path, append(data, sum[:]...)); err != nil {
		return fmt.Errorf("saving unknown faces: %w", err)
	}
	g.dirty = false
	return nil
}
