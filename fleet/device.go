// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/nats-io/nkeys"
)

// Errors of [Open] and the methods of [Device].
var (
	ErrNotJoined = errors.New("this device has not joined a fleet")
	ErrBusy      = errors.New("another program is using the fleet's folder of this device")
	ErrDamaged   = errors.New("damaged file in the fleet's folder of this device")
	ErrUnknown   = errors.New("the fleet knows nobody of that name or number")
	ErrNoKey     = errors.New("the key of this person has not come yet")
)

// Identity returns the key of the device whose folder this is, and makes folder and key where there are none. The file
// "device.nk" in it is the seed, readable by its owner alone.
func Identity(folder string) (nkeys.KeyPair, error) { panic("being built") }

// Join notes in a folder which fleet its device belongs to: the public key of the fleet's admin key, "A…". Folder and
// key are made where there are none. It refuses a folder of another fleet.
func Join(folder, fleet string) error { panic("being built") }

// Settings of a [Device]. The zero value of each field stands for its default.
type Settings struct {
	Now           func() time.Time // default time.Now; it decides nothing
	SnapshotEvery uint64           // entries of the log between snapshots. Default 5,000
	Tell          func(string)     // is given a line about what happens, without secrets. Default: none
}

// Device is a device of a fleet: it follows the log, and says what is new. Its methods may be called at once.
//
// What it says holds for itself when the method returns, and is on disk; the others learn of it when there is a log.
type Device struct{}

// Open opens the folder of a device that has joined a fleet. The error wraps [ErrNotJoined], [ErrBusy] or [ErrDamaged].
// Close it.
func Open(folder string, s Settings) (*Device, error) { panic("being built") }

// Close closes the folder. [Device.Run] must have ended.
func (d *Device) Close() error { panic("being built") }

// ID returns the public key of the device, and Fleet that of the fleet.
func (d *Device) ID() string { panic("being built") }

// Fleet returns the public key of the fleet.
func (d *Device) Fleet() string { panic("being built") }

// Run takes part in the fleet through a log until ctx ends, or until that cannot go on: the error then wraps
// [ledger.ErrFuture], [ErrRefused], or is one of the disk. It tries again where the log fails. It is called once at a
// time.
func (d *Device) Run(ctx context.Context, log Log) error { panic("being built") }

// State says how far a device is.
type State struct {
	Connected bool      `json:"connected"`
	InStep    bool      `json:"in_step"` // everything of the log was applied, and nothing of its own waits
	Behind    uint64    `json:"behind"`  // entries of the log that are still to come, at most
	Since     time.Time `json:"since"`   // when InStep last changed
	Seq       uint64    `json:"seq"`     // place in the log
	Waiting   int       `json:"waiting"` // own entries that are not in the log yet
	Keys      int       `json:"keys"`    // keys that are missing
	Trouble   string    `json:"trouble,omitempty"`
}

// State returns how far d is.
func (d *Device) State() State { panic("being built") }

// Members returns the devices of the fleet.
func (d *Device) Members() []ledger.Member { panic("being built") }

// Member returns a device of the fleet, whether it was ever admitted, and the last place in the log that this rests on.
// The join service asks by it.
func (d *Device) Member(id string) (m ledger.Member, known bool, seq uint64) { panic("being built") }

// Hash returns [ledger.Ledger.Hash] of what the log has come to, and the place in the log.
func (d *Device) Hash() (seq uint64, hash [32]byte) { panic("being built") }

// People returns the people as this device knows them, with what it said itself and is not in the log yet.
func (d *Device) People() []ledger.Person { panic("being built") }

// Find returns a person by the name that is shown, or by the number. The error wraps [ErrUnknown].
func (d *Device) Find(name string) (ledger.Person, error) { panic("being built") }

// Enroll makes a person with these faces.
func (d *Device) Enroll(name, space string, faces []ledger.Face) (ledger.ID, error) {
	panic("being built")
}

// Label says that faces are a person's.
func (d *Device) Label(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	panic("being built")
}

// Confirm says that it is still this person: learned faces become labelled ones.
func (d *Device) Confirm(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	panic("being built")
}

// Deny says that faces are not a person's.
func (d *Device) Deny(person ledger.ID, space string, faces []ledger.Face) (ledger.Ref, error) {
	panic("being built")
}

// Retract takes labelled faces of a person back.
func (d *Device) Retract(person ledger.ID, faces ...ledger.FaceID) (ledger.Ref, error) {
	panic("being built")
}

// Rename gives a person another name.
func (d *Device) Rename(person ledger.ID, name string) (ledger.Ref, error) { panic("being built") }

// Merge says that other is the same person as into, and has the name of into.
func (d *Device) Merge(other, into ledger.ID) (ledger.Ref, error) { panic("being built") }

// Undo takes back what a device said: not a forgetting, an undoing or a withdrawal.
func (d *Device) Undo(what ledger.Ref) (ledger.Ref, error) { panic("being built") }

// Forget forgets a person for ever, everywhere, and destroys the keys.
func (d *Device) Forget(person ledger.ID) (ledger.Ref, error) { panic("being built") }

// Teach gives the others what this device learned of a person, in place of what it gave before.
func (d *Device) Teach(person ledger.ID, lesson ledger.Lesson) error { panic("being built") }

// Withdraw takes back all that a device taught; with mute also what it teaches later, until a withdrawal without mute.
func (d *Device) Withdraw(device string, mute bool) (ledger.Ref, error) { panic("being built") }

// Reconciling says how [Device.Reconcile] works.
type Reconciling struct {
	Gallery string // a name for the gallery, where a device has several. Default "gallery"
	Publish bool   // people and faces that only the gallery has become the fleet's
}

// Reconciled says what [Device.Reconcile] did.
type Reconciled struct {
	Changed   bool // the gallery has changed, and is to be saved
	Took      int  // changes that came from the fleet
	Published int  // entries that were made of what only the gallery had
	Refused   []string
}

// Reconcile brings a gallery in line with what the fleet knows. Save the gallery then; [Device.Keep] does both.
func (d *Device) Reconcile(g *gallery.Gallery, how Reconciling) (Reconciled, error) {
	panic("being built")
}
