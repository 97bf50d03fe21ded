// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/fxamacker/cbor/v2"
)

// Point is a place in a recording where nobody is in view, after which an interrupted run can continue.
type Point struct {
	Frame  int           `cbor:"frame"` // index of the last frame before the point
	Time   time.Duration `cbor:"time"`  // of that frame
	Tracks int           `cbor:"tracks"`
}

// pauseEvery is the least time between two points, by the clock of the recording.
const pauseEvery = 2 * time.Minute

// pause returns a point after a frame, if a point is due and possible.
func (r *Report) pause(s face.Stream, f face.Frame, since time.Duration, live []int, next int) (Point, bool) {
	n, ok := s.(face.Renewer)
	if !ok || f.Time-since < pauseEvery || len(f.Samples)+len(live)+len(r.waiting) > 0 || !n.Renew() {
		return Point{}, false
	}
	return Point{f.Index, f.Time, next}, true
}

// errWaiting is the error of saving a report while a person is in view.
var errWaiting = errors.New("a report cannot be saved while somebody is in view")

// The fields of a report, for its file.
type (
	savedReport struct {
		Frames, Faces    int
		End, Width       time.Duration
		People           map[string]savedPerson
		Unknown, Refused map[string]int
		NoRoom           int
		Poor             []savedBin
	}
	savedPerson struct {
		Faces, Learned, Later, Confirmed int
		First, Last, Apart               time.Duration
		Confidence                       float64
		Line                             []savedBin
		Pictures                         []savedPicture
	}
	savedBin struct {
		N             int
		Min, Max, Sum float64
	}
	savedPicture struct {
		JPEG       []byte
		At         time.Duration
		Confidence float64
	}
)

// MarshalBinary returns the report for [Report.UnmarshalBinary]. It holds pictures of faces. A report can be saved only
// at a [Point].
func (r *Report) MarshalBinary() ([]byte, error) {
	if len(r.waiting) > 0 {
		return nil, errWaiting
	}
	s := savedReport{
		r.frames, r.faces, r.end, r.width, map[string]savedPerson{}, r.unknown, r.refused, r.noRoom, r.poor.save(),
	}
	for name, p := range r.people {
		x := savedPerson{
			p.faces, p.learned, p.later, p.confirmed, p.first, p.last, p.pictures.apart, p.confidence, p.line.save(),
			nil,
		}
		for _, pic := range p.pictures.pictures {
			x.Pictures = append(x.Pictures, savedPicture{pic.jpeg, pic.at, pic.confidence})
		}
		s.People[name] = x
	}
	return cbor.Marshal(s)
}

// UnmarshalBinary restores a saved report.
func (r *Report) UnmarshalBinary(data []byte) error {
	var s savedReport
	if err := cbor.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading a report: %w", err)
	}
	n := NewReport()
	if s.Width < n.width || len(s.Poor) > maxBins {
		return errors.New("reading a report: its timelines are wrong")
	}
	n.frames, n.faces, n.end, n.width, n.noRoom = s.Frames, s.Faces, s.End, s.Width, s.NoRoom
	maps.Copy(n.unknown, s.Unknown)
	maps.Copy(n.refused, s.Refused)
	n.poor.load(s.Poor)
	for name, x := range s.People {
		if len(x.Line) > maxBins || len(x.Pictures) > 2*maxPictures {
			return errors.New("reading a report: its timelines are wrong")
		}
		p := &person{
			faces: x.Faces, learned: x.Learned, later: x.Later, confirmed: x.Confirmed,
			first: x.First, last: x.Last, confidence: x.Confidence,
		}
		p.line.load(x.Line)
		p.pictures.apart = x.Apart
		for _, pic := range x.Pictures {
			p.pictures.pictures = append(p.pictures.pictures, picture{pic.JPEG, pic.At, pic.Confidence})
		}
		n.people[name] = p
	}
	*r = *n
	return nil
}

func (t *timeline) save() (bins []savedBin) {
	for _, b := range t.bins {
		bins = append(bins, savedBin{b.n, b.min, b.max, b.sum})
	}
	return bins
}

func (t *timeline) load(bins []savedBin) {
	for _, b := range bins {
		t.bins = append(t.bins, bin{b.N, b.Min, b.Max, b.Sum})
	}
}
