// SPDX-License-Identifier: Apache-2.0

package fleet

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

// Errors of [Identity], [Join], [Open] and the methods of [Device].
var (
	ErrNotJoined = errors.New("this device has not joined a fleet")
	ErrOther     = errors.New("this device belongs to another fleet")
	ErrBusy      = errors.New("another program is using the fleet's folder of this device")
	ErrDamaged   = errors.New("damaged file in the fleet's folder of this device")
	ErrUnknown   = errors.New("the fleet knows nobody of that name or number")
	ErrForgotten = errors.New("the fleet has forgotten this person")
	ErrScope     = errors.New("this device is limited to other people of the fleet")
	ErrRevoked   = errors.New("the fleet does not let this device in any more: it was revoked; to return, move its " +
		"folder away and join again")
	ErrKeyless  = errors.New("the key of this person has not come yet")
	ErrNoEffect = errors.New("this changes nothing")
)

// The files in the folder of a device.
const (
	seedFile      = "device.nk" // the key of the device
	fleetFile     = "fleet"     // the public key of its fleet
	admissionFile = "admission" // the record that admits the device
	lockFile      = "lock"
	dataFile      = "data" // what the devices say, and the keys of people
)

// readSmall returns the content of a small file, without white space around it.
func readSmall(path string) ([]byte, error) {
	data, err := safefile.ReadBytes(path)
	if err != nil {
		return nil, err
	}
	return bytes.TrimSpace(data), nil
}

// Identity returns the device's key from its folder. It makes the folder and the key if they are missing. The file
// "device.nk" in the folder is the seed; only the owner can read it.
func Identity(folder string) (nkeys.KeyPair, error) {
	path := filepath.Join(folder, seedFile)
	seed, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newIdentity(folder, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of this device: %w", err)
	}
	defer clear(seed)
	key, err := nkeys.FromSeed(seed)
	if err == nil {
		var id string
		if id, err = key.PublicKey(); err == nil && !nkeys.IsValidPublicUserKey(id) {
			err = errors.New("it is not the key of a device")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; move it away and join the fleet again", ErrDamaged, path, err)
	}
	return key, nil
}

func newIdentity(folder, path string) (nkeys.KeyPair, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the fleet's folder of this device: %w", err)
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("making a key for this device: %w", err)
	}
	seed, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("making a key for this device: %w", err)
	}
	// Do not clear seed: it is the key's own memory.
	if err := safefile.Write(path, seed); err != nil {
		return nil, fmt.Errorf("keeping the key of this device: %w", err)
	}
	return key, nil
}

// join records in a folder the fleet of its device, and the record that admits the device. The error wraps [ErrOther]
// if the folder belongs to another fleet.
func join(folder, fleet string, admission []byte) error {
	switch had, err := Joined(folder); {
	case err == nil && had != fleet:
		return fmt.Errorf("%w: %s; use another folder, or move %s away", ErrOther, had, folder)
	case err != nil && !errors.Is(err, ErrNotJoined):
		return err
	}
	if err := safefile.Write(filepath.Join(folder, admissionFile), admission); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	if err := safefile.Write(filepath.Join(folder, fleetFile), []byte(fleet+"\n")); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	return nil
}

// Joined returns the public key of the fleet that a folder's device belongs to. The error wraps [ErrNotJoined] or
// [ErrDamaged].
func Joined(folder string) (fleet string, err error) {
	path := filepath.Join(folder, fleetFile)
	text, err := readSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s; run: faceauth fleet join", ErrNotJoined, folder)
	case err != nil:
		return "", err
	case !nkeys.IsValidPublicAccountKey(string(text)):
		return "", fmt.Errorf("%w: %s does not hold the public key of a fleet; move it away and join again", ErrDamaged,
			path)
	}
	return string(text), nil
}
