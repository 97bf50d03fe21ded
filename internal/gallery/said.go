// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"encoding/json"
	"maps"
	"slices"
)

// What users say about people, sightings and strangers are statements: rows that say which value
// something has from now on. Of the statements about one thing that are not undone, the last one
// counts; without any, the value is what it was before all of them. So an undo needs no inverse,
// and the order of undoing cannot matter. The values lie in columns, which are filled in the
// statement's own transaction.

// Something of which a statement can give the value.
const (
	NameOf     = "name"     // of a person: Text
	WhoOf      = "sighting" // who a sighting is: Person, Text (its trust)
	GroupOf    = "group"    // the group of unknown faces of a sighting: Value
	FaceGroup  = "face"     // the group of unknown faces of a face: Value
	ValidLabel = "label"    // whether a label is valid: Value
	IgnoredOf  = "ignored"  // whether a group of unknown faces is ignored: Value
	EventWho   = "event"    // who an event is about: Person
	EventGroup = "egroup"   // its group of unknown faces: Value
)

// A statement notes what something was before all statements, and what it is from now on. What it
// was has the person with whom the row goes, if a statement cannot change that.
const (
	before = `insert or ignore into said(what, of, person, text, value)
		select ?1, of, coalesce(person, owner), text, value from `
	after = `insert or replace into said(statement, what, of, person, text, value)
		select ?3, ?1, of, coalesce(nullif(?4, 0), owner), coalesce(?5, text), coalesce(?6, value)
		from `
	these = ` where of in (select value from json_each(?2))`

	lastSaid = `
		from said left join statement on statement.id = said.statement where what = `
	counts = ` and (said.statement is null or not undone)
		order by coalesce(said.statement, 0) desc limit 1) where `
	filled = ` in (select value from json_each(?))`
)

// said are parts of the statements in SQL about one kind of thing. Now selects the present values,
// and fill gives things the values that count.
var said = map[string]struct{ now, fill string }{
	NameOf: {`(select id as of, id as owner, null as person, name as text, null as value
		from person)`,
		"update person set name = (select text" + lastSaid +
			"'name' and of = person.id" + counts + "id" + filled},
	WhoOf: {`(select id as of, null as owner, person, trust as text, null as value
		from sighting)`,
		"update sighting set (person, trust) = (select said.person, text" + lastSaid +
			"'sighting' and of = sighting.id" + counts + "id" + filled},
	GroupOf: {`(select id as of, null as owner, null as person, null as text,
		stranger as value from sighting)`,
		"update sighting set stranger = (select value" + lastSaid +
			"'group' and of = sighting.id" + counts + "id" + filled},
	FaceGroup: {`(select number as of, null as owner, null as person, null as text,
		stranger as value from face)`,
		"update face set stranger = (select value" + lastSaid +
			"'face' and of = face.number" + counts + "number" + filled},
	ValidLabel: {`(select id as of, person as owner, null as person, null as text,
		valid as value from label)`,
		"update label set valid = (select value" + lastSaid +
			"'label' and of = label.id" + counts + "id" + filled},
	IgnoredOf: {`(select id as of, null as owner, null as person, null as text,
		ignored as value from stranger)`,
		"update stranger set ignored = (select value" + lastSaid +
			"'ignored' and of = stranger.id" + counts + "id" + filled},
	EventWho: {`(select id as of, null as owner, person, null as text, null as value
		from event)`,
		"update event set person = (select said.person" + lastSaid +
			"'event' and of = event.id" + counts + "id" + filled},
	EventGroup: {`(select id as of, null as owner, null as person, null as text,
		stranger as value from event)`,
		"update event set stranger = (select value" + lastSaid +
			"'egroup' and of = event.id" + counts + "id" + filled},
}

// Value is a value that a statement gives. A nil value of Text or Value leaves it as it is.
type Value struct {
	Person int64 // 0: nobody
	Text   any   // string or nil
	Value  any   // int64, bool or nil
}

// Say records that a statement gives some things, a slice of numbers, a value.
func (t *Tx) Say(statement int64, what string, of any, v Value) error {
	ids, err := json.Marshal(of)
	if err != nil {
		return err
	}
	t.changed = t.changed || what == ValidLabel || what == NameOf
	t.Exec(before+said[what].now+these, what, string(ids))
	t.Exec(after+said[what].now+these, what, string(ids), statement, v.Person, v.Text, v.Value)
	return t.Exec(said[what].fill, string(ids))
}

// fill gives things of one kind the values that count now: those that a query finds.
func (t *Tx) fill(what, query string, args ...any) error {
	of, _ := t.Ints(query, args...)
	if len(of) == 0 {
		return t.failed
	}
	ids, _ := json.Marshal(of) // numbers can be encoded
	return t.Exec(said[what].fill, string(ids))
}

// Made records that a statement has made the labels that were added since the last statement:
// without it they are not valid, and what they have made wrong is.
func (t *Tx) Made(statement int64) error {
	if len(t.made) == 0 {
		return t.failed
	}
	made, gone := t.made, t.withdrawn
	t.made, t.withdrawn = nil, nil
	for _, row := range slices.Concat(made, gone) { // without any statement they are what they were
		t.Exec("update label set valid = not valid where id = ?", row)
	}
	t.Say(statement, ValidLabel, made, Value{Value: int64(1)})
	return t.Say(statement, ValidLabel, gone, Value{Value: int64(0)})
}

// Found gives something the value that it has without statements: a camera knows more than when a
// user spoke. The statements that are not undone still count. Without found the value of a camera
// is not known.
func (t *Tx) Found(what string, of int64, v Value, found bool) error {
	if found {
		t.Exec(`update said set person = nullif(?3, 0), text = ?4, value = ?5 where what = ?1
			and of = ?2 and statement is null`, what, of, v.Person, v.Text, v.Value)
	}
	return t.fill(what, "select of from said where what = ? and of = ? limit 1", what, of)
}

// Undo takes back a statement, in any order with others.
func (t *Tx) Undo(statement int64) error {
	t.Exec("update statement set undone = 1 where id = ?", statement)
	t.changed = true
	for _, what := range slices.Sorted(maps.Keys(said)) {
		t.fill(what, "select of from said where statement = ? and what = ?", statement, what)
	}
	return t.failed
}

// Settle removes statements, whose values become those from before all statements. They can no
// longer be undone.
func (t *Tx) Settle(statements ...int64) error {
	for _, s := range statements {
		for _, sql := range []string{
			// What came before counts no more, unless the statement is undone.
			`delete from said where coalesce(statement, 0) < ?1 and (what, of) in
				(select what, of from said where statement = ?1) and exists (select 1 from statement
				where id = ?1 and not undone)`,
			`update said set statement = null where statement = ?1 and
				exists (select 1 from statement where id = ?1 and not undone)`,
			`delete from statement where id = ?1`,
		} {
			t.Exec(sql, s)
		}
	}
	if len(statements) == 0 {
		return t.failed
	}
	// Where no statement is left, what came before all of them needs no row.
	return t.Exec(`delete from said where statement is null and not exists
		(select 1 from said s
		where s.what = said.what and s.of = said.of and s.statement is not null)`)
}
