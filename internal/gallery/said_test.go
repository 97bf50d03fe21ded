// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/online"
)

// thing is something of which a statement can give the value: its kind, and the number of its row.
type thing struct {
	what string
	of   int64
}

// value is its value: of some kinds a part of it is always empty.
type value struct {
	person int64
	text   string
	number int64
}

// kinds read all things of a kind.
var kinds = []struct{ what, sql string }{
	{gallery.NameOf, "select id, 0, name, 0 from person"},
	{gallery.WhoOf, "select id, coalesce(person, 0), trust, 0 from sighting"},
	{gallery.GroupOf, "select id, 0, '', stranger from sighting"},
	{gallery.FaceGroup, "select number, 0, '', stranger from face"},
	{gallery.ValidLabel, "select id, 0, '', valid from label"},
	{gallery.IgnoredOf, "select id, 0, '', ignored from stranger"},
	{gallery.EventWho, "select id, coalesce(person, 0), '', 0 from event"},
	{gallery.EventGroup, "select id, 0, '', stranger from event"},
}

func values(t *testing.T, g *gallery.Gallery) map[thing]value {
	t.Helper()
	all := make(map[thing]value)
	fixture.Check(t, g.Rows().Look(func(tx *gallery.Tx) error {
		for _, k := range kinds {
			for r := range tx.Rows(k.sql) {
				all[thing{k.what, r.ColumnInt64(0)}] = value{r.ColumnInt64(1), r.ColumnText(2),
					r.ColumnInt64(3)}
			}
		}
		return tx.Err()
	}))
	return all
}

// statements is the slow model: it has all statements, and finds each value by going through them
// from the beginning.
type statements struct {
	base map[thing]value // before all statements
	all  []int64         // in order
	said map[int64]map[thing]value
	gone map[int64]bool // undone
}

// now returns a value; ok is false if no statement is about it.
func (m *statements) now(at thing) (v value, ok bool) {
	v, ok = m.base[at]
	for _, s := range m.all {
		x, there := m.said[s][at]
		if there && !m.gone[s] {
			v = x
		}
	}
	return v, ok
}

// settle forgets a statement, and what came before it unless it is undone.
func (m *statements) settle(s int64) {
	i := slices.Index(m.all, s)
	for at, v := range m.said[s] {
		if m.gone[s] {
			continue
		}
		m.base[at] = v
		for _, before := range m.all[:i] {
			delete(m.said[before], at)
		}
	}
	m.all = slices.Delete(m.all, i, i+1)
	for at := range m.base {
		if !slices.ContainsFunc(m.all, func(s int64) bool {
			_, there := m.said[s][at]
			return there
		}) {
			delete(m.base, at)
		}
	}
}

// spoken returns a gallery of three people with sightings, faces, groups of unknown faces and
// events.
func spoken(t *testing.T) *gallery.Gallery {
	t.Helper()
	g := fixture.Must(gallery.New(space, online.Settings{K: 50}))(t)
	t.Cleanup(func() { g.Close() })
	for i, name := range []string{"alice", "bob", "carol"} {
		fixture.Must(g.Enroll(name, person(i, 3), noon, gallery.Enrolment{}))(t)
	}
	fixture.Check(t, g.Rows().Write(false, func(tx *gallery.Tx) error {
		tx.Exec("insert into office(name, code, temporary, off, last) values('home', '', 0, 0, 0)")
		for i := range int64(6) {
			tx.Exec("insert into stranger values(?, 1, 0, ?)", i+1, i%2)
			tx.Exec("insert into sighting values(?, 1, 'hall', 0, 0, nullif(?, 0), ?, ?, 0)", i+1,
				i%4,
				[]string{"", "likely", "confirmed"}[i%3], i%3)
			tx.Exec("insert into face values(?, 1, ?, ?, 'hall', 0, 0, x'00', null)", 1000+i, i+1,
				i%3)
			tx.Exec("insert into event values(?, 1, ?, 'arrived', nullif(?, 0), ?, 'hall', '', "+
				"0, 0, 0, 0, 0, 0, '')", i+1, i, i%4, i%3)
		}
		return tx.Err()
	}))
	return g
}

// Statements, undone and settled in any order, give what the remaining ones give alone, and the
// learner has the labels that are valid then.
func TestRandomStatements(t *testing.T) {
	programs := 1000
	if testing.Short() {
		programs = 100
	}
	for seed := range programs {
		g, r := spoken(t), rand.New(rand.NewPCG(uint64(seed), 99))
		things := slices.SortedFunc(maps.Keys(values(t, g)), func(a, b thing) int {
			return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
		})
		m := &statements{map[thing]value{}, nil, map[int64]map[thing]value{}, map[int64]bool{}}
		var told []string
		for range 14 {
			before := values(t, g)
			fixture.Check(t, g.Rows().Change(func(tx *gallery.Tx) error {
				at := things[r.IntN(len(things))]
				switch k := r.IntN(8); {
				case k < 4 || len(m.all) == 0:
					s := m.says(tx, at.what, things, before, r)
					told = append(told, fmt.Sprint(s, " says ", m.said[s]))
				case k < 6:
					s := m.all[r.IntN(len(m.all))]
					told = append(told, fmt.Sprint("undo ", s))
					m.gone[s] = true
					tx.Undo(s)
				case k == 6:
					s := m.all[r.IntN(len(m.all))]
					told = append(told, fmt.Sprint("settle ", s))
					m.settle(s)
					tx.Settle(s)
				default: // a camera knows more
					at.what = gallery.WhoOf
					at.of = 1 + r.Int64N(6)
					v := value{r.Int64N(4), "likely", 0}
					told = append(told, fmt.Sprint("found ", at, v))
					tx.Exec("update sighting set person = nullif(?, 0), trust = ? where id = ?",
						v.person, v.text, at.of)
					tx.Found(at.what, at.of, gallery.Value{Person: v.person, Text: v.text}, true)
					before[at] = v
					if _, there := m.base[at]; there {
						m.base[at] = v
					}
				}
				return tx.Err()
			}))
			valid := 0
			for at, is := range values(t, g) {
				want, said := m.now(at)
				if !said {
					want = before[at]
				}
				if is != want {
					t.Fatalf("seed %d: %q: %v is %v, want %v", seed, told, at, is, want)
				}
				if at.what == gallery.ValidLabel {
					valid += int(is.number)
				}
			}
			if n := len(g.Learner().Labels()); n != valid {
				t.Fatalf("seed %d: %q: the learner has %d labels of %d", seed, told, n, valid)
			}
		}
		g.Close()
	}
}

// says makes a statement about some things of a kind.
func (m *statements) says(tx *gallery.Tx, what string, things []thing, before map[thing]value,
	r *rand.Rand) int64 {
	s, _ := tx.Int(`insert into statement(office, at, kind, name, was, stranger, sighting, face)
		values(1, 0, 'named', '', '', 0, 0, 0) returning id`)
	m.all, m.said[s] = append(m.all, s), make(map[thing]value)
	v, v2 := value{r.Int64N(4), fmt.Sprint("name ", r.IntN(3)), r.Int64N(2)}, gallery.Value{}
	keeps := r.IntN(3) == 0 // the text stays
	switch what {
	case gallery.NameOf:
		v.person, v.number, keeps = 0, 0, false
		v2.Text = v.text
	case gallery.WhoOf:
		v.number = 0
		v2.Person, v2.Text = v.person, v.text
		if keeps {
			v2.Text = nil
		}
	case gallery.EventWho:
		v.text, v.number = "", 0
		v2.Person = v.person
	default:
		v.person, v.text = 0, ""
		v2.Value = v.number
	}
	var ids []int64
	for _, at := range things {
		if at.what != what || r.IntN(2) == 0 {
			continue
		}
		ids = append(ids, at.of)
		x := v
		if keeps && what == gallery.WhoOf {
			x.text = before[at].text
		}
		if _, there := m.base[at]; !there {
			m.base[at] = before[at]
		}
		m.said[s][at] = x
	}
	tx.Say(s, what, append(ids, 999), v2) // of 999 there is nothing
	return s
}

// What a statement has labelled is valid as long as it is not undone, and what it has made wrong is
// valid again then: a face of one person is rejected as another's no more, and a person who was
// found to be another one is back.
func TestUndoLabels(t *testing.T) {
	g := spoken(t)
	const statement = `insert into statement(office, at, kind, name, was, stranger, sighting, face)
		values(1, 0, 'renamed', '', '', 0, 0, 0) returning id`
	dave := person(5, 1)
	fixture.Check(t, g.Reject(dave[0], "alice"))
	want := func(people string, negative int) {
		t.Helper()
		n := 0
		for _, l := range g.Learner().Labels() {
			if l.Negative {
				n++
			}
		}
		if is := strings.Join(listed(g), ", "); is != people || n != negative {
			t.Errorf("%s, and %d rejected; want %s and %d", is, n, people, negative)
		}
	}
	change := func(do func(tx *gallery.Tx)) {
		t.Helper()
		fixture.Check(t, g.Rows().Change(func(tx *gallery.Tx) error { do(tx); return tx.Err() }))
	}
	var first, second int64
	change(func(tx *gallery.Tx) {
		tx.Label(g.Number("bob"), false, dave, nil)
		first, _ = tx.Int(statement)
		tx.Made(first)
	})
	want("alice 3, bob 4, carol 3", 0)
	change(func(tx *gallery.Tx) {
		gone := tx.Join(g.Number("carol"), g.Number("bob"))
		second, _ = tx.Int(statement)
		tx.Made(second)
		tx.Say(second, gallery.ValidLabel, gone, gallery.Value{Value: int64(0)})
	})
	want("alice 3, bob 7", 0)
	change(func(tx *gallery.Tx) { tx.Undo(first) })
	want("alice 3, bob 6", 1)
	change(func(tx *gallery.Tx) { tx.Undo(second) })
	want("alice 3, bob 3, carol 3", 1)
}
