// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"maps"
	"time"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// tell notes that another program has changed something.
func (g *Gallery) tell() {
	if !g.news.Changed {
		g.news.Changed, g.news.Before = true, g.learner.Names()
	}
}

// align brings g in line with the database, in a transaction.
func (g *Gallery) align() error {
	var generation int64
	err := g.db.Query("select generation from learned", func(r store.Row) error {
		generation = r.ColumnInt64(0)
		return nil
	})
	if err != nil {
		return err
	}
	if generation != g.generation {
		return g.rebase()
	}
	if generation == 0 {
		g.faces, g.database.people = make(map[int64]kept), make(map[int64]entry)
		return g.readPeople()
	}
	return g.additions()
}

// additions takes in the faces that other programs have labelled: each other change has a new generation.
func (g *Gallery) additions() error {
	all, err := g.read(g.last)
	if err != nil || len(all) == 0 {
		return err
	}
	g.tell()
	g.settle()
	before := maps.Clone(g.database.people)
	if err := g.readPeople(); err != nil {
		return err
	}
	names := g.names()
	for id, e := range g.database.people {
		if names[id] == "" && !g.erased[id] {
			g.numbers[e.name], names[id] = id, e.name // also if g has somebody of this name who is not saved yet
		}
	}
	for _, f := range all {
		if name := names[f.person]; name != "" { // otherwise g has forgotten the person, and will save that
			if err := g.database.label(g.learner, name, f, g.labels); err != nil {
				return err
			}
		}
		g.last = f.row
	}
	g.settle()
	for id, e := range g.database.people {
		if before[id] == e {
			continue
		}
		if p := g.person(names[id]); p != nil {
			e.date(p)
		}
	}
	return nil
}

// names returns the present names of people, by number.
func (g *Gallery) names() map[int64]string {
	all := make(map[int64]string)
	for name, id := range g.numbers {
		all[id] = name
	}
	return all
}

// rebase reads what another program has saved, and makes the unsaved changes of g again on top of it: labels, names,
// forgotten people, and then the faces that g has learned.
func (g *Gallery) rebase() error {
	g.tell()
	c, before := g.own(), maps.Clone(g.numbers)
	settings, space, began := g.learner.Settings(), g.Space(), g.generation == 0
	unsaved, people := g.unsaved, g.people
	g.unsaved = nil
	if err := g.load(); err != nil {
		g.unsaved = unsaved
		return err
	}
	if g.Space().ID != space.ID {
		return fmt.Errorf("%w: another program began it with %s", ErrSpace, g.Space().ID)
	}
	if space.Stills.Measured() {
		g.learner.SetMeasured(space)
	}
	if err := g.learner.Configure(settings); err != nil {
		return err
	}
	if err := g.again(c, people); err != nil {
		return err
	}
	if err := g.learnAgain(unsaved); err != nil {
		return err
	}
	names := g.names()
	for was, id := range before {
		switch is := names[id]; {
		case began || is == was || id == 0:
		case is == "":
			if _, there := g.database.people[id]; !there {
				g.news.Forgotten = append(g.news.Forgotten, was)
			}
		default:
			g.news.Renamed = append(g.news.Renamed, [2]string{was, is})
		}
	}
	return nil
}

// again makes the unsaved changes of g once more. A person whom another program has forgotten stays forgotten.
func (g *Gallery) again(c change, people []Person) error {
	l := g.learner
	rows := make(map[int64]int64)
	for id, k := range g.faces {
		rows[k.row] = id
	}
	for _, id := range c.forgotten {
		if e, there := g.database.people[id]; there && l.Knows(e.name) {
			if err := g.Forget(e.name); err != nil {
				return err
			}
		}
	}
	for id, e := range c.names {
		now, there := g.database.people[id]
		if there && now.name != e.name && !l.Knows(e.name) {
			if err := g.Rename(now.name, e.name); err != nil {
				return err
			}
		}
	}
	for _, row := range c.gone {
		if id, there := rows[row]; there && l.Vector(id) != nil {
			if _, err := l.Unlabel(id); err != nil {
				return err
			}
		}
	}
	names := g.names()
	for _, a := range c.added {
		name := a.name
		if a.person != 0 {
			if name = names[a.person]; name == "" {
				continue
			}
		}
		var err error
		if !a.negative {
			err = l.Label(a.vector, name)
		} else if l.Knows(name) {
			err = l.Reject(a.vector, name)
		} else {
			continue
		}
		if err != nil {
			return err
		}
		g.number([]uint64{a.number})
	}
	g.settle()
	for _, p := range people {
		if now := g.person(p.Name); now != nil && now.Enrolled.Before(p.Enrolled) {
			now.Enrolled, now.Upright = p.Enrolled, p.Upright
		}
	}
	return nil
}

// learnAgain observes faces that g has learned and not saved, in their order.
func (g *Gallery) learnAgain(unsaved []online.Taught) error {
	at := g.learner.Time()
	defer func() { g.learner.SetTime(at) }()
	now := make(map[int64]int64) // new numbers of stored faces
	for _, t := range unsaved {
		o := t.Observation
		o.Follows = nil
		for _, id := range t.Follows {
			if is, again := now[id]; again {
				id = is
			}
			o.Follows = append(o.Follows, id)
		}
		if t.Time != 0 {
			g.learner.SetTime(time.Unix(t.Time, 0))
		}
		v, err := g.learner.ObserveFrame([]online.Observation{o})
		if err != nil {
			return err
		}
		r := Renumbered{Was: t.Number}
		if v[0].Learned {
			now[t.Stored], r.Is = v[0].Stored, g.learner.Counts().Observed
		}
		g.news.Observed = append(g.news.Observed, r)
	}
	return nil
}
