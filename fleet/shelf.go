// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
)

// shelf is a gallery as Reconcile sees it.
type shelf struct {
	g      *gallery.Gallery
	space  face.Space
	people map[string]*shelved
}

// shelved is a person of a gallery: the number of the label of each face.
type shelved struct {
	faces, denied map[ledger.FaceID]int64
	more          map[int64][]int64 // of faces that have several labels: the others, by the first
}

func newShelved() *shelved {
	return &shelved{make(map[ledger.FaceID]int64), make(map[ledger.FaceID]int64), make(map[int64][]int64)}
}

// labels returns all labels of a face by its first one.
func (p *shelved) labels(first int64) []int64 { return append([]int64{first}, p.more[first]...) }

func newShelf(g *gallery.Gallery) *shelf {
	s := &shelf{g: g, space: g.Space(), people: make(map[string]*shelved)}
	l := g.Learner()
	for _, name := range l.Names() {
		s.people[name] = newShelved()
	}
	for _, label := range l.Labels() {
		p := s.people[label.Name]
		if p == nil {
			continue
		}
		id := ledger.NewFaceID(s.space.ID, l.Vector(label.ID))
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

// free returns the name, or the same with a number after it that nobody in the gallery has, and that nobody is to get.
func (s *shelf) free(name string, taken map[string]bool) string {
	free := name
	for i := 2; s.people[free] != nil || taken[free]; i++ {
		short := []rune(name)
		free = fmt.Sprintf("%s (%d)", string(short[:min(len(short), 90)]), i)
	}
	return free
}

func (s *shelf) rename(from, to string) error {
	if err := s.g.Rename(from, to); err != nil {
		return err
	}
	s.people[to] = s.people[from]
	delete(s.people, from)
	return nil
}

func (s *shelf) remove(name string) error {
	delete(s.people, name)
	return s.g.Remove(name)
}
