// SPDX-License-Identifier: Apache-2.0

// Package tpm provides a counter in a TPM 2.0 that only rises: restoring old files cannot restore the counter.
//
// [Open] opens a TPM. [Counter.Make] makes the counter, [Counter.Value] reads it and [Counter.Increment] raises it.
// Each call needs the secret with which the counter was made: it authenticates the TPM's answers.
//
// # Caveats
//
// The owner of the TPM (root, and everybody with the owner's authorisation) can remove the counter. A new counter
// begins above all values that the TPM ever counted. A cleared TPM begins again.
package tpm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/go-tpm/tpm2"
)

// Device is the TPM of a Linux system, through the kernel's resource manager.
const Device = "/dev/tpmrm0"

// Errors of a [Counter].
var (
	ErrMissing = errors.New("the TPM has no counter of this program")
	ErrForeign = errors.New("the TPM has a counter with another secret, or another object in its place")
	ErrSilent  = errors.New("the TPM does not answer")
)

// index is the counter's place: among those of the owner, and registered by nobody else.
const index = tpm2.TPMHandle(0x0180fa01)

// patience is how long a TPM may take to answer. Incrementing a counter takes up to half a second.
const patience = 5 * time.Second

// mostAnswer is the greatest size of an answer in bytes.
const mostAnswer = 4096

// Counter is the counter of a TPM. It is safe for concurrent use. The caller closes it.
type Counter struct {
	mu   sync.Mutex
	link link
}

// link is the connection to a TPM.
type link struct {
	path   string
	device *os.File // nil for a socket
	broken error    // an answer is still outstanding
}

// Open opens the TPM at path, a device or a Unix socket at which an emulator listens.
func Open(path string) (*Counter, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	c := &Counter{link: link{path: path}}
	if info.Mode()&os.ModeSocket == 0 {
		if c.link.device, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close closes the TPM.
func (c *Counter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.device == nil {
		return nil
	}
	return c.link.device.Close()
}

// Send implements [transport.TPM].
func (l *link) Send(command []byte) ([]byte, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if l.device == nil {
		return l.emulator(command)
	}
	// A driver may block a reader for ever, despite deadlines: then that read is abandoned, and the TPM is not used
	// again.
	type answer struct {
		b   []byte
		err error
	}
	done := make(chan answer, 1)
	go func() {
		if _, err := l.device.Write(command); err != nil {
			done <- answer{nil, err}
			return
		}
		b := make([]byte, mostAnswer)
		n, err := l.device.Read(b)
		done <- answer{b[:n], err}
	}()
	select {
	case a := <-done:
		return a.b, a.err
	case <-time.After(patience):
		l.broken = ErrSilent
		return nil, ErrSilent
	}
}

// emulator asks the emulator at a socket.
func (l *link) emulator(command []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", l.path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	_, err = conn.Write(command)
	head := make([]byte, 10) // tag uint16, length uint32, code uint32
	if err == nil {
		_, err = io.ReadFull(conn, head)
	}
	if err == nil {
		n := binary.BigEndian.Uint32(head[2:])
		if n < 10 || n > mostAnswer {
			return nil, fmt.Errorf("the TPM sent an answer of %d bytes", n)
		}
		head = append(head, make([]byte, n-10)...)
		_, err = io.ReadFull(conn, head[10:])
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrSilent
	}
	return head, err
}

// wanted describes the counter. Its value is in the TPM's memory, and written to flash only from time to time, because
// flash wears out. After a power cut the value is higher than before.
func wanted() tpm2.TPMSNVPublic {
	return tpm2.TPMSNVPublic{
		NVIndex: index, NameAlg: tpm2.TPMAlgSHA256, DataSize: 8,
		Attributes: tpm2.TPMANV{NT: tpm2.TPMNTCounter, AuthRead: true, AuthWrite: true, NoDA: true, Orderly: true},
	}
}

// find returns the name of the existing counter. The error wraps [ErrMissing] or [ErrForeign].
func (c *Counter) find() (tpm2.TPM2BName, error) {
	r, err := tpm2.NVReadPublic{NVIndex: index}.Execute(&c.link)
	if errors.Is(err, tpm2.TPMRCHandle) {
		return tpm2.TPM2BName{}, ErrMissing
	}
	if err != nil {
		return tpm2.TPM2BName{}, err
	}
	got, err := r.NVPublic.Contents()
	if err != nil {
		return tpm2.TPM2BName{}, err
	}
	want := wanted()
	want.Attributes.Written = got.Attributes.Written
	if same(*got, want) {
		return r.NVName, nil
	}
	return r.NVName, ErrForeign
}

// same compares the attributes that distinguish kinds of indexes.
func same(a, b tpm2.TPMSNVPublic) bool {
	return string(tpm2.Marshal(a)) == string(tpm2.Marshal(b))
}

// Make makes the counter, or replaces an existing one, and returns its value and whether there was one.
func (c *Counter) Make(secret []byte) (n uint64, was bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, err := c.find()
	switch {
	case err == nil || errors.Is(err, ErrForeign):
		was = true
		gone := tpm2.NVUndefineSpace{AuthHandle: owner(), NVIndex: tpm2.NamedHandle{Handle: index, Name: name}}
		if _, err := gone.Execute(&c.link); err != nil {
			return 0, was, fmt.Errorf("removing the counter of the TPM: %w", err)
		}
	case !errors.Is(err, ErrMissing):
		return 0, false, err
	}
	define := tpm2.NVDefineSpace{
		AuthHandle: owner(),
		Auth:       tpm2.TPM2BAuth{Buffer: proof(secret)},
		PublicInfo: tpm2.New2B(wanted()),
	}
	if _, err := define.Execute(&c.link); err != nil {
		return 0, was, fmt.Errorf("making a counter in the TPM; its owner must have no authorisation value: %w", err)
	}
	if err := c.increment(secret); err != nil { // a new counter has no value before the first increment
		return 0, was, err
	}
	n, err = c.value(secret)
	return n, was, err
}

// owner is the owner of the TPM, without an authorisation value.
func owner() tpm2.AuthHandle {
	return tpm2.AuthHandle{Handle: tpm2.TPMRHOwner, Auth: tpm2.PasswordAuth(nil)}
}

// Value returns the value of the counter. The error wraps [ErrMissing] or [ErrForeign].
func (c *Counter) Value(secret []byte) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value(secret)
}

func (c *Counter) value(secret []byte) (uint64, error) {
	name, err := c.find()
	if err != nil {
		return 0, err
	}
	read := tpm2.NVRead{
		AuthHandle: authorised(name, secret),
		NVIndex:    tpm2.NamedHandle{Handle: index, Name: name},
		Size:       8,
	}
	r, err := read.Execute(&c.link)
	if err != nil {
		return 0, c.foreign(err)
	}
	if len(r.Data.Buffer) != 8 {
		return 0, fmt.Errorf("%w: it has %d bytes", ErrForeign, len(r.Data.Buffer))
	}
	return binary.BigEndian.Uint64(r.Data.Buffer), nil
}

// Increment raises the counter by one.
func (c *Counter) Increment(secret []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.increment(secret)
}

func (c *Counter) increment(secret []byte) error {
	name, err := c.find()
	if err != nil {
		return err
	}
	up := tpm2.NVIncrement{AuthHandle: authorised(name, secret), NVIndex: tpm2.NamedHandle{Handle: index, Name: name}}
	_, err = up.Execute(&c.link)
	return c.foreign(err)
}

// authorised is the counter in a session that authenticates each message with the secret.
func authorised(name tpm2.TPM2BName, secret []byte) tpm2.AuthHandle {
	return tpm2.AuthHandle{Handle: index, Name: name, Auth: tpm2.HMAC(tpm2.TPMAlgSHA256, 16, tpm2.Auth(proof(secret)))}
}

// proof encodes a secret for the TPM as letters and digits: a TPM drops zeros at the end, and go-tpm stops at a zero.
func proof(secret []byte) []byte {
	h := sha256.Sum256(secret)
	return hex.AppendEncode(nil, h[:16])
}

// foreign wraps an error about a wrong secret in [ErrForeign].
func (c *Counter) foreign(err error) error {
	if errors.Is(err, tpm2.TPMRCAuthFail) || errors.Is(err, tpm2.TPMRCBadAuth) ||
		errors.Is(err, tpm2.TPMRCNVUninitialized) {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return err
}
