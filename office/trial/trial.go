// SPDX-License-Identifier: Apache-2.0

// Package trial measures an office on recordings: who is named, as whom, and whether what is said of their coming and
// going is true.
//
// [Run] composes days out of recordings of single people, in which they come and go, cross, and are hidden behind each
// other, and has an [office.Office] watch them. It knows who is who.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// ErrTooFew is wrapped by the error of [Run] where the recordings show too few people for the trial.
var ErrTooFew = errors.New("too few people")

// Recording is one of a person. Of several faces in a frame the largest counts. The first of a person is the one from
// which they are enrolled.
type Recording struct {
	Person string
	Frames []face.Frame
}

// Options of a trial. The zero value of each field stands for its default.
type Options struct {
	Strangers int             // people of a day whom nobody has named
	Cameras   int             // Default 2
	Enroll    int             // faces labelled of each of the others. Default 4
	Visits    int             // into which each recording is cut. Default 4
	Away      time.Duration   // after which one who is not seen has left. Default 10 s
	Days      int             // at most; there is one for each choice of strangers. Default 30
	Seed      uint64          // of the lot
	Learner   online.Settings // of each day's learner
	Rules     sighting.Rules  // by which somebody in view is taken for a person
	// Spare holds faces that are as they were, as package pipeline does where faces move. It takes recordings with
	// pictures of the faces.
	Spare  bool
	Usable func(face.Quality) bool
	Day    func() // told when a day is over

	// Devices share the cameras of a day, each in an office of its own. The same people are enrolled on all of them, with
	// the same faces. Comings are counted of one device only. Default 1
	Devices int
	// Share is how often devices give each other what they have learned. Default: never.
	Share time.Duration
	// Poison is what another device, which has no camera, gives all of them as the day begins. Default: nothing.
	Poison Poison
	// Blend returns the vectors of pictures on the way from one face to another, for Blended. The faces have the pictures
	// that the recordings have.
	Blend func(from, to face.Sample) ([][]float32, error)
	// Withdraw is when devices take that back. Default: never.
	Withdraw time.Duration
}

// judged returns how many faces word of somebody unknown takes.
func (o Options) judged() float64 { return presence.Settings{}.Defaults().Judged }

func (o Options) defaults() Options {
	o.Cameras = cmp.Or(o.Cameras, 2)
	o.Enroll = cmp.Or(o.Enroll, 4)
	o.Visits = cmp.Or(o.Visits, 4)
	o.Away = cmp.Or(o.Away, 10*time.Second)
	o.Days = cmp.Or(o.Days, 30)
	o.Devices = cmp.Or(o.Devices, 1)
	if o.Usable == nil {
		o.Usable = func(face.Quality) bool { return true }
	}
	if o.Day == nil {
		o.Day = func() {}
	}
	return o
}

// Names counts what was named.
type Names struct {
	Known     int           `json:"known"`     // faces, or sightings, of people who are enrolled
	Strangers int           `json:"strangers"` // of others
	Right     int           `json:"right"`     // of the known, under their own name
	Wrong     int           `json:"wrong"`     // of the known, under another
	False     int           `json:"false"`     // of the strangers, under any
	Precision evaluate.Rate `json:"precision"` // share of right ones of all that were named
	Recall    evaluate.Rate `json:"recall"`    // share of right ones of the known
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

// Comings counts what was said of people who come and go.
type Comings struct {
	Stays    int `json:"stays"`    // of people who are enrolled, with no pause in which they leave
	Told     int `json:"told"`     // of these, with an arrival
	Repeated int `json:"repeated"` // arrivals in a stay that had one
	Wrong    int `json:"wrong"`    // arrivals of people who were not there
	LeftTold int `json:"left"`     // of the stays with an arrival, with a departure within a second of their end
	Early    int `json:"early"`    // other departures
	Unknown  int `json:"unknown"`  // stays of strangers with word of them
	Visitors int `json:"visitors"` // stays of strangers
	Short    int `json:"short"`    // of these without word, with fewer faces than word of somebody unknown takes
	Mistaken int `json:"mistaken"` // times that somebody who is enrolled was said to be somebody unknown
}

// Report is what a trial came to.
type Report struct {
	People  int   `json:"people"`
	Days    int   `json:"days"`
	Frames  int   `json:"frames"`  // of all cameras
	Crowded int   `json:"crowded"` // of these, with several faces
	Held    int   `json:"held"`    // faces that were held, and not looked at
	Faces   Names `json:"faces"`   // by what was said of each when it was seen
	// Confirmed counts names that are confirmed alone.
	Confirmed Names `json:"confirmed"`
	// Exchanges is how often devices gave each other what they had learned; Given the centroids of all that one device
	// gave at the end of a day, Bytes what they take, and Kept those that a device judged by then: all of them summed over
	// devices and days.
	Exchanges int     `json:"exchanges"`
	Given     int     `json:"given"`
	Kept      int     `json:"kept"`
	Bytes     int     `json:"bytes"`
	Later     Names   `json:"later"`    // a sighting that becomes known names its earlier faces, too
	Tracks    Names   `json:"tracks"`   // sightings, each by the name that it had for longest, if it had any
	Switches  int     `json:"switches"` // times that a sighting went over to somebody else
	Parts     int     `json:"parts"`    // sightings beyond one for each visit
	Visits    int     `json:"visits"`
	Comings   Comings `json:"comings"`
}

// subject is a person with what is shown of them.
type subject struct {
	name    string
	enroll  [][]float32
	samples []face.Sample // of the same
	visits  [][]shown     // one without a space is a frame without a face
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Run has an office watch a day for each choice of strangers, or for as many as it should, drawn by lot. The error
// wraps [ErrTooFew], or is that of [office.Office.Run].
func Run(ctx context.Context, space face.Space, all []Recording, o Options) (Report, error) {
	o = o.defaults()
	people := subjects(all, o)
	r := Report{People: len(people)}
	if o.Poison == Blended && o.Blend == nil {
		return r, errors.New("blended lessons take a way to blend two faces, and Blend is nil")
	}
	if len(people) <= o.Strangers {
		return r, fmt.Errorf("%w: %d can be enrolled, and %d are to be strangers", ErrTooFew, len(people), o.Strangers)
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

// choices returns the ways of choosing k of n, at most as many as most, drawn by lot.
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

// subjects cuts recordings into what is enrolled and what is shown. Who cannot be enrolled is not among them.
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
				if s.Vector != nil && s.Reason == "" && o.Usable(s.Quality) {
					p.enroll, p.samples = append(p.enroll, s.Vector), append(p.samples, s)
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
			if len(part) >= n { // not what is left over
				p.visits = append(p.visits, part)
			}
		}
	}
	return slices.DeleteFunc(people, func(p subject) bool { return len(p.enroll) < o.Enroll || len(p.visits) == 0 })
}

// largest returns the largest face of a frame, or one without a space where there is none.
func largest(f face.Frame) (best face.Sample) {
	for _, s := range f.Samples {
		if best.Space == "" || s.Box.Dx()*s.Box.Dy() > best.Box.Dx()*best.Box.Dy() {
			best = s
		}
	}
	return best
}

// day has the offices of all devices watch one day, and counts.
func (r *Report) day(ctx context.Context, space face.Space, rnd *rand.Rand, people []subject, strangers []int, o Options) error {
	known := make(map[string]bool)
	for i, p := range people {
		known[p.name] = !slices.Contains(strangers, i)
	}
	fleet := &fleet{o: o, r: r}
	for range o.Devices {
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
		fleet.devices = append(fleet.devices, g)
	}
	if err := fleet.poison(people, known); err != nil {
		return err
	}
	d := compose(rnd, people, o)
	count := newCounter(r, d, known)
	clock := &clock{now: noon}
	ring := make([]chan struct{}, o.Cameras)
	for c := range ring {
		ring[c] = make(chan struct{}, 2)
	}
	ring[0] <- struct{}{}
	cameras := make([][]office.Camera, o.Devices)
	for c := range o.Cameras {
		of := &cameras[c%o.Devices]
		*of = append(*of, office.Camera{Name: cameraName(c), Ends: true, Open: func(context.Context, func() bool) (office.Stream, error) {
			t := &turns{frames: d.frames[c], turn: ring[c], next: ring[(c+1)%o.Cameras], clock: clock, fleet: fleet}
			if o.Spare {
				t.spare = newSpare(d.patches[c], &r.Held)
			}
			return t, nil
		}})
	}
	// The end of one ends all: the others would wait for its turns.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, g := range fleet.devices {
		opt := office.Options{
			Presence: presence.Settings{Away: o.Away}, Rules: o.Rules, Now: clock.get, Clock: func(f face.Frame) time.Time { return noon.Add(f.Time) },
			Frame: func(camera string, at time.Time, seen []office.Seen) { count.frame(i, camera, at, seen) },
		}
		if o.Devices == 1 {
			opt.Event = func(e presence.Event) { count.events = append(count.events, e) }
		}
		w := office.New(g, opt)
		all.Add(1)
		go func() {
			defer all.Done()
			if err := w.Run(ctx, cameras[i]); err != nil {
				cancel(err)
			}
		}()
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	count.end(o)
	return fleet.end()
}

func cameraName(c int) string { return fmt.Sprintf("camera %d", c+1) }
