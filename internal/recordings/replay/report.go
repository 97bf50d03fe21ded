// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/sighting"
)

// Report collects the results of a recording. Its size does not grow with the length of the
// recording, only with the number of people.
type Report struct {
	waiting map[int]*waiting // unknown faces by track, until the track is named or lost
	stills  face.Impostors   // of the space

	// Figures of all faces with a name, and of those that stay unknown.
	frames, faces int
	end           time.Duration
	people        map[string]*person // "" for the unknown
	unknown       map[string]int     // faces by reason
	refused       map[string]int     // faces not learned, by the defect of the picture
	doubles       int                // faces that show somebody in view a second time
	// faces not learned because there was no room for another centroid
	noRoom int
	poor   timeline      // of the refused faces
	width  time.Duration // of a bin of the timelines, the same for all
}

// waiting holds the faces of a track that has no name yet.
type waiting struct {
	person
	reasons map[string]int
	double  bool // the track shows somebody in view a second time
}

// lost is longer than a tracker waits for a person who is out of view.
const lost = 10 * time.Second

// person holds the results for all faces of one name.
type person struct {
	Faces, Learned int
	Later          int // faces named later, when their sighting became known
	Confirmed      int // of the faces
	Along          int // of the others, those of a confirmed person in view
	First, Last    time.Duration
	Measured       int     // of the faces, those with a distance
	Distance       float64 // sum of their distances
	Line           timeline
	album
}

// NewReport returns an empty report of faces of a space.
func NewReport(space face.Space) *Report {
	return &Report{
		stills: space.Stills, waiting: map[int]*waiting{},
		people: map[string]*person{}, unknown: map[string]int{}, refused: map[string]int{},
		width: 100 * time.Millisecond,
	}
}

// Add adds a frame.
func (r *Report) Add(f Frame) {
	r.frames++
	r.end = max(r.end, f.Time)
	for r.end >= r.width*maxBins {
		r.width *= 2
		r.poor.halve()
		for _, p := range r.people {
			p.Line.halve()
		}
		for _, w := range r.waiting {
			w.Line.halve()
		}
	}
	r.settle(f.Time - lost)
	column := int(f.Time / r.width)
	for i, e := range f.Events {
		r.faces++
		if e.Poor {
			r.refused[string(f.Samples[i].Reason)]++
			r.poor.add(column, 1)
		}
		var p *person
		switch name := cmp.Or(e.Label, e.Name); {
		case name == "":
			w := r.waiting[e.Track]
			if w == nil {
				w = &waiting{person: person{First: f.Time}, reasons: map[string]int{}}
				r.waiting[e.Track] = w
			}
			w.reasons[e.Reason]++
			w.double = e.Double != ""
			p = &w.person
		default:
			p = r.person(name, f.Time)
		}
		if e.Name != "" {
			r.known(e.Track, e.Name)
		}
		p.Faces++
		switch sighting.Confirmed {
		case e.Trust:
			p.Confirmed++
		case e.NameTrust:
			p.Along++
		}
		if e.Learned {
			p.Learned++
		}
		if e.NoRoom {
			r.noRoom++
		}
		p.First, p.Last = min(p.First, f.Time), max(p.Last, f.Time)
		if e.Label != "" {
			p.Measured++
			p.Distance += e.Distance
		}
		p.Line.add(column, 1)
		if jpeg := f.Samples[i].JPEG; jpeg != nil {
			p.album.add(picture{jpeg, f.Time, e.Label != "", e.Distance, e.File})
		}
	}
}

// person returns the results for a name.
func (r *Report) person(name string, first time.Duration) *person {
	p := r.people[name]
	if p == nil {
		p = &person{First: first}
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
	p := r.person(name, w.First)
	p.Later += w.Faces
	p.join(w.person)
}

// settle counts the faces of tracks that were last seen before a moment as unknown. A mirror image
// of somebody in view is nobody else, as in an office.
func (r *Report) settle(before time.Duration) {
	// In order: the kept pictures, and the rounding of sums, depend on it.
	for _, track := range slices.Sorted(maps.Keys(r.waiting)) {
		w := r.waiting[track]
		if w.Last >= before {
			continue
		}
		delete(r.waiting, track)
		if w.double {
			r.doubles += w.Faces
			continue
		}
		p := r.person("", w.First)
		p.join(w.person)
		for _, pic := range w.Pictures {
			p.album.add(pic)
		}
		for reason, n := range w.reasons {
			r.unknown[reason] += n
		}
	}
}

// join adds the faces of q, but not their pictures.
func (p *person) join(q person) {
	p.Faces += q.Faces
	p.First, p.Last = min(p.First, q.First), max(p.Last, q.Last)
	p.Measured += q.Measured
	p.Distance += q.Distance
	for i, faces := range q.Line {
		p.Line.add(i, faces)
	}
}

// maxBins is the number of columns of a timeline.
const maxBins = 512

// timeline holds the number of faces in each of a row of bins of equal width.
type timeline []int

func (t *timeline) add(i, faces int) {
	for len(*t) <= i {
		*t = append(*t, 0)
	}
	(*t)[i] += faces
}

// halve joins each pair of bins.
func (t *timeline) halve() {
	var half timeline
	for i, faces := range *t {
		half.add(i/2, faces)
	}
	*t = half
}

// picture is a face to show.
type picture struct {
	JPEG     []byte
	At       time.Duration
	Measured bool // it has a distance
	Distance float64
	File     string // of a photograph
}

// album keeps a few pictures with long times between them.
type album struct {
	Pictures []picture
	Apart    time.Duration
}

const maxPictures = 8

func (a *album) add(p picture) {
	if n := len(a.Pictures); n > 0 && p.At-a.Pictures[n-1].At < a.Apart {
		// Of pictures close together, keep the one nearest to an enrolled face.
		if last := &a.Pictures[n-1]; p.Measured && (!last.Measured || p.Distance < last.Distance) {
			p.At = last.At
			*last = p
		}
		return
	}
	a.Pictures = append(a.Pictures, p)
	if len(a.Pictures) < 2*maxPictures {
		return
	}
	for i := range maxPictures {
		a.Pictures[i] = a.Pictures[2*i]
	}
	clear(a.Pictures[maxPictures:])
	a.Pictures = a.Pictures[:maxPictures]
	a.Apart = max(2*a.Apart, (p.At-a.Pictures[0].At)/maxPictures)
}

// spread returns at most maxPictures of the album, evenly spaced.
func (a *album) spread() []picture {
	n := len(a.Pictures)
	if n <= maxPictures {
		return a.Pictures
	}
	s := make([]picture, maxPictures)
	for i := range s {
		s[i] = a.Pictures[i*(n-1)/(maxPictures-1)]
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
	// faces judged but not learned, by the defect of the picture
	Refused map[string]int `json:"refused_reasons"`
	// NoRoom counts faces judged but not learned because there was no room for another centroid.
	NoRoom int `json:"no_room"`
	// Doubles counts faces that show somebody in view a second time, as a mirror does. They are
	// nobody unknown.
	Doubles int `json:"doubles"`
}

// PersonSummary is the part of a report about one person.
type PersonSummary struct {
	Name    string `json:"name"`
	Faces   int    `json:"faces"`
	Learned int    `json:"learned"`
	// Confirmed counts the faces whose name does not rest on learned faces; see sighting.Confirmed.
	Confirmed int `json:"confirmed"`
	// of the others, faces while the person in view was confirmed, such as turned heads
	Along int `json:"along"`
	// faces that got the name later, when a person in view was recognised
	Later int     `json:"later"`
	First float64 `json:"first"` // seconds
	Last  float64 `json:"last"`
	// Distance is the mean distance of the faces with this name to the nearest enrolled one, and
	// Rarity says how seldom a stranger comes as near. 0 and "" for the unknown; "" also in a space
	// that was not measured.
	Distance float64 `json:"distance"`
	Rarity   string  `json:"rarity,omitempty"`
}

// Summary returns the figures of r. Call it at the end of the recording.
func (r *Report) Summary() Summary {
	r.settle(r.end + 1)
	s := Summary{
		Frames: r.frames, Faces: r.faces, Duration: r.end.Seconds(),
		People: []PersonSummary{}, Reasons: maps.Clone(r.unknown), Refused: maps.Clone(r.refused),
		NoRoom: r.noRoom, Doubles: r.doubles,
	}
	for _, name := range r.names() {
		s.People = append(s.People, r.people[name].summary(name, r.stills))
	}
	if p := r.people[""]; p != nil {
		s.Unknown = p.summary("", r.stills)
	}
	return s
}

func (p *person) summary(name string, m face.Impostors) PersonSummary {
	s := PersonSummary{Name: name, Faces: p.Faces, Learned: p.Learned, Confirmed: p.Confirmed,
		Along: p.Along, Later: p.Later, First: p.First.Seconds(), Last: p.Last.Seconds()}
	if p.Measured > 0 {
		s.Distance = p.Distance / float64(p.Measured)
		s.Rarity = m.Rarity(s.Distance)
	}
	return s
}

// names returns the people in the order of their first appearance.
func (r *Report) names() []string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(r.people)), func(s string) bool {
		return s == ""
	})
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.people[a].First, r.people[b].First), cmp.Compare(a, b))
	})
	return names
}

// WriteText writes the summary as aligned lines for a person.
func (s Summary) WriteText(w io.Writer) error {
	t := table.New(w, 3)
	fmt.Fprintf(t, "%s, %s, %s\n", plural(s.Frames, "frame"), clock(s.Duration),
		plural(s.Faces, "face"))
	for _, p := range s.People {
		fmt.Fprintf(t, "  %s\t%s\t%s to %s\t%s\t%s\n", p.Name, plural(p.Faces, "face"),
			clock(p.First), clock(p.Last), p.rests(), p.near())
	}
	if s.Unknown.Faces > 0 {
		fmt.Fprintf(t, "  unknown\t%s\t%s to %s\t%s\n", plural(s.Unknown.Faces, "face"),
			clock(s.Unknown.First), clock(s.Unknown.Last), Tally(s.Reasons))
	}
	if s.Doubles > 0 {
		fmt.Fprintf(t, "  again\t%s\tmirror images or pictures of people in view\n",
			plural(s.Doubles, "face"))
	}
	if n := sum(s.Refused); n > 0 {
		fmt.Fprintf(t, "  not learned\t%s\tpoor pictures\t%s\n", plural(n, "face"),
			Tally(s.Refused))
	}
	if s.NoRoom > 0 {
		fmt.Fprintf(t, "  not learned\t%s\tno room\tuse a larger k\n", plural(s.NoRoom, "face"))
	}
	return t.Flush()
}

// rests describes the evidence for the name.
func (p PersonSummary) rests() string {
	if p.Confirmed > 0 && p.Along > 0 {
		return fmt.Sprintf("confirmed: %d, and %d more in confirmed sightings", p.Confirmed,
			p.Along)
	}
	if p.Confirmed > 0 {
		return fmt.Sprintf("confirmed: %d", p.Confirmed)
	}
	return "not confirmed"
}

// near says how near the faces are: how rare that is, or, if unknown, the distance.
func (p PersonSummary) near() string {
	if p.Rarity == "" {
		return fmt.Sprintf("distance %.2f", p.Distance)
	}
	return p.Rarity
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// clock writes seconds as minutes and seconds, and hours if there are any.
func clock(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, (d % time.Minute).Seconds()
	if h > 0 {
		return fmt.Sprintf("%d:%02d:%04.1f", h, m, s)
	}
	return fmt.Sprintf("%d:%04.1f", m, s)
}

// Tally writes counts by reason, the largest first.
func Tally(counts map[string]int) string {
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%s: %d", r, counts[r])
	}
	return strings.Join(reasons, ", ")
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
