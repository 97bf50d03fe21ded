// SPDX-License-Identifier: Apache-2.0

package gallery

import "github.com/faceauth/faceauth/internal/store"

// Errors of encrypted galleries. Each says what to do.
var (
	ErrEncrypted = store.ErrEncrypted
	ErrKey       = store.ErrKey
	ErrPlain     = store.ErrPlain
)

// SetKey gives the gallery at path a key of 32 bytes, drawn at random. It encrypts the database and its log whenever
// this process opens or makes it. Without a key, which is nil, they are not encrypted. A gallery that exists keeps its
// key: faceauth rekey changes it.
func SetKey(path string, key []byte) error { return store.SetKey(path, key) }
