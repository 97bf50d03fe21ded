// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

// ErrServer is returned for a server without a certificate of the fleet, for example another server at its address.
var ErrServer = errors.New("the server shows a certificate that the admin key of this fleet has not signed")

// errNonce is returned to a server that asks for a signature of something else than a random word.
var errNonce = errors.New("the server asks this key to sign a message that is no random word of NATS")

// ServerTLS returns the settings of a connection to the server of a fleet. The admin key must have signed the
// certificate. Names and times in it do not count, because addresses change and clocks may be wrong.
func ServerTLS(fleet string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// VerifyConnection replaces the usual checks, which would ask for names, times and authorities of this machine.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return ErrServer
			}
			return CheckCertificate(fleet, s.PeerCertificates[0])
		},
	}
}

// CheckCertificate returns [ErrServer] if the admin key of a fleet has not signed this certificate of a server.
func CheckCertificate(fleet string, c *x509.Certificate) error {
	public, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(fleet))
	if err != nil || len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("%w: %q is not the id of a fleet", ErrServer, fleet)
	}
	if c.SignatureAlgorithm != x509.PureEd25519 || c.IsCA ||
		!ed25519.Verify(public, c.RawTBSCertificate, c.Signature) {
		return ErrServer
	}
	return nil
}

// signNonce returns the function by which a key logs in. It signs only random words as NATS makes them: a server could
// otherwise let the key sign a value or a record of its choice.
func signNonce(key nkeys.KeyPair) func(nonce []byte) ([]byte, error) {
	return func(nonce []byte) ([]byte, error) {
		for _, c := range nonce {
			if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
				return nil, errNonce
			}
		}
		if len(nonce) > 64 {
			return nil, errNonce
		}
		return key.Sign(nonce)
	}
}
