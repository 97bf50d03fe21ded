// SPDX-License-Identifier: Apache-2.0

package office

import (
	"image"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// Sighting is a person in view of a camera, at present or in the past.
type Sighting struct {
	ID     uint64 `json:"id"`
	Camera string `json:"camera"`
	// Who has the trust at best, and not how near a face was. If it is sighting.Likely, a user can
	// call [Office.Confirm].
	sighting.Who
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Live  bool      `json:"live"` // in view at present, or a moment ago
	// number of the clearest picture, for [Office.Face]; 0 for none
	Face  uint64 `json:"face"`
	Group uint64 `json:"group,omitempty"` // its last group of unknown faces
	// number of pictures in the film of its beginning, for [Office.Clip]
	Clip int `json:"clip,omitempty"`

	sharp float64 // of the picture
}

// sighted is a sighting that can be corrected.
type sighted struct {
	Sighting
	said     bool   // a user said who it is, or that it is nobody known
	placed   bool   // a user said in which group of unknown faces it is
	written  bool   // it has a row
	row      facts  // what the row says
	saved    uint64 // number of the last face that is written
	done     bool   // it has ended
	track    int    // of the camera
	album    album.Album
	began    bool   // the group was made for this sighting
	grouped  uint64 // number of its last face in the group
	reason   string // why the last picture was not used
	film     film   // its clip
	faces    int    // number of faces
	good     int    // number of clear faces
	small    int    // number of faces that are too small
	spoilt   int    // number of faces that a movement, an edge or a cover has spoilt
	double   bool   // it shows somebody in view a second time: a mirror image
	judged   bool   // enough faces were seen to decide whether the person is known
	believed int64  // the last belief of the camera

	begun, box image.Rectangle // of the first and of the last face
	doubtful   bool            // it may be somebody who was lost a moment before

	looks           []sighting.Look // clear ones that differ, at most twice leastClear
	looked, glanced time.Time       // first and last clear face
}

// facts are what is news about a sighting.
type facts struct {
	person int64
	trust  sighting.Trust
	group  uint64
}

func (s *sighted) facts() facts { return facts{s.Person, s.Trust, s.Group} }

// leastClear is the number of clear faces that differ ([sighting.Look.Differs]) from which somebody
// unknown is told, and leastTime the time from the first to the last clear face, however many there
// are in a second. Of the faces of somebody who runs past, or who is half behind a bar, some pass
// the checks of a picture; so the spoilt ones may be mostSpoilt times as many. leastClear and
// mostSpoilt were chosen on p3 and p5 of vidtimit_rot.
const (
	leastClear = 3
	leastTime  = 1500 * time.Millisecond
	mostSpoilt = 2
)

// at notes where a face is.
func (s *sighted) at(box image.Rectangle) {
	s.box = box
	if s.faces == 0 {
		s.begun = box
	}
}

// look takes in a clear face.
func (s *sighted) look(space face.Space, x face.Sample, at time.Time) {
	if len(s.looks) == 0 {
		s.looked = at
	}
	s.glanced = at
	if len(s.looks) >= 2*leastClear {
		return
	}
	// Who comes nearer is another size in each picture: looks of other light or size count on.
	l := sighting.LookOf(x)
	if isNew, _ := l.Differs(space, s.looks); isNew {
		s.looks = append(s.looks, l)
	}
}

// unknown reports whether enough was seen to say that it is nobody known, if it has no name: twice
// as much of somebody who may have been told of a moment before.
func (s *sighted) unknown() bool {
	times := 1
	if s.doubtful {
		times = 2
	}
	return len(s.looks) >= times*leastClear &&
		s.glanced.Sub(s.looked) >= time.Duration(times)*leastTime && s.spoilt <= mostSpoilt*s.good
}

// count counts a face of the sighting.
func (s *sighted) count(clear bool, why face.Reason) {
	s.faces++
	switch {
	case clear:
		s.good++
	case why == face.TooSmall:
		s.small++
	case why == face.Blurred, why == face.Moved, why == face.CutOff, why == face.Covered:
		s.spoilt++
	}
}

// ungroup removes a sighting from its group.
func (s *sighted) ungroup() { s.Group, s.began = 0, false }

// put writes a sighting with its faces, and reports whether it has dropped some that were written
// before. Of a person whom another program has forgotten there are no sightings.
func (s *sighted) put(t *gallery.Tx, office int64) (dropped bool) {
	there, _ := t.Int("select ?1 = 0 or exists (select 1 from person where id = ?1)", s.Person)
	if there == 0 {
		return false
	}
	size := 0
	for _, f := range s.album.Faces {
		size += 4*len(f.Vector) + len(f.JPEG)
	}
	t.Exec(`insert into sighting(id, office, camera, first, last, person, trust, stranger, size)
		values(?1, ?2, ?3, ?4, ?5, nullif(?6, 0), ?7, ?8, ?9) on conflict(id) do update set
		first = ?4, last = ?5, person = nullif(?6, 0), trust = ?7, stranger = ?8, size = ?9`,
		int64(s.ID), office, s.Camera, nanoseconds(s.First), nanoseconds(s.Last), s.Person,
		string(s.Trust), int64(s.Group), int64(size))
	// What users have said counts more, also what another program has just heard.
	t.Found(gallery.WhoOf, int64(s.ID), gallery.Value{Person: s.Person, Text: string(s.Trust)},
		!s.said)
	t.Found(gallery.GroupOf, int64(s.ID), gallery.Value{Value: int64(s.Group)}, !s.placed)
	for _, f := range s.album.Faces {
		if f.ID > s.saved {
			putFace(t, f, office, s.ID, 0)
		}
	}
	if s.written { // the album may have dropped faces since
		for range t.Rows(`update face set sighting = null where sighting = ? and number not in (
			select value from json_each(?)) returning number`, int64(s.ID),
			ids(numbersOf(s.album.Faces))) {
			dropped = true
		}
	}
	return dropped
}

// Size of a clip.
const (
	clipPictures = 16 // greatest number of pictures
	clipRate     = 2  // pictures per second
)

// film collects the clip of a sighting.
type film struct {
	pictures [][]byte // JPEG, of one size
	due      time.Time
	with     []*sighted // who else is in it
	written  int        // number of pictures that are written
}

// wants reports whether the film needs a picture of a moment.
func (f *film) wants(at time.Time) bool {
	return len(f.pictures) < clipPictures &&
		!at.Before(f.due)
}

// put writes the new pictures of the film of a sighting.
func (f *film) put(t *gallery.Tx, sighting uint64) {
	t.Exec("delete from film where sighting = ? and number >= ?", int64(sighting), int64(f.written))
	for n := f.written; n < len(f.pictures); n++ {
		t.Exec("insert into film values(?, ?, ?)", int64(sighting), int64(n), f.pictures[n])
	}
	for _, other := range f.with {
		t.Exec("insert or replace into film_with values(?, ?)", int64(sighting), int64(other.ID))
	}
}
