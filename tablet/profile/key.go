// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/faceauth/faceauth/internal/safefile"
	"golang.org/x/crypto/chacha20poly1305"
)

// ErrKeyFile is wrapped by the errors of [ReadKey] about a file that is not a key.
var ErrKeyFile = errors.New("unusable key file")

// Key seals a store. Printing it only shows the word "key".
type Key struct {
	values cipher.AEAD
	names  []byte // makes the keys under which the values are stored
}

// Format implements [fmt.Formatter].
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, "key") }

// NewKey returns the key of a secret of 32 bytes. It is two keys, so that neither weakens the other
// (HKDF, RFC 5869).
func NewKey(secret [32]byte) Key {
	values, err := hkdf.Key(sha256.New, secret[:], nil, "faceauth profile: values",
		chacha20poly1305.KeySize)
	names, also := hkdf.Key(sha256.New, secret[:], nil, "faceauth profile: names", sha256.Size)
	aead, wrong := chacha20poly1305.NewX(values)
	err = errors.Join(err, also, wrong)
	if err != nil {
		panic("profile: " + err.Error()) // only for other lengths
	}
	return Key{aead, names}
}

// ReadKey returns the key in a file, such as a credential of the service manager (systemd.exec(5)).
// The error wraps [ErrKeyFile] if the file holds no key.
func ReadKey(path string) (Key, error) {
	secret, err := safefile.ReadBytes(path)
	switch {
	case errors.Is(err, safefile.ErrNotRegular):
		return Key{}, fmt.Errorf("%w: %w", ErrKeyFile, err)
	case err != nil:
		return Key{}, fmt.Errorf("reading the key: %w", err)
	case len(secret) != 32:
		return Key{}, fmt.Errorf("%w: %s does not hold 32 bytes", ErrKeyFile, path)
	}
	return NewKey([32]byte(secret)), nil
}

// Kinds of sealed values: a value of one kind does not open as another kind.
const (
	head  = 'h'
	value = 'v'
)

// bound returns the associated data for a kind of value and its key; the key is "" if there is one
// value of the kind.
func (s *Store) bound(kind byte, at string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("faceauth profile\x00"), version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.space)))
	return append(append(append(b, s.space...), kind), at...)
}

func (s *Store) seal(plain []byte, kind byte, at string) []byte {
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	rand.Read(nonce)
	return s.key.values.Seal(nonce, nonce, plain, s.bound(kind, at))
}

func (s *Store) unseal(sealed []byte, kind byte, at string) ([]byte, error) {
	if len(sealed) < chacha20poly1305.NonceSizeX {
		return nil, fmt.Errorf("%w: a value is truncated", ErrDamaged)
	}
	nonce, rest := sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:]
	plain, err := s.key.values.Open(nil, nonce, rest, s.bound(kind, at))
	if err != nil {
		return nil, fmt.Errorf("%w: a value was altered", ErrDamaged)
	}
	return plain, nil
}

// place returns the key of a user's value.
func (s *Store) place(user string) string {
	h := hmac.New(sha256.New, s.key.names)
	h.Write([]byte(user))
	return fmt.Sprintf("user %x", h.Sum(nil))
}
