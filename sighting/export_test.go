// SPDX-License-Identifier: Apache-2.0

package sighting

import "github.com/faceauth/faceauth/face"

// StillsTracker returns the tracker of [NewStillsWatcher].
func StillsTracker(space face.Space) *Tracker {
	t := NewTracker(space)
	t.given = true
	return t
}

// Identities are what a [Watcher] collects verdicts in.
type Identities = identities

var NewIdentities = newIdentities

var Stir = stirOf

var Movement = movement

const MovedApart = movedApart

// Look returns for which faces [Watcher.Ask] asks.
func (w *Watcher) Look() []int { return w.look }

func (t *Tracker) InDoubt(track int) bool { return t.inDoubt(track) }
