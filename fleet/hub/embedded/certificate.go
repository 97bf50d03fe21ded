// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
)

// certificate returns the server's certificate from a file, and makes it if it is missing. Devices check only its hash,
// and not its names and dates, so a wrong clock locks no device out.
func certificate(path string) (tls.Certificate, error) {
	b, err := safefile.ReadBytes(path)
	if errors.Is(err, fs.ErrNotExist) {
		if b, err = makeCertificate(); err == nil {
			err = safefile.Write(path, b)
		}
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("the certificate of the server: %w", err)
	}
	c, err := tls.X509KeyPair(b, b)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf(
			"%s holds no certificate with its key (%w); put back a copy of it, or remove it: then all devices must "+
				"join again",
			path, err)
	}
	return c, nil
}

func makeCertificate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "faceauth fleet"}, DNSNames: []string{"faceauth-fleet"},
		NotBefore: from, NotAfter: from.AddDate(200, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: cert}) // into memory: it cannot fail
	pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return b.Bytes(), nil
}

// pinOf returns the hash by which devices know a certificate.
func pinOf(c tls.Certificate) []byte {
	sum := sha256.Sum256(c.Certificate[0])
	return sum[:]
}
