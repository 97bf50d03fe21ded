// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/fxamacker/cbor/v2"
)

// labelIn returns the label in the columns id, person, number and rejected of a row.
func labelIn(r store.Row) Label {
	return Label{r.ColumnInt64(0), r.ColumnInt64(1), uint64(r.ColumnInt64(2)), r.ColumnInt64(3) == 1}
}

// mostLoose is the number of labelled faces beyond the snapshot. Each takes milliseconds when a gallery is opened.
const mostLoose = 256

func (g *Gallery) state() state {
	l, c, mass := &g.learner, g.learner.Counts(), 0.
	c.Labelled = 0
	for i := range l.Graph().Len() {
		mass += l.Graph().Multiplicity(i)
	}
	return state{l.Space(), l.Settings(), c, l.Time(), mass - float64(l.Graph().Labelled())}
}

// align brings the learner in line with the database, in a transaction.
func (g *Gallery) align() error {
	generation, err := g.Int("select generation from learned")
	switch {
	case err != nil:
		return err
	case generation != g.saved.generation:
		return g.again()
	}
	changed, err := g.beside()
	if err != nil {
		return err
	}
	return g.follow(changed)
}

// again reads what another program has saved, and learns the unsaved faces of g again on top of it.
func (g *Gallery) again() error {
	settings, space := g.learner.Settings(), g.Space()
	if err := g.load(); err != nil {
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
	unsaved := g.unsaved
	g.unsaved = nil
	now, err := g.learner.LearnAgain(unsaved)
	maps.Copy(g.renumbered, now)
	return err
}

// load reads the database into g. On error g is unchanged.
func (g *Gallery) load() (err error) {
	before := *g
	defer func() {
		if err != nil {
			*g = before
		}
	}()
	var snapshot []byte
	rows := make(map[int64]int64) // the learner's numbers, and the rows of these labels
	g.saved, g.labels = saved{}, make(map[int64]Label)
	err = g.db.Query("select generation, faces, snapshot from learned", func(r store.Row) error {
		g.saved.generation, snapshot = r.ColumnInt64(0), slices.Clone(r.ColumnRawBlob(2))
		return cbor.Unmarshal(r.ColumnRawBlob(1), &rows)
	})
	if err == nil && g.saved.generation == 0 {
		err = fmt.Errorf("%w: nothing was written into it yet", fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	labels, vectors := make(map[int64]Label), make(map[int64][]float32) // by row
	err = g.db.Query(`select id, person, number, rejected, vector from label union all
		select id, person, number, rejected, vector from dropped`,
		func(r store.Row) error {
			h := labelIn(r)
			labels[h.Row], vectors[h.Row] = h, vector.Floats(r.ColumnRawBlob(4))
			return nil
		})
	if err != nil {
		return err
	}
	err = g.learner.UnmarshalLearned(snapshot, func(id int64) []float32 {
		if h, there := labels[rows[id]]; there {
			g.labels[id] = h
		}
		return vectors[rows[id]]
	})
	if err == nil {
		g.saved.state = g.state()
		_, err = g.beside()
	}
	if err == nil {
		err = g.follow(true)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	g.version, err = g.db.Version()
	return err
}

// follow brings the learner in line with the labels, whoever has changed them. Unless changed says that there are other
// changes, it looks at new labels only.
func (g *Gallery) follow(changed bool) error {
	last, err := g.Int("select max(id) from label")
	if err != nil || last == g.last && !changed {
		return err
	}
	after := g.last
	if changed {
		after = 0
	}
	var want []Label
	err = g.db.Query("select id, person, number, rejected from label where id > ? and valid order by id",
		func(r store.Row) error {
			want = append(want, labelIn(r))
			return nil
		}, after)
	if err == nil {
		err = g.readPeople()
	}
	if err != nil {
		return err
	}
	g.turn++
	g.last = last
	there := make(map[int64]bool) // rows whose labels the learner has
	if changed {
		g.retract(want)
		for _, h := range g.labels {
			there[h.Row] = true
		}
	}
	for range 2 { // a rejected face may come before the faces of the person; until then nobody is taken for them
		for _, h := range want {
			if there[h.Row] || h.Negative && !g.learner.Knows(h.Person) {
				continue
			}
			if err := g.teach(h); err != nil {
				return err
			}
			there[h.Row] = true
		}
	}
	return nil
}

// retract takes all labels back that are not wanted any more.
func (g *Gallery) retract(want []Label) {
	rows := make(map[int64]bool)
	for _, h := range want {
		rows[h.Row] = true
	}
	var gone []int64
	for id, h := range g.labels {
		if !rows[h.Row] {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	g.learner.Retract(gone...)
	for id := range g.labels {
		if g.learner.Vector(id) == nil { // also faces that went with the last label of a person
			delete(g.labels, id)
		}
	}
}

// teach shows a label to the learner.
func (g *Gallery) teach(h Label) error {
	show := g.learner.Label
	if h.Negative {
		show = g.learner.Reject
	}
	b, err := (&Tx{g: g}).Blob("select vector from label where id = ?", h.Row)
	if err == nil {
		err = show(vector.Floats(b), h.Person)
	}
	if err != nil {
		return fmt.Errorf("label %d: %w", h.Row, err)
	}
	g.labels[g.learner.Newest()] = h
	g.saved.loose++
	return nil
}

// readPeople reads the people who have faces. If several have one name, the first keeps it, and the others have their
// number beside it.
func (g *Gallery) readPeople() error {
	var people []Person
	ids, names := make(map[string]int64), make(map[int64]string)
	err := g.db.Query(`select person, name, enrolled, count(*) from label join person on person.id = person
		where not rejected and valid group by person`, func(r store.Row) error {
		p := Person{ID: r.ColumnInt64(0), Name: r.ColumnText(1), Enrolled: time.Unix(r.ColumnInt64(2), 0).UTC(),
			Faces: int(r.ColumnInt64(3))}
		for ids[p.Name] != 0 {
			p.Name = fmt.Sprintf("%s (%d)", p.Name, p.ID)
		}
		ids[p.Name], names[p.ID] = p.ID, p.Name
		people = append(people, p)
		return nil
	})
	if err == nil {
		g.people, g.numbers, g.names = people, ids, names
	}
	return err
}

// save writes what was learned, if it has changed or if too many labels are beyond it.
func (t *Tx) save() error {
	g, next := t.g, t.g.saved
	dropped, err := t.Int("select count(*) from dropped")
	if err != nil {
		return err
	}
	t.gone = t.gone || dropped > 0
	next.state = g.state()
	if !t.anew && !t.gone && next.state == g.saved.state && next.generation > 0 && next.loose <= mostLoose {
		return nil
	}
	rows := make(map[int64]int64, len(g.labels))
	for id, h := range g.labels {
		rows[id] = h.Row
	}
	faces, err := cbor.Marshal(rows)
	if err != nil {
		return err
	}
	snapshot, err := g.learner.MarshalLearned()
	if err != nil {
		return err
	}
	next.generation, next.loose = next.generation+1, 0
	t.saved = next
	t.Exec("delete from dropped")
	return t.Exec("insert or replace into learned values(1, ?, ?, ?)", next.generation, faces, snapshot)
}

// Renumbered returns the observations that have new numbers since the last call, because g has learned them again on top
// of what another program had learned. The number 0 says that an observation is not learned any more.
func (g *Gallery) Renumbered() map[int64]int64 {
	all := g.renumbered
	g.renumbered = make(map[int64]int64)
	return all
}

// beside reports whether a program without a learner has removed labels or given names.
func (g *Gallery) beside() (bool, error) {
	was := g.rows
	now, err := g.Int("select value from meta where key = 'rows'")
	if err == nil {
		g.rows = now
	}
	return now != was, err
}
