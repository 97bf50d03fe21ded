// SPDX-License-Identifier: Apache-2.0

package office

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// The parts of an office that have tests of their own.
type (
	Groups = groups
	Trial  = trial
)

var NewGroups = newGroups

// Slow goes on with a trial of a camera.
func (t *Trial) Slow(took time.Duration, h Health) (slow, ok bool) { return t.slow(took, h) }

// Measure measures the rates of cameras after a time.
func Measure(w *Office, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measure(took)
}

// Minute does the work that an office does once a minute.
func Minute(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.minute()
}

// Beat does the work that an office does every two seconds.
func Beat(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beat()
}

// Forgotten has an office read again what it knows of people.
func Forgotten(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = nil
}

// State returns who is present, as it was last recorded.
func (p *Past) State() presence.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Folded returns an error if a column is not what the statements say that are not undone.
func Folded(g *gallery.Gallery) error {
	return g.Rows().Look(func(t *gallery.Tx) error {
		for _, of := range [][5]string{
			{gallery.NameOf, "person", "id", "name", "text"},
			{gallery.WhoOf, "sighting", "id", "person", "person"},
			{gallery.WhoOf, "sighting", "id", "trust", "text"},
			{gallery.GroupOf, "sighting", "id", "stranger", "value"},
			{gallery.FaceGroup, "face", "number", "stranger", "value"},
			{gallery.ValidLabel, "label", "id", "valid", "value"},
			{gallery.IgnoredOf, "stranger", "id", "ignored", "value"},
			{gallery.EventWho, "event", "id", "person", "person"},
			{gallery.EventGroup, "event", "id", "stranger", "value"},
		} {
			n, err := t.Int(
				fmt.Sprintf(
					`select count(*) from %[2]s where %[3]s in (select of from said
						where what = '%[1]s') and
				%[4]s is not (select said.%[5]s from said left
						join statement on statement.id = said.statement
				where what = '%[1]s' and of = %[2]s.%[3]s and (said.statement is null or not undone)
				order by said.statement desc limit 1)`, of[0], of[1], of[2], of[3], of[4]))
			if err != nil || n > 0 {
				return fmt.Errorf("%s: %d rows have another %s than statements say: %w", of[0], n,
					of[3], err)
			}
		}
		return nil
	})
}

// SetIgnored says that a group is ignored.
func (g *groups) SetIgnored(id uint64) {
	g.Get(id).Ignored = true
	g.shed()
}
