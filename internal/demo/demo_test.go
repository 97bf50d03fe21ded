// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"image"
	"testing"

	"github.com/faceauth/faceauth/internal/recordings/replay"
)

func TestScore(t *testing.T) {
	s := Script{Cast: [][]Actor{{{"alice", image.Rect(0, 0, 100, 100)},
		{"", image.Rect(200, 0, 300, 100)}}, {}}}
	var sum Score
	s.Score(&sum, 0, []replay.Event{
		{Label: "alice", Box: [4]int{20, 20, 60, 60}},  // right
		{Label: "bob", Box: [4]int{20, 20, 60, 60}},    // wrong
		{Label: "", Box: [4]int{20, 20, 60, 60}},       // missed
		{Label: "alice", Box: [4]int{220, 20, 60, 60}}, // the stranger, accepted
		{Label: "", Box: [4]int{220, 20, 60, 60}},      // refused
		{Label: "alice", Box: [4]int{400, 20, 60, 60}}, // nobody is there
	})
	s.Score(&sum, 1, []replay.Event{{Label: "alice", Box: [4]int{0, 0, 100, 100}}})
	s.Score(&sum, 2, []replay.Event{{Label: "alice", Box: [4]int{0, 0, 100, 100}}}) // after the end
	if want := (Score{Known: 3, Right: 1, Wrong: 1, Strangers: 2, Accepted: 1}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
}

func TestFind(t *testing.T) {
	t.Setenv("FACEAUTH_DEMO_FACES", t.TempDir())
	if _, err := Find(); err == nil {
		t.Error("an empty folder has no stills")
	}
}
