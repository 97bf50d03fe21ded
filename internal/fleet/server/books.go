// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/safefile"
)

// Books is the name of the file of [Copy].
const Books = "server.json"

// books are what a server keeps beside the bucket: its key and its members. The file has a line for
// the key and for each change since the server began to run, so that a change costs the same in a
// fleet of any size.
type books struct {
	key     ed25519.PrivateKey // of the server: devices know it
	members []*protocol.Member // in the order of their invitations
	by      map[string]*protocol.Member
	file    *os.File
	size    int64 // of the lines that are whole
}

// change is a line of the books: the server's key, or a member as it is now, or is no more.
type change struct {
	Key    ed25519.PrivateKey `json:"server,omitempty"`
	Member *protocol.Member   `json:"member,omitempty"`
	Gone   bool               `json:"gone,omitempty"`
}

// read reads books. A last line without an end was being written when the power failed.
func read(path string) (*books, error) {
	text, err := safefile.ReadSecret(path)
	b := &books{by: make(map[string]*protocol.Member)}
	for line := range bytes.Lines(text) {
		var c change
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		err = errors.Join(err, json.Unmarshal(line, &c))
		b.apply(c)
	}
	if err == nil && len(b.key) != ed25519.PrivateKeySize {
		err = errors.New("the file is damaged, or not of a server")
	}
	if err != nil {
		err = fmt.Errorf("reading the server's members from %s: %w", path, err)
	}
	return b, err
}

// write writes books without the members that are gone.
func (b *books) write(path string) error {
	all := []change{{Key: b.key}}
	for _, m := range b.members {
		all = append(all, change{Member: m})
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return err
	}
	return safefile.Write(path, lines(all))
}

// keep writes books, and holds the file open for changes.
func (b *books) keep(path string) error {
	err := b.write(path)
	if err != nil {
		return err
	}
	b.file, err = os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := b.file.Stat()
	if err == nil {
		b.size = info.Size()
	}
	return err
}

func lines(all []change) (text []byte) {
	for _, c := range all {
		line, _ := json.Marshal(c) // changes can be encoded
		text = append(append(text, line...), '\n')
	}
	return text
}

// note writes changes to the disk. After an error none of them is there.
func (b *books) note(all []change) error {
	text := lines(all)
	_, err := b.file.WriteAt(text, b.size)
	if err == nil {
		err = b.file.Sync()
	}
	if err != nil {
		return errors.Join(err, b.file.Truncate(b.size))
	}
	b.size += int64(len(text))
	return nil
}

// apply brings the members in line with a change.
func (b *books) apply(c change) {
	if c.Key != nil {
		b.key = c.Key
	}
	if c.Member == nil {
		return
	}
	old := b.by[c.Member.Invited]
	if old == nil && c.Gone {
		return
	}
	if c.Gone {
		b.members = slices.DeleteFunc(b.members, func(m *protocol.Member) bool { return m == old })
		delete(b.by, old.Invited)
		delete(b.by, old.Key)
		return
	}
	if old == nil {
		old = new(protocol.Member)
		b.members = append(b.members, old)
	}
	*old = *c.Member
	b.by[old.Invited] = old
	if old.Key != "" {
		b.by[old.Key] = old
	}
}

// Copy copies what of a server no device can give back: who its members are, and its key. From and
// to are its file [Books] in the folder of a server, or a backup of it. Who reads it can pose as
// the server, and learns no name and no face. To the server of a backup the devices give the people
// when they connect.
func Copy(from, to string) error {
	b, err := read(from)
	if err != nil {
		return err
	}
	_, err = os.Lstat(to)
	if err == nil {
		return fmt.Errorf("%s is there already; name another place", to)
	}
	return b.write(to)
}
