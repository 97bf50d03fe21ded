// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/graph"
)

// Errors of corrections to groups of unknown faces.
var (
	ErrNoGroup    = errors.New("no such group of unknown faces")
	ErrNotInGroup = errors.New("no such face in the group")
	ErrAll        = errors.New("a group keeps at least one of its faces")
)

// Bounds of strangers.
const (
	mostGroups = 50 // not ignored, and again as many ignored ones; the one not seen for longest is removed
	mostFaces  = 24 // of a group, and of a sighting
)

// Stranger is a person without a name: a group of unknown faces.
type Stranger struct {
	ID      uint64    `json:"id"`
	Last    time.Time `json:"last"`    // time of the last sighting
	Visits  int       `json:"visits"`  // number of visits that are kept
	Ignored bool      `json:"ignored"` // a user ignores them
	// Probably is the known person who comes nearest, beyond the limit of a name.
	Probably *Probably `json:"probably,omitempty"`
	// Best are the numbers of the faces that show the person best: clear ones that differ from each other.
	Best []uint64 `json:"best"`
	Album

	asked   int      // number of faces that Probably is about
	fresh   []uint64 // faces that are not written
	changed bool     // anything is not written
}

// groups has the faces of people without a name, in groups, so that a user can name them, and so that the same stranger
// is found again. It follows the rows ([groups.read]), and writes what cameras add ([groups.write]). The numbers of
// groups and of faces are limited; groups that are not seen for a long time are removed.
type groups struct {
	space     face.Space
	retention time.Duration // a group that is not seen for this time is removed, unless it is ignored
	near      float64       // greatest distance of a face to its group
	groups    []*Stranger
	lost      []uint64 // faces that are in no group any more, which is not written
	gone      []uint64 // groups that are removed, which is not written
}

// newGroups returns an empty set for faces of a space. Without an impostor radius, no face is recognised again.
func newGroups(space face.Space, retention time.Duration) *groups {
	return &groups{space: space, retention: retention, near: .75 * space.ImpostorRadius}
}

// read replaces the groups by what the rows of an office have. The faces of a sighting of somebody known are in no group.
func (g *groups) read(t *gallery.Tx, office int64, name func(person int64) string) error {
	g.groups, g.lost, g.gone = nil, nil, nil
	at := make(map[uint64]*Stranger)
	err := t.Query(`select face.stranger, max(at, coalesce(stranger.last, 0)), coalesce(ignored, 0), number, face.camera,
		at, sharp, vector, jpeg, coalesce(person, 0) from face left join stranger on stranger.id = face.stranger
		left join sighting on sighting.id = face.sighting where face.office = ? and face.stranger > 0 order by at, number`,
		func(r gallery.Row) error {
			id, f := uint64(r.ColumnInt64(0)), faceOf(r, 3)
			if name(r.ColumnInt64(9)) != "" || g.space.Check(f.Vector) != nil {
				return nil
			}
			p := at[id]
			if p == nil {
				p = &Stranger{ID: id, Ignored: r.ColumnInt64(2) == 1}
				at[id] = p
				g.groups = append(g.groups, p)
			}
			p.Last = moment(r.ColumnInt64(1))
			if len(p.Faces) < mostFaces { // two groups that are one may have more
				p.Faces = append(p.Faces, f)
			}
			return nil
		}, office)
	slices.SortFunc(g.groups, func(a, b *Stranger) int { return cmp.Compare(a.ID, b.ID) })
	return err
}

// write writes what cameras have changed.
func (g *groups) write(t *gallery.Tx, office int64) {
	for _, id := range g.lost {
		drop(t, "number", id)
	}
	for _, id := range g.gone {
		drop(t, "stranger", id)
		t.Exec("delete from stranger where id = ?", int64(id))
	}
	for _, p := range g.groups {
		if !p.changed {
			continue
		}
		t.Exec(`insert into stranger(id, office, last, ignored) values(?1, ?2, ?3, 0)
			on conflict(id) do update set last = ?3`, int64(p.ID), office, nanoseconds(p.Last))
		for _, f := range p.Faces {
			if slices.Contains(p.fresh, f.ID) {
				f.write(t, office, 0, p.ID)
			}
		}
	}
}

// drop takes faces out of their group: those with a value in a column. Nobody can put them back.
func drop(t *gallery.Tx, column string, of uint64) {
	t.Exec("delete from said where what = 'face' and of in (select number from face where "+column+" = ?1)", int64(of))
	t.Exec("update face set stranger = 0 where "+column+" = ?1", int64(of))
}

// written notes that write was committed.
func (g *groups) written() {
	g.lost, g.gone = nil, nil
	for _, p := range g.groups {
		p.fresh, p.changed = nil, false
	}
}

// dirty reports whether anything is not written.
func (g *groups) dirty() bool {
	return len(g.lost)+len(g.gone) > 0 || slices.ContainsFunc(g.groups, func(p *Stranger) bool { return p.changed })
}

func (g *groups) remove(gone func(*Stranger) bool) {
	g.groups = slices.DeleteFunc(g.groups, func(p *Stranger) bool {
		if !gone(p) {
			return false
		}
		g.gone = append(g.gone, p.ID)
		return true
	})
}

// All returns a copy of the groups, the last seen group first. Do not change the vectors and pictures, which are
// shared.
func (g *groups) All() []Stranger {
	all := make([]Stranger, len(g.groups))
	for i, p := range g.groups {
		all[i] = *p
		all[i].Faces = slices.Clone(p.Faces)
	}
	slices.SortStableFunc(all, func(a, b Stranger) int { return b.Last.Compare(a.Last) })
	return all
}

// Get returns a group, or nil.
func (g *groups) Get(id uint64) *Stranger {
	for _, p := range g.groups {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Ignored reports whether a group exists and is ignored.
func (g *groups) Ignored(id uint64) bool {
	p := g.Get(id)
	return p != nil && p.Ignored
}

// Find returns the group to which most of the faces belong, or 0.
func (g *groups) Find(faces []Face) uint64 {
	var votes []uint64
	for _, f := range faces {
		best, at := g.near, uint64(0)
		for _, p := range g.groups {
			if d := p.Distance(g.space, f.Vector); d < best {
				best, at = d, p.ID
			}
		}
		votes = append(votes, at)
	}
	return majority(votes)
}

// majority returns what more than half of the votes are for, or 0.
func majority[N int64 | uint64](votes []N) (is N) {
	count := make(map[N]int)
	for _, v := range votes {
		if count[v]++; 2*count[v] > len(votes) {
			is = v
		}
	}
	return is
}

// Begin makes a group with a number, which has no face yet.
func (g *groups) Begin(id uint64, at time.Time) {
	g.groups = append(g.groups, &Stranger{ID: id, Last: at, changed: true})
	g.shed()
}

// Add adds a face to a group.
func (g *groups) Add(p *Stranger, f Face) {
	if f.At.After(p.Last) {
		p.Last, p.changed = f.At, true
	}
	if p.Ignored { // enough faces are known of an ignored person
		return
	}
	added, lost := p.Add(g.space, f, mostFaces, g.near/3)
	if !added {
		return
	}
	p.fresh, p.changed = append(p.fresh, f.ID), true
	if lost != 0 {
		g.lost = append(g.lost, lost)
	}
}

// shed removes the groups beyond the limits, which were not seen for longest.
func (g *groups) shed() {
	n := make(map[bool]int)
	for _, p := range g.All() {
		if n[p.Ignored]++; n[p.Ignored] > mostGroups {
			g.remove(func(x *Stranger) bool { return x.ID == p.ID })
		}
	}
}

// Expire removes the groups that were not seen within the retention time.
func (g *groups) Expire(now time.Time) {
	g.remove(func(p *Stranger) bool { return !p.Ignored && now.Sub(p.Last) > g.retention })
}

// Face is a face with the time and the camera of its picture.
type Face struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Camera string    `json:"camera"`
	Vector []float32 `json:"-" cbor:"vector"` // the index of searches keeps it
	JPEG   []byte    `json:"-" cbor:"jpeg"`   // a small picture, or nil
	Sharp  float64   `json:"-"`               // as [face.Quality].Sharpness
}

// firstFaces is the number of faces of an album that always stay: a name labels them.
const firstFaces = 4

// Album is a bounded set of faces of one person: the first faces, and later ones that differ from each other.
type Album struct {
	Faces []Face `json:"faces"`
}

// Add adds a face, and reports whether it did, and the number of the face that it has removed for it; 0 for none. The
// album keeps at most size faces, and at least the first four. Add ignores a face that is closer than apart, in units of
// the space, to a face in the album, and a face whose number is in the album. From a full album, the newer one of the two
// most similar faces is removed.
func (a *Album) Add(space face.Space, f Face, size int, apart float64) (added bool, removed uint64) {
	_, there := a.Find(f.ID)
	if there || len(a.Faces) >= firstFaces && a.Distance(space, f.Vector) < apart {
		return false, 0
	}
	a.Faces = append(a.Faces, f)
	if len(a.Faces) <= size {
		return true, 0
	}
	drop, least := len(a.Faces)-1, math.Inf(1)
	for i := firstFaces; i < len(a.Faces); i++ {
		for j := range i {
			if d := graph.Distance(a.Faces[i].Vector, a.Faces[j].Vector, space.Scale); d < least {
				drop, least = i, d
			}
		}
	}
	removed = a.Faces[drop].ID
	a.Faces = slices.Delete(a.Faces, drop, drop+1)
	return removed != f.ID, removed
}

// First returns the faces that a name labels, and the others.
func (a *Album) First() (first, rest []Face) {
	n := min(firstFaces, len(a.Faces))
	return a.Faces[:n], a.Faces[n:]
}

// Find returns the face with a number, if it is in the album.
func (a *Album) Find(id uint64) (Face, bool) {
	for _, f := range a.Faces {
		if f.ID == id {
			return f, true
		}
	}
	return Face{}, false
}

// Distance returns the distance from a vector to the nearest face, or +Inf for an empty album.
func (a *Album) Distance(space face.Space, x []float32) float64 {
	nearest := math.Inf(1)
	for _, f := range a.Faces {
		nearest = min(nearest, graph.Distance(f.Vector, x, space.Scale))
	}
	return nearest
}

// bestFaces is the number of faces of [Stranger].Best.
const bestFaces = 4

// clear returns how clear the picture of a face is, or 0 without a picture.
func (f Face) clear() float64 {
	if f.JPEG == nil {
		return 0
	}
	return math.Log1p(f.Sharp)
}

// best returns at most n of the faces, the clearest first, and then faces that are clear and differ from the faces
// before.
func best(space face.Space, faces []Face, n int) (chosen []Face) {
	for faces = slices.Clone(faces); len(chosen) < n && len(faces) > 0; {
		before, at, most := Album{chosen}, 0, -1.
		for i, f := range faces {
			if worth := f.clear() * min(before.Distance(space, f.Vector), math.MaxInt32); worth > most {
				at, most = i, worth
			}
		}
		chosen, faces = append(chosen, faces[at]), slices.Delete(faces, at, at+1)
	}
	return chosen
}
