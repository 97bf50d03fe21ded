// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
)

// Books are as their changes leave them, also if the power failed while a line was written, or the
// disk was full: then the next change stands where that one would have.
func TestBooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", Books)
	_, key, _ := ed25519.GenerateKey(nil)
	b := &books{key: key, by: make(map[string]*protocol.Member)}
	fixture.Check(t, b.keep(path))
	note := func(c change) {
		t.Helper()
		fixture.Check(t, b.note([]change{c}))
		b.apply(c)
	}
	for _, name := range []string{"a", "b", "c"} {
		note(change{Member: &protocol.Member{Name: name, Invited: "i" + name}})
	}
	note(change{Member: &protocol.Member{Name: "b", Invited: "ib", Key: "kb"}})
	note(change{Member: &protocol.Member{Name: "a", Invited: "ia"}, Gone: true})
	is := func(want string) {
		t.Helper()
		read := fixture.Must(read(path))(t)
		var names []string
		for _, m := range read.members {
			names = append(names, m.Name+m.Key)
		}
		got := strings.Join(names, " ")
		if got != want || !read.key.Equal(key) || read.by["kb"] != read.by["ib"] ||
			read.by["ia"] != nil {
			t.Errorf("%q %+v, want %q", got, read.by, want)
		}
	}
	is("bkb c")
	whole := fixture.Must(os.ReadFile(path))(t)
	line := fixture.Must(json.Marshal(change{Member: &protocol.Member{Name: "d", Invited: "id"}}))(
		t)
	for n := range line {
		fixture.Check(t, os.WriteFile(path, append(whole[:len(whole):len(whole)], line[:n+1]...),
			0o600))
		is("bkb c")
	}
	fixture.Check(t, b.file.Truncate(b.size))
	b.file.Close()
	if b.note([]change{{Gone: true}}) == nil || b.size != int64(len(whole)) {
		t.Error("a change that is not on the disk counts")
	}
	copied := filepath.Join(t.TempDir(), "copy")
	fixture.Check(t, Copy(path, copied))
	fixture.Check(t, os.WriteFile(path, []byte("{}\n"), 0o600))
	_, err := read(path)
	if err == nil || !strings.Contains(err.Error(), "the file is damaged, or not of a server") {
		t.Error(err)
	}
	path = copied
	is("bkb c")
}
