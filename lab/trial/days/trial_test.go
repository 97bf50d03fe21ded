// SPDX-License-Identifier: Apache-2.0

package days_test

import (
	"context"
	"errors"
	"image"
	"reflect"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/trial/days"
	"github.com/faceauth/faceauth/online"
)

var space = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93}

// recordings are of people who stand apart in the plane, and move a little.
func recordings(people, frames int, apart float32) (all []days.Recording) {
	for p := range people {
		r := days.Recording{Person: string(rune('a' + p))}
		for i := range frames {
			f := face.Frame{Index: i, Time: time.Duration(i) * 40 * time.Millisecond}
			if i%50 != 49 { // no face is found in some frames
				f.Samples = []face.Sample{
					{
						Space:  "plane",
						Box:    image.Rect(0, 0, 10, 10),
						Vector: []float32{-99, -99},
					}, // a person further away
					{
						Space:  "plane",
						Box:    image.Rect(0, 0, 90, 99),
						Vector: []float32{apart * float32(p), .01 * float32(i%7)},
					},
				}
			}
			r.Frames = append(r.Frames, f)
		}
		all = append(all, r)
	}
	return all
}

// If people cannot be confused, everything that the office reports is true.
func TestRun(t *testing.T) {
	done := 0
	r, err := days.Run(t.Context(), space, recordings(5, 204, 3),
		days.Options{Strangers: 1, Day: func() { done++ }})
	if err != nil {
		t.Fatal(err)
	}
	if r.People != 5 || r.Days != 5 || done != 5 || r.Visits != 5*5*4 || r.Crowded == 0 {
		t.Errorf("%+v", r)
	}
	if r.Faces.Wrong+r.Faces.False+r.Tracks.Wrong+r.Tracks.False+r.Switches != 0 ||
		r.Faces.Precision != 1 ||
		r.Faces.Recall < .9 ||
		r.Tracks.Recall < .95 {
		t.Errorf("faces %+v, sightings %+v, %d switches", r.Faces, r.Tracks, r.Switches)
	}
	if r.Later.Wrong+r.Later.False != 0 || r.Later.Recall != 1 || r.Later.Known != r.Faces.Known {
		t.Errorf("faces, when the day is over: %+v", r.Later)
	}
	if k := r.Comings; k.Stays == 0 || k.Told != k.Stays || k.LeftTold != k.Stays ||
		k.Wrong+k.Repeated+k.Early+k.Mistaken != 0 ||
		k.Visitors == 0 ||
		k.Unknown != k.Visitors ||
		k.Short != 0 {
		t.Errorf("%+v", k)
	}
	again, err := days.Run(t.Context(), space, recordings(5, 204, 3), days.Options{Strangers: 1})
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

// The trial finds errors: people who look alike are confused, and an office with strict rules names
// nobody.
func TestSees(t *testing.T) {
	alike := fixture.Must(days.Run(t.Context(), space, recordings(4, 204, .4),
		days.Options{Strangers: 2}))(t)
	if alike.Faces.False == 0 || alike.Tracks.False == 0 ||
		alike.Comings.Wrong+alike.Comings.Repeated == 0 {
		t.Errorf("%+v", alike)
	}
	strict := fixture.Must(days.Run(t.Context(), space, recordings(4, 204, 3),
		days.Options{Strangers: 2, Learner: online.Settings{Accept: 1}}))(t)
	if strict.Faces.Right != 0 || strict.Comings.Told != 0 || strict.Comings.Mistaken == 0 {
		t.Errorf("%+v", strict)
	}
}

// A stranger who shows fewer faces than an event needs is counted as such.
func TestShort(t *testing.T) {
	r := fixture.Must(days.Run(t.Context(), space, recordings(3, 84, 3),
		days.Options{Strangers: 1, Away: time.Second}))(t)
	if k := r.Comings; k.Short == 0 || k.Unknown+k.Short > k.Visitors {
		t.Errorf("%+v", k)
	}
}

func TestErrors(t *testing.T) {
	if _, err := days.Run(t.Context(), space, recordings(2, 204, 3),
		days.Options{Strangers: 2}); !errors.Is(err,
		days.ErrTooFew) {
		t.Error(err)
	}
	if r, err := days.Run(t.Context(), space, recordings(3, 4, 3), days.Options{}); !errors.Is(err,
		days.ErrTooFew) ||
		r.People != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	unsure := days.Options{Usable: func(x face.Sample) bool { return x.Score > 0 }}
	if r, err := days.Run(t.Context(), space, recordings(3, 204, 3),
		unsure); !errors.Is(err, days.ErrTooFew) || r.People != 0 {
		t.Errorf("nobody can be enrolled: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := days.Run(ctx, space, recordings(3, 204, 3),
		days.Options{Strangers: 1}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
	bad := space
	bad.Dim = 3
	if _, err := days.Run(t.Context(), bad, recordings(3, 204, 3),
		days.Options{Strangers: 1}); !errors.Is(err,
		face.ErrVector) {
		t.Error(err)
	}
}
