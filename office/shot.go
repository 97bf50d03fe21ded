// SPDX-License-Identifier: Apache-2.0

package office

// Shot is the best picture of an unknown person in one sighting.
type Shot struct {
	Sighting uint64  // its number; 0 if it is not kept
	Face     uint64  // number of the picture for [Office.Face]; 0 if there is none
	JPEG     []byte  // the picture, or nil
	Clear    float64 // how clear the picture is: the logarithm of its contrast
}

// Shot returns the best picture that there is now of the person of an [Unknown] event. There is none if strangers are
// not kept, or if a user has named, ignored or forgotten this person since.
func (w *pictures) Shot(e Event) (s Shot) {
	if e.Kind != Unknown {
		return s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.began(e)
	if v == nil {
		return s
	}
	s.Sighting = v.ID
	x := w.show(v)
	if x.Group == 0 || !w.unknown.Has(x.Group) || w.unknown.Ignored(x.Group) {
		return s
	}
	for _, f := range best(w.gallery.Space(), v.album.Faces, 1) {
		if f.JPEG != nil {
			s.Face, s.JPEG, s.Clear = f.ID, f.JPEG, f.clear()
		}
	}
	return s
}

// began returns the sighting with which an event began, or nil. The lock must be held.
func (w *memory) began(e Event) (found *sighted) {
	w.each("camera = ?2 and first = ?3 order by id desc", func(s *sighted) bool {
		if s.Camera == e.Camera && s.First.Equal(e.At) {
			found = w.find(s.ID)
		}
		return found == nil
	}, e.Camera, nanoseconds(e.At))
	return found
}
