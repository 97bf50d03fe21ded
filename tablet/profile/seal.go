// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// Kinds of sealed values: a value of one kind does not open as another kind.
const (
	head  = 'h'
	value = 'v'
)

// bound returns the associated data for a kind of value and its key; the key is "" if there is one value of the kind.
func (s *Store) bound(kind byte, at string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("faceauth profile\x00"), version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.space)))
	return append(append(append(b, s.space...), kind), at...)
}

// cipher returns the cipher of the store's key.
func (s *Store) cipher() cipher.AEAD {
	aead, err := chacha20poly1305.NewX(s.key.seal[:])
	if err != nil {
		panic("profile: " + err.Error()) // only for a key of another length
	}
	return aead
}

func (s *Store) seal(plain []byte, kind byte, at string) []byte {
	aead := s.cipher()
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	rand.Read(nonce)
	return aead.Seal(nonce, nonce, plain, s.bound(kind, at))
}

func (s *Store) unseal(sealed []byte, kind byte, at string) ([]byte, error) {
	aead := s.cipher()
	if len(sealed) < aead.NonceSize() {
		return nil, fmt.Errorf("%w: a value is truncated", ErrDamaged)
	}
	plain, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], s.bound(kind, at))
	if err != nil {
		return nil, fmt.Errorf("%w: a value was altered", ErrDamaged)
	}
	return plain, nil
}

// place returns the key of a user's value.
func (s *Store) place(user string) string {
	h := hmac.New(sha256.New, s.key.name[:])
	h.Write([]byte(user))
	return fmt.Sprintf("user %x", h.Sum(nil))
}
