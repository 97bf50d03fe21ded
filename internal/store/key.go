// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/faceauth/faceauth/internal/safefile"
	_ "github.com/ncruces/go-sqlite3/vfs/adiantum" // encrypts
	"lukechampine.com/adiantum"
)

// keySize is the size of a key in bytes.
const keySize = 32

// keys are the keys of databases, by path.
var keys sync.Map

// SetKey makes every [Open] of the database at path use a key, which encrypts the database and its
// log. Without a key, which is nil, they are not encrypted. A key of another size than [keySize] is
// an error.
func SetKey(path string, key []byte) error {
	if len(key) != 0 && len(key) != keySize {
		return fmt.Errorf("a key has %d bytes, and this one has %d", keySize, len(key))
	}
	keys.Store(real(path), slices.Clone(key))
	return nil
}

// ReadKey reads a key for [SetKey] from a file that only its owner can read, or, if path is "",
// from faceauth.key among the credentials of the service manager ($CREDENTIALS_DIRECTORY). It
// returns nil if there is no credential.
func ReadKey(path string) ([]byte, error) {
	read := safefile.ReadSecret
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); path == "" && dir != "" {
		// only this service can read the folder
		path, read = filepath.Join(dir, "faceauth.key"), safefile.ReadBytes
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
	case len(key) != keySize:
		return nil, fmt.Errorf(
			"the key of the gallery: %s has %d bytes, and a key has 32; make one: "+
				"(umask 077; head -c 32 /dev/urandom >FILE)", path, len(key))
	}
	return key, nil
}

// Key returns the key of the database at path, or nil.
func Key(path string) []byte {
	key, _ := keys.Load(real(path))
	k, _ := key.([]byte)
	return k
}

// real returns the absolute path of a file without symbolic links. The file need not exist.
func real(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	return path
}

// uri names a database with a key for SQLite.
func uri(path string, key []byte) (string, error) {
	full, err := filepath.Abs(path)
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(full), RawQuery: "vfs=plain"}
	if len(key) > 0 {
		u.RawQuery = fmt.Sprintf("vfs=encrypted&hexkey=%x", key)
	}
	return u.String(), err
}

// fits reports whether a file begins as a database that a key encrypts. With a wrong key SQLite
// would take the log for an empty one, and remove it.
func fits(f *os.File, key []byte) bool {
	block := make([]byte, blockSize)
	n, _ := f.ReadAt(block, 0)
	return n == blockSize && strings.HasPrefix(string(decrypt(block, 0, key)), magic)
}

// blockSize is the size of an encrypted block. Package vfs/adiantum has it, and the tweak: the
// place in the file.
const blockSize = 4096

func decrypt(block []byte, at int64, key []byte) []byte {
	return adiantum.New(key).Decrypt(block, binary.LittleEndian.AppendUint64(nil, uint64(at)))
}

// encrypted reports whether a file may be an encrypted database. Its bytes are as drawn by chance
// then: a page of them lacks a value once in 10^11 files.
func encrypted(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || info.Size()%blockSize != 0 {
		return false
	}
	page := make([]byte, pageSize)
	n, _ := f.ReadAt(page, 0)
	var seen [256]bool
	for _, b := range page[:n] {
		seen[b] = true
	}
	return !slices.Contains(seen[:], false)
}
