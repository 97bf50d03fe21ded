// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
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

// MarshalBinary returns the report for [Report.UnmarshalBinary]. It holds pictures of faces. A report can be saved only
// at a [Point].
func (r *Report) MarshalBinary() ([]byte, error) {
	if len(r.waiting) > 0 {
		return nil, errWaiting
	}
	return cbor.Marshal(r.totals)
}

// UnmarshalBinary restores a saved report.
func (r *Report) UnmarshalBinary(data []byte) error {
	n := NewReport()
	if err := cbor.Unmarshal(data, &n.totals); err != nil {
		return fmt.Errorf("reading a report: %w", err)
	}
	t := &n.totals
	wrong := t.Width < NewReport().totals.Width || len(t.Poor) > maxBins || t.People == nil || t.Unknown == nil ||
		t.Refused == nil
	for _, p := range t.People {
		wrong = wrong || p == nil || len(p.Line) > maxBins || len(p.Pictures) > 2*maxPictures
	}
	if wrong {
		return errors.New("reading a report: its timelines are wrong")
	}
	*r = *n
	return nil
}
