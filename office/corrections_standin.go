// SPDX-License-Identifier: Apache-2.0

package office

// This file stands for what a colleague writes at the same time: the merger deletes it.

import (
	"errors"
	"time"
)

// CorrectionKind says what somebody said.
type CorrectionKind string

// Correction is something that somebody said of the people of an office.
type Correction struct {
	ID       uint64         `json:"id"`
	At       time.Time      `json:"at"`
	Kind     CorrectionKind `json:"kind"`
	Name     string         `json:"name"`
	Was      string         `json:"was,omitempty"`
	Group    uint64         `json:"group,omitempty"`
	Sighting uint64         `json:"sighting,omitempty"`
	Face     uint64         `json:"face,omitempty"`
	Undone   bool           `json:"undone"`
	CanUndo  bool           `json:"can_undo"`
}

var errNotYet = errors.New("not before the journal of corrections is merged")

// Corrections returns what was said, the newest first.
func (w *Office) Corrections(before uint64, n int) []Correction { return []Correction{} }

// Undo takes back what was said.
func (w *Office) Undo(id uint64) error { return errNotYet }

// Rename gives a person another name.
func (w *Office) Rename(from, to string) error { return errNotYet }

// Naming returns the naming on which what a sighting was taken for rests.
func (w *Office) Naming(sighting uint64) (Correction, bool) { return Correction{}, false }

// SightingsBefore returns the last n sightings before the one of a number, or of all where it is 0.
func (w *Office) SightingsBefore(id uint64, n int) []Sighting {
	all := []Sighting{}
	for _, s := range w.Sightings() {
		if (id == 0 || s.ID < id) && len(all) < n {
			all = append(all, s)
		}
	}
	return all
}
