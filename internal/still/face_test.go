// SPDX-License-Identifier: Apache-2.0

package still_test

import (
	"image"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/still"
)

// head is a detected face on a track.
func head(track int) still.Look {
	patch := make([]uint8, still.Patch*still.Patch)
	for i := range patch {
		patch[i] = uint8(100 + i*37%60)
	}
	return still.Look{Patch: patch, Sample: face.Sample{
		Track: track, Box: image.Rect(100, 100, 200, 220), Score: .9,
		Landmarks: fixture.Landmarks(0, .5, .3),
		Quality:   face.Quality{Size: 100, Brightness: 120, Contrast: 40, Sharpness: 50},
		Vector:    []float32{1},
		JPEG:      []byte("x"),
	}}
}

const tick = 40 * time.Millisecond

// A track gets vectors of its first faces, and then a vector of a face that has changed, or after a
// while.
func TestChanged(t *testing.T) {
	for _, c := range []struct {
		what   string
		after  time.Duration
		change func(l *still.Look)
		want   bool
	}{
		{"no change", tick, func(*still.Look) {}, false},
		{"another track", tick, func(l *still.Look) { l.Track = 2 }, true},
		{"somebody near", tick, func(l *still.Look) { l.Crowded = true }, true},
		{"waited", 400 * time.Millisecond, func(*still.Look) {}, true},
		{"turned", tick, func(l *still.Look) { l.Landmarks = fixture.Landmarks(.2, .5, .3) }, true},
		{"turned a little", tick, func(l *still.Look) {
			l.Landmarks = fixture.Landmarks(.05, .5, .3)
		}, false},
		{"nodded", tick, func(l *still.Look) { l.Landmarks = fixture.Landmarks(0, .62, .3) }, true},
		{"without landmarks", tick, func(l *still.Look) { l.Landmarks = nil }, true},
		{"nearer", tick, func(l *still.Look) { l.Quality.Size = 121 }, true},
		{"further away", tick, func(l *still.Look) { l.Quality.Size = 82 }, true},
		{"elsewhere", tick, func(l *still.Look) { l.Box = l.Box.Add(image.Pt(60, 0)) }, true},
		{"a little aside", tick, func(l *still.Look) { l.Box = l.Box.Add(image.Pt(10, 5)) }, false},
		{"lit", tick, func(l *still.Look) { l.Quality.Brightness = 133 }, true},
		{"poor", tick, func(l *still.Look) { l.Reason = face.Blurred }, true},
		{"another face", tick, func(l *still.Look) {
			for i := range l.Patch {
				l.Patch[i] = uint8(100 + i*53%60)
			}
		}, true},
		{"without a patch", tick, func(l *still.Look) { l.Patch = nil }, true},
	} {
		var f still.Faces
		at := time.Duration(0)
		for i := range 8 {
			if l := head(1); !f.Changed(at, l) || !f.Due(at, 1, false) {
				t.Fatalf("%s: no vector of face %d", c.what, i+1)
			} else {
				f.Made(at, l)
			}
			f.Keep(at)
			at += tick
		}
		l := head(1)
		c.change(&l)
		if got := f.Changed(at-tick+c.after, l); got != c.want {
			t.Errorf("%s: changed %t, want %t", c.what, got, c.want)
		}
		if f.Ask(2) || f.Due(at, 1, false) || !f.Ask(2, 1) || !f.Changed(at, head(1)) {
			t.Errorf("%s: another face counts as asked for, or this one does not", c.what)
		}
		f.Made(at, head(1))
		if f.Changed(at, head(1)) {
			t.Errorf("%s: asked for once, it is wanted twice", c.what)
		}
	}
}

// A held face is the last face with a vector, in another place, and without the values that a held
// face must not have.
func TestHold(t *testing.T) {
	var f still.Faces
	if _, ok := f.Hold(0, 1, image.Rectangle{}, 1); ok {
		t.Error("a face on an unknown track was held")
	}
	l := head(1)
	live := float32(1)
	l.Liveness, l.Reason, l.Aligned = &live, face.Flat, []byte{1}
	f.Made(0, l)
	box := image.Rect(1, 2, 30, 40)
	s, ok := f.Hold(tick, 1, box, .5)
	if !ok || !s.Held || s.Vector != nil || s.Landmarks != nil || s.Aligned != nil ||
		s.JPEG != nil || s.Liveness != nil {
		t.Errorf("held: %+v", s)
	}
	if s.Track != 1 || s.Box != box || s.Score != .5 || s.Reason != face.Flat ||
		s.Quality != l.Quality {
		t.Errorf("held: %+v", s)
	}
}

// A face that was missed gets a closer look when it is found again. A face that was lost is
// forgotten. A face that stays gets a closer look after ten seconds.
func TestKeep(t *testing.T) {
	made := func() (f still.Faces) {
		for i := range 8 {
			if f.Settled(1) || f.Same(1, head(1).Patch) != (i > 0) {
				t.Errorf("settled after %d vectors, or not the same face", i)
			}
			f.Made(time.Duration(i)*tick, head(1))
		}
		if !f.Settled(1) || f.Settled(2) || f.Same(1, nil) {
			t.Error("not settled, another track is, or anything is the same")
		}
		return f
	}
	f := made()
	if f.Due(8*tick, 1, false) || f.Changed(8*tick, head(1)) {
		t.Error("a face with enough vectors needs a new vector")
	}
	f.Keep(8 * tick)
	if !f.Due(9*tick, 1, false) || !f.Changed(9*tick, head(1)) {
		t.Error("a face that was missed needs no new vector")
	}
	f.Keep(3 * time.Second)
	if _, ok := f.Hold(3*time.Second, 1, image.Rectangle{}, 1); ok {
		t.Error("a face that was lost is held")
	}
	f = made()
	for at := 8 * tick; at < 12*time.Second; at += 100 * time.Millisecond {
		if old := f.Due(at, 1, false); old != (at >= 10*time.Second+7*tick) {
			t.Fatalf("old %t after %v", old, at)
		}
		f.Hold(at, 1, image.Rectangle{}, 1)
		f.Keep(at)
	}
}

func TestAlike(t *testing.T) {
	a := head(1).Patch
	brighter := make([]uint8, len(a))
	for i, v := range a {
		brighter[i] = v/2 + 20
	}
	if r := still.Alike(a, brighter); r < .99 {
		t.Errorf("correlation in other light: %g", r)
	}
	for _, b := range [][]uint8{nil, a[1:], make([]uint8, len(a))} {
		if r := still.Alike(a, b); r != -1 {
			t.Errorf("correlation of patches that cannot be compared: %g", r)
		}
	}
}
