// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
	"golang.org/x/text/unicode/norm"
)

// decoding reads as many labels as a learner can have, which are more than cbor allows of itself.
var decoding, _ = cbor.DecOptions{MaxArrayElements: 1 << 24, MaxMapPairs: 1 << 24}.DecMode()

// mostLoose is the number of labelled faces beyond the snapshot. Each takes milliseconds when a
// gallery is opened.
const mostLoose = 256

func (g *Gallery) state() state {
	l, c, mass := &g.learner, g.learner.Counts(), 0.
	c.Labelled = 0
	for i := range l.Graph().Len() {
		mass += l.Graph().Multiplicity(i)
	}
	return state{l.Space(), l.Settings(), c, l.Time(), mass - float64(l.Graph().Labelled())}
}

// align brings the learner in line with the database.
func (t *Tx) align() error {
	g, generation, beside := t.g, int64(0), int64(0)
	for r := range t.Rows(
		"select generation, (select value from meta where key = 'rows') from learned") {
		generation, beside = r.ColumnInt64(0), r.ColumnInt64(1)
	}
	switch {
	case t.failed != nil:
		return t.failed
	case generation != g.saved.generation:
		return t.again()
	}
	changed := beside != g.beside
	g.beside = beside
	if t.follow(changed) != nil {
		g.saved.generation = -1 // it may have followed half way: the next call reads everything
	}
	return t.failed
}

// again reads what another program has saved, and learns the unsaved faces again on top of it. If
// it cannot be read, the gallery is unchanged.
func (t *Tx) again() error {
	g, before := t.g, *t.g
	err := t.load()
	if err == nil {
		err = g.takes(before.Space())
	}
	if err == nil {
		err = g.learner.Configure(before.learner.Settings())
	}
	if err != nil {
		*g = before
		return err
	}
	g.unsaved = nil
	return g.learner.LearnAgain(before.unsaved)
}

// load reads the database into the gallery.
func (t *Tx) load() error {
	g := t.g
	var faces, snapshot []byte
	g.saved, g.labels = saved{}, make(map[int64]int64)
	for r := range t.Rows(
		`select generation, (select value from meta where key = 'rows'), faces, snapshot
		from learned`) {
		g.saved.generation, g.beside = r.ColumnInt64(0), r.ColumnInt64(1)
		faces, snapshot = slices.Clone(r.ColumnRawBlob(2)), slices.Clone(r.ColumnRawBlob(3))
	}
	vectors := make(map[int64][]float32) // by row
	for r := range t.Rows("select id, vector from label union all select id, vector from dropped") {
		vectors[r.ColumnInt64(0)] = vector.Floats(r.ColumnRawBlob(1))
	}
	switch {
	case t.failed != nil:
		return t.failed
	case g.saved.generation == 0:
		return fmt.Errorf("%w: nothing was written into it yet", fs.ErrNotExist)
	}
	var labels map[int64]int64
	err := decoding.Unmarshal(faces, &labels)
	maps.Copy(g.labels, labels)
	if err == nil {
		err = g.learner.UnmarshalLearned(snapshot, func(id int64) []float32 {
			return vectors[g.labels[id]]
		})
	}
	if err == nil {
		g.saved.state, g.saved.size = g.state(), len(faces)+len(snapshot)
		err = t.follow(true)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// follow brings the learner in line with the labels, whoever has changed them. Unless changed says
// that there are other changes, it looks at new labels only.
func (t *Tx) follow(changed bool) error {
	g := t.g
	last, err := t.Int("select max(id) from label")
	if err != nil || last == g.last && !changed {
		return err
	}
	after := g.last
	if changed {
		after = 0
	}
	var want []int64
	people := make(map[int64]int64) // of these labels
	for r := range t.Rows("select id, person from label where id > ? and valid order by id",
		after) {
		want = append(want, r.ColumnInt64(0))
		people[r.ColumnInt64(0)] = r.ColumnInt64(1)
	}
	t.readPeople()
	if t.failed != nil {
		return t.failed
	}
	g.turn++
	g.last = last
	there := make(map[int64]bool) // labels that the learner has
	if changed {
		g.retract(people, there)
	}
	// a rejected face may come before the faces of the person; until then nobody is taken for them
	for range 2 {
		for _, row := range want {
			if !there[row] {
				there[row] = t.teach(row)
			}
		}
	}
	return t.failed
}

// retract takes all labels back that are not wanted any more, and notes which are there then.
// People are those of the wanted labels.
func (g *Gallery) retract(people map[int64]int64, there map[int64]bool) {
	var gone []int64
	for _, label := range g.learner.Labels() {
		if people[g.labels[label.ID]] != label.Person {
			gone = append(gone, label.ID)
		}
	}
	g.learner.Retract(gone...)
	maps.DeleteFunc(g.labels, func(id, row int64) bool {
		there[row] = g.learner.Vector(id) != nil // others went with the last label of a person
		return !there[row]
	})
}

// teach shows a label to the learner, unless it is a rejected face of somebody whom the learner
// does not know.
func (t *Tx) teach(row int64) (taught bool) {
	g := t.g
	for r := range t.Rows("select person, rejected, vector from label where id = ?", row) {
		show := g.learner.Label
		if r.ColumnInt64(1) == 1 {
			show = g.learner.Reject
		}
		err := show(vector.Floats(r.ColumnRawBlob(2)), r.ColumnInt64(0))
		switch {
		case err == nil:
			g.labels[g.learner.Newest()] = row
			g.saved.loose++
			taught = true
		case !errors.Is(err, online.ErrUnknown):
			t.failed = fmt.Errorf("label %d: %w", row, err)
		}
	}
	return taught
}

// readPeople reads the people who have faces. If several have one name, the first keeps it, and the
// others have their number beside it.
func (t *Tx) readPeople() {
	var people []Person
	ids, names := make(map[string]int64), make(map[int64]string)
	composed := make(map[string]int64)
	for r := range t.Rows(
		`select person, name, enrolled, count(*) from label join person on person.id = person
		where not rejected and valid group by person`) {
		p := Person{ID: r.ColumnInt64(0), Name: r.ColumnText(1),
			Enrolled: time.Unix(r.ColumnInt64(2), 0).UTC(), Faces: int(r.ColumnInt64(3))}
		for ids[p.Name] != 0 {
			p.Name = fmt.Sprintf("%s (%d)", p.Name, p.ID)
		}
		ids[p.Name], names[p.ID] = p.ID, p.Name
		if !norm.NFC.IsNormalString(p.Name) {
			composed[norm.NFC.String(p.Name)] = p.ID
		}
		people = append(people, p)
	}
	if t.failed == nil {
		t.g.people, t.g.numbers, t.g.composed, t.g.names = people, ids, composed, names
	}
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
	if g.learner.Settings().NoPictures {
		kept, _ := t.Int("select count(*) from portrait")
		t.gone = t.gone || kept > 0
		t.Exec("delete from portrait")
	}
	if !t.anew && !t.gone && next.state == g.saved.state && next.generation > 0 &&
		next.loose <= mostLoose {
		return nil
	}
	labels, err := cbor.Marshal(g.labels)
	if err != nil {
		return err
	}
	snapshot, err := g.learner.MarshalLearned()
	if err != nil {
		return err
	}
	next.generation, next.loose, next.size = next.generation+1, 0, len(labels)+len(snapshot)
	g.saved = next // after a failure they are read again
	t.Exec("delete from dropped")
	return t.Exec("insert or replace into learned values(1, ?, ?, ?)", next.generation, labels,
		snapshot)
}
