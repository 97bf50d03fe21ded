// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/online"
)

const (
	mostEvents    = 200             // greatest number in one answer
	usualEvents   = 50              // number in an answer by default
	mostSightings = 100             // greatest number in one answer
	mostVisits    = 1000            // greatest number in one answer
	mostNumber    = 1 << 63         // greatest number of an event, sighting or correction
	longestMaking = 5 * time.Second // until a camera makes the picture that is asked for
)

// read adds the handlers of read requests.
func (p *Page) read(m *http.ServeMux) {
	w := p.office
	get(p, m, "now", "The present state", func(*query) (office.Now, error) { return w.Now(), nil })
	get(p, m, "sinks", "The state of the delivery of events",
		func(*query) ([]sink.Status, error) { return p.o.Sinks(), nil })
	get(p, m, "inbox", "Questions: first contradictions between labels, then the newest first",
		func(*query) ([]question, error) { return p.inbox(), nil })
	get(p, m, "strangers", "Unknown people, the last seen first",
		func(*query) ([]office.Stranger, error) { return p.strangers(), nil })
	get(p, m, "people", "All known people", func(*query) ([]office.KnownPerson, error) { return p.people(), nil })
	get(p, m, "person", "The record of a person: enrolled, rejected and learned faces",
		func(q *query) (office.Profile, error) { return w.Profile(q.text("name", true)) }, name)
	get(p, m, "way", "The path by which a learned face was accepted",
		func(q *query) (office.Way, error) { return w.Way(int64(q.needed("face", 1))) },
		needed(parameter("face", "Its number, from /api/person.", whole(1, 0, mostNumber))))
	get(p, m, "sightings", "Sightings that can be corrected, the newest first",
		func(q *query) ([]office.Sighting, error) {
			n := q.number("n", 1, mostSightings, mostSightings)
			return w.Sightings(q.number("before", 0, 0, mostNumber), int(n)), nil
		}, before, most(mostSightings, mostSightings))
	get(p, m, "confirmable", "The faces that confirming a sighting would enrol, those far from the enrolled ones first",
		func(q *query) ([]office.Confirmable, error) { return w.Confirmable(q.needed("sighting", 0)) },
		needed(parameter("sighting", "Its number.", whole(0, 0, mostNumber))))
	get(p, m, "corrections", "Corrections, the newest first", func(q *query) ([]office.Correction, error) {
		n := q.number("n", 1, usualEvents, mostEvents)
		return w.Corrections(q.number("before", 0, 0, mostNumber), int(n)), nil
	}, before, most(usualEvents, mostEvents))
	get(p, m, "visits", "Visits, the latest first: who was there from when to when",
		func(q *query) ([]office.Visit, error) {
			days := time.Duration(q.number("days", 1, 7, 366)) * 24 * time.Hour
			wanted := office.Wanted{From: q.moment("from"), To: q.moment("to"), N: int(q.number("n", 1, mostVisits, mostVisits))}
			if wanted.From.IsZero() {
				wanted.From = w.Now().At.Add(-days)
			}
			if name := q.text("name", false); name != "" {
				wanted.Person = w.Number(name)
				if wanted.Person == 0 {
					return nil, fmt.Errorf("%w: %s", online.ErrUnknown, name)
				}
			}
			return w.Visits(wanted), nil
		}, from, to, parameter("name", "Only visits of this person.", anyText),
		parameter("days", "How far back, without from.", whole(1, 7, 366)), most(mostVisits, mostVisits))
	get(p, m, "events", "Events, the newest first", func(q *query) ([]presence.Event, error) {
		before, n := q.number("before", 0, 0, mostNumber), q.number("n", 1, usualEvents, mostEvents)
		name, kind, camera := q.text("name", false), q.text("kind", false), q.text("camera", false)
		from, to := q.moment("from"), q.moment("to")
		return w.Events(before, int(n), func(e presence.Event) bool {
			return (name == "" || e.Name == name) && (kind == "" || string(e.Kind) == kind) &&
				(camera == "" || e.Camera == camera) && !e.At.Before(from) && (to.IsZero() || e.At.Before(to))
		}), nil
	}, from, to, before, most(usualEvents, mostEvents), parameter("name", "Only events of this person.", anyText),
		parameter("kind", "Only events of this kind.", anyText), parameter("camera", "Only events of this camera.", anyText))
	p.handle(m, route{pattern: "GET /api/changes", summary: "A stream of what changes, for a page that is open",
		more: "Server-sent events without names. Each has a JSON object with what has changed: now (who is here), " +
			"questions (how many are open), views (of the cameras that changed) and stale (the names of lists that changed: " +
			"people, sightings, inbox, events, corrections, sinks). The first has everything. A comment every 15 seconds " +
			"shows that the stream is alive.", kind: "text/event-stream",
		parameters: []object{parameter("live", "Whether views say where each face is.",
			object{"type": "boolean", "default": false})}}, p.changes)
	p.handle(m, route{pattern: "GET /api/openapi.json", summary: "This description", answer: reflect.TypeFor[object]()},
		func(w http.ResponseWriter, r *http.Request) { send(w, r, p.description()) })
	p.numbered(m, "/face/{id}", "The picture of a face of a stranger, a sighting or an enrolment", noPicture,
		func(n ...uint64) []byte { return w.Face(n[0]) })
	p.numbered(m, "/clip/{sighting}/{picture}", "A picture of the film of a sighting, counted from 0", noPicture,
		func(n ...uint64) []byte { return w.ClipPicture(n[0], n[1]) })
	// A learned face may be gone by the time somebody looks: that is no error of the page.
	p.numbered(m, "/learned/{face}", "The picture of a learned face, by its number from /api/person", nil,
		func(n ...uint64) []byte { return w.Learned(int64(n[0])) })
	p.handle(m, route{pattern: "GET /camera/{name}", summary: "The latest picture of a camera", kind: "image/jpeg",
		more: "Pictures are made only for some seconds after a request: the first one waits for it, up to 5 seconds. " +
			"Last-Modified is the time of the frame."}, func(
		w http.ResponseWriter, r *http.Request,
	) {
		jpeg, at, known := p.office.Picture(r.PathValue("name"))
		// On a slow line each request is the first one.
		end := time.Now().Add(longestMaking)
		for known && jpeg == nil && time.Now().Before(end) && r.Context().Err() == nil {
			time.Sleep(longestMaking / 50)
			jpeg, at, known = p.office.Picture(r.PathValue("name"))
		}
		if jpeg != nil {
			w.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
		}
		none := noPicture
		if known { // it shows nothing
			none = nil
		}
		p.image(w, r, jpeg, none)
	})
}

// get adds a handler that answers with a value.
func get[T any](p *Page, m *http.ServeMux, path, summary string, do func(q *query) (T, error), parameters ...object) {
	var names []string
	for _, x := range parameters {
		names = append(names, x["name"].(string))
	}
	r := route{pattern: "GET /api/" + path, summary: summary, parameters: parameters, answer: reflect.TypeFor[T]()}
	p.handle(m, r, answering(http.StatusInternalServerError, func(r *http.Request) (T, error) {
		q := asked(r, names...)
		v, err := do(q) // it changes nothing, so it may run with wrong parameters
		switch {
		case q.err != nil:
			err = badRequest(q.err)
		case errors.Is(err, online.ErrUnknown), errors.Is(err, office.ErrNoSighting), errors.Is(err, office.ErrNobody),
			errors.Is(err, office.ErrNoFaces):
			err = &refusal{status: http.StatusNotFound, text: err.Error()}
		}
		return v, err
	}))
}

// answering returns a handler that answers with a value, or refuses: with a status, unless the error has its own.
func answering[T any](status int, do func(*http.Request) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r)
		if errors.Is(err, face.ErrName) {
			status = http.StatusUnprocessableEntity
		}
		if err != nil {
			refuse(w, err, status)
			return
		}
		send(w, r, encoded(v))
	}
}

// numbered adds a handler of pictures with numbers in their path.
func (p *Page) numbered(m *http.ServeMux, path, summary string, none *refusal, do func(n ...uint64) []byte) {
	r := route{pattern: "GET " + path, summary: summary, kind: "image/jpeg"}
	p.handle(m, r, func(w http.ResponseWriter, r *http.Request) {
		var numbers []uint64
		for _, name := range pathNames(path) {
			n, err := strconv.ParseUint(r.PathValue(name), 10, 64)
			if err != nil {
				http.Error(w, name+" must be a whole number; see api/openapi.json", http.StatusBadRequest)
				return
			}
			numbers = append(numbers, n)
		}
		p.image(w, r, do(numbers...), none)
	})
}

var noPicture = &refusal{status: http.StatusNotFound, text: "there is no picture"}

// image writes a picture, or for nil a refusal; without one there is nothing to say. A picture with the number of this
// run in its address never changes.
func (p *Page) image(w http.ResponseWriter, r *http.Request, jpeg []byte, none *refusal) {
	switch {
	case jpeg != nil:
		w.Header().Set("Content-Type", "image/jpeg")
		give(w, r, jpeg, r.URL.Query().Get("run") == p.run)
	case none != nil:
		refuse(w, none, none.status)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
