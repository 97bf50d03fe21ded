// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/quantized"
)

// The learner stays right with a full graph, and beyond: with more and more people and one k, no
// known person gets a wrong name unless the nearest labelled face would have given it, too. Before
// merging ended at the edge radius, k = 300 gave .68 of the faces of 60 people a wrong name, and
// .98 of the faces of 70 people.
func TestRightToTheLastCentroid(t *testing.T) {
	const turns = 12
	for _, tt := range []struct{ k, people int }{
		{300, 50}, {300, 60}, {300, 70}, {300, 75}, {300, 100}, {300, 150}, {300, 400}, {60, 60},
		{20, 60}, {1, 60},
	} {
		people, k := tt.people, tt.k
		if testing.Short() && people > 75 {
			continue
		}
		t.Run(fmt.Sprintf("k=%d/people=%d", k, people), func(t *testing.T) {
			c := newCrowd(people, 512)
			l := fixture.Must(online.New(sphereOf(512), online.Settings{K: k}))(t)
			labelled := make([][][]float32, people)
			for i := range people {
				for range 4 {
					x := c.face(i)
					labelled[i] = append(labelled[i], x)
					fixture.Check(t, l.Label(x, personOf(i)))
				}
			}
			right, wrong := 0, 0
			for q := range turns * people {
				// nobody twice in a row, and in another order each time
				i := (q*7 + q/people) % people
				x := c.face(i)
				v := fixture.Must(l.Observe(x))(t)
				switch v.Person {
				case personOf(i):
					right++
				case 0:
				default:
					wrong++
					if v.Person != personOf(nearest(x, labelled)) {
						t.Errorf("face %d: person %d is called %d", q, i, v.Person)
					}
				}
				if v.Learned == v.NoRoom && v.Person != 0 {
					t.Fatalf("face %d: %+v", q, v)
				}
			}
			counts := l.Counts()
			t.Logf("%d people: recall %.4f, %d wrong; %+v; full %t", people,
				float64(right)/float64(turns*people), wrong, counts, l.Room().Full)
			if right != turns*people || wrong > 0 {
				t.Errorf("%d of %d right, %d wrong", right, turns*people, wrong)
			}
			if l.Room().Full != (people > k) || l.Room().Full != (counts.PassedOver > 0) ||
				l.Graph().Learned() > k+1 ||
				l.Graph().R() > l.Graph().Config().EdgeRadius() {
				t.Errorf("full %t, %d passed over, %d centroids, R %g", l.Room().Full,
					counts.PassedOver, l.Graph().Learned(), l.Graph().R())
			}
		})
	}
}

// nearest returns the person whose labelled face is nearest to x.
func nearest(x []float32, labelled [][][]float32) int {
	best, d := -1, math.Inf(1)
	for i, faces := range labelled {
		for _, y := range faces {
			if e := quantized.SquaredDistance(x, y); e < d {
				best, d = i, e
			}
		}
	}
	return best
}

// A film that changes alice's face into another one leads the learner no further than the limit:
// the faces beyond it are named while they follow those before them, are not learned, and have no
// name in another sighting, however confident the harmonic solution is.
func TestLimit(t *testing.T) {
	space := line
	space.GenuineRadius = 3
	l := fixture.Must(online.New(space, online.Settings{Link: 1.2}))(t)
	shown(t, l, alice, 0)
	var follows []int64
	for x := float32(.5); x <= 4; x += .5 {
		v, err := l.ObserveFrame([]online.Observation{{Vector: []float32{x, 0}, Follows: follows,
			As: alice}})
		if err != nil || v[0].Learned != (x <= 3) {
			t.Fatalf("%g: %+v, %v", x, v, err)
		}
		if v[0].Stored > 0 {
			follows = []int64{v[0].Stored}
		}
		if follows != nil && x <= 4 && v[0].Person != alice {
			t.Errorf("%g, on the same track: %+v", x, v[0])
		}
	}
	for x, want := range map[float32]online.Person{2.9: alice, 3: alice, 3.1: 0, 3.5: 0} {
		v := judged(t, l, x)
		if v.Person != want || want == 0 &&
			(v.Reason != online.Strayed || v.Confidence < .1 || v.Distance != 0) {
			t.Errorf("%g, in another sighting: %+v", x, v)
		}
	}
	if r := l.Radii(); r.Limit != 3 {
		t.Errorf("%+v", r)
	}
	space.GenuineRadius = .5 // the enrolled faces alone name somebody further away
	fixture.Check(t, l.SetMeasured(space))
	if r := l.Radii(); r.Limit != r.Enrolled {
		t.Errorf("%+v", r)
	}
}
