// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/nacl/box"
)

// ErrKeyRequest is wrapped by the errors of [Ledger.AnswerKeys] and [KeyRequest.Open].
var ErrKeyRequest = errors.New("wrong request for keys, or a wrong answer to one")

// MaxWants is the greatest number of keys in one request.
const MaxWants = 1000

const maxRequest = 1 << 20

// A message is a signed request or answer.
type message struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	Device  string
	Payload []byte
	Sig     []byte
}

type requestPayload struct {
	Box   []byte   `cbor:"1,keyasint"` // X25519 public key for the answer, new for each request
	Wants [][]byte `cbor:"2,keyasint"` // person and number of the key
}

type answerPayload struct {
	Request []byte `cbor:"1,keyasint"` // SHA-256 of the request
	Sealed  []byte `cbor:"2,keyasint"`
}

type answerKeys struct {
	Keys [][]byte `cbor:"1,keyasint"` // person and key
}

func signMessage(subject, fleet string, key nkeys.KeyPair, payload []byte) ([]byte, error) {
	device, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	sig, err := key.Sign(signed(subject, fleet, Version, device, payload))
	if err != nil {
		return nil, err
	}
	return marshal(message{Version: Version, Device: device, Payload: payload, Sig: sig}), nil
}

// openMessage reads a message and verifies its signature; its device need not be a member.
func openMessage(subject, fleet string, data []byte) (m message, err error) {
	if len(data) > maxRequest {
		return m, fmt.Errorf("%w: it has %d bytes", ErrKeyRequest, len(data))
	}
	if err := decoding.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	if m.Version != Version {
		return m, fmt.Errorf("%w: it has version %d, and this program knows %d", ErrKeyRequest, m.Version, Version)
	}
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(m.Device))
	text := signed(subject, fleet, m.Version, m.Device, m.Payload)
	if err != nil || len(raw) != ed25519.PublicKeySize || !ed25519.Verify(raw, text, m.Sig) {
		return m, fmt.Errorf("%w: %w", ErrKeyRequest, ErrSignature)
	}
	return m, nil
}

// KeyRequest is a request for keys that waits for its answers.
type KeyRequest struct {
	fleet       string
	data        []byte
	open, given *[32]byte // X25519: private and public key
	wants       map[Want]bool
}

// NewKeyRequest returns a request for at most [MaxWants] keys, signed by the asking device. The error wraps
// [ErrKeyRequest], or comes from the key.
func NewKeyRequest(fleet string, key nkeys.KeyPair, wants []Want) (*KeyRequest, error) {
	if len(wants) > MaxWants {
		return nil, fmt.Errorf("%w: it asks for %d keys, and %d are allowed", ErrKeyRequest, len(wants), MaxWants)
	}
	q := &KeyRequest{fleet: fleet, wants: make(map[Want]bool, len(wants))}
	var err error
	if q.given, q.open, err = box.GenerateKey(rand.Reader); err != nil {
		return nil, fmt.Errorf("asking for keys: %w", err)
	}
	p := requestPayload{Box: q.given[:]}
	for _, w := range wants {
		w.Author = ""
		q.wants[w] = true
		p.Wants = append(p.Wants, append(w.Person[:], w.Key[:]...))
	}
	if q.data, err = signMessage("request for keys", fleet, key, marshal(p)); err != nil {
		return nil, fmt.Errorf("asking for keys: %w", err)
	}
	return q, nil
}

// Bytes returns the encoded request.
func (q *KeyRequest) Bytes() []byte { return q.data }

// AnswerKeys returns the answer to a request: the keys that the ring has and the asking device may have. The answer is
// sealed for the asking device and signed with the answering device's key. AnswerKeys also returns the ids of the keys
// in it. The error wraps [ErrKeyRequest]; it tells why the request gets no answer.
func (l *Ledger) AnswerKeys(request []byte, ring *Ring, key nkeys.KeyPair) (answer []byte, given []KeyID,
	err error) {
	m, err := openMessage("request for keys", l.fleet, request)
	if err != nil {
		return nil, nil, err
	}
	if err := l.checkMember(m.Device); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	var p requestPayload
	if err := decoding.Unmarshal(m.Payload, &p); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	var to [32]byte
	if copy(to[:], p.Box); len(p.Box) != len(to) || len(p.Wants) > MaxWants {
		return nil, nil, fmt.Errorf("%w: %s asks for %d keys, for a box of %d bytes",
			ErrKeyRequest, m.Device, len(p.Wants), len(p.Box))
	}
	var keys answerKeys
	for _, b := range p.Wants {
		var person ID
		var id KeyID
		if len(b) != len(person)+len(id) {
			return nil, nil, fmt.Errorf("%w: %s names a key with %d bytes", ErrKeyRequest, m.Device, len(b))
		}
		copy(person[:], b)
		copy(id[:], b[len(person):])
		k, have := ring.Key(person, id)
		if have && l.MayRead(m.Device, person) {
			keys.Keys = append(keys.Keys, append(person[:], k[:]...))
			given = append(given, id)
		}
	}
	plain := marshal(keys)
	defer clear(plain)
	sealed, err := box.SealAnonymous(nil, plain, &to, rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	sum := sha256.Sum256(request)
	answer, err = signMessage("answer with keys", l.fleet, key, marshal(answerPayload{sum[:], sealed}))
	return answer, given, err
}

// Open puts the keys of an answer into the ring, and returns their number. It ignores keys that were not asked for. The
// error wraps [ErrKeyRequest].
func (q *KeyRequest) Open(answer []byte, ring *Ring) (n int, err error) {
	m, err := openMessage("answer with keys", q.fleet, answer)
	if err != nil {
		return 0, err
	}
	var p answerPayload
	if err := decoding.Unmarshal(m.Payload, &p); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	if sum := sha256.Sum256(q.data); string(sum[:]) != string(p.Request) {
		return 0, fmt.Errorf("%w: %s answers another request", ErrKeyRequest, m.Device)
	}
	plain, ok := box.OpenAnonymous(nil, p.Sealed, q.given, q.open)
	if !ok {
		return 0, fmt.Errorf("%w: the answer of %s does not open", ErrKeyRequest, m.Device)
	}
	defer clear(plain)
	var keys answerKeys
	if err := decoding.Unmarshal(plain, &keys); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	for _, b := range keys.Keys {
		var person ID
		var k Key
		if len(b) != len(person)+len(k) {
			return n, fmt.Errorf("%w: a key of %s has %d bytes", ErrKeyRequest, m.Device, len(b))
		}
		copy(person[:], b)
		copy(k[:], b[len(person):])
		id := k.ID(person)
		if _, have := ring.Key(person, id); !have && q.wants[Want{Person: person, Key: id}] {
			ring.Add(person, k)
			n++
		}
	}
	return n, nil
}
