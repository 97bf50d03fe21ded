// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Open] and [Gallery.Save].
var (
	ErrNotGallery = errors.New("not a faceauth gallery")
	ErrVersion    = errors.New("gallery of another version")
	ErrDamaged    = errors.New("damaged gallery")
	ErrSpace      = errors.New("gallery of another feature space")
	ErrChanged    = errors.New("gallery was changed by another program since it was opened")
	ErrUnreadable = errors.New("the gallery that was written cannot be read again")
)

const (
	magic   = "faceauth gallery"
	version = 1
	header  = len(magic) + 4 + 8
	largest = 4 << 30 // larger than any gallery: a graph holds 1 GiB of learned faces and 1 GiB of labelled faces
)

type content struct {
	People  []Person `cbor:"people"`
	Learner []byte   `cbor:"learner"`
}

// Default returns the default path of the gallery: faceauth/gallery below $XDG_DATA_HOME or ~/.local/share.
func Default() (string, error) {
	dir, err := xdg.Data()
	if err != nil {
		return "", fmt.Errorf("finding the default gallery: %w; name one", err)
	}
	return filepath.Join(dir, "faceauth", "gallery"), nil
}

// Open reads the gallery at path, which must be of the given space. If the space has measured false match rates, they
// replace the rates stored in the gallery ([online.Learner.SetMeasured]).
//
// The error wraps [fs.ErrNotExist], [ErrNotGallery], [ErrVersion], [ErrDamaged] if the file is truncated or altered, or
// [ErrSpace].
func Open(path string, space face.Space) (*Gallery, error) {
	g, err := Read(path)
	if err != nil {
		return nil, err
	}
	if g.Space().ID != space.ID {
		return nil, fmt.Errorf("opening gallery %s: %w: %s", path, ErrSpace, space.Mismatch(g.Space().ID))
	}
	if space.Stills.Measured() {
		g.learner.SetMeasured(space)
	}
	return g, nil
}

// Read reads the gallery at path, of any space. It has the errors of [Open], except [ErrSpace].
func Read(path string) (*Gallery, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("opening gallery: %w", err)
	}
	g, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	return g, nil
}

func readFile(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if errors.Is(err, safefile.ErrNotRegular) {
		return nil, fmt.Errorf("%s: %w", path, ErrNotGallery)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > largest {
		return nil, fmt.Errorf("%s: %w: %d bytes are more than any gallery has", path, ErrNotGallery, info.Size())
	}
	head := make([]byte, header)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// Check the beginning first, so that a large file that is not a gallery costs no memory.
	if err := inspect(head[:n], info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Read in one piece, so that a large gallery is not in memory twice. Bytes added since then are not read.
	data := make([]byte, info.Size())
	n, err = io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the file became shorter since then; the parser notices
	}
	return data[:n], err
}

// inspect returns an error if a file of this size that begins with head cannot be a gallery.
func inspect(head []byte, size int64) error {
	if len(head) < len(magic) || string(head[:len(magic)]) != magic {
		return ErrNotGallery
	}
	// Another version may have another header, so the version is checked first.
	if len(head) >= len(magic)+4 {
		if v := binary.BigEndian.Uint32(head[len(magic):]); v != version {
			return fmt.Errorf("%w: it is %d, and this program reads %d", ErrVersion, v, version)
		}
	}
	if len(head) < header || size < int64(header+sha256.Size) {
		return fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	length := binary.BigEndian.Uint64(head[len(magic)+4:])
	switch have := uint64(size) - uint64(header+sha256.Size); {
	case have < length:
		return fmt.Errorf("%w: it is cut off", ErrDamaged)
	case have > length:
		return fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	return nil
}

func parse(data []byte) (*Gallery, error) {
	if err := inspect(data[:min(len(data), header)], int64(len(data))); err != nil {
		return nil, err
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	var c content
	if err := cbor.Unmarshal(body[header:], &c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	g := &Gallery{people: c.People, learner: new(online.Learner)}
	copy(g.sum[:], sum)
	if err := g.learner.UnmarshalBinary(c.Learner); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	names := g.learner.Names()
	if len(names) != len(g.people) {
		return nil, fmt.Errorf("%w: it lists %d people and knows %d", ErrDamaged, len(g.people), len(names))
	}
	for i, p := range g.people {
		if p.Name != names[i] {
			return nil, fmt.Errorf("%w: its list of people and its learner disagree", ErrDamaged)
		}
	}
	return g, nil
}

// Save writes g to path, and makes the folder if it does not exist. On error the old file stays: before the new file
// replaces it, the new file is read back from the disk. The error wraps [ErrUnreadable] if this fails, which means a
// mistake in the program or a bad disk. It wraps [ErrChanged] if the file is not the file that g was read from or last
// saved to: another program has written it, and saving would undo that.
func (g *Gallery) Save(path string) error {
	data, err := g.bytes()
	if err != nil {
		return fmt.Errorf("saving gallery %s: %w", path, err)
	}
	// If path is a link, the link stays, and its target is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("saving gallery: %w", err)
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return fmt.Errorf("saving gallery: %w", err)
	}
	defer unlock()
	if err := g.unchanged(path); err != nil {
		return fmt.Errorf("saving gallery %s: %w", path, err)
	}
	if err := replace(path, data); err != nil {
		return fmt.Errorf("saving gallery: %w; %s is as it was", err, path)
	}
	copy(g.sum[:], data[len(data)-sha256.Size:])
	return nil
}

// replace writes data to path, after a gallery was read back from the new file.
func replace(path string, data []byte) error {
	f, err := safefile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	written, err := readFile(f.Name())
	if err != nil {
		return err
	}
	if _, err := parse(written); err != nil || !bytes.Equal(written, data) {
		return errors.Join(ErrUnreadable, err)
	}
	return f.Commit()
}

func (g *Gallery) bytes() ([]byte, error) {
	g.settle()
	snapshot, err := g.learner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return nil, err
	}
	body, err := mode.Marshal(content{g.people, snapshot})
	if err != nil {
		return nil, err
	}
	data := append(make([]byte, 0, header+len(body)+sha256.Size), magic...)
	data = binary.BigEndian.AppendUint32(data, version)
	data = binary.BigEndian.AppendUint64(data, uint64(len(body)))
	data = append(data, body...)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...), nil
}

// unchanged returns nil if the file at path ends with the checksum that g has, or if neither exists.
func (g *Gallery) unchanged(path string) error {
	var sum [sha256.Size]byte
	f, err := safefile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if _, err := f.ReadAt(sum[:], info.Size()-sha256.Size); err != nil {
			return fmt.Errorf("%w", ErrChanged)
		}
	}
	if sum != g.sum {
		return ErrChanged
	}
	return nil
}

// lock takes the lock file at path for one save.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// The lock is held only during one write, so a few seconds are enough.
	if err := safefile.Lock(f, 5*time.Second); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s, which another program holds or the system refuses: %w", path, err)
	}
	return func() { f.Close() }, nil
}
