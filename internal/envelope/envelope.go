// Package envelope puts what a file holds between a head, by which it is known, and a sum, by which damage is.
//
// [Seal] makes the bytes of a file and [Open] gives back what is in it; [Write] and [Read] do so with a file that its owner
// alone can read, and that is the old one or the new one whatever interrupts a write.
package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/faceauth/faceauth/internal/atomicfile"
	"github.com/faceauth/faceauth/internal/regular"
)

// Errors of [Open] and [Read].
var (
	ErrDamaged = errors.New("damaged file")
	ErrVersion = errors.New("file of another version")
)

// largest is how many bytes of a file are read.
const largest = 1 << 28

// Kind says what a file is.
type Kind struct {
	Magic   string // that it begins with
	Version uint32
}

// Seal returns the bytes of a file: the magic, the version as a big-endian uint32, the body, and the SHA-256 of all that.
func Seal(k Kind, body []byte) []byte {
	data := append(binary.BigEndian.AppendUint32([]byte(k.Magic), k.Version), body...)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// Open returns the body of a file. The error wraps [ErrDamaged] or [ErrVersion].
func Open(k Kind, data []byte) ([]byte, error) {
	head := len(k.Magic) + 4
	if len(data) < head+sha256.Size || !bytes.HasPrefix(data, []byte(k.Magic)) {
		return nil, fmt.Errorf("%w: it is no %s, or cut off", ErrDamaged, k.Magic)
	}
	if v := binary.BigEndian.Uint32(data[len(k.Magic):]); v != k.Version {
		return nil, fmt.Errorf("%w: it is %d, and this program reads %d", ErrVersion, v, k.Version)
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	return body[head:], nil
}

// Write writes a file. On error it is as it was.
func Write(path string, k Kind, body []byte) error { return atomicfile.Write(path, Seal(k, body)) }

// Read reads a file. The error wraps fs.ErrNotExist, [ErrDamaged] or [ErrVersion].
func Read(path string, k Kind) ([]byte, error) {
	data, err := Bytes(path)
	if err != nil {
		return nil, err
	}
	return Open(k, data)
}

// Bytes returns those of a regular file, as many as the largest envelope may have.
func Bytes(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, largest))
}
