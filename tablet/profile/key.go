// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/faceauth/faceauth/internal/safefile"
)

// ErrKeyFile is wrapped by the errors of [ReadKey] about a file that is not a key.
var ErrKeyFile = errors.New("unusable key file")

// secretSize is the length of a key in bytes.
const secretSize = 32

// Key seals a store. Printing it only shows the word "key".
type Key struct {
	seal [secretSize]byte // seals the values
	name [secretSize]byte // makes the keys under which they are stored
}

// Format implements [fmt.Formatter].
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, "key") }

// NewKey returns a key made of random bytes.
func NewKey() Key {
	var secret [secretSize]byte
	rand.Read(secret[:]) // does not fail: it ends the program first
	return derive(secret[:])
}

// derive computes the two keys from a secret (HKDF, RFC 5869), so that neither weakens the other.
func derive(secret []byte) (k Key) {
	parts := map[string][]byte{"faceauth profile: values": k.seal[:], "faceauth profile: names": k.name[:]}
	for use, to := range parts {
		b, err := hkdf.Key(sha256.New, secret, nil, use, len(to))
		if err != nil {
			panic("profile: " + err.Error()) // only for a length that SHA-256 cannot give
		}
		copy(to, b)
	}
	return k
}

// ReadKey returns the key in a file, such as a credential of the service manager (systemd.exec(5)). The error wraps
// [ErrKeyFile] if the file holds no key.
func ReadKey(path string) (Key, error) {
	secret, err := safefile.ReadBytes(path)
	switch {
	case errors.Is(err, safefile.ErrNotRegular):
		return Key{}, fmt.Errorf("%w: %w", ErrKeyFile, err)
	case err != nil:
		return Key{}, fmt.Errorf("reading the key: %w", err)
	case len(secret) != secretSize:
		return Key{}, fmt.Errorf("%w: %s does not hold %d bytes", ErrKeyFile, path, secretSize)
	}
	return derive(secret), nil
}
