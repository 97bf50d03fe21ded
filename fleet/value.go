// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/chacha20poly1305"
)

// Reasons to skip a value.
var (
	errValue     = errors.New("a value that cannot be read")
	errNewer     = errors.New("a value of a newer version of faceauth")
	errSignature = errors.New("a value that its device has not signed")
)

// A value is all that one device says about one person, or one of its notes. The server keeps the last value of each
// name. On the wire it is an array of a version, the payload and a signature over the fleet, device, name and payload.
// The array stays the same in all versions.
type value struct {
	// N is the counter of the device: each of its values has a higher one than the values before.
	N uint64 `cbor:"1,keyasint"`
	// Forget is the clock of a word that the person be forgotten, or 0. It is not sealed: it counts without the key.
	Forget uint64 `cbor:"2,keyasint,omitempty"`
	Born   []byte `cbor:"3,keyasint,omitempty"` // [born], by the device that made the person
	Box    []byte `cbor:"4,keyasint,omitempty"` // [words] or [lessonPart], sealed with the key of the person
	Note   []byte `cbor:"5,keyasint,omitempty"` // content of a note, whose name begins with "_"
}

type wireValue struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	Payload []byte
	Sig     []byte
}

func placeOf(device, name string) string { return device + "." + name }

// seal encodes and signs a value.
func (v value) seal(fleet, device, name string, key nkeys.KeyPair) []byte {
	payload := encode(v)
	return encode(wireValue{Version: Version, Payload: payload,
		Sig: sign(key, signed("value", fleet, placeOf(device, name), payload))})
}

// parseValue decodes a value and checks no signature.
func parseValue(data []byte) (w wireValue, v value, err error) {
	if len(data) > MaxValue {
		return w, v, fmt.Errorf("%w: %d bytes", errValue, len(data))
	}
	if err := decoding.Unmarshal(data, &w); err != nil {
		return w, v, errValue
	}
	if w.Version > Version {
		return w, v, errNewer
	}
	if w.Version != Version || decoding.Unmarshal(w.Payload, &v) != nil || v.N == 0 {
		return w, v, errValue
	}
	return w, v, nil
}

// openValue decodes a value of a device and checks its signature.
func openValue(fleet, device, name string, data []byte) (value, error) {
	w, v, err := parseValue(data)
	if err != nil {
		return v, err
	}
	if !Verify(device, signed("value", fleet, placeOf(device, name), w.Payload), w.Sig) {
		return v, errSignature
	}
	return v, nil
}

// ValueCounter returns the counter of a value, without checking its signature; 0 for one that cannot be read.
func ValueCounter(data []byte) uint64 {
	_, v, err := parseValue(data)
	if err != nil {
		return 0
	}
	return v.N
}

// secret is a symmetric key: of a person, or of an epoch.
type secret [chacha20poly1305.KeySize]byte

func newSecret() (s secret) {
	rand.Read(s[:])
	return s
}

// seal encrypts text, bound to a place.
func (s secret) seal(text []byte, place string) []byte {
	a, err := chacha20poly1305.NewX(s[:])
	if err != nil {
		panic("fleet: " + err.Error()) // the key has the right size
	}
	nonce := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(text)+a.Overhead())
	rand.Read(nonce)
	return a.Seal(nonce, nonce, text, []byte(place))
}

// open decrypts what seal has made.
func (s secret) open(box []byte, place string) ([]byte, error) {
	if len(box) < chacha20poly1305.NonceSizeX {
		return nil, errValue
	}
	a, err := chacha20poly1305.NewX(s[:])
	if err != nil {
		return nil, err
	}
	return a.Open(nil, box[:chacha20poly1305.NonceSizeX], box[chacha20poly1305.NonceSizeX:], []byte(place))
}
