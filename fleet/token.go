// SPDX-License-Identifier: Apache-2.0

package fleet

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

	"github.com/nats-io/nkeys"
)

// ErrToken is wrapped by the errors of [ParseToken].
var ErrToken = errors.New("unusable token of a fleet")

// Token is an invitation to a fleet: the address of the server, and a secret that the admin key has signed and that
// admits one device once. Everybody who has the token can join, so give it to a person directly.
type Token struct {
	URL     string // of the server
	Fleet   string // id of the fleet: the public part of its admin key
	Expires time.Time
	Scope   Scope

	secret    []byte // seed of the key that signs the device
	body, sig []byte // the record that invites this key
}

// Versions and sizes of tokens.
const (
	tokenVersion = 2
	secretSize   = 32
	checkSize    = 4
	longestToken = 1 << 20
	mostInvited  = 20_000 // people of a scope
)

type tokenBody struct {
	URL    string `cbor:"1,keyasint"`
	Fleet  []byte `cbor:"2,keyasint"`
	Secret []byte `cbor:"3,keyasint"`
	Body   []byte `cbor:"4,keyasint"`
	Sig    []byte `cbor:"5,keyasint"`
}

// Invite returns a token for one device.
func (a *AdminKey) Invite(url string, scope Scope, expires time.Time) (Token, error) {
	if err := CheckURL(url); err != nil {
		return Token{}, err
	}
	if len(scope.People) > mostInvited {
		return Token{}, fmt.Errorf("%w: %d people; at most %d", ErrToken, len(scope.People), mostInvited)
	}
	t := Token{URL: url, Fleet: a.fleet, Expires: expires.Truncate(time.Second), Scope: scope}
	t.secret = make([]byte, secretSize)
	rand.Read(t.secret)
	_, public := t.key()
	t.body = encode(recordBody{Kind: invites, Token: public, Scope: scope, Expires: t.Expires.Unix()})
	t.sig = sign(a.key, signed("record", a.fleet, "", t.body))
	return t, nil
}

// key returns the key in the token.
func (t Token) key() (key nkeys.KeyPair, public string) {
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, t.secret)
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		panic("fleet: " + err.Error()) // the seed has the right size
	}
	return key, public
}

// Admit returns the record that admits a device by this token, for [Members.Add] and for the server.
func (t Token) Admit(device, name string, now time.Time) ([]byte, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	key, _ := t.key()
	join := encode(joinBody{device, name, now.UnixMilli()})
	return encode(record{Version, t.body, t.sig, join, sign(key, signed("join", t.Fleet, "", join))}), nil
}

// CheckAdmission checks an admission that a device shows: the id of the device, the public key of its token, and when
// the token expires. The error wraps [ErrRecord].
func CheckAdmission(fleet string, data []byte) (device, token string, expires time.Time, err error) {
	b, j, err := NewMembers(fleet).open(data)
	if err == nil && b.Kind != invites {
		err = fmt.Errorf("%w: it admits nobody", ErrRecord)
	}
	return j.Device, b.Token, time.Unix(b.Expires, 0), err
}

// String returns the token as one word of letters, digits, "-" and "_".
func (t Token) String() string {
	id, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(t.Fleet))
	if err != nil {
		return ""
	}
	body := append([]byte{tokenVersion}, encode(tokenBody{t.URL, id, t.secret, t.body, t.sig})...)
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(append(body, sum[:checkSize]...))
}

// ParseToken reads the text of [Token.String]. The error wraps [ErrToken].
func ParseToken(s string) (t Token, err error) {
	s = strings.Join(strings.Fields(s), "") // a terminal or a letter breaks long lines
	b, err := base64.RawURLEncoding.DecodeString(s)
	bad := func(why string) (Token, error) { return Token{}, fmt.Errorf("%w: %s", ErrToken, why) }
	switch {
	case s == "":
		return bad("it is empty; copy the whole output of faceauth fleet invite")
	case len(s) > longestToken || err != nil || len(b) < 1+checkSize:
		return bad("it has wrong characters or a wrong length; copy the whole output of faceauth fleet invite")
	}
	body, check := b[:len(b)-checkSize], b[len(b)-checkSize:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:checkSize], check) {
		return bad("it is incomplete or has a wrong character; copy the whole output of faceauth fleet invite")
	}
	if body[0] != tokenVersion {
		return bad(fmt.Sprintf("it has version %d, and this program reads version %d; update faceauth on this device",
			body[0], tokenVersion))
	}
	var in tokenBody
	var r recordBody
	again := "ask for a new one: faceauth fleet invite"
	if decoding.Unmarshal(body[1:], &in) != nil || decoding.Unmarshal(in.Body, &r) != nil || r.Kind != invites {
		return bad(again)
	}
	id, err := nkeys.Encode(nkeys.PrefixByteAccount, in.Fleet)
	if err != nil || len(in.Fleet) != 32 || len(in.Secret) != secretSize {
		return bad(again)
	}
	t = Token{in.URL, string(id), time.Unix(r.Expires, 0), r.Scope, in.Secret, in.Body, in.Sig}
	if _, public := t.key(); public != r.Token || !Verify(t.Fleet, signed("record", t.Fleet, "", in.Body), in.Sig) {
		return bad(again)
	}
	if err := CheckURL(in.URL); err != nil {
		return bad(err.Error())
	}
	return t, nil
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
