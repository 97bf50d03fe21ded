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

// note is a line of the file beside the logbook: new sightings of people since the line before.
type note struct {
	Seen map[string]look `json:"seen"`
}

// look is a sighting of a person: time and camera.
type look struct {
	Last   time.Time `json:"last"`
	Camera string    `json:"camera"`
}

// notes is the file beside a logbook with the last sightings since the logbook's last line. Its lines have the same
// format and are not synced: they survive the end of the program. If the machine fails, only the lines that the system
// has already written survive. Each line of the logbook makes the notes obsolete, and empties the file.
type notes struct {
	path string
	file *lines.File // nil until the first note
	said map[string]time.Time
}

// open reads the notes into the people of a state. It stops at the first damaged line, because notes are not synced.
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

// add writes the new sightings since the last note.
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

// empty removes the notes, because the logbook has them.
func (n *notes) empty(people []presence.Person) {
	clear(n.said)
	for _, p := range people {
		n.said[p.Name] = p.Last
	}
	if n.file != nil && n.file.Lines() > 0 {
		n.file.Empty() // notes that stay are not newer than the logbook
	}
}

func (n *notes) close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}

// Note stores the last sightings until the next [Book.Record], in case the program is killed. It is cheap: it writes a
// line that is not synced, and none without new sightings. The system writes it to disk within about half a minute; a
// machine that loses power loses that much.
func (b *Book) Note(s presence.State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.notes.add(s.People); err != nil {
		return fmt.Errorf("writing %s: %w", b.notes.path, err)
	}
	return nil
}
