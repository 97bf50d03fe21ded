// SPDX-License-Identifier: Apache-2.0

package days_test

import (
	"testing"
	"time"

	"github.com/faceauth/faceauth/lab/trial/days"
	"github.com/faceauth/faceauth/sighting"
)

// turning are recordings of people who turn: from the faces that are enrolled to faces far from them, and back.
func turning(people, frames int) []days.Recording {
	all := recordings(people, frames, 3)
	for _, r := range all {
		for i := range r.Frames {
			if s := r.Frames[i].Samples; len(s) > 0 {
				turn := float32(i%100) / 50 // to and fro within 100 frames
				if turn > 1 {
					turn = 2 - turn
				}
				s[1].Vector = []float32{s[1].Vector[0], 2.4 * turn}
			}
		}
	}
	return all
}

// fleetOf runs days with four cameras on a given number of devices.
func fleetOf(t *testing.T, devices int, o days.Options) days.Report {
	t.Helper()
	o.Strangers, o.Cameras, o.Visits, o.Devices, o.Seed, o.Days = 1, 4, 6, devices, 3, 1
	r, err := days.Run(t.Context(), space, turning(4, 304), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Four devices that share lessons name as many faces as one device with all cameras, and more than four devices that
// share only enrolments. Wrong lessons confirm nobody, and take away no more than lessons give. With the rule against
// them they name no stranger either. After a withdrawal they have no effect.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("days of several offices take a while")
	}
	one, apart := fleetOf(t, 1, days.Options{}), fleetOf(t, 4, days.Options{})
	together := fleetOf(t, 4, days.Options{Share: time.Second})
	t.Logf("recall of one device %.4f, of four with enrolments %.4f, with lessons %.4f", one.Faces.Recall,
		apart.Faces.Recall, together.Faces.Recall)
	if together.Faces.Recall < one.Faces.Recall-.005 || together.Faces.Recall < apart.Faces.Recall+.02 ||
		together.Faces.Precision < one.Faces.Precision {
		t.Errorf("one %+v\nfour, enrolments %+v\nfour, lessons %+v", one.Faces, apart.Faces, together.Faces)
	}
	if together.Exchanges == 0 || together.Given == 0 || together.Kept == 0 || together.Bytes == 0 ||
		apart.Exchanges+apart.Given != 0 {
		t.Errorf("%+v", together)
	}
	for _, p := range []days.Poison{days.Swapped, days.Bridged} {
		bad := fleetOf(t, 4, days.Options{Share: time.Second, Poison: p})
		guarded := fleetOf(t, 4, days.Options{Share: time.Second, Poison: p, Rules: sighting.Rules{Own: 1}})
		gone := fleetOf(t, 4, days.Options{Share: time.Second, Poison: p, Withdraw: time.Millisecond})
		t.Logf("%s: %d of strangers' faces named, %d confirmed; precision %.4f, recall %.4f; once withdrawn %.4f, %.4f",
			p, bad.Faces.False, bad.Confirmed.False, bad.Faces.Precision, bad.Faces.Recall, gone.Faces.Precision,
			gone.Faces.Recall)
		if bad.Confirmed.Wrong+bad.Confirmed.False > together.Confirmed.Wrong+together.Confirmed.False {
			t.Errorf("%s: wrong lessons confirm names: %+v", p, bad.Confirmed)
		}
		t.Logf(
			"%s, and lessons alone name nobody: %d of strangers' faces named, %d confirmed; "+
				"precision %.4f, recall %.4f",
			p, guarded.Faces.False, guarded.Confirmed.False, guarded.Faces.Precision, guarded.Faces.Recall)
		if guarded.Faces.Wrong+guarded.Faces.False > 0 ||
			min(bad.Faces.Recall, guarded.Faces.Recall) < apart.Faces.Recall {
			t.Errorf("%s: %+v, guarded %+v; four with enrolments alone %+v", p, bad.Faces, guarded.Faces, apart.Faces)
		}
		if p == days.Bridged && bad.Faces.False == 0 {
			t.Error("a way of wrong lessons to a stranger names nobody: the trial tests too little")
		}
		if gone.Faces != together.Faces || gone.Confirmed != together.Confirmed {
			t.Errorf("%s, withdrawn: %+v, and without %+v", p, gone.Faces, together.Faces)
		}
	}
}
