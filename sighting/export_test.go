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
