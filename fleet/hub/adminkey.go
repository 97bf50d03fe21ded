// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nkeys"
)

// ErrFleet is returned if the folder of a server and its admin key are of different fleets.
var ErrFleet = errors.New("the admin key is of another fleet than the folder of the server")

// fleetIDFile is the file in a server's folder with the id of its fleet.
const fleetIDFile = "fleet"

// noteFleet writes the id of the fleet into the folder.
func noteFleet(folder, public string) error {
	return safefile.Write(filepath.Join(folder, fleetIDFile), []byte(public+"\n"))
}

// adminKey returns the admin key, the fleet's id, and whether the folder was already of this fleet. It makes the key,
// and so the fleet, if there is neither a key nor a fleet's id in the folder. Without an id in the folder the third
// result is false; then the caller checks the log, and calls noteFleet.
func adminKey(path, folder string) (nkeys.KeyPair, string, bool, error) {
	id := filepath.Join(folder, fleetIDFile)
	was, err := safefile.ReadBytes(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", false, err
	}
	known := string(bytes.TrimSpace(was))
	key, public, err := readAdminKey(path)
	if errors.Is(err, fs.ErrNotExist) && known == "" {
		if key, err = nkeys.CreateAccount(); err != nil {
			return nil, "", false, err
		}
		seed, err := key.Seed()
		if err != nil {
			return nil, "", false, err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, "", false, err
		}
		if err := safefile.Write(path, append(seed, '\n')); err != nil {
			return nil, "", false, fmt.Errorf("the admin key: %w", err)
		}
		if key, public, err = readAdminKey(path); err != nil {
			return nil, "", false, err
		}
		if err := noteFleet(folder, public); err != nil {
			return nil, "", false, err
		}
		known = public
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, "", false, fmt.Errorf("the admin key %s is missing; put back your copy of it: "+
			"without the key no device can join this fleet or be revoked", path)
	} else if err != nil {
		return nil, "", false, err
	}
	if known != "" && known != public {
		return nil, "", false, fmt.Errorf(
			"%w: %s is the key of %s, and %s holds %s; give the right key with --admin-key", ErrFleet, path, public,
			folder, known)
	}
	return key, public, known != "", nil
}

func readAdminKey(path string) (nkeys.KeyPair, string, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, "", fmt.Errorf("others can read the admin key %s; run: chmod 600 %s", path, path)
	}
	b := make([]byte, 200)
	n, _ := f.Read(b) // a seed is shorter; a partial read fails below
	key, err := nkeys.FromSeed(bytes.TrimSpace(b[:n]))
	if err != nil {
		return nil, "", fmt.Errorf("%s holds no admin key of a fleet; put back your copy of it", path)
	}
	public, err := key.PublicKey()
	if err != nil || !nkeys.IsValidPublicAccountKey(public) {
		return nil, "", fmt.Errorf("%s holds a key that is not the admin key of a fleet; put back your copy of it",
			path)
	}
	return key, public, nil
}
