// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
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
	get(p, m, "now", func(q *query) (office.Now, error) { return q.by.now(w.Now()), nil })
	get(p, m, "sinks",
		func(*query) ([]sink.Status, error) { return p.o.Sinks(), nil })
	get(p, m, "inbox",
		func(q *query) ([]question, error) { return whole(q.by, p.inbox()), nil })
	get(p, m, "strangers",
		func(q *query) ([]office.Stranger, error) { return whole(q.by, p.strangers()), nil })
	get(p, m, "people", func(q *query) ([]office.KnownPerson, error) {
		return q.by.known(p.people()), nil
	})
	get(p, m, "person",
		func(q *query) (office.Profile, error) { return w.Profile(q.text("name", true)) }, "name")
	get(p, m, "way",
		func(q *query) (office.Way, error) { return w.Way(int64(q.needed("face", 1))) }, "face")
	get(p, m, "sightings",
		func(q *query) ([]office.Sighting, error) {
			n := q.number("n", 1, mostSightings, mostSightings)
			all := w.Sightings(q.number("before", 0, 0, mostNumber), int(n))
			return seen(q.by, all, func(s office.Sighting) string { return s.Camera }), nil
		}, "before", "n")
	get(p, m, "confirmable",
		func(q *query) ([]office.Confirmable,
			error) {
			return w.Confirmable(q.needed("sighting", 0))
		},
		"sighting")
	get(p, m, "corrections", func(q *query) ([]office.Correction, error) {
		n := q.number("n", 1, usualEvents, mostEvents)
		return whole(q.by, w.Corrections(q.number("before", 0, 0, mostNumber), int(n))), nil
	}, "before", "n")
	get(p, m, "visits",
		func(q *query) ([]office.Visit, error) {
			days := time.Duration(q.number("days", 1, 7, 366)) * 24 * time.Hour
			wanted := office.Wanted{From: q.moment("from"), To: q.moment("to"),
				N: int(q.number("n", 1, mostVisits, mostVisits)), By: q.by.sees}
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
		}, "from", "to", "name", "days", "n")
	get(p, m, "events", func(q *query) ([]presence.Event, error) {
		before, n := q.number("before", 0, 0, mostNumber), q.number("n", 1, usualEvents, mostEvents)
		name, kind, camera := q.text("name", false), q.text("kind", false), q.text("camera", false)
		from, to, happened := q.moment("from"), q.moment("to"), q.truth("happened")
		return w.Events(before, int(n), func(e presence.Event) bool {
			return (name == "" || e.Name == name) && (kind == "" || string(e.Kind) == kind) &&
				(camera == "" || e.Camera == camera) && q.by.sees(e.Camera) && !e.At.Before(from) &&
				(to.IsZero() || e.At.Before(to)) &&
				(!happened || e.Of == 0 && !e.Void)
		}), nil
	}, "from", "to", "before", "n", "name", "kind", "camera", "happened")
	p.handle(m, "GET /api/changes", p.changes)
	// A visitor's cookie has another name for each token.
	description := bytes.ReplaceAll(file("openapi.json"), []byte("COOKIE"),
		[]byte(p.keys[0].cookie.Name))
	p.handle(m, "GET /api/openapi.json",
		func(w http.ResponseWriter, r *http.Request) { send(w, r, description) })
	p.numbered(m, "/face/{id}", noPicture,
		func(n ...uint64) []byte { return w.Face(n[0]) })
	p.numbered(m, "/clip/{sighting}/{picture}", noPicture,
		func(n ...uint64) []byte { return w.ClipPicture(n[0], n[1]) })
	// A learned face may be gone by the time somebody looks: that is no error of the page.
	p.numbered(m, "/learned/{face}", nil,
		func(n ...uint64) []byte { return w.Learned(int64(n[0])) })
	p.handle(m, "GET /camera/{name...}", func(w http.ResponseWriter, r *http.Request) {
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

// handle adds a handler of a request that programs may make. File openapi.json describes it.
func (p *Page) handle(m *http.ServeMux, pattern string, do http.HandlerFunc) {
	p.routes = append(p.routes, strings.Replace(pattern, "...", "", 1)) // a proxy may decode %2F
	m.HandleFunc(pattern, do)
}

// get adds a handler that answers with a value, by the parameters of these names.
func get[T any](p *Page, m *http.ServeMux, path string, do func(q *query) (T, error),
	names ...string) {
	p.handle(m, "GET /api/"+path, answering(http.StatusInternalServerError,
		func(r *http.Request) (T, error) {
			q := asked(r, names...)
			v, err := do(q) // it changes nothing, so it may run with wrong parameters
			switch {
			case q.err != nil:
				err = badRequest(q.err)
			case errors.Is(err, online.ErrUnknown), errors.Is(err, office.ErrNoSighting),
				errors.Is(err, office.ErrNobody),
				errors.Is(err, office.ErrNoFaces):
				err = &refusal{status: http.StatusNotFound, text: err.Error()}
			}
			return v, err
		}))
}

// answering returns a handler that answers with a value, or refuses: with a status, unless the
// error has its own.
func answering[T any](status int, do func(*http.Request) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r)
		switch {
		case errors.Is(err, face.ErrName):
			refuse(w, err, http.StatusUnprocessableEntity)
			return
		case err != nil:
			refuse(w, err, status)
			return
		}
		send(w, r, encoded(v))
	}
}

// numbered adds a handler of pictures with numbers in their path.
func (p *Page) numbered(m *http.ServeMux, path string, none *refusal, do func(n ...uint64) []byte) {
	p.handle(m, "GET "+path, func(w http.ResponseWriter, r *http.Request) {
		var numbers []uint64
		for _, part := range strings.Split(path, "/") {
			name, named := strings.CutPrefix(part, "{")
			if !named {
				continue
			}
			name = strings.TrimSuffix(name, "}")
			n, err := strconv.ParseUint(r.PathValue(name), 10, 64)
			if err != nil {
				http.Error(w, name+" must be a whole number; see api/openapi.json",
					http.StatusBadRequest)
				return
			}
			numbers = append(numbers, n)
		}
		p.image(w, r, do(numbers...), none)
	})
}

var noPicture = &refusal{status: http.StatusNotFound, text: "there is no picture"}

// image writes a picture, or for nil a refusal; without one there is nothing to say. A picture with
// the number of this run in its address never changes.
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
