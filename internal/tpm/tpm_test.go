// SPDX-License-Identifier: Apache-2.0

package tpm_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tpm"
)

var (
	secret = []byte("0123456789abcdef0123456789abcdef")
	other  = []byte("fedcba98765\x0043210fedcba987654321\x00") // zeros have a special meaning
)

func open(t *testing.T, path string) *tpm.Counter {
	t.Helper()
	c, err := tpm.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A counter survives the end of the program and a restart of the TPM. It never goes back, even if it is removed and
// created again.
func TestCounter(t *testing.T) {
	e := fixture.StartTPM(t)
	c := open(t, e.Path)
	if _, err := c.Value(secret); !errors.Is(err, tpm.ErrMissing) {
		t.Errorf("before it was made: %v", err)
	}
	if err := c.Increment(secret); !errors.Is(err, tpm.ErrMissing) {
		t.Errorf("before it was made: %v", err)
	}
	n, was, err := c.Make(secret)
	if err != nil || was {
		t.Fatal(n, was, err)
	}
	for range 5 {
		if err := c.Increment(secret); err != nil {
			t.Fatal(err)
		}
	}
	value := func(what string, c *tpm.Counter, secret []byte) uint64 {
		t.Helper()
		v, err := c.Value(secret)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
	if v := value("counted", c, secret); v != n+5 {
		t.Errorf("%d after 5 from %d", v, n)
	}
	if v := value("another program", open(t, e.Path), secret); v != n+5 {
		t.Errorf("another program reads %d", v)
	}
	for _, err := range []error{func() error { _, err := c.Value(other); return err }(), c.Increment(other)} {
		if !errors.Is(err, tpm.ErrForeign) {
			t.Errorf("with another secret: %v", err)
		}
	}
	before := value("others had no effect", c, secret)
	if before != n+5 {
		t.Errorf("another secret counted to %d", before)
	}
	e.Restart(t)
	restarted := value("after a restart", c, secret)
	if restarted < before {
		t.Errorf("after a restart %d, before it %d", restarted, before)
	}
	n, was, err = c.Make(other)
	if err != nil || !was || n <= restarted {
		t.Errorf("made anew: %d, %t, %v; it had been %d", n, was, err, restarted)
	}
	if _, err := c.Value(secret); !errors.Is(err, tpm.ErrForeign) {
		t.Errorf("the former secret: %v", err)
	}
}

// A device that is not a TPM is an error, and so is a TPM that hangs up, sends garbage, or disappears.
func TestBroken(t *testing.T) {
	if _, err := tpm.Open(filepath.Join(t.TempDir(), "tpm")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for name, answer := range map[string]string{
		"nothing": "", "half a head": "\x80\x01\x00", "a short length": "\x80\x01\x00\x00\x00\x02\x00\x00\x00\x00",
		"a long length":              "\x80\x01\xff\xff\xff\xff\x00\x00\x00\x00",
		"half an answer":             "\x80\x01\x00\x00\x00\x40\x00\x00\x00\x00abc",
		"a success without anything": "\x80\x01\x00\x00\x00\x0a\x00\x00\x00\x00",
	} {
		path := filepath.Join(t.TempDir(), "tpm")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Read(make([]byte, 4096))
				c.Write([]byte(answer))
				c.Close()
			}
		}()
		c := open(t, path)
		if _, err := c.Value(secret); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, _, err := c.Make(secret); err == nil {
			t.Errorf("%s: made", name)
		}
		l.Close()
		if err := c.Increment(secret); err == nil {
			t.Errorf("%s: incremented", name)
		}
	}
	null := open(t, "/dev/null")
	if _, err := null.Value(secret); err == nil {
		t.Error("/dev/null counts")
	}
}
