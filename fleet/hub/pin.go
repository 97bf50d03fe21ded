// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
)

// ErrPin is returned where a server shows another certificate than the token named.
var ErrPin = errors.New("the server shows another certificate than the token names: it is not the server of this fleet, " +
	"or its folder was made anew; ask for a new token: faceauth fleet invite")

// pinned returns how a device checks the server. With a pin the certificate must be that one and no other is asked for;
// without, an authority of the system must have signed it.
func pinned(pin []byte) *tls.Config {
	if len(pin) == 0 {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// Names, dates and authorities are not asked for. VerifyConnection is called in every handshake, also of a session
		// that is resumed.
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
