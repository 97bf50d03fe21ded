// SPDX-License-Identifier: Apache-2.0

// Package days measures an office on recordings: whether people get the right names, and whether
// arrivals and departures are right.
//
// [Run] composes days from recordings of single people, who come and go, cross, and hide each
// other, and lets an [office.Office] watch them. It knows the true names.
package days

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// ErrTooFew is wrapped by the error of [Run] if the recordings show too few people.
var ErrTooFew = errors.New("too few people")

// Recording is a recording of one person. In a frame with several faces, the largest counts. The
// first recording of a person is used for enrolment.
type Recording struct {
	Person string
	Frames []face.Frame
}

// Options of a trial. A zero field means the default.
type Options struct {
	Strangers int           // number of people of a day without a name
	Cameras   int           // Default 2
	Enroll    int           // number of labelled faces of each other person. Default 4
	Visits    int           // number of parts into which each recording is cut. Default 4
	Away      time.Duration // a person who is not seen for this time has left. Default 10 s
	// greatest number of days; each choice of strangers is a day. Default 30
	Days    int
	Seed    uint64          // seed of the random numbers
	Learner online.Settings // of each day's learner
	// Spare holds unchanged faces, as package pipeline does for moving faces. The recordings must
	// have pictures of the faces.
	Spare bool
	// Usable says which faces may be labelled. Default: those without a reason against it
	Usable func(face.Sample) bool
	Day    func() // called when a day is over
}

func (o Options) defaults() Options {
	o.Cameras = cmp.Or(o.Cameras, 2)
	o.Enroll = cmp.Or(o.Enroll, 4)
	o.Visits = cmp.Or(o.Visits, 4)
	o.Away = cmp.Or(o.Away, 10*time.Second)
	o.Days = cmp.Or(o.Days, 30)
	if o.Usable == nil {
		o.Usable = func(x face.Sample) bool { return x.Reason == "" }
	}
	if o.Day == nil {
		o.Day = func() {}
	}
	return o
}

// Names counts right and wrong names.
type Names struct {
	Known     int           `json:"known"`     // faces, or sightings, of enrolled people
	Strangers int           `json:"strangers"` // faces, or sightings, of strangers
	Right     int           `json:"right"`     // of the known, with the right name
	Wrong     int           `json:"wrong"`     // of the known, with a wrong name
	False     int           `json:"false"`     // of the strangers, with any name
	Precision evaluate.Rate `json:"precision"` // right names, as a share of all names
	Recall    evaluate.Rate `json:"recall"`    // right names, as a share of the known
}

func (n *Names) rates() {
	n.Precision = rate(n.Right, n.Right+n.Wrong+n.False)
	n.Recall = rate(n.Right, n.Known)
}

func rate(n, of int) evaluate.Rate { return evaluate.Rate(float64(n) / float64(of)) }

func (n *Names) add(truth, name string, known bool) {
	switch {
	case known:
		n.Known++
	default:
		n.Strangers++
	}
	switch {
	case name == "":
	case name == truth:
		n.Right++
	case known:
		n.Wrong++
	default:
		n.False++
	}
}

// Comings counts right and wrong arrivals and departures.
type Comings struct {
	Stays    int `json:"stays"`    // stays of enrolled people, without a pause in which they leave
	Told     int `json:"told"`     // of these, with an arrival event
	Repeated int `json:"repeated"` // further arrivals in the same stay
	Wrong    int `json:"wrong"`    // arrivals of absent people
	// of the stays with an arrival, those with a departure within a second of the end
	LeftTold int `json:"left"`
	Early    int `json:"early"`    // other departures
	Unknown  int `json:"unknown"`  // stays of strangers with an Unknown event
	Visitors int `json:"visitors"` // stays of strangers
	Short    int `json:"short"`    // of these without an event, those with too few faces for one
	Mistaken int `json:"mistaken"` // Unknown events about enrolled people
}

// Report is the result of a trial.
type Report struct {
	People  int   `json:"people"`
	Days    int   `json:"days"`
	Frames  int   `json:"frames"`  // of all cameras
	Crowded int   `json:"crowded"` // of these, with several faces
	Held    int   `json:"held"`    // held faces, which were not judged
	Faces   Names `json:"faces"`   // by the name of each face when it was seen
	// Confirmed counts confirmed names only.
	Confirmed Names `json:"confirmed"`
	// the same, if the later name of a sighting counts for its earlier faces
	Later    Names   `json:"later"`
	Tracks   Names   `json:"tracks"`   // sightings, by the name that each had for longest
	Switches int     `json:"switches"` // times that a sighting changed to another person
	Parts    int     `json:"parts"`    // number of sightings beyond one per visit
	Visits   int     `json:"visits"`
	Comings  Comings `json:"comings"`
}

// subject is a person with their faces and visits.
type subject struct {
	name   string
	enroll [][]float32
	visits [][]shown // one without a space is a frame without a face
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Run lets an office watch a day for each choice of strangers, or for as many random choices as
// Options says. The error wraps [ErrTooFew], or is that of [office.Office.Run] or of ctx.
func Run(ctx context.Context, space face.Space, all []Recording, o Options) (Report, error) {
	o = o.defaults()
	people := subjects(all, o)
	r := Report{People: len(people)}
	if len(people) <= o.Strangers {
		return r, fmt.Errorf("%w: %d can be enrolled, and %d are to be strangers", ErrTooFew,
			len(people), o.Strangers)
	}
	rnd := rand.New(rand.NewPCG(o.Seed, 6))
	for _, strangers := range choices(rnd, len(people), o.Strangers, o.Days) {
		if err := r.day(ctx, space, rnd, people, strangers, o); err != nil {
			return r, err
		}
		r.Days++
		o.Day()
	}
	r.Faces.rates()
	r.Confirmed.rates()
	r.Later.rates()
	r.Tracks.rates()
	return r, nil
}

// choices returns at most "most" ways of choosing k of n, drawn at random.
func choices(rnd *rand.Rand, n, k, most int) (all [][]int) {
	var choose func(from int, chosen []int)
	choose = func(from int, chosen []int) {
		if len(chosen) == k {
			all = append(all, slices.Clone(chosen))
			return
		}
		for i := from; i < n; i++ {
			choose(i+1, append(chosen, i))
		}
	}
	choose(0, nil)
	if len(all) > most {
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:most]
	}
	return all
}

// subjects divides recordings into enrolled faces and visits. It leaves out people who cannot be
// enrolled.
func subjects(all []Recording, o Options) (people []subject) {
	at := make(map[string]int)
	for _, rec := range all {
		i, there := at[rec.Person]
		if !there {
			i = len(people)
			at[rec.Person] = i
			people = append(people, subject{name: rec.Person})
		}
		p := &people[i]
		var rest []shown
		for _, f := range rec.Frames {
			s := largest(f)
			if len(p.enroll) < o.Enroll && len(p.visits) == 0 {
				if s.Vector != nil && o.Usable(s) {
					p.enroll = append(p.enroll, s.Vector)
				}
				continue
			}
			x := shown{Sample: s}
			if o.Spare {
				x.patch = patch(s)
			} else {
				x.Landmarks = nil
			}
			x.JPEG = nil
			rest = append(rest, x)
		}
		n := max(1, len(rest)/o.Visits)
		for part := range slices.Chunk(rest, n) {
			if len(part) >= n { // skip a short rest
				p.visits = append(p.visits, part)
			}
		}
	}
	return slices.DeleteFunc(people, func(p subject) bool {
		return len(p.enroll) < o.Enroll || len(p.visits) == 0
	})
}

// largest returns the largest face of a frame. Without a face the result has no space.
func largest(f face.Frame) (best face.Sample) {
	for _, s := range f.Samples {
		if best.Space == "" || s.Box.Dx()*s.Box.Dy() > best.Box.Dx()*best.Box.Dy() {
			best = s
		}
	}
	return best
}

// day lets an office watch one day, and counts.
func (r *Report) day(
	ctx context.Context,
	space face.Space,
	rnd *rand.Rand,
	people []subject,
	strangers []int,
	o Options,
) error {
	known := make(map[string]bool)
	for i, p := range people {
		known[p.name] = !slices.Contains(strangers, i)
	}
	g, err := gallery.New(space, o.Learner)
	if err != nil {
		return err
	}
	for _, p := range people {
		if !known[p.name] {
			continue
		}
		if _, err := g.Enroll(p.name, p.enroll, noon, gallery.Enrolment{Force: true}); err != nil {
			return err
		}
	}
	d := compose(rnd, people, o)
	count := newCounter(r, d, known)
	clock := &clock{now: noon}
	ring := make([]chan struct{}, o.Cameras)
	for c := range ring {
		ring[c] = make(chan struct{}, 2)
	}
	ring[0] <- struct{}{}
	cameras := make([]office.Camera, o.Cameras)
	for c := range cameras {
		cameras[c] = office.Camera{
			Name: cameraName(c),
			Ends: true,
			Open: func(context.Context, func() bool) (office.Stream, error) {
				t := &turns{frames: d.frames[c], turn: ring[c], next: ring[(c+1)%o.Cameras],
					clock: clock}
				if o.Spare {
					t.spare = newSpare(d.patches[c], &r.Held)
				}
				return t, nil
			},
		}
	}
	past, err := office.OpenPast(g, "", office.PastSettings{})
	if err != nil {
		return err
	}
	w := office.New(past, office.Options{
		Presence: presence.Settings{Away: o.Away},
		Now:      clock.get,
		Clock:    func(f face.Frame) time.Time { return noon.Add(f.Time) },
		Frame:    count.frame,
		Event:    func(e presence.Event) { count.events = append(count.events, e) },
	})
	if err := w.Run(ctx, cameras); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // the day has not ended
		return err
	}
	count.end(o)
	return nil
}

func cameraName(c int) string { return fmt.Sprintf("camera %d", c+1) }
