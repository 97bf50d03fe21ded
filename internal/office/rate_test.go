// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/office"
)

// A camera is slow if fewer than half of the frames that were asked for are looked at.
func TestSlowCamera(t *testing.T) {
	for _, c := range []struct {
		asked           float64
		frames, dropped int // in ten seconds
		slow, ok        bool
	}{
		{2, 10, 0, false, true},
		{2, 9, 0, true, true},
		{2, 0, 0, true, true},
		{.2, 0, 0, false, false}, // four frames are due in 20 s
		{0, 5, 0, false, true},
		{0, 5, 6, true, true},
		{0, 20, 500, false, true}, // enough
		{0, 19, 500, true, true},
		{0, 0, 0, true, true},
	} {
		var trial office.Trial
		h := office.Health{Asked: c.asked, Frames: 40}
		_, ok := trial.Slow(20*time.Second, h)
		h.Frames, h.Dropped = h.Frames+c.frames, c.dropped
		_, early := trial.Slow(9*time.Second, h)
		slow, late := trial.Slow(time.Second, h)
		if !ok || early || slow != c.slow || late != c.ok {
			t.Errorf("%+v: %t %t, too early %t", c, slow, late, early)
		}
	}
}

// Nobody is missed in a recording of which all is looked at, however long that takes.
func TestSlowRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gallery")
	var told []office.Health
	w := office.New(past(t, peopleAt(t, path)),
		office.Options{Health: func(h office.Health) { told = append(told, h) }})
	show, end := feed(t, w)
	show(n(3, "a"))
	for range 3 {
		office.Measure(w, 20*time.Second)
	}
	end()
	if len(told) != 1 || told[0].Slow {
		t.Errorf("%+v", told)
	}
}
