// SPDX-License-Identifier: Apache-2.0

// Package hub is the server of a fleet: an embedded NATS server that stores what each device says, and a service that
// admits devices. [Create] makes its folder, [Serve] runs it, and [OpenAdmin] is for the commands of its administrator.
//
// # What it can do
//
// The server stores the last value of each name of each device, and cannot read them. A device writes only below its
// own subject, in a stream with a quota of its own, so it can neither change nor crowd out what others say. The
// admin key, which the server does not have, signs who is a member; the server cannot add a device.
//
// # Caveats
//
// In a NATS cluster the operator decides who connects. After [Admin.Revoke] the operator must remove the user of the
// device there; the service deletes its values.
package hub

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nkeys"
)

// Errors of the functions of this package.
var (
	ErrNoFleet  = errors.New("there is no server of a fleet in this folder")
	ErrNoServer = errors.New("the server of the fleet does not run, or does not answer")
	ErrFolder   = errors.New("damaged file in the folder of the server")
	ErrRunning  = errors.New("another server uses this folder")
	ErrOther    = errors.New("the admin key is of another fleet than the folder of the server")
	ErrDevice   = errors.New("the fleet has no device of that name or id")
	ErrCommand  = errors.New("the server of the fleet refuses the command")
)

// Files in the folder of a server. None of them is the admin key.
const (
	fleetFile    = "fleet"      // the id of the fleet
	addressFile  = "address"    // the record of the admin key that says where the server is
	keyFile      = "server.key" // of the certificate; the only secret, and not in backups
	certFile     = "server.crt"
	noteFile     = "server.json" // [note] of the running server
	restoredFile = "restored"    // when the backup in this folder was made
	lockFile     = "lock"
	storeFolder  = "jetstream"
)

// Options of [Serve]. Zero values mean the defaults.
type Options struct {
	Folder string // from [Create] or [Restore]
	Listen string // address for devices. Default ":4222"
	// Cluster is the URL of a NATS cluster with JetStream that is used instead of the embedded server. Creds is the
	// file with the service's login there, in the account that owns the stream.
	Cluster, Creds string
	Replicas       int    // copies of the stream in a cluster. Default 1
	Quota          int64  // bytes of the values of one device. Default 64 MiB
	Connections    int    // at once. Default 10,000
	Metrics        string // address of /healthz and /metrics. Default none
	Log            *slog.Logger
	Ready          func(Ready) // called once, when devices can connect. May be nil
}

// Ready describes a server when devices can connect.
type Ready struct {
	URL     string // for devices; the admin key has signed it
	Fleet   string
	Devices int    // number of members
	Metrics string // address of /healthz and /metrics, or ""
}

func (o *Options) defaults() {
	o.Listen, o.Replicas = cmp.Or(o.Listen, ":4222"), cmp.Or(o.Replicas, 1)
	o.Quota, o.Connections = cmp.Or(o.Quota, 64<<20), cmp.Or(o.Connections, 10_000)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Create makes the folder of a new server: the id of its fleet, its certificate and its address. Url is that for
// devices, see [DefaultURL].
func Create(folder string, a *fleet.AdminKey, url string) error {
	switch _, err := os.Lstat(filepath.Join(folder, fleetFile)); {
	case err == nil:
		return fmt.Errorf("%s has a server of a fleet already; use another folder", folder)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := setAddress(folder, a, url); err != nil {
		return err
	}
	return safefile.Write(filepath.Join(folder, fleetFile), []byte(a.Fleet()+"\n")) // last: it makes the folder valid
}

// setAddress makes a new certificate, and notes a new address.
func setAddress(folder string, a *fleet.AdminKey, url string) error {
	r, err := a.Move(url, time.Now())
	if err != nil {
		return err
	}
	if err := Certify(folder, a); err != nil {
		return err
	}
	return safefile.Write(filepath.Join(folder, addressFile), r)
}

// Fleet returns the id of the fleet whose server has this folder. The error wraps [ErrNoFleet] or [ErrFolder].
func Fleet(folder string) (string, error) {
	path := filepath.Join(folder, fleetFile)
	data, err := safefile.ReadBytes(path)
	id := string(bytes.TrimSpace(data))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s; run: faceauth fleet serve", ErrNoFleet, folder)
	case err != nil:
		return "", err
	case !nkeys.IsValidPublicAccountKey(id):
		return "", fmt.Errorf("%w: %s does not hold the id of a fleet; put back a copy of it", ErrFolder, path)
	}
	return id, nil
}

// checkKey returns the id of the fleet whose server has this folder. The error wraps [ErrOther] for the admin key of
// another fleet. No key is no error.
func checkKey(folder string, key *fleet.AdminKey) (id string, err error) {
	if id, err = Fleet(folder); err == nil && key != nil && key.Fleet() != id {
		err = fmt.Errorf("%w: %s; give the right key with --admin-key", ErrOther, folder)
	}
	return id, err
}

// Address returns the URL for devices. The server need not run.
func Address(folder string) (string, error) {
	id, err := Fleet(folder)
	if err != nil {
		return "", err
	}
	m := fleet.NewMembers(id)
	data, err := safefile.ReadBytes(filepath.Join(folder, addressFile))
	if err == nil {
		_, _, err = m.Add(data)
	}
	if err != nil || m.URL() == "" {
		return "", fmt.Errorf("%w: %s does not hold an address that the admin key has signed; run: faceauth fleet move",
			ErrFolder, filepath.Join(folder, addressFile))
	}
	return m.URL(), nil
}

// Certify makes a new key and certificate for the server in a folder. The admin key signs the certificate.
func Certify(folder string, a *fleet.AdminKey) error {
	seed := a.Seed()
	defer clear(seed)
	authority := ed25519.NewKeyFromSeed(seed)
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) // devices do not check it
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "faceauth fleet"}, DNSNames: []string{"faceauth-fleet"},
		NotBefore: from, NotAfter: from.AddDate(200, 0, 0), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	parent := &x509.Certificate{Subject: pkix.Name{CommonName: a.Fleet()}}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, public, authority)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	block := func(what string, data []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: what, Bytes: data}) }
	if err := safefile.Write(filepath.Join(folder, keyFile), block("PRIVATE KEY", private)); err != nil {
		return err
	}
	return safefile.Write(filepath.Join(folder, certFile), block("CERTIFICATE", cert))
}

// certificate reads the certificate of a server and its key.
func certificate(folder, id string) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(folder, certFile), filepath.Join(folder, keyFile))
	if err == nil {
		err = fleet.CheckCertificate(id, c.Leaf)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the certificate of the server cannot be used (%w); for a new one, with the admin "+
			"key: faceauth fleet move URL", ErrFolder, err)
	}
	return &c, nil
}

// DefaultURL returns the URL at which other machines may reach a server that listens at an address such as :4222: the
// first global address of this machine.
func DefaultURL(listen string) string { return "tls://" + outerAddress(listen) }

func outerAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return address
	}
	all, _ := net.InterfaceAddrs() // without them the address of this machine alone is left
	for _, four := range []bool{true, false} {
		for _, a := range all {
			n, ok := a.(*net.IPNet)
			if ok && n.IP.IsGlobalUnicast() && !n.IP.IsLoopback() && (n.IP.To4() != nil) == four {
				return net.JoinHostPort(n.IP.String(), port)
			}
		}
	}
	return localAddress(address)
}

// localAddress returns the address at which this machine reaches a server that listens at an address.
func localAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
