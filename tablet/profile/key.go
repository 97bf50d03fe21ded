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

	"github.com/faceauth/faceauth/internal/safefile"
)

// ErrKeyFile is wrapped by the errors of [KeyFile] and [Credential] about a file that is not a key, or that other users
// can read.
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

// KeyFile returns the key in the file at path, and makes the file at first use. If several programs make it at once,
// all get the same key. The error wraps [ErrKeyFile].
func KeyFile(path string) (Key, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeKeyFile(path); err != nil {
			return Key{}, fmt.Errorf("making the key file: %w", err)
		}
	}
	return readKey(path, true)
}

// makeKeyFile writes a file with random bytes to path, unless there is a file already.
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

// Credential returns the key that the service manager provides in $CREDENTIALS_DIRECTORY (systemd.exec(5)), if there is
// one with this name. The error wraps [ErrKeyFile].
func Credential(name string) (k Key, ok bool, err error) {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return k, false, nil
	}
	k, err = readKey(filepath.Join(dir, name), false)
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	return k, err == nil, err
}

// readKey reads a key. Private says that no other user may be able to read the file. The files of the service manager
// are below a folder that only this user can enter, and may have an ACL, which looks like the rights of a group.
func readKey(path string, private bool) (Key, error) {
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
	if mode := info.Mode().Perm(); private && mode&0o077 != 0 {
		return Key{}, fmt.Errorf("%w: other users may use %s (mode %#o); run: chmod 600 %s", ErrKeyFile, path, mode,
			path)
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
