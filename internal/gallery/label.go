// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/vector"
)

// Person returns the number of the person with a name, and makes one if there is none.
func (t *Tx) Person(name string) (int64, error) {
	if id := t.g.Number(name); id != 0 {
		return id, nil
	}
	if err := face.CheckName(name); err != nil {
		return 0, err
	}
	return t.Int("insert into person(name, enrolled) values(?, 0) returning id", name)
}

// Call gives a person a name that no statement can take back.
func (t *Tx) Call(person int64, name string) error {
	t.changed, t.gone = true, true
	t.Exec("delete from statement where person = ? and kind = 'renamed' and other is null", person)
	t.Exec("delete from said where what = 'name' and of = ?", person)
	return t.Exec("update person set name = ? where id = ?", name, person)
}

// Label adds labelled faces of a person, or faces that are not this person's. Numbers are the
// numbers of the faces; without them they get new ones.
func (t *Tx) Label(person int64, rejected bool, faces [][]float32, numbers []uint64) error {
	for i, x := range faces {
		number := int64(0)
		if i < len(numbers) {
			number = int64(numbers[i])
		}
		if number == 0 {
			number, _ = t.Next("face", 1)
		}
		made, _ := t.Ints(
			`insert into label(number, person, rejected, vector) values(?, ?, ?, ?) returning id`,
			number,
			person, rejected, vector.Bytes(x))
		t.made = append(t.made, made...)
		if rejected {
			continue
		}
		// A face of this person is nobody else's: that it is not another's needs no label.
		needless, _ := t.Ints(
			`update label set valid = 0 where rejected and valid and vector = ? and person <> ?
			returning id`, vector.Bytes(x), person)
		// The learner withdraws them itself when it is shown the face.
		t.withdrawn, t.anew = append(t.withdrawn, needless...), t.anew || len(needless) > 0
	}
	return t.failed
}

// portray keeps pictures of enrolled faces, by their numbers.
func (t *Tx) portray(numbers []uint64, pictures [][]byte) {
	if t.g.learner.Settings().NoPictures {
		return
	}
	for i, jpeg := range pictures {
		if len(jpeg) > 0 {
			t.Exec("insert or ignore into portrait(number, jpeg) values(?, ?)", int64(numbers[i]),
				jpeg)
		}
	}
}

// Forget removes a person and everything that is known about the person. What users said about the
// person can no longer be undone.
func (t *Tx) Forget(person int64) error {
	// Who was found to be this person, as far as it was not undone, is this person.
	them, _ := t.Ints(
		`with recursive them(id) as (select ?1 union select s.other from statement s
		join them on s.person = them.id
		where s.kind = 'renamed' and s.other is not null and not s.undone) select id from them`,
		person)
	t.changed, t.gone = true, true
	for _, id := range them {
		said, _ := t.Ints("select id from statement where person = ?1 or other = ?1 order by id",
			id)
		t.Settle(said...)
		for _, sql := range []string{
			`update said set person = null, text = '' where person = ?1 and what = 'sighting'`,
			`update said set person = null where person = ?1 and what = 'event'`,
			`delete from face where sighting in (select id from sighting where person = ?1)`,
			`delete from face where +stranger = 0 and number in (select number from label
				where person = ?1 and not rejected)`,
			`delete from person where id = ?1`,
		} {
			t.Exec(sql, id)
		}
	}
	return t.failed
}

// Sweep removes people without faces whom nothing mentions.
func (t *Tx) Sweep() error {
	return t.Exec(
		`delete from person where
		not exists (select 1 from label where label.person = person.id) and
		not exists (select 1 from sighting where sighting.person = person.id) and
		not exists (select 1 from event where event.person = person.id) and
		not exists (select 1 from present where present.person = person.id) and
		not exists (select 1 from said where said.person = person.id) and
		not exists (select 1 from statement where statement.person = person.id) and
		not exists (select 1 from statement where statement.other = person.id)`)
}

// Join makes a person another one: it adds the labels of the first as labels of the second, and
// returns the rows of the first, which the statement takes back.
func (t *Tx) Join(from, to int64) (gone []int64) {
	gone, _ = t.Ints("select id from label where person = ? and valid order by id", from)
	made, _ := t.Ints(
		`insert into label(number, person, rejected, vector) select number, ?2, rejected, vector
			from label where person = ?1 and valid order by id returning id`, from, to)
	t.made = append(t.made, made...)
	return gone
}
