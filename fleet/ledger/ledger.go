// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"io"
	"time"

	"github.com/nats-io/nkeys"
)

// Reasons why an entry does not count, in [Outcome]. [ErrFormat], [ErrTooLarge] and [ErrSignature] are others.
var (
	ErrOld        = errors.New("delivered before")
	ErrRepeated   = errors.New("its author has said something later already, or this")
	ErrStranger   = errors.New("its author was not admitted to this fleet")
	ErrRevoked    = errors.New("its author was revoked")
	ErrScope      = errors.New("its author may not write about this person")
	ErrForgotten  = errors.New("the person is forgotten")
	ErrNobody     = errors.New("no such person")
	ErrNoEntry    = errors.New("no such entry, or one that cannot be undone")
	ErrMuted      = errors.New("the lessons of its author are withdrawn")
	ErrNoEffect   = errors.New("it is so already")
	ErrSnapshot   = errors.New("not a snapshot of this fleet, or a damaged one")
	ErrKeyRequest = errors.New("request for keys that is not answered")
)

// Outcome says what became of an entry.
type Outcome struct {
	Entry     Entry // as far as it could be read
	Accepted  bool
	Reason    error  // where it was not accepted: a sentence that wraps one of the errors above
	Gap       uint64 // how many entries of its author before it never came
	Forgotten []ID   // whose keys are to be destroyed now
}

// Ledger is what a fleet knows: the fold of its log. It is not safe for concurrent use.
type Ledger struct{}

// Member is a device of a fleet.
type Member struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Scope    Scope     `json:"scope"`
	Admitted time.Time `json:"admitted"` // by the clock of the join service
	Revoked  bool      `json:"revoked,omitempty"`
	Muted    bool      `json:"muted,omitempty"` // its lessons are withdrawn
	Entries  uint64    `json:"entries"`         // its counter: how many entries it has written
	Gaps     uint64    `json:"gaps,omitempty"`  // of these, how many never came
}

// Person is a person of a fleet, as far as the keys of a ring go.
type Person struct {
	ID       ID
	IDs      []ID   // with those that were merged into this one, ID first
	Name     string // as it was given; "" where there is none, or no key for it
	Shown    string // the same, made different from those of others: "alice (2)"
	Faces    []PersonFace
	Denied   []PersonFace // faces that are not the person's, the oldest first
	Gone     []FaceID     // faces that were labelled once and are not now
	Lessons  []PersonLesson
	Enrolled time.Time // when the last face was labelled, by its device's clock
	Sealed   int       // entries that no key of the ring opens
}

// PersonFace is a labelled or denied face of a person.
type PersonFace struct {
	ID    FaceID
	Space string
	Face
	By        Ref  // the entry that says so
	Confirmed bool // it was learned before it was labelled
}

// PersonLesson is what a device learned of a person.
type PersonLesson struct {
	Device string
	Lesson
}

// Want names a key that a device has not got.
type Want struct {
	Person ID
	Key    KeyID
	Author string // of the first entry that is sealed with it
}

// New returns what a fleet knows before its first entry. Fleet is the public key of its admin key, "A…".
func New(fleet string) (*Ledger, error) { panic("being built") }

// Fleet returns the public key of the fleet.
func (l *Ledger) Fleet() string { panic("being built") }

// Seq returns the place in the log of the last entry that was applied, whether or not it counts.
func (l *Ledger) Seq() uint64 { panic("being built") }

// Apply takes in the entry at a place in the log. Places go up, and need not follow each other. An entry that does not
// count changes nothing but the place; the outcome says why.
//
// The error wraps [ErrFuture], for an entry of a member whose version this program does not know; l is then as it was,
// and cannot go on until the program is a newer one.
func (l *Ledger) Apply(seq uint64, data []byte) (Outcome, error) { panic("being built") }

// Last returns the counter of the last entry of an author that counted or was passed over, or 0.
func (l *Ledger) Last(author string) uint64 { panic("being built") }

// Devices returns the devices that were ever admitted, in the order of their first admission.
func (l *Ledger) Devices() []Member { panic("being built") }

// Device returns a device by its number, and whether it was ever admitted.
func (l *Ledger) Device(id string) (Member, bool) { panic("being built") }

// MayRead reports whether a device is a member that may have the keys of a person.
func (l *Ledger) MayRead(device string, person ID) bool { panic("being built") }

// Forgotten reports whether a person was forgotten.
func (l *Ledger) Forgotten(person ID) bool { panic("being built") }

// People returns the people, in the order in which they came to be, with what the keys of the ring open.
func (l *Ledger) People(ring *Ring) []Person { panic("being built") }

// Person returns a person, also by the number of one that was merged into it, and whether there is one.
func (l *Ledger) Person(id ID, ring *Ring) (Person, bool) { panic("being built") }

// Wants returns the keys that a device may have and the ring has not got.
func (l *Ledger) Wants(device string, ring *Ring) []Want { panic("being built") }

// Hash returns a hash of all that the log has come to, sealed contents among it: two devices that have applied the same
// entries have the same one, whatever keys they have.
func (l *Ledger) Hash() [32]byte { panic("being built") }

// ContentHash returns a hash of the people as [Ledger.People] gives them.
func (l *Ledger) ContentHash(ring *Ring) [32]byte { panic("being built") }

// Snapshot writes what l holds, signed with the key of a device.
func (l *Ledger) Snapshot(w io.Writer, key nkeys.KeyPair) error { panic("being built") }

// Restore reads a snapshot of a fleet. It checks every signature in it; nothing is restored on error, which wraps
// [ErrSnapshot], [ErrFuture], or is that of the reader.
func Restore(fleet string, r io.Reader) (*Ledger, error) { panic("being built") }

// AnswerKeys returns the answer to a request for keys, as far as the device that asks may have them and the ring has
// them, sealed for that device and signed with the key of the one that answers. The error, which wraps [ErrKeyRequest],
// says why a request is not answered at all.
func (l *Ledger) AnswerKeys(request []byte, ring *Ring, key nkeys.KeyPair) ([]byte, error) {
	panic("being built")
}

// KeyRequest is a question for keys that waits for its answers.
type KeyRequest struct{}

// NewKeyRequest returns a request for keys, at most [MaxWants], signed by the device that asks.
func NewKeyRequest(fleet string, key nkeys.KeyPair, wants []Want) (*KeyRequest, error) {
	panic("being built")
}

// MaxWants is how many keys one request may ask for.
const MaxWants = 1000

// Bytes returns the request as it travels.
func (q *KeyRequest) Bytes() []byte { panic("being built") }

// Open puts the keys of an answer into the ring, and returns how many these are. Only keys that were asked for are
// taken. The error wraps [ErrKeyRequest].
func (q *KeyRequest) Open(answer []byte, ring *Ring) (int, error) { panic("being built") }
