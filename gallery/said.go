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
// which are filled in the statement's own transaction ([Tx.Folded] compares).

// Something of which a statement can give the value.
const (
	NameOf     = "name"     // of a person: Text
	WhoOf      = "sighting" // who a sighting is: Person, Text (its trust), Value (1: nobody known, a user said so)
	GroupOf    = "group"    // the group of unknown faces of a sighting: Value
	FaceGroup  = "face"     // the group of unknown faces of a face: Value
	ValidLabel = "label"    // whether a label is valid: Value
	IgnoredOf  = "ignored"  // whether a group of unknown faces is ignored: Value
	EventWho   = "event"    // who an event is about: Person
	EventGroup = "egroup"   // its group of unknown faces: Value
)

// place says where the present value of something lies. An empty column has no value.
type place struct{ table, key, person, text, value string }

var places = map[string]place{
	NameOf:     {"person", "id", "", "name", ""},
	WhoOf:      {"sighting", "id", "person", "trust", "wrong"},
	GroupOf:    {"sighting", "id", "", "", "stranger"},
	FaceGroup:  {"face", "number", "", "", "stranger"},
	ValidLabel: {"label", "id", "", "", "valid"},
	IgnoredOf:  {"stranger", "id", "", "", "ignored"},
	EventWho:   {"event", "id", "person", "", ""},
	EventGroup: {"event", "id", "", "", "stranger"},
}

// columns returns the columns of a place, and those of table said that they come from.
func (p place) columns() (there, said []string) {
	for column, from := range map[string]string{p.person: "person", p.text: "text", p.value: "value"} {
		if column != "" {
			there, said = append(there, column), append(said, from)
		}
	}
	return there, said
}

// owner returns an SQL expression for the person with whom a row goes when the person is forgotten.
func (p place) owner() string {
	switch {
	case p.person != "":
		return p.person
	case p.table == "person":
		return "id"
	case p.table == "label":
		return "person"
	}
	return "null"
}

// or returns an expression, or null for an empty one.
func or(column string) string {
	if column == "" {
		return "null"
	}
	return column
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
	t.whole, t.named = t.whole || what == ValidLabel || what == NameOf, t.named || what == NameOf
	among := " from " + p.table + " where " + condition
	t.Exec(fmt.Sprintf("insert or ignore into said(what, of, person, text, value) select ?2, %s, %s, %s, %s%s", p.key,
		p.owner(), or(p.text), or(p.value), among), of, what)
	who := "nullif(?4, 0)"
	if p.person == "" {
		who = "coalesce(" + who + ", " + p.owner() + ")"
	}
	t.Exec(fmt.Sprintf(`insert or replace into said(statement, what, of, person, text, value)
		select ?3, ?2, %s, %s, coalesce(?5, %s), coalesce(?6, %s)%s`, p.key, who, or(p.text), or(p.value), among),
		of, what, statement, v.Person, v.Text, v.Value)
	return t.fold(what, statement)
}

// Made records that a statement has made labels: without it they are not valid, and what they have made wrong is.
func (t *Tx) Made(statement int64, labels []int64) error {
	t.statement = statement
	t.Say(statement, ValidLabel, labels, Value{Value: int64(1)})
	err := t.Exec(`update said set value = 0 where statement is null and what = 'label' and
		of in (select of from said where statement = ? and what = 'label' and value = 1)
		and not exists (select 1 from said s where s.what = 'label' and s.of = said.of and s.statement < ?1)`, statement)
	if err != nil || len(t.withdrawn) == 0 {
		return err
	}
	gone := t.withdrawn
	t.withdrawn = nil
	for _, row := range gone { // they were valid until now
		t.Exec("update label set valid = 1 where id = ?", row)
	}
	return t.Say(statement, ValidLabel, gone, Value{Value: int64(0)})
}

// latest returns an SQL expression for columns of the value that counts for something.
func latest(what, of string, columns []string) string {
	return fmt.Sprintf(`(select %s from said left join statement on statement.id = said.statement
		where said.what = '%s' and said.of = %s and (said.statement is null or not statement.undone)
		order by coalesce(said.statement, 0) desc limit 1)`, strings.Join(columns, ", "), what, of)
}

// fold gives the things about which a statement spoke the values that count now.
func (t *Tx) fold(what string, statement int64) error {
	return t.values(what, "statement = ?", statement)
}

// values gives things the values that count now: those that a condition finds in table said.
func (t *Tx) values(what, condition string, of int64) error {
	p := places[what]
	there, said := p.columns()
	for i, s := range said {
		if said[i] = "said." + s; s != "person" { // the value of a forgotten person is gone
			said[i] = fmt.Sprintf("coalesce(said.%s, %s.%s)", s, p.table, there[i])
		}
	}
	return t.Exec(fmt.Sprintf(`update %s set (%s) = %s where %s in
		(select of from said where what = '%s' and %s)`, p.table, strings.Join(there, ", "),
		latest(what, p.table+"."+p.key, said), p.key, what, condition), of)
}

// Found gives something the value that it has without statements: a camera knows more than when a user spoke. The
// statements that are not undone still count. Without found the value of a camera is not known.
func (t *Tx) Found(what string, of int64, v Value, found bool) error {
	if found {
		t.Exec(`update said set person = nullif(?3, 0), text = ?4, value = ?5 where what = ?1 and of = ?2 and statement is null`, what,
			of, v.Person, v.Text, v.Value)
	}
	return t.values(what, "of = ?", of)
}

// Undo takes back a statement, in any order with others.
func (t *Tx) Undo(statement int64) error {
	t.Exec("update statement set undone = 1 where id = ?", statement)
	t.whole, t.named = true, true
	for _, what := range slices.Sorted(maps.Keys(places)) {
		t.fold(what, statement)
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
	return t.failed
}

// SettleDone forgets the values of things about which no statement is left.
func (t *Tx) SettleDone() error {
	return t.Exec(`delete from said where statement is null and not exists
		(select 1 from said s where s.what = said.what and s.of = said.of and s.statement is not null)`)
}

// Folded returns an error if a column is not what the statements say. It reads all of them.
func (t *Tx) Folded() error {
	for what, p := range places {
		there, said := p.columns()
		for i, column := range there {
			n, err := t.Int(fmt.Sprintf(`select count(*) from %s where %s in (select of from said where what = '%s') and
				%s is not %s`, p.table, p.key, what, column, latest(what, p.table+"."+p.key, []string{"said." + said[i]})))
			if err != nil {
				return err
			}
			if n > 0 {
				return fmt.Errorf("%s: %d rows have another %s than statements say", what, n, column)
			}
		}
	}
	return nil
}
