// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
)

// ErrPin is returned if a server's certificate differs from the one in the token.
var ErrPin = errors.New(
	"the server shows another certificate than the token names: it is not the server of this fleet, " +
		"or its folder is new; ask for a new token: faceauth fleet invite",
)

// pinned returns the TLS settings of a device. With a pin the certificate must have this hash, and nothing else is
// checked. Without a pin, an authority of the system must have signed the certificate.
func pinned(pin []byte) *tls.Config {
	if len(pin) == 0 {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// Names, dates and authorities are not checked. VerifyConnection is called in every handshake, also for a
		// resumed session.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return ErrPin
			}
			if sum := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(sum[:], pin) {
				return ErrPin
			}
			return nil
		},
	}
}
