// SPDX-License-Identifier: Apache-2.0

package logbook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/office/presence"
)

// note is a line of the file beside the logbook: who was seen since the line before, and when.
type note struct {
	Seen map[string]look `json:"seen"`
}

// look is when a person was seen, and by which camera.
type look struct {
	Last   time.Time `json:"last"`
	Camera string    `json:"camera"`
}

// notes is the file beside a logbook that holds when people were seen last, since the last line of the logbook. Its
// lines are as those of the logbook, but are not synced: they survive the end of the program, and of the machine only
// what the system had written by itself. Each line of the logbook makes the ones before it worthless, and empties it.
type notes struct {
	path string
	file *os.File
	size int64
	said map[string]time.Time
}

// open reads what is noted, and takes it into the people of a state. What is damaged ends it: it was never synced.
func (n *notes) open(path string, people []presence.Person) error {
	n.path, n.said = path, make(map[string]time.Time)
	f, err := safefile.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		text, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, ErrDamaged) {
			return err
		}
		x, ok := parseNote(text)
		if err != nil || !ok {
			return nil
		}
		for i, p := range people {
			if seen, there := x.Seen[p.Name]; there && seen.Last.After(p.Last) {
				people[i].Last, people[i].Camera = seen.Last, seen.Camera
			}
		}
		n.size += int64(len(text))
	}
}

func parseNote(text []byte) (x note, ok bool) {
	if len(text) < 10 || text[len(text)-1] != '\n' {
		return x, false
	}
	body := text[9 : len(text)-1]
	if !bytes.Equal(fmt.Appendf(nil, "%08x ", crc32.Checksum(body, table)), text[:9]) {
		return x, false
	}
	return x, json.Unmarshal(body, &x) == nil
}

// add notes who was seen since the last time.
func (n *notes) add(people []presence.Person) error {
	x := note{Seen: make(map[string]look)}
	for _, p := range people {
		if !n.said[p.Name].Equal(p.Last) {
			x.Seen[p.Name] = look{p.Last, p.Camera}
		}
	}
	if len(x.Seen) == 0 {
		return nil
	}
	body, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if n.file == nil {
		if n.file, err = os.OpenFile(n.path, os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
			return err
		}
		n.file.Truncate(n.size) // what a crash left of a line; it is written over where it cannot be cut
	}
	text := fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(body, table), body)
	if _, err := n.file.WriteAt(text, n.size); err != nil {
		n.file.Truncate(n.size) // half a line would hide those after it; what cannot be cut is written over
		return err
	}
	n.size += int64(len(text))
	for name, s := range x.Seen {
		n.said[name] = s.Last
	}
	return nil
}

// empty says that the logbook has all that is noted.
func (n *notes) empty(people []presence.Person) {
	clear(n.said)
	for _, p := range people {
		n.said[p.Name] = p.Last
	}
	if n.file == nil {
		if _, err := os.Lstat(n.path); err != nil {
			return
		}
		if os.Truncate(n.path, 0) == nil { // of an earlier run; what stays says nothing that is newer
			n.size = 0
		}
		return
	}
	if n.size > 0 && n.file.Truncate(0) == nil {
		n.size = 0
	}
}

func (n *notes) close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// Note keeps when people were seen last, until the next [Book.Record], for a program that is killed. It is cheap: a
// line that is not synced, and none where nobody was seen since. The system writes it within half a minute or so, which
// is what a machine that loses its power loses.
func (b *Book) Note(s presence.State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.notes.add(s.People); err != nil {
		return fmt.Errorf("writing %s: %w", b.notes.path, err)
	}
	return nil
}
