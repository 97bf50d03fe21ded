// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nkeys"
)

// ErrToken is wrapped by the errors of [ParseToken].
var ErrToken = errors.New("unusable token of a fleet")

// Token is an invitation to a fleet. It holds the server's URL and certificate hash, and a secret that admits one
// device once. Everybody who has the token can join, so give it to a person directly, and do not post it in a chat.
type Token struct {
	URL   string // of the server
	Fleet string // id of the fleet: the public key that signs each admission
	// Pin is the SHA-256 of the server's certificate. It is empty if an authority has signed the certificate of a
	// cluster.
	Pin     []byte
	Secret  []byte    // seed of the key that proves the invitation
	Expires time.Time // by the clock of the server
}

// Versions and sizes of tokens.
const (
	tokenVersion = 1
	secretSize   = 32
	checkSize    = 4
	// longestToken is the greatest length of a token: far more than a URL, two hashes and a secret need.
	longestToken = 4096
)

// tokenBody is the content of a token. Its keys are small, because people copy tokens by hand.
type tokenBody struct {
	URL     string `cbor:"1,keyasint"`
	Fleet   []byte `cbor:"2,keyasint"`
	Pin     []byte `cbor:"3,keyasint,omitempty"`
	Secret  []byte `cbor:"4,keyasint"`
	Expires int64  `cbor:"5,keyasint"`
}

// NewToken returns a token with a new secret.
func NewToken(address, fleet string, pin []byte, expires time.Time) Token {
	t := Token{
		URL:     address,
		Fleet:   fleet,
		Pin:     pin,
		Secret:  make([]byte, secretSize),
		Expires: expires.Truncate(time.Second),
	}
	rand.Read(t.Secret)
	return t
}

// key returns the key in the token.
func (t Token) key() (nkeys.KeyPair, error) { return nkeys.FromRawSeed(nkeys.PrefixByteUser, t.Secret) }

// String returns the token as one word of letters, digits, "-" and "_".
func (t Token) String() string {
	fleet, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(t.Fleet))
	if err != nil {
		return ""
	}
	body, err := cbor.Marshal(tokenBody{t.URL, fleet, t.Pin, t.Secret, t.Expires.Unix()})
	if err != nil {
		return ""
	}
	body = append([]byte{tokenVersion}, body...)
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(append(body, sum[:checkSize]...))
}

// ParseToken reads the text of [Token.String]. The error wraps [ErrToken].
func ParseToken(s string) (Token, error) {
	s = strings.Join(strings.Fields(s), "") // a terminal or a letter breaks long lines
	b, err := base64.RawURLEncoding.DecodeString(s)
	switch {
	case s == "":
		return Token{}, fmt.Errorf("%w: it is empty; copy the whole output of faceauth fleet invite", ErrToken)
	case len(s) > longestToken || err != nil || len(b) < 1+checkSize:
		return Token{}, fmt.Errorf(
			"%w: it has wrong characters or a wrong length; copy the whole output of faceauth fleet invite", ErrToken)
	}
	body, check := b[:len(b)-checkSize], b[len(b)-checkSize:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:checkSize], check) {
		return Token{}, fmt.Errorf(
			"%w: it is incomplete or has a wrong character; copy the whole output of faceauth fleet invite", ErrToken)
	}
	if body[0] != tokenVersion {
		return Token{}, fmt.Errorf(
			"%w: it has version %d, and this program reads version %d; update faceauth on this device", ErrToken,
			body[0], tokenVersion)
	}
	var in tokenBody
	if err := strict.Unmarshal(body[1:], &in); err != nil {
		return Token{}, fmt.Errorf("%w: ask for a new one: faceauth fleet invite", ErrToken)
	}
	fleet, err := nkeys.Encode(nkeys.PrefixByteAccount, in.Fleet)
	if err != nil || len(in.Fleet) != 32 || len(in.Secret) != secretSize ||
		len(in.Pin) != 0 && len(in.Pin) != sha256.Size {
		return Token{}, fmt.Errorf("%w: ask for a new one: faceauth fleet invite", ErrToken)
	}
	if err := CheckURL(in.URL); err != nil {
		return Token{}, fmt.Errorf("%w: %v", ErrToken, err)
	}
	return Token{
		URL:     in.URL,
		Fleet:   string(fleet),
		Pin:     in.Pin,
		Secret:  in.Secret,
		Expires: time.Unix(in.Expires, 0),
	}, nil
}

// CheckURL returns nil for the URL of a server, or for several URLs of one cluster with commas between.
func CheckURL(all string) error {
	for one := range strings.SplitSeq(all, ",") {
		u, err := url.Parse(one)
		switch {
		case err != nil || u.Host == "" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || len(one) > 1024:
			return errors.New("the URL of the server must look like tls://office.local:4222")
		case u.Scheme != "tls" && u.Scheme != "nats":
			return fmt.Errorf(
				"the URL of the server begins with %q; it must be tls://, or nats:// for a cluster without TLS",
				u.Scheme)
		case u.User != nil:
			return errors.New(
				"the URL of the server contains a user; put user and password into a file, and give it with --creds")
		}
	}
	return nil
}

// strict decodes data from others: no duplicate keys, no unknown fields, no deep nesting.
var strict = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels: 8, MaxArrayElements: 20000, MaxMapPairs: 64, IndefLength: cbor.IndefLengthForbidden,
	}.DecMode()
	if err != nil {
		panic("hub: the options of the decoder contradict each other")
	}
	return m
}()
