// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
)

// galleryIndex holds the people of a gallery and their faces, for [Device.Reconcile].
type galleryIndex struct {
	g      *gallery.Gallery
	space  face.Space
	people map[string]*galleryPerson

	removed bool // the gallery has lost a face
}

// galleryPerson holds the label numbers of one person's faces in a gallery.
type galleryPerson struct {
	faces, denied map[FaceID]int64
	more          map[int64][]int64 // the further labels of a face, by its first label
}

func newGalleryPerson() *galleryPerson {
	return &galleryPerson{make(map[FaceID]int64), make(map[FaceID]int64), make(map[int64][]int64)}
}

// has reports whether these are the faces of the person.
func (p *galleryPerson) has(faces, denied []FaceID) bool {
	all := func(have map[FaceID]int64, ids []FaceID) bool {
		return len(have) == len(ids) && !slices.ContainsFunc(ids, func(id FaceID) bool {
			_, there := have[id]
			return !there
		})
	}
	return all(p.faces, faces) && all(p.denied, denied)
}

// labels returns all labels of the face whose first label is given.
func (p *galleryPerson) labels(first int64) []int64 { return append([]int64{first}, p.more[first]...) }

func newGalleryIndex(g *gallery.Gallery) *galleryIndex {
	s := &galleryIndex{g: g, space: g.Space(), people: make(map[string]*galleryPerson)}
	l := g.Learner()
	for _, name := range l.Names() {
		s.people[name] = newGalleryPerson()
	}
	for _, label := range l.Labels() {
		p := s.people[label.Name]
		if p == nil {
			continue
		}
		id := NewFaceID(s.space.ID, l.Vector(label.ID))
		of := p.faces
		if label.Negative {
			of = p.denied
		}
		if first, there := of[id]; there {
			p.more[first] = append(p.more[first], label.ID)
		} else {
			of[id] = label.ID
		}
	}
	return s
}

// free returns the name itself, or the name with a number after it: a name that nobody in the gallery has, and that is
// not in taken.
func (s *galleryIndex) free(name string, taken map[string]bool) string {
	free := name
	for i := 2; s.people[free] != nil || taken[free]; i++ {
		free = numbered(name, i)
	}
	return free
}

func (s *galleryIndex) rename(from, to string) error {
	if err := s.g.Rename(from, to); err != nil {
		return err
	}
	s.people[to] = s.people[from]
	delete(s.people, from)
	return nil
}

func (s *galleryIndex) remove(name string) error {
	delete(s.people, name)
	s.removed = true
	return s.g.Forget(name)
}
