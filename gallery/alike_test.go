// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
)

// People have names in all scripts. A new name that looks like another person's is asked about, and --force takes it.
func TestAlike(t *testing.T) {
	one := make([]float32, space.Dim)
	one[0] = 1
	for name, alike := range map[string][]string{
		"Alice":          {"alice", "ALICE", "\uff41lice", "Al\u200dice", "Alice\ufe0f"},
		"علی\u200cرضا":   {"علیرضا"}, // without the joiner
		"👩\u200d💻":       {"👩💻"},
		"José":           {"JOSÉ", "Jose\u0301"},
		"Ευα":            {"ευα"},
		"Anna  Maria Li": {"anna maria li"},
	} {
		g, err := gallery.New(space, online.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		enrol := func(name string, how gallery.Enrolment) error {
			_, err := g.Enroll(name, [][]float32{one}, time.Now(), how)
			return err
		}
		if err := enrol(name, gallery.Enrolment{}); err != nil {
			t.Error(err)
			continue
		}
		for _, other := range alike {
			if err := enrol(other, gallery.Enrolment{}); !errors.Is(err, gallery.ErrAlike) ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%q and %q: %v", name, other, err)
			}
		}
		for _, other := range []string{"Alicia", "Jose", "Anna Mario Li", "👩", "علی"} {
			if got := g.Alike(other); got != "" {
				t.Errorf("%q is taken for %q", other, got)
			}
		}
		if err := enrol(alike[0], gallery.Enrolment{Force: true}); err != nil {
			t.Error(err)
		}
		if err := enrol(name, gallery.Enrolment{Add: true, Force: true}); err != nil {
			t.Errorf("more faces of %q: %v", name, err)
		}
	}
}
