// SPDX-License-Identifier: Apache-2.0

package office

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/vector"
)

// nanoseconds returns a time for the database.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is the opposite of nanoseconds.
func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// before returns the number before which a list ends, for SQL: 0 is before none, as is what no row
// can have.
func before(id uint64) int64 {
	if id == 0 || id > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(id)
}

// ids returns numbers as JSON, for json_each.
func ids[N int64 | uint64](all []N) string {
	text, _ := json.Marshal(append([]N{}, all...)) // numbers can be encoded
	return string(text)
}

// Statements that find the numbers of things that belong together.
const (
	sightingsOfGroup  = "select id from sighting where stranger = ?"
	sightingsOfPerson = "select id from sighting where person = ?"
	facesOfGroup      = "select number from face where stranger = ?"
	facesOfSighting   = "select number from face where sighting = ?"
	eventsOfGroup     = "select id from event where stranger = ?"
	eventsOfPerson    = "select id from event where person = ? and of = 0"
	unknownOfGroup    = "select id from event where stranger = ? and kind = 'unknown'"
)

// eventsOf returns the events that tell of sightings, but for corrections.
func eventsOf(t *gallery.Tx, sightings []int64) []int64 {
	all, _ := t.Ints(`select id from event where of = 0 and
		sighting in (select value from json_each(?))`, ids(sightings))
	return all
}

// numbers returns the numbers that a statement finds.
func numbers(t *gallery.Tx, statement string, of int64) []int64 {
	all, _ := t.Ints(statement, of)
	return all
}

// faceOf returns the face in the columns number, camera, at, sharp, vector and jpeg of a row, from
// a column on.
func faceOf(r gallery.Row, from int) album.Face {
	return album.Face{ID: uint64(r.ColumnInt64(from)), Camera: r.ColumnText(from + 1),
		At: moment(r.ColumnInt64(from + 2)), Sharp: r.ColumnFloat(from + 3),
		Vector: vector.Floats(r.ColumnRawBlob(from + 4)),
		JPEG:   slices.Clone(r.ColumnRawBlob(from + 5))}
}

// putFace writes a face of a sighting, or of a group of unknown faces; 0 keeps what it is.
func putFace(t *gallery.Tx, f album.Face, office int64, of, stranger uint64) error {
	return t.Exec(
		`insert into face(number, office, sighting, stranger, camera, at, sharp, vector, jpeg)
		values(?1, ?2, nullif(?3, 0), ?4, ?5, ?6, ?7, ?8, nullif(?9, x''))
			on conflict(number) do update set
		sighting = iif(?3 > 0, ?3, sighting), stranger = iif(?4 > 0, ?4, stranger)`,
		int64(f.ID), office, int64(of), int64(stranger), f.Camera, nanoseconds(f.At), f.Sharp,
		vector.Bytes(f.Vector),
		f.JPEG)
}

// facesOf returns the faces of a sighting, in the order in which they were seen.
func facesOf(t *gallery.Tx, id uint64) (all []album.Face) {
	for r := range t.Rows(`select number, camera, at, sharp, vector, jpeg from face
		where sighting = ? order by number`, int64(id)) {
		all = append(all, faceOf(r, 0))
	}
	return all
}

// numbersOf returns the numbers of faces.
func numbersOf(faces []album.Face) (all []uint64) {
	for _, f := range faces {
		all = append(all, f.ID)
	}
	return all
}

func vectors(faces []album.Face) (all [][]float32) {
	for _, f := range faces {
		all = append(all, f.Vector)
	}
	return all
}
