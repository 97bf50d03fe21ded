// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
)

// Each word has a sentence.
func TestWords(t *testing.T) {
	all := slices.Collect(maps.Values(reasons))
	for _, w := range []tablet.Word{"two-faces", "no-face", "not-live",
		tablet.Straight, tablet.TurnLeft,
		tablet.TurnRight, tablet.Failed, "no-camera", tablet.Unasked, tablet.NoMatch,
		"taken-for-picture",
		"poor-picture", "too-few-pictures", "give-password", "tilt", "other-person", tablet.Enrolled,
		"camera-like-screen",
		"timed-out", "already-another-user", "camera-turned", "took-" + tablet.Straight, "took-" +
			tablet.TurnLeft,
		"took-" + tablet.TurnRight, "took-" + "tilt"} {
		all = append(all, string(w))
	}
	all = append(all, wordOf(tablet.Result{Word: tablet.Retry, Reason: face.TurnedAway}, true),
		"interrupted")
	for _, w := range all {
		if _, ok := words.German.Say(w); !ok {
			t.Errorf("%q has no sentence", w)
		}
	}
}

// The mark of an account is that of FNV-1a, which the PAM module computes, too; there is none of a
// user whom no system has.
func TestMark(t *testing.T) {
	if got := hashed("foobar"); got != "85944171f73967e8" {
		t.Errorf("the hash is %s", got)
	}
	for _, name := range []string{"nobody-at-all", "0", "", "a:b", "-s"} {
		if m, err := Mark(name); err == nil {
			t.Errorf("%q: %s", name, m)
		}
	}
	if m, err := Mark("nobody"); err != nil || len(m) != 16 {
		t.Errorf("%q, %v", m, err)
	}
}

// No more than eight processes ask the system for users at once, and the ninth question ends in
// time.
func TestGetents(t *testing.T) {
	for range cap(getents) {
		getents <- struct{}{}
	}
	begun := time.Now()
	if _, err := entry("passwd", "root"); !errors.Is(err, context.DeadlineExceeded) ||
		time.Since(begun) > 30*patience {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	for range cap(getents) {
		<-getents
	}
	if e, err := entry("passwd", "root"); err != nil || e[2] != "0" {
		t.Errorf("%q, %v", e, err)
	}
}
