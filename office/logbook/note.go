// SPDX-License-Identifier: Apache-2.0

package logbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/faceauth/faceauth/internal/lines"
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
	file *lines.File // nil until there is something to note
	said map[string]time.Time
}

// open reads what is noted, and takes it into the people of a state. What is damaged ends it: it was never synced.
func (n *notes) open(path string, people []presence.Person) error {
	n.path, n.said = path, make(map[string]time.Time)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return n.read(func(line []byte) error {
		var x note
		if json.Unmarshal(line, &x) != nil {
			return nil // of another version
		}
		for i, p := range people {
			if seen, there := x.Seen[p.Name]; there && seen.Last.After(p.Last) {
				people[i].Last, people[i].Camera = seen.Last, seen.Camera
			}
		}
		return nil
	})
}

func (n *notes) read(take func([]byte) error) (err error) {
	n.file, err = lines.Open(n.path, lines.Options{Lazy: true, Lenient: true}, take)
	return err
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
	if n.file == nil {
		if err := n.read(func([]byte) error { return nil }); err != nil {
			return err
		}
	}
	if err := n.file.Append(x); err != nil {
		return err
	}
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
	if n.file != nil && n.file.Lines() > 0 {
		n.file.Empty() // what stays says nothing that is newer
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
