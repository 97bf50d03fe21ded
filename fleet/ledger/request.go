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
var ErrKeyRequest = errors.New("request for keys that cannot be answered, or a wrong answer")

// MaxWants is how many keys one request may ask for.
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
	Box   []byte   `cbor:"1,keyasint"` // X25519 public key that the answer is sealed to, of this request alone
	Wants [][]byte `cbor:"2,keyasint"` // person and number of the key
}

type answerPayload struct {
	Request []byte `cbor:"1,keyasint"` // SHA-256 of the request
	Sealed  []byte `cbor:"2,keyasint"`
}

type answerKeys struct {
	Keys [][]byte `cbor:"1,keyasint"` // person and key
}

func signMessage(what, fleet string, key nkeys.KeyPair, payload []byte) ([]byte, error) {
	device, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	sig, err := key.Sign(signed(what, fleet, Version, device, payload))
	if err != nil {
		return nil, err
	}
	return marshal(message{Version: Version, Device: device, Payload: payload, Sig: sig}), nil
}

// openMessage reads a signed message of any device.
func openMessage(what, fleet string, data []byte) (m message, err error) {
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
	text := signed(what, fleet, m.Version, m.Device, m.Payload)
	if err != nil || len(raw) != ed25519.PublicKeySize || !ed25519.Verify(raw, text, m.Sig) {
		return m, fmt.Errorf("%w: %w", ErrKeyRequest, ErrSignature)
	}
	return m, nil
}

// KeyRequest is a question for keys that waits for its answers.
type KeyRequest struct {
	fleet       string
	data        []byte
	open, given *[32]byte // X25519
	wants       map[Want]bool
}

// NewKeyRequest returns a request for keys, at most [MaxWants], signed by the device that asks.
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

// Bytes returns the request as it travels.
func (q *KeyRequest) Bytes() []byte { return q.data }

// AnswerKeys returns the answer to a request for keys, as far as the device that asks may have them and the ring has
// them, sealed for that device and signed with the key of the one that answers. The error, which wraps [ErrKeyRequest],
// says why a request is not answered at all.
func (l *Ledger) AnswerKeys(request []byte, ring *Ring, key nkeys.KeyPair) ([]byte, error) {
	m, err := openMessage("request for keys", l.fleet, request)
	if err != nil {
		return nil, err
	}
	if err := l.admits(m.Device); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	var p requestPayload
	if err := decoding.Unmarshal(m.Payload, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	var to [32]byte
	if copy(to[:], p.Box); len(p.Box) != len(to) || len(p.Wants) > MaxWants {
		return nil, fmt.Errorf("%w: %s asks for %d keys, for a box of %d bytes",
			ErrKeyRequest, m.Device, len(p.Wants), len(p.Box))
	}
	var keys answerKeys
	for _, b := range p.Wants {
		var person ID
		var id KeyID
		if len(b) != len(person)+len(id) {
			return nil, fmt.Errorf("%w: %s names a key with %d bytes", ErrKeyRequest, m.Device, len(b))
		}
		copy(person[:], b)
		copy(id[:], b[len(person):])
		k, have := ring.Key(person, id)
		if have && l.MayRead(m.Device, person) {
			keys.Keys = append(keys.Keys, append(person[:], k[:]...))
		}
	}
	plain := marshal(keys)
	defer clear(plain)
	sealed, err := box.SealAnonymous(nil, plain, &to, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyRequest, err)
	}
	sum := sha256.Sum256(request)
	return signMessage("answer with keys", l.fleet, key, marshal(answerPayload{sum[:], sealed}))
}

// Open puts the keys of an answer into the ring, and returns how many these are. Only keys that were asked for are
// taken, whose numbers fit them. The error wraps [ErrKeyRequest].
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
