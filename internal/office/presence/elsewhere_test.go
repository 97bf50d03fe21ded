// SPDX-License-Identifier: Apache-2.0

package presence_test

import (
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/office/presence"
)

// Who was seen elsewhere while a track had no name did not arrive when that track began.
func TestArrivesAfterAnotherCamera(t *testing.T) {
	r := newRoom(presence.Settings{}, presence.State{})
	unnamed := tracked(1, "", 1)
	watches(r, "door", 0, 3, unnamed)
	r.See("desk", moment(4), []presence.Seen{tracked(2, "alice", 9)})
	got := described(watches(r, "door", 5, 20, unnamed))
	got = append(got, described(r.See("door", moment(21),
		[]presence.Seen{tracked(1, "alice", 30)}))...)
	if want := []string{"2 left alice desk 4", "3 arrived alice door 21"}; !slices.Equal(got,
		want) {
		t.Errorf("%q, want %q", got, want)
	}
}
