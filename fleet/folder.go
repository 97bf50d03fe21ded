// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/lines"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// Errors of [Identity], [Join], [Open] and the methods of [Device].
var (
	ErrNotJoined = errors.New("this device has not joined a fleet")
	ErrOther     = errors.New("this device belongs to another fleet")
	ErrBusy      = errors.New("another program is using the fleet's folder of this device")
	ErrDamaged   = errors.New("damaged file in the fleet's folder of this device")
	ErrUnknown   = errors.New("the fleet knows nobody of that name or number")
)

// The files in the folder of a device.
const (
	seedFile    = "device.nk" // the key of the device
	fleetFile   = "fleet"     // the public key of its fleet
	lockFile    = "lock"
	ringFile    = "keys"   // of the people
	outboxFile  = "outbox" // entries of this device that it has not read in the log
	ledgerFile  = ledger.BaseFile
	tailFile    = ledger.TailFile
	asideFile   = "aside" // entries to give back to a log that was put back
	galleryFile = "gallery-"
)

// lockPatience is how long [Open] waits for another program to unlock the folder.
const lockPatience = 2 * time.Second

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

// Join records in a folder the fleet of its device: the public key "A…" of the fleet's admin key. It makes the folder
// and the device's key if they are missing. The error wraps [ErrOther] if the folder belongs to another fleet.
func Join(folder, fleet string) error {
	if !nkeys.IsValidPublicAccountKey(fleet) {
		return fmt.Errorf("joining: %q is not the public key of a fleet; it begins with A", fleet)
	}
	if _, err := Identity(folder); err != nil {
		return err
	}
	switch had, err := Joined(folder); {
	case errors.Is(err, ErrNotJoined):
		if err := safefile.Write(filepath.Join(folder, fleetFile), []byte(fleet+"\n")); err != nil {
			return fmt.Errorf("joining: %w", err)
		}
		return nil
	case err != nil:
		return err
	case had != fleet:
		return fmt.Errorf("%w: %s; use another folder, or move %s away", ErrOther, had, folder)
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

// A batch is a line of the outbox.
type batch struct {
	Last    uint64   `json:"last,omitempty"`    // the device has used all counters up to this one
	Entries [][]byte `json:"entries,omitempty"` // entries that belong together
}

// Open opens the folder of a device that has joined a fleet. The error wraps [ErrNotJoined], [ErrBusy], [ErrDamaged] or
// [ledger.ErrRing]. The caller closes the device.
func Open(folder string, s Settings) (*Device, error) {
	d := &Device{
		ungiven: make(map[ledger.KeyID]ledger.ID),
		folder:  folder, s: s.defaults(), wake: make(chan struct{}, 1), ask: make(chan struct{}, 1),
		snap: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		passed: rate.Sometimes{First: 5, Interval: 10 * time.Second},
	}
	if err := d.open(); err != nil {
		d.closeFiles()
		return nil, err
	}
	return d, nil
}

func (d *Device) open() (err error) {
	if d.fleet, err = Joined(d.folder); err != nil {
		return err
	}
	if d.lock, err = os.OpenFile(filepath.Join(d.folder, lockFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("opening the fleet's folder of this device: %w", err)
	}
	if err := safefile.Lock(d.lock, lockPatience); errors.Is(err, safefile.ErrLocked) {
		return fmt.Errorf("%w: %s", ErrBusy, d.folder)
	} else if err != nil {
		return fmt.Errorf("locking the fleet's folder of this device: %w", err)
	}
	if d.key, err = Identity(d.folder); err != nil {
		return err
	}
	if d.id, err = d.key.PublicKey(); err != nil {
		return err
	}
	d.sweepSnapshots()
	safefile.Sweep(filepath.Join(d.folder, asideFile))
	if d.ring, err = ledger.OpenRing(filepath.Join(d.folder, ringFile)); err != nil {
		return err
	}
	if err := d.openLedger(); err != nil {
		return err
	}
	if err := d.openOutbox(); err != nil {
		return err
	}
	if err := d.openAside(); err != nil {
		return err
	}
	// An old copy of the folder may have been put back, or the program was killed before it saved the ring.
	for _, id := range d.ring.People() {
		if d.current().Forgotten(id) {
			d.ring.Destroy(id)
			d.ringStale = true
		}
	}
	d.since = d.s.Now()
	d.noteAllMissingKeys()
	return d.saveRing()
}

func (d *Device) openLedger() (err error) {
	if d.store, err = ledger.OpenStore(d.folder, d.fleet, d.key); errors.Is(err, ledger.ErrStore) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	} else if err != nil {
		return err
	}
	d.base = d.store.Ledger
	return nil
}

func (d *Device) openOutbox() (err error) {
	path := filepath.Join(d.folder, outboxFile)
	d.outbox, err = lines.Open(path, lines.Options{}, func(line []byte) error {
		var b batch
		if err := json.Unmarshal(line, &b); err != nil {
			return fmt.Errorf("%w: %w", lines.ErrDamaged, err)
		}
		d.last = max(d.last, b.Last)
		for _, data := range b.Entries {
			e, err := ledger.Parse(data)
			if err != nil || e.Device != d.id {
				return fmt.Errorf("%w: the line has an entry of another device", lines.ErrDamaged)
			}
			d.last = max(d.last, e.N)
			d.pending = append(d.pending, waiting{e: e, data: data})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	// The ledger already has these entries from the log.
	seen := d.base.Last(d.id)
	for len(d.pending) > 0 && d.pending[0].e.N <= seen {
		d.pending = d.pending[1:]
	}
	d.last = max(d.last, seen)
	return nil
}

// saveOutbox writes the outbox again, without the entries that were read in the log.
func (d *Device) saveOutbox() error {
	all := []any{batch{Last: d.last}}
	for _, w := range d.pending {
		all = append(all, batch{Entries: [][]byte{w.data}})
	}
	if err := d.outbox.Rewrite(all...); err != nil {
		return fmt.Errorf("saving the outbox: %w", err)
	}
	return nil
}

// saveRing writes the keys of people if they have changed.
func (d *Device) saveRing() error {
	if !d.ringStale {
		return nil
	}
	if err := d.ring.Save(); err != nil {
		return err
	}
	d.ringStale = false
	return nil
}

// saveLedger writes a snapshot of the ledger, and empties the tail.
func (d *Device) saveLedger() error {
	d.view = nil // it may point into the files that Save replaces
	return d.store.Save()
}

// Close closes the folder. [Device.Run] must have ended.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if d.store.Hole() != nil {
		errs = append(errs, d.saveLedger())
	}
	errs = append(errs, d.saveRing(), d.saveOutbox())
	return errors.Join(append(errs, d.closeFiles())...)
}

func (d *Device) closeFiles() error {
	var errs []error
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.ring != nil {
		errs = append(errs, d.ring.Close())
	}
	if d.outbox != nil {
		errs = append(errs, d.outbox.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// galleryPath returns the path of the file with the people that a gallery and the fleet share. An empty name is the
// default name.
func (d *Device) galleryPath(name string) (string, error) {
	if name == "" {
		name = "gallery"
	}
	if strings.ContainsAny(name, "/\x00") || len(name) > 100 {
		return "", fmt.Errorf("%q cannot be the name of a gallery: it must have at most 100 bytes and no slash", name)
	}
	return filepath.Join(d.folder, galleryFile+name), nil
}
