// SPDX-License-Identifier: Apache-2.0

// Package protocol is what the members of a fleet and its server say to each other: invitations,
// requests with their replies, and the bucket of values with the rights of those who use it.
package protocol

import (
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nkeys"
)

// Invitation is what a device needs to connect to the server of a fleet.
type Invitation struct {
	Name string   `cbor:"1,keyasint"`           // of the device
	URLs []string `cbor:"2,keyasint"`           // of the server
	Pin  []byte   `cbor:"3,keyasint,omitempty"` // the server's key; none: an authority knows it
	Seed string   `cbor:"4,keyasint,omitempty"` // key with which the device connects
}

const invitationHead = "faceauth-fleet-1-"

// Text returns an invitation, or what has its fields and more, as a line that people can pass on.
func Text(invitation any) string {
	return invitationHead + base64.RawURLEncoding.EncodeToString(Encode(invitation))
}

// ErrNotWhole is the error of [ParseText] for a text that is no invitation, or a part of one.
var ErrNotWhole = errors.New(
	"that is not a whole invitation; copy all of the line that was printed")

// ParseText reads into v what [Text] has made of it.
func ParseText(line string, v any) error {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), invitationHead)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || Decode(b, v) != nil {
		return ErrNotWhole
	}
	return nil
}

// Member is a device of a fleet, or an invitation.
type Member struct {
	Name    string    `json:"name"`
	Key     string    `json:"key,omitempty"` // public; none: it has not joined yet
	Admin   bool      `json:"administrator,omitempty"`
	Invited string    `json:"invited,omitempty"` // key of the invitation
	Until   time.Time `json:"until,omitzero"`
	Seen    time.Time `json:"seen,omitzero"` // when it went, since the server runs
	Online  bool      `json:"connected"`
}

// Asking is the subject of requests. The key of the device that asks ends it: the server lets no
// other device publish there.
const Asking = "fleet."

// Request is what a member wants of the server, or the device with an invitation.
type Request struct {
	What  string   `cbor:"1,keyasint,omitempty"`
	Name  string   `cbor:"2,keyasint,omitempty"`
	Keys  []string `cbor:"3,keyasint,omitempty"`
	Admin bool     `cbor:"4,keyasint,omitempty"`
}

// Reply is the answer to a [Request].
type Reply struct {
	Error      string     `cbor:"1,keyasint,omitempty"`
	Invitation Invitation `cbor:"2,keyasint"`
	Members    []Member   `cbor:"3,keyasint,omitempty"` // all, or those that were revoked
}

// ErrNoAdmin is the answer to a member that asks for what only an administrator may do.
var ErrNoAdmin = errors.New(
	"this device is no administrator of the fleet; do it on the first device, " +
		"or on one that was invited with --administrator")

var (
	encoding, _ = cbor.CoreDetEncOptions().EncMode() // the options are constants
	decoding, _ = cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 8,
		IndefLength: cbor.IndefLengthForbidden,
	}.DecMode()
)

// Encode returns the one encoding of v. It panics if the type of v has none.
func Encode(v any) []byte {
	b, err := encoding.Marshal(v)
	if err != nil {
		panic("fleet: " + err.Error()) // types of a fleet always have an encoding
	}
	return b
}

// Decode reads into v what [Encode] has made of it.
func Decode(b []byte, v any) error { return decoding.Unmarshal(b, v) }

// Public returns the public part of a key, or "" if it is none.
func Public(seed string) string {
	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return ""
	}
	p, _ := key.PublicKey() // a key that was read has one
	return p
}

// NewSeed returns a new key, which make makes.
func NewSeed(make func() (nkeys.KeyPair, error)) string {
	key, err := make()
	if err != nil {
		panic("fleet: " + err.Error()) // the system has no random numbers
	}
	seed, _ := key.Seed() // a key that was made has one
	return string(seed)
}
