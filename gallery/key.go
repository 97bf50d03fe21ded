// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
)

// Errors of encrypted galleries. Each says what to do.
var (
	ErrEncrypted = store.ErrEncrypted
	ErrKey       = store.ErrKey
	ErrPlain     = store.ErrPlain
)

// SetKey gives the gallery at path a key of 32 bytes, drawn at random. It encrypts the database and its log whenever
// this process opens or makes it. Without a key, which is nil, they are not encrypted. A gallery that exists keeps its
// key: faceauth backup --new-key makes a copy with another one.
func SetKey(path string, key []byte) error { return store.SetKey(path, key) }

// ReadKey reads a key for [SetKey] from a file that only its owner can read, or, if path is "", from faceauth.key among
// the credentials of the service manager ($CREDENTIALS_DIRECTORY). It returns nil if there is no credential.
func ReadKey(path string) ([]byte, error) {
	read := safefile.ReadSecret
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); path == "" && dir != "" {
		path, read = filepath.Join(dir, "faceauth.key"), safefile.ReadBytes // only this service can read the folder
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	if path == "" {
		return nil, nil
	}
	key, err := read(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the key of the gallery: %w", err)
	case len(key) != 32:
		return nil, fmt.Errorf("the key of the gallery: %s has %d bytes, and a key has 32; make one: "+
			"(umask 077; head -c 32 /dev/urandom >FILE)", path, len(key))
	}
	return key, nil
}
