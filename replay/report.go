// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/sighting"
)

// Report collects the results of a recording. Its size does not grow with the length of the recording, only with the
// number of people.
type Report struct {
	frames, faces int
	end           time.Duration
	people        map[string]*person // "" for the unknown
	unknown       map[string]int     // faces by reason
	refused       map[string]int     // faces not learned, by the defect of the picture
	noRoom        int                // faces not learned because there was no room for another centroid
	poor          timeline           // of the refused faces
	width         time.Duration      // of a bin of the timelines, the same for all
	waiting       map[int]*waiting   // unknown faces by track, until the track is named or lost
}

// waiting holds the faces of a track that has no name yet.
type waiting struct {
	person
	reasons map[string]int
}

// lost is longer than a tracker waits for a person who is out of view.
const lost = 10 * time.Second

// person holds the results for all faces of one name.
type person struct {
	faces, learned int
	later          int // faces named later, when their sighting became known
	confirmed      int // of the faces
	first, last    time.Duration
	confidence     float64 // sum
	line           timeline
	pictures       album
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{
		people: map[string]*person{}, unknown: map[string]int{}, refused: map[string]int{},
		width: 100 * time.Millisecond, waiting: map[int]*waiting{},
	}
}

func (r *Report) add(f face.Frame, events []Event) {
	r.frames++
	r.end = max(r.end, f.Time)
	for r.end >= r.width*maxBins {
		r.width *= 2
		r.poor.halve()
		for _, p := range r.people {
			p.line.halve()
		}
		for _, w := range r.waiting {
			w.line.halve()
		}
	}
	r.settle(f.Time - lost)
	column := int(f.Time / r.width)
	for i, e := range events {
		r.faces++
		if e.Poor {
			r.refused[string(f.Samples[i].Reason)]++
			r.poor.add(column, 0)
		}
		var p *person
		switch name := cmp.Or(e.Label, e.Name); {
		case name == "":
			w := r.waiting[e.Track]
			if w == nil {
				w = &waiting{person: person{first: f.Time}, reasons: map[string]int{}}
				r.waiting[e.Track] = w
			}
			w.reasons[e.Reason]++
			p = &w.person
		default:
			p = r.person(name, f.Time)
		}
		if e.Name != "" {
			r.known(e.Track, e.Name)
		}
		p.faces++
		if e.Trust == sighting.Confirmed {
			p.confirmed++
		}
		if e.Learned {
			p.learned++
		}
		if e.NoRoom {
			r.noRoom++
		}
		p.first, p.last = min(p.first, f.Time), max(p.last, f.Time)
		p.confidence += e.Confidence
		p.line.add(column, e.Confidence)
		if jpeg := f.Samples[i].JPEG; jpeg != nil {
			p.pictures.add(picture{jpeg, f.Time, e.Confidence})
		}
	}
}

// person returns the results for a name.
func (r *Report) person(name string, first time.Duration) *person {
	p := r.people[name]
	if p == nil {
		p = &person{first: first}
		r.people[name] = p
	}
	return p
}

// known assigns the faces of a track to a person, also earlier faces of the track.
func (r *Report) known(track int, name string) {
	w := r.waiting[track]
	if w == nil {
		return
	}
	delete(r.waiting, track)
	p := r.person(name, w.first)
	p.later += w.faces
	p.join(w.person)
}

// settle counts the faces of tracks that were last seen before a moment as unknown.
func (r *Report) settle(before time.Duration) {
	// In order: the kept pictures, and the rounding of sums, depend on it.
	for _, track := range slices.Sorted(maps.Keys(r.waiting)) {
		w := r.waiting[track]
		if w.last >= before {
			continue
		}
		delete(r.waiting, track)
		p := r.person("", w.first)
		p.join(w.person)
		for _, pic := range w.pictures.pictures {
			p.pictures.add(pic)
		}
		for reason, n := range w.reasons {
			r.unknown[reason] += n
		}
	}
}

// join adds the faces of q, but not their pictures.
func (p *person) join(q person) {
	p.faces += q.faces
	p.first, p.last = min(p.first, q.first), max(p.last, q.last)
	p.confidence += q.confidence
	for i, b := range q.line.bins {
		if b.n > 0 {
			p.line.join(i, b)
		}
	}
}

// maxBins is the number of columns of a timeline.
const maxBins = 512

// timeline is a row of bins of equal width.
type timeline struct{ bins []bin }

type bin struct {
	n        int
	min, max float64
	sum      float64
}

func (t *timeline) add(i int, confidence float64) {
	t.join(i, bin{1, confidence, confidence, confidence})
}

func (t *timeline) join(i int, b bin) {
	for len(t.bins) <= i {
		t.bins = append(t.bins, bin{})
	}
	t.bins[i].join(b)
}

func (b *bin) join(c bin) {
	switch {
	case c.n == 0:
	case b.n == 0:
		*b = c
	default:
		*b = bin{b.n + c.n, min(b.min, c.min), max(b.max, c.max), b.sum + c.sum}
	}
}

// halve joins each pair of bins.
func (t *timeline) halve() {
	for i := range t.bins {
		b := t.bins[i]
		t.bins[i] = bin{}
		t.bins[i/2].join(b)
	}
	t.bins = t.bins[:(len(t.bins)+1)/2]
}

// picture is a face to show.
type picture struct {
	jpeg       []byte
	at         time.Duration
	confidence float64
}

// album keeps a few pictures with long times between them.
type album struct {
	pictures []picture
	apart    time.Duration
}

const maxPictures = 8

func (a *album) add(p picture) {
	if n := len(a.pictures); n > 0 && p.at-a.pictures[n-1].at < a.apart {
		// Of pictures close together, keep the picture with the highest confidence.
		if p.confidence > a.pictures[n-1].confidence {
			a.pictures[n-1].jpeg, a.pictures[n-1].confidence = p.jpeg, p.confidence
		}
		return
	}
	a.pictures = append(a.pictures, p)
	if len(a.pictures) < 2*maxPictures {
		return
	}
	for i := range maxPictures {
		a.pictures[i] = a.pictures[2*i]
	}
	clear(a.pictures[maxPictures:])
	a.pictures = a.pictures[:maxPictures]
	a.apart = max(2*a.apart, (p.at-a.pictures[0].at)/maxPictures)
}

// spread returns at most maxPictures of the album, evenly spaced.
func (a *album) spread() []picture {
	n := len(a.pictures)
	if n <= maxPictures {
		return a.pictures
	}
	s := make([]picture, maxPictures)
	for i := range s {
		s[i] = a.pictures[i*(n-1)/(maxPictures-1)]
	}
	return s
}

// Summary is a report in figures.
type Summary struct {
	Frames   int             `json:"frames"`
	Faces    int             `json:"faces"`
	Duration float64         `json:"duration"` // seconds
	People   []PersonSummary `json:"people"`   // by first appearance
	Unknown  PersonSummary   `json:"unknown"`
	Reasons  map[string]int  `json:"unknown_reasons"` // unknown faces by reason
	Refused  map[string]int  `json:"refused_reasons"` // faces judged but not learned, by the defect of the picture
	// NoRoom counts faces judged but not learned because there was no room for another centroid.
	NoRoom int `json:"no_room"`
}

// PersonSummary is the part of a report about one person.
type PersonSummary struct {
	Name    string `json:"name"`
	Faces   int    `json:"faces"`
	Learned int    `json:"learned"`
	// Confirmed counts the faces whose name does not rest on learned faces; see sighting.Confirmed.
	Confirmed  int     `json:"confirmed"`
	Later      int     `json:"later"` // faces that got the name later, when a person in view was recognised
	First      float64 `json:"first"` // seconds
	Last       float64 `json:"last"`
	Confidence float64 `json:"confidence"` // mean
}

// Summary returns the figures of r. Call it at the end of the recording.
func (r *Report) Summary() Summary {
	r.settle(r.end + 1)
	s := Summary{
		Frames: r.frames, Faces: r.faces, Duration: r.end.Seconds(),
		People: []PersonSummary{}, Reasons: maps.Clone(r.unknown), Refused: maps.Clone(r.refused),
		NoRoom: r.noRoom,
	}
	for _, name := range r.names() {
		s.People = append(s.People, r.people[name].summary(name))
	}
	if p := r.people[""]; p != nil {
		s.Unknown = p.summary("")
	}
	return s
}

func (p *person) summary(name string) PersonSummary {
	return PersonSummary{name, p.faces, p.learned, p.confirmed, p.later, p.first.Seconds(), p.last.Seconds(),
		p.confidence / float64(p.faces)}
}

// names returns the people in the order of their first appearance.
func (r *Report) names() []string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(r.people)), func(s string) bool { return s == "" })
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.people[a].first, r.people[b].first), cmp.Compare(a, b))
	})
	return names
}
