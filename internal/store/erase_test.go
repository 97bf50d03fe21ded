// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/store"
)

// Rows that come and go in random order split and join pages. Of those that are deleted no byte
// stays after Erase. Before it SQLite leaves some, in spite of secure_delete, so the test finds
// them.
func TestMoved(t *testing.T) {
	// play calls exec with statements, and returns the names that are gone.
	play := func(exec func(sql string)) (gone []string) {
		r := rand.New(rand.NewPCG(3, 4))
		var here []string
		for i := range 6000 {
			if i%500 != 0 && (r.IntN(5) > 1 || len(here) < 10) {
				name := fmt.Sprintf("q%dq%s", r.Int64(), strings.Repeat("-", r.IntN(900)))
				here = append(here, name)
				exec("insert into person(name) values('" + name + "')")
				continue
			}
			if len(here) == 0 {
				continue
			}
			k := r.IntN(len(here))
			exec("delete from person where name = '" + here[k] + "'")
			gone = append(gone, here[k])
			here[k] = here[len(here)-1]
			here = here[:len(here)-1]
			if i%500 == 0 { // a page that was moved goes to the disk
				exec("pragma wal_checkpoint(truncate)")
			}
		}
		return gone
	}
	found := func(path string, names []string) (n int) {
		for _, end := range []string{"", "-wal"} {
			data, err := os.ReadFile(path + end)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			for _, name := range names {
				n += bytes.Count(data, []byte(name[:strings.LastIndexByte(name, 'q')]))
			}
		}
		return n
	}
	for kind, key := range map[string][]byte{"plain": nil,
		"encrypted": bytes.Repeat([]byte("k"), 32)} {
		path := filepath.Join(t.TempDir(), "db")
		fixture.Check(t, store.SetKey(path, key))
		d := fixture.Must(store.Open(path, schema, true))(t)
		// otherwise each row waits for the disk
		fixture.Check(t, d.Exec("pragma synchronous = normal"))
		gone := play(func(sql string) {
			fixture.Check(t, d.Exec(sql))
		})
		fixture.Check(t, d.Exec("pragma wal_checkpoint(truncate)"))
		if n := found(path, gone); (n == 0) != (key != nil) {
			t.Errorf("%s: %d names are in the file before, so this tests nothing", kind, n)
		}
		fixture.Check(t, errors.Join(d.Erasing(), d.Erase(), d.Close()))
		if _, err := store.Inspect(path, schema, nil); err != nil { // checksums, too
			t.Errorf("%s: %v", kind, err)
		}
		if n := found(path, gone); n > 0 {
			t.Errorf("%s: %d of %d deleted names are in the file", kind, n, len(gone))
		}
	}
}
