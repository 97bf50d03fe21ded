// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
)

// ErrKeyFile is wrapped by the errors of [KeyFile] and [Credential] for a file that cannot be a key, or that others
// than its owner can read.
var ErrKeyFile = errors.New("unusable key file")

// secretSize is the length of a key in bytes.
const secretSize = 32

// Key seals a store. It never shows itself: printed, it is the word "key".
type Key struct {
	seal [secretSize]byte // of the values
	name [secretSize]byte // of the names under which they are kept
}

// Format implements [fmt.Formatter].
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, "key") }

// NewKey returns a key made of random bytes.
func NewKey() Key {
	var secret [secretSize]byte
	rand.Read(secret[:]) // does not fail: it ends the program first
	return derive(secret[:])
}

// derive makes the two keys of a secret (HKDF, RFC 5869), so that neither use weakens the other.
func derive(secret []byte) (k Key) {
	for use, to := range map[string][]byte{"faceauth profile: values": k.seal[:], "faceauth profile: names": k.name[:]} {
		b, err := hkdf.Key(sha256.New, secret, nil, use, len(to))
		if err != nil {
			panic("profile: " + err.Error()) // only for a length that SHA-256 cannot give
		}
		copy(to, b)
	}
	return k
}

// KeyFile returns the key in the file at path, and makes one at first use. Of several programs that use it first
// at once all get the same. The error wraps [ErrKeyFile].
func KeyFile(path string) (Key, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeKeyFile(path); err != nil {
			return Key{}, fmt.Errorf("making the key file: %w", err)
		}
	}
	return readKey(path)
}

// makeKeyFile puts a file with random bytes at path, unless one has come to be there.
func makeKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var secret [secretSize]byte
	rand.Read(secret[:])
	temp := fmt.Sprintf("%s.%x", path, secret[:4])
	if err := safefile.Write(temp, secret[:]); err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Credential returns the key that the service manager hands over in $CREDENTIALS_DIRECTORY (systemd.exec(5)), and
// whether there is one of that name. The error wraps [ErrKeyFile].
func Credential(name string) (k Key, ok bool, err error) {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return k, false, nil
	}
	k, err = readKey(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	return k, err == nil, err
}

func readKey(path string) (Key, error) {
	f, err := safefile.Open(path)
	if errors.Is(err, safefile.ErrNotRegular) {
		return Key{}, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	if err != nil {
		return Key{}, fmt.Errorf("reading the key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, fmt.Errorf("reading the key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Key{}, fmt.Errorf("%w: others than its owner may use %s (mode %#o); run: chmod 600 %s", ErrKeyFile, path, mode, path)
	}
	secret, err := io.ReadAll(io.LimitReader(f, secretSize+1))
	if err != nil {
		return Key{}, fmt.Errorf("reading the key: %w", err)
	}
	if len(secret) != secretSize {
		return Key{}, fmt.Errorf("%w: %s does not hold %d bytes", ErrKeyFile, path, secretSize)
	}
	return derive(secret), nil
}

// next is what the name of the key file has after it while a new key takes its place.
const next = ".next"

// OpenFile opens the store at path with the key in a file, as [Open] and [KeyFile] do, and finishes a
// [Store.RotateFile] that was interrupted.
func OpenFile(path, keyPath string, space face.Space, options ...Option) (*Store, error) {
	key, err := KeyFile(keyPath)
	if err != nil {
		return nil, err
	}
	s, err := Open(path, key, space, options...)
	if !errors.Is(err, ErrKey) {
		return s, err
	}
	key, missing := readKey(keyPath + next)
	if missing != nil {
		return nil, err
	}
	if s, err = Open(path, key, space, options...); err != nil {
		return nil, err
	}
	if err := safefile.Rename(keyPath+next, keyPath); err != nil {
		s.Close()
		return nil, fmt.Errorf("putting the new key in its place: %w", err)
	}
	return s, nil
}

// RotateFile seals everything with a new key, which takes the place of that in the key file of [OpenFile]. Whatever
// interrupts it, OpenFile opens the store with one key or the other.
func (s *Store) RotateFile(keyPath string) error {
	if err := os.Remove(keyPath + next); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was interrupted before it sealed anything
		return err
	}
	if err := makeKeyFile(keyPath + next); err != nil {
		return fmt.Errorf("making the key file: %w", err)
	}
	key, err := readKey(keyPath + next)
	if err != nil {
		return err
	}
	if err := s.Rotate(key); err != nil {
		return err
	}
	return safefile.Rename(keyPath+next, keyPath)
}
