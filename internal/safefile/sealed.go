// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Errors of [Unseal].
var (
	ErrDamaged = errors.New("damaged file")
	ErrVersion = errors.New("file of another version")
)

// largestSealed is the largest size of a file in bytes.
const largestSealed = 1 << 28

// Kind identifies a kind of file.
type Kind struct {
	Magic   string // first bytes of the file
	Version uint32
}

// Seal returns the bytes of a file: the magic, the version as a big-endian uint32, the body, and the SHA-256 of these.
func Seal(k Kind, body []byte) []byte {
	data := append(binary.BigEndian.AppendUint32([]byte(k.Magic), k.Version), body...)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// Advice ends a message about a version that a program does not read: what to do, if the version is a newer one.
func Advice(is, reads int) string {
	if is > reads {
		return "; update this program"
	}
	return ""
}

// Unseal returns the body of a file that [Seal] made. The error wraps [ErrDamaged] or [ErrVersion].
func Unseal(k Kind, data []byte) ([]byte, error) {
	head := len(k.Magic) + 4
	if len(data) < head+sha256.Size || !bytes.HasPrefix(data, []byte(k.Magic)) {
		return nil, fmt.Errorf("%w: it is not a %s file, or cut off", ErrDamaged, k.Magic)
	}
	if v := binary.BigEndian.Uint32(data[len(k.Magic):]); v != k.Version {
		return nil, fmt.Errorf("%w: it has version %d, and this program reads version %d%s", ErrVersion, v, k.Version,
			Advice(int(v), int(k.Version)))
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	return body[head:], nil
}

// ReadBytes returns the bytes of a regular file up to the size of the largest sealed file.
func ReadBytes(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, largestSealed))
}
