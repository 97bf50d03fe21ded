// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/trial/login"
	"github.com/faceauth/faceauth/models"
)

// The liveness network tells the two people of spoof from their replays, both at the threshold of
// logins and at the thresholds that one pair of people chooses for the other pair.
func TestLivenessOfRecordings(t *testing.T) {
	clitest.Long(t)
	c := exec.Command("faceauth-lab", "trial", "liveness", "--json", "--models", fixture.Models(t),
		fixture.Recordings(t, "faces/spoof"))
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var r login.LivenessReport
	fixture.Check(t, json.Unmarshal(out, &r))
	if want := models.Default(models.Liveness).Threshold; float64(r.Policy.Threshold) != want {
		t.Errorf("logins ask for %v, want %v", r.Policy.Threshold, want)
	}
	if r.Both == nil {
		t.Fatal("no thresholds were chosen")
	}
	for name, e := range map[string]login.LivenessErrors{"as logins ask": r.Policy,
		"by halves": *r.Both} {
		a := e.Attacks["fake"]
		if a.People != 2 || a.All < 9 || e.Live.People != 2 || e.Live.All < 16 {
			t.Errorf("%s: %+v", name, e)
		}
		if a.Wrong != 0 || e.Live.Wrong != 0 {
			t.Errorf("%s: %d replays let in, %d live faces refused", name, a.Wrong, e.Live.Wrong)
		}
	}
	// There is a gap between them: an update of OpenCV changes the scores far less.
	for _, l := range r.Recordings {
		for _, x := range l.Scores {
			if l.Attack != "" && x > .3 || l.Attack == "" && x < .9 {
				t.Errorf("%s, %s scores %.3f", l.Person, l.Name, x)
			}
		}
	}
}
