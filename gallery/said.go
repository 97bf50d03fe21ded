// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What users say about people, sightings and strangers are statements: rows that say which value something has from now
// on. Of the statements about one thing that are not undone, the last one counts; without any, the value is what it was
// before all of them. So an undo needs no inverse, and the order of undoing cannot matter. The values lie in columns,
// which are filled in the statement's own transaction.

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

// place says where the present value of something lies: in a row of a table, and in the columns whose values are person,
// text and value in table said. Owner is the person with whom the row goes, if a statement cannot change that.
type place struct{ table, key, person, text, value, owner string }

var places = map[string]place{
	NameOf:     {"person", "id", "null", "name", "null", "id"},
	WhoOf:      {"sighting", "id", "person", "trust", "null", "null"},
	GroupOf:    {"sighting", "id", "null", "null", "stranger", "null"},
	FaceGroup:  {"face", "number", "null", "null", "stranger", "null"},
	ValidLabel: {"label", "id", "null", "null", "valid", "person"},
	IgnoredOf:  {"stranger", "id", "null", "null", "ignored", "null"},
	EventWho:   {"event", "id", "person", "null", "null", "null"},
	EventGroup: {"event", "id", "null", "null", "stranger", "null"},
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
	return t.SayOf(statement, what, places[what].key+" in (select value from json_each(?1))", string(ids), v)
}

// SayOf records that a statement gives a value to the things for which a condition on an argument, ?1, holds.
func (t *Tx) SayOf(statement int64, what, condition string, of any, v Value) error {
	p := places[what]
	t.changed = t.changed || what == ValidLabel || what == NameOf
	t.Exec(fmt.Sprintf(`insert or ignore into said(what, of, person, text, value)
		select ?2, %s, coalesce(%s, %s), %s, %s from %s where %s`, p.key, p.person, p.owner, p.text, p.value, p.table,
		condition), of, what)
	t.Exec(fmt.Sprintf(`insert or replace into said(statement, what, of, person, text, value)
		select ?3, ?2, %s, coalesce(nullif(?4, 0), %s), coalesce(?5, %s), coalesce(?6, %s) from %s where %s`, p.key, p.owner,
		p.text, p.value, p.table, condition), of, what, statement, v.Person, v.Text, v.Value)
	return t.values(what, "statement = ?", statement)
}

// Made records that a statement has made the labels that were added since the last statement: without it they are not
// valid, and what they have made wrong is.
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

// values gives things the values that count now: those that a condition finds in table said.
func (t *Tx) values(what, condition string, of int64) error {
	p := places[what]
	var columns, said []string
	for i, c := range []string{p.person, p.text, p.value} {
		if c != "null" {
			columns, said = append(columns, c), append(said, "said."+[]string{"person", "text", "value"}[i])
		}
	}
	return t.Exec(fmt.Sprintf(`update %[1]s set (%[2]s) = (select %[3]s from said left join statement on
		statement.id = said.statement where said.what = '%[4]s' and said.of = %[1]s.%[5]s and
		(said.statement is null or not statement.undone) order by coalesce(said.statement, 0) desc limit 1)
		where %[5]s in (select of from said where what = '%[4]s' and %[6]s)`, p.table, strings.Join(columns, ", "),
		strings.Join(said, ", "), what, p.key, condition), of)
}

// Found gives something the value that it has without statements: a camera knows more than when a user spoke. The
// statements that are not undone still count. Without found the value of a camera is not known.
func (t *Tx) Found(what string, of int64, v Value, found bool) error {
	if found {
		t.Exec(`update said set person = nullif(?3, 0), text = ?4, value = ?5 where what = ?1 and of = ?2 and
			statement is null`, what, of, v.Person, v.Text, v.Value)
	}
	return t.values(what, "of = ?", of)
}

// Undo takes back a statement, in any order with others.
func (t *Tx) Undo(statement int64) error {
	t.Exec("update statement set undone = 1 where id = ?", statement)
	t.changed = true
	for _, what := range slices.Sorted(maps.Keys(places)) {
		t.values(what, "statement = ?", statement)
	}
	return t.failed
}

// Settle removes statements, whose values become those from before all statements. They can no longer be undone.
func (t *Tx) Settle(statements ...int64) error {
	for _, s := range statements {
		for _, sql := range []string{
			// What came before counts no more, unless the statement is undone.
			`delete from said where coalesce(statement, 0) < ?1 and (what, of) in
				(select what, of from said where statement = ?1) and exists (select 1 from statement where id = ?1 and not undone)`,
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
		(select 1 from said s where s.what = said.what and s.of = said.of and s.statement is not null)`)
}
