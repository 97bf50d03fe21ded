// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// Label is a labelled or rejected face. A face may have several.
type Label struct {
	Row, Person int64
	Face        uint64 // the number of the face
	Negative    bool   // the face is not this person's
}

// labelIn returns the label in the columns id, person, number and rejected of a row.
func labelIn(r store.Row) Label {
	return Label{r.ColumnInt64(0), r.ColumnInt64(1), uint64(r.ColumnInt64(2)), r.ColumnInt64(3) == 1}
}

// LabelOf returns the label of a stored face, by the learner's number.
func (g *Gallery) LabelOf(stored int64) (Label, bool) {
	h, there := g.labels[stored]
	return h, there
}

// mostUnsaved is the number of learned faces that a gallery can learn again on top of another program's: 40 MB.
const mostUnsaved = 20000

// mostLoose is the number of labelled faces beyond the snapshot. Each takes milliseconds when a gallery is opened.
const mostLoose = 256

// saved says what the database has of the learner.
type saved struct {
	generation int64    // 0: nothing
	print      [32]byte // a hash of what was learned
	loose      int      // labels beyond it
	forced     bool     // it must be written anew
}

// align brings the learner in line with the database, in a transaction.
func (g *Gallery) align() error {
	generation, err := (&Tx{g: g}).Int("select generation from learned")
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
	settings, space, unsaved := g.learner.Settings(), g.Space(), g.unsaved
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
	g.unsaved = nil
	return g.learnAgain(unsaved)
}

// load reads the database into g. On error g is unchanged.
func (g *Gallery) load() error {
	var s saved
	var snapshot []byte
	rows := make(map[int64]int64) // the learner's numbers, and the rows of these labels
	err := g.db.Query("select generation, faces, snapshot from learned", func(r store.Row) error {
		s.generation, snapshot = r.ColumnInt64(0), slices.Clone(r.ColumnRawBlob(2))
		return cbor.Unmarshal(r.ColumnRawBlob(1), &rows)
	})
	if err != nil {
		return err
	}
	if s.generation == 0 {
		return fmt.Errorf("%w: nothing was written into it yet", fs.ErrNotExist)
	}
	type whole struct {
		Label
		vector []float32
	}
	all := make(map[int64]whole)
	err = g.db.Query(`select id, person, number, rejected, vector from label union all
		select id, person, number, rejected, vector from dropped`,
		func(r store.Row) error {
			h := labelIn(r)
			all[h.Row] = whole{h, vector.Floats(r.ColumnRawBlob(4))}
			return nil
		})
	if err != nil {
		return err
	}
	labels := make(map[int64]Label, len(rows))
	l := g.learner
	err = l.UnmarshalLearned(snapshot, func(id int64) []float32 {
		w, there := all[rows[id]]
		if !there {
			return nil
		}
		labels[id] = w.Label
		return w.vector
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	before := *g
	g.learner, g.saved, g.labels = l, s, labels
	g.saved.print = g.fingerprint()
	_, err = g.beside()
	if err == nil {
		err = g.follow(true)
	}
	if err != nil {
		*g = before
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	g.version, err = g.db.Version()
	return err
}

// follow brings the learner in line with the labels, whoever has changed them. Unless changed says that there are other
// changes, it looks at new labels only.
func (g *Gallery) follow(changed bool) error {
	last, err := (&Tx{g: g}).Int("select max(id) from label")
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
	there := make(map[int64]bool)
	if changed {
		g.retract(want, there)
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

// retract takes all labels back that are not wanted any more, and notes the rows of those that stay.
func (g *Gallery) retract(want []Label, there map[int64]bool) {
	rows, has := make(map[int64]bool), make(map[int64]bool) // people who have faces
	for _, h := range want {
		rows[h.Row], has[h.Person] = true, has[h.Person] || !h.Negative
	}
	var gone []int64
	for id, h := range g.labels {
		if !rows[h.Row] {
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 {
		for _, person := range g.learner.People() {
			if !has[person] {
				g.learner.Forget(person) // it knows them
			}
		}
		slices.Sort(gone)
		g.learner.Retract(gone...)
	}
	for id, h := range g.labels {
		if g.learner.Vector(id) == nil { // also faces that went with the last label of a person
			delete(g.labels, id)
		} else {
			there[h.Row] = true
		}
	}
}

// teach shows a label to the learner.
func (g *Gallery) teach(h Label) error {
	show := g.learner.Label
	if h.Negative {
		show = g.learner.Reject
	}
	var x []float32
	err := g.db.Query("select vector from label where id = ?", func(r store.Row) error {
		x = vector.Floats(r.ColumnRawBlob(0))
		return nil
	}, h.Row)
	if err == nil {
		err = show(x, h.Person)
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
		is := int64(0)
		if v[0].Learned {
			now[t.Stored], is = v[0].Stored, g.learner.Counts().Observed
		}
		g.renumbered[t.Number] = is
	}
	return nil
}

// save writes what was learned, if it has changed or if too many labels are beyond it.
func (t *Tx) save() error {
	g, next := t.g, t.g.saved
	gone, err := t.Int("select count(*) from dropped")
	if err != nil {
		return err
	}
	t.gone, t.saved.forced = t.gone || gone > 0, t.saved.forced || gone > 0
	next.print = g.fingerprint()
	if !t.saved.forced && next.print == g.saved.print && next.generation > 0 && next.loose <= mostLoose {
		t.saved = saved{}
		return nil
	}
	snapshot, err := g.learner.MarshalLearned()
	if err != nil {
		return err
	}
	rows := make(map[int64]int64, len(g.labels))
	for id, h := range g.labels {
		rows[id] = h.Row
	}
	faces, err := cbor.Marshal(rows)
	if err != nil {
		return err
	}
	next.generation, next.loose = max(next.generation, 0)+1, 0
	t.saved = next
	if err := t.Exec("delete from dropped"); err != nil {
		return err
	}
	return t.Exec("insert or replace into learned values(1, ?, ?, ?)", next.generation, faces, snapshot)
}

// fingerprint returns a hash of what a snapshot holds beside labels.
func (g *Gallery) fingerprint() [32]byte {
	l := &g.learner
	h := sha256.New()
	c := l.Counts()
	c.Labelled = 0
	fmt.Fprintf(h, "%+v %+v %+v %d\n", l.Space(), l.Settings(), c, l.Time().Unix())
	var b []byte
	for _, s := range l.Stored() {
		if !s.Labelled {
			b = binary.BigEndian.AppendUint64(b, uint64(s.ID))
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Points))
		}
	}
	h.Write(b)
	return [32]byte(h.Sum(nil))
}

// Renumbered returns the observations that have new numbers since the last call, because g has learned them again on top
// of what another program had learned. The number 0 says that an observation is not learned any more.
func (g *Gallery) Renumbered() map[int64]int64 {
	all := g.renumbered
	g.renumbered = make(map[int64]int64)
	return all
}
