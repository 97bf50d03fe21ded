// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/sighting"
)

// Bounds of strangers.
const (
	// not ignored, and again as many ignored ones; the one not seen for longest is removed
	mostGroups = 50
	mostFaces  = 24 // of a group, and of a sighting
	bestFaces  = 4  // of [Stranger].Best
)

// Stranger is a person without a name: a group of unknown faces.
type Stranger struct {
	ID      uint64    `json:"id"`
	Last    time.Time `json:"last"`    // time of the last sighting
	Visits  int       `json:"visits"`  // number of visits that are kept
	Ignored bool      `json:"ignored"` // a user ignores them
	// Probably is the known person who comes nearest, beyond the limit of a name.
	Probably *sighting.Who `json:"probably,omitempty"`
	// Best are the numbers of the faces that show the person best: clear ones that differ from each
	// other.
	Best []uint64 `json:"best"`
	album.Album

	asked   int       // number of faces that Probably is about
	counted bool      // the rows of its sightings are counted
	visits  int       // visits that the rows have, without current sightings
	latest  time.Time // end of the latest of them
	fresh   []uint64  // faces that are not written
	changed bool      // anything is not written
}

// groups has the faces of people without a name, in groups, so that a user can name them, and so
// that the same stranger is found again. It follows the rows ([groups.read]), and writes what
// cameras add ([groups.write]). The numbers of groups and of faces are limited; groups that are not
// seen for a long time are removed.
type groups struct {
	space face.Space
	// a group that is not seen for this time is removed, unless it is ignored
	retention time.Duration
	near      float64 // greatest distance of a face to its group
	groups    []*Stranger
	lost      []uint64 // faces that are in no group any more, which is not written
	gone      []uint64 // groups that are removed, which is not written
}

// newGroups returns an empty set for faces of a space. Without an impostor radius, no face is
// recognised again.
func newGroups(space face.Space, retention time.Duration) *groups {
	return &groups{space: space, retention: retention, near: .75 * space.ImpostorRadius}
}

// read replaces the groups by what the rows of an office have. The faces of a sighting of somebody
// known are in no group. Of faces that are in memory already it reads no vector and no picture: in
// a fleet people change often.
func (g *groups) read(t *gallery.Tx, office int64, name func(person int64) string) {
	faces := make(map[uint64]album.Face)
	for _, p := range g.groups {
		for _, f := range p.Faces {
			faces[f.ID] = f
		}
	}
	g.groups, g.lost, g.gone = nil, nil, nil
	at := make(map[uint64]*Stranger)
	of := make(map[uint64][]uint64) // the faces of each group
	var missing []uint64
	for r := range t.Rows(
		`select face.stranger, coalesce(stranger.last, 0), coalesce(ignored, 0), number, at,
		coalesce(person, 0) from face left join stranger on stranger.id = face.stranger
		left join sighting on sighting.id = face.sighting
		where face.office = ? and face.stranger > 0`, office) {
		id, number := uint64(r.ColumnInt64(0)), uint64(r.ColumnInt64(3))
		if name(r.ColumnInt64(5)) != "" {
			continue
		}
		p := at[id]
		if p == nil {
			p = &Stranger{ID: id, Ignored: r.ColumnInt64(2) == 1, Last: moment(r.ColumnInt64(1))}
			at[id] = p
			g.groups = append(g.groups, p)
		}
		seen := moment(r.ColumnInt64(4))
		if seen.After(p.Last) {
			p.Last = seen
		}
		of[id] = append(of[id], number)
		if _, there := faces[number]; !there {
			missing = append(missing, number)
		}
	}
	for r := range t.Rows(`select number, camera, at, sharp, vector, jpeg from face
		where number in (select value from json_each(?))`, ids(missing)) {
		f := faceOf(r, 0)
		faces[f.ID] = f
	}
	for _, p := range g.groups {
		for _, number := range of[p.ID] {
			f := faces[number]
			if g.space.Check(f.Vector) == nil {
				p.Faces = append(p.Faces, f)
			}
		}
		slices.SortFunc(p.Faces, func(a, b album.Face) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
		})
		p.Faces = p.Faces[:min(mostFaces, len(p.Faces))] // two groups that are one may have more
	}
	g.groups = slices.DeleteFunc(g.groups, func(p *Stranger) bool { return len(p.Faces) == 0 })
	slices.SortFunc(g.groups, func(a, b *Stranger) int { return cmp.Compare(a.ID, b.ID) })
}

// recount has the visits of all groups counted anew.
func (g *groups) recount() {
	for _, p := range g.groups {
		p.counted = false
	}
}

// write writes what cameras have changed.
func (g *groups) write(t *gallery.Tx, office int64) {
	drop(t, g.lost)
	for _, id := range g.gone {
		drop(t, numbers(t, facesOfGroup, int64(id)))
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
				putFace(t, f, office, 0, p.ID)
			}
		}
	}
}

// drop takes faces out of their groups. Nobody can put them back.
func drop[N int64 | uint64](t *gallery.Tx, faces []N) {
	if len(faces) == 0 {
		return
	}
	t.Exec("delete from said where what = 'face' and of in (select value from json_each(?))",
		ids(faces))
	t.Exec("update face set stranger = 0 where number in (select value from json_each(?))",
		ids(faces))
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
	return len(g.lost)+len(g.gone) > 0 ||
		slices.ContainsFunc(g.groups, func(p *Stranger) bool { return p.changed })
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

// All returns a copy of the groups, the last seen group first. Do not change the vectors and
// pictures, which are shared.
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
func (g *groups) Find(faces []album.Face) uint64 {
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
func (g *groups) Add(p *Stranger, f album.Face) {
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
