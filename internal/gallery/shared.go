// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
)

// OpenRows opens the gallery at path for a program that brings people and labels in line with other
// devices and needs no learner. It returns the feature space of the last snapshot. Programs with a
// learner follow: at once if they have the gallery open, and otherwise when they open it. Until one
// saves, dropped has the labels that are gone and may be in its snapshot, and what is gone is not
// overwritten. The tables shared and touched belong to that program; touched has the people whose
// name or labels have changed, and those who were removed. The error wraps [fs.ErrNotExist] or one
// of the package.
func OpenRows(path string) (*Rows, face.Space, error) {
	db, err := store.Open(path, schema, false)
	if err != nil {
		return nil, face.Space{}, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	// The learner finds the vectors of the labels in its snapshot, until it has followed.
	err = db.Exec(`create temp trigger kept after delete on label begin
		insert into dropped values(old.id, old.person, old.number, old.rejected, old.vector);
	end`)
	var learned struct {
		Space face.Space `cbor:"space"`
	}
	if err == nil {
		err = db.Query("select snapshot from learned", func(r store.Row) error {
			return decoding.Unmarshal(r.ColumnRawBlob(0), &learned)
		})
	}
	if err == nil && learned.Space.ID == "" {
		err = fmt.Errorf("gallery %s: nothing was written into it yet", path)
	}
	if err != nil {
		return nil, learned.Space, errors.Join(err, db.Close())
	}
	return &Rows{db: db, path: db.Path(), bare: true}, learned.Space, nil
}

// There is whom the offices of a device of the fleet see.
type There struct {
	Place string             `cbor:"1,keyasint"` // name of the device
	At    int64              `cbor:"2,keyasint"` // when this was known: seconds since 1970
	Since map[[16]byte]int64 `cbor:"3,keyasint"` // since when the people of the fleet are there
}

// Lasting is how long it counts that somebody was there, unless it is known anew.
const Lasting = 15 * time.Minute

// Away is a person whom another device of the fleet sees.
type Away struct {
	Place string    `json:"place"` // name of the device
	Since time.Time `json:"since"`
}

// Here returns whom the offices see that run with this gallery. What an office says that has ended
// counts no more.
func (r *Rows) Here(place string, now time.Time) (There, error) {
	mine := There{place, now.Unix(), make(map[[16]byte]int64)}
	err := r.Look(func(t *Tx) error {
		for row := range t.Rows(`select o.name, s.id, p.since / 1000000000 from present p
			join shared s on s.person = p.person join office o on o.id = p.office
			order by p.since desc`) {
			f, err := safefile.Open(OfficeLock(r.path, row.ColumnText(0)))
			if err != nil {
				continue // it does not run
			}
			if safefile.Locked(f) {
				mine.Since[[16]byte(row.ColumnRawBlob(1))] = row.ColumnInt64(2)
			}
			f.Close()
		}
		return t.failed
	})
	return mine, err
}

// Elsewhere keeps whom another device sees, in the place of what it said before.
func (t *Tx) Elsewhere(device string, all There) error {
	t.Exec("delete from elsewhere where device = ?", device)
	for id, since := range all.Since {
		t.Exec("insert into elsewhere values(?, ?, ?, ?, ?)", device, all.Place, all.At, id[:],
			since)
	}
	return t.failed
}

// Elsewhere returns who is at another device at the moment at, by number.
func (r *Rows) Elsewhere(at time.Time) (map[int64]Away, error) {
	away := make(map[int64]Away)
	err := r.Look(func(t *Tx) error {
		for row := range t.Rows(`select person, place, since from elsewhere e
			join shared s on s.id = e.id where at > ? and person > 0 and
			since between 0 and 1 << 37 order by since`, at.Add(-Lasting).Unix()) {
			away[row.ColumnInt64(0)] = Away{row.ColumnText(1), time.Unix(row.ColumnInt64(2), 0)}
		}
		return t.failed
	})
	return away, err
}

// Held returns the label by which a face is another person's, and that person, or 0.
func (t *Tx) Held(vector []byte, person int64) (row, other int64) {
	for r := range t.Rows(`select id, person from label where substr(vector, 1, 16) =
		substr(?1, 1, 16) and not rejected and valid and vector = ?1 and person <> ?2`,
		vector, person) {
		row, other = r.ColumnInt64(0), r.ColumnInt64(1)
	}
	return row, other
}

// Drop removes labels that another device has taken back, also where an undo would make them valid.
func (t *Tx) Drop(rows ...int64) error {
	const gone = `(select id from label where id = ?1 or not valid and (number, rejected) =
		(select number, rejected from label where id = ?1))`
	for _, row := range rows {
		t.changed, t.gone = true, true
		t.Exec("delete from said where what = 'label' and of in "+gone, row)
		t.Exec("delete from label where id in "+gone, row)
	}
	return t.failed
}

// Merge makes a person another one, whom the events, sightings and labels belong to from now on,
// with what users said of them. It cannot be undone.
func (t *Tx) Merge(from, to int64) error {
	const twice = `(select old.id from label old join label l on l.person = ?2
		and l.rejected = old.rejected and l.vector = old.vector
		where old.person = ?1 and old.valid and l.valid)`
	t.Exec("delete from said where what = 'label' and of in "+twice, from, to)
	t.Exec("delete from label where id in "+twice, from, to)
	// That it is valid is said again for the trigger that tells the fleet whose labels have
	// changed.
	t.Exec("update label set person = ?2, valid = valid where person = ?1", from, to)
	t.Call(from, "") // no statement about its name stays
	for _, sql := range []string{
		"update sighting set person = ?2 where person = ?1",
		"update event set person = ?2 where person = ?1",
		"update or ignore present set person = ?2 where person = ?1",
		"update statement set person = ?2 where person = ?1",
		"update statement set other = ?2 where other = ?1",
		"update said set person = ?2 where person = ?1",
		"update person set enrolled = max(enrolled, (select p.enrolled from person p where p.id " +
			"= ?1)) where id = ?2",
	} {
		t.Exec(sql, from, to)
	}
	return t.Exec("delete from person where id = ?", from)
}
