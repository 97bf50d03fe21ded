// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/online"
)

const (
	mostEvents    = 200     // greatest number in one answer
	usualEvents   = 50      // number in an answer by default
	mostSightings = 100     // greatest number in one answer
	mostVisits    = 1000    // greatest number in one answer
	mostNumber    = 1 << 63 // greatest number of an event, sighting or correction
)

// errGone is wrapped by errors about missing things.
var errGone = errors.New("it is not there")

// read adds the handlers of read requests.
func (p *Page) read(m *http.ServeMux) {
	w := p.office
	get := func(path string, do func(q *query) (any, error), parameters ...string) {
		p.route("GET /api/" + path)
		m.HandleFunc("GET /api/"+path, func(w http.ResponseWriter, r *http.Request) {
			q := asked(r, parameters...)
			v, err := do(q) // it changes nothing, so it may run with wrong parameters
			switch {
			case q.err != nil:
				http.Error(w, q.err.Error()+"; see api/openapi.json", http.StatusBadRequest)
			case errors.Is(err, online.ErrUnknown), errors.Is(err, errGone), errors.Is(err, office.ErrNoSighting),
				errors.Is(err, office.ErrNobody), errors.Is(err, office.ErrNoFaces):
				http.Error(w, err.Error(), http.StatusNotFound)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			default:
				answer(w, r, v)
			}
		})
	}
	get("now", func(*query) (any, error) { return w.Now(), nil })
	get("sinks", func(*query) (any, error) { return p.o.Sinks(), nil })
	get("inbox", func(*query) (any, error) { return inbox(w), nil })
	get("strangers", func(*query) (any, error) { return w.Strangers(), nil })
	get("conflicts", func(*query) (any, error) { return w.Conflicts(), nil })
	get("people", func(*query) (any, error) { return everybody(w), nil })
	get("person", func(q *query) (any, error) {
		return w.Profile(q.text("name", true))
	}, "name")
	get("way", func(q *query) (any, error) {
		return w.Way(int64(q.needed("face", 1)))
	}, "face")
	get("sightings", func(q *query) (any, error) {
		before, n := q.number("before", 0, 0, mostNumber), q.number("n", 1, mostSightings, mostSightings)
		return w.SightingsBefore(before, int(n)), nil
	}, "before", "n")
	get("confirmable", func(q *query) (any, error) {
		return w.Confirmable(q.needed("sighting", 0))
	}, "sighting")
	get("corrections", func(q *query) (any, error) {
		before, n := q.number("before", 0, 0, mostNumber), q.number("n", 1, usualEvents, mostEvents)
		return append([]office.Correction{}, w.Corrections(before, int(n))...), nil
	}, "before", "n")
	get("visits", func(q *query) (any, error) {
		days := time.Duration(q.number("days", 1, 7, 366)) * 24 * time.Hour
		wanted := office.Wanted{From: q.moment("from"), To: q.moment("to"), N: int(q.number("n", 1, mostVisits, mostVisits))}
		if wanted.From.IsZero() {
			wanted.From = w.Now().At.Add(-days)
		}
		if name := q.text("name", false); name != "" {
			if wanted.Person = w.Number(name); wanted.Person == 0 {
				return nil, fmt.Errorf("%w: %s", online.ErrUnknown, name)
			}
		}
		return w.Visits(wanted), nil
	}, "name", "days", "from", "to", "n")
	get("events", func(q *query) (any, error) {
		before, n := q.number("before", 0, 0, mostNumber), q.number("n", 1, usualEvents, mostEvents)
		name, kind, camera := q.text("name", false), q.text("kind", false), q.text("camera", false)
		from, to := q.moment("from"), q.moment("to")
		return w.Events(before, int(n), func(e office.Event) bool {
			return (name == "" || e.Name == name) && (kind == "" || string(e.Kind) == kind) &&
				(camera == "" || e.Camera == camera) && !e.At.Before(from) && (to.IsZero() || e.At.Before(to))
		}), nil
	}, "before", "n", "name", "kind", "camera", "from", "to")
	for _, pattern := range []string{"GET /api/openapi.json", "GET /face/{id}", "GET /clip/{sighting}",
		"GET /clip/{sighting}/{picture}", "GET /camera/{name}", "GET /api/changes"} {
		p.route(pattern)
	}
	m.HandleFunc("GET /api/changes", p.changes)
	m.HandleFunc("GET /api/openapi.json", p.serveDescription)
	numbered := func(path string, do func(w http.ResponseWriter, r *http.Request, n ...uint64), names ...string) {
		m.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			var numbers []uint64
			for _, name := range names {
				n, err := strconv.ParseUint(r.PathValue(name), 10, 64)
				if err != nil {
					http.Error(w, name+" must be a whole number", http.StatusBadRequest)
					return
				}
				numbers = append(numbers, n)
			}
			do(w, r, numbers...)
		})
	}
	numbered("/face/{id}", func(w http.ResponseWriter, r *http.Request, n ...uint64) {
		p.image(w, r, p.office.Face(n[0]))
	}, "id")
	numbered("/clip/{sighting}/{picture}", func(w http.ResponseWriter, r *http.Request, n ...uint64) {
		p.image(w, r, p.office.ClipPicture(n[0], n[1]))
	}, "sighting", "picture")
	numbered("/clip/{sighting}", func(w http.ResponseWriter, r *http.Request, n ...uint64) {
		clip := p.office.Clip(n[0])
		if clip == nil {
			http.Error(w, "there is no clip of this sighting; start the office with --clips-mb to keep clips",
				http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "video/x-msvideo")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=\"sighting-%d.avi\"", n[0]))
		give(w, r, clip, false)
	}, "sighting")
	m.HandleFunc("GET /camera/{name}", func(w http.ResponseWriter, r *http.Request) {
		jpeg, known := p.office.Picture(r.PathValue("name"))
		if known && jpeg == nil { // soon: pictures are made for visitors only
			w.WriteHeader(http.StatusNoContent)
			return
		}
		p.image(w, r, jpeg)
	})
}

// image writes a picture, or the error 404 for nil. One with the number of this run in its address never changes.
func (p *Page) image(w http.ResponseWriter, r *http.Request, jpeg []byte) {
	if jpeg == nil {
		http.Error(w, "there is no picture", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	give(w, r, jpeg, r.URL.Query().Get("run") == p.run)
}

// personShown is a known person, with the last sighting.
type personShown struct {
	gallery.Person
	Here   bool      `json:"here"`
	Since  time.Time `json:"since,omitzero"`    // time of arrival
	Place  string    `json:"place,omitempty"`   // the device of the fleet that sees an absent person, since then
	Last   time.Time `json:"last,omitzero"`     // time of the last sighting; zero if unknown
	Camera string    `json:"camera,omitempty"`  // camera of the last sighting
	Face   uint64    `json:"face,omitempty"`    // number of a picture, the chosen one if there is one; 0 for none
	Chosen uint64    `json:"picture,omitempty"` // number of the picture that a user chose; 0 for none
}

// everybody returns all known people.
func everybody(w *office.Office) []personShown {
	now, all := w.Now(), []personShown{}
	at := make(map[int64]int)
	for i, k := range now.Known {
		all = append(all, personShown{Person: k})
		at[k.ID] = i
	}
	for _, p := range now.People {
		if i, ok := at[p.ID]; ok {
			all[i].Here, all[i].Since = true, p.Since
		}
	}
	for id, a := range now.Elsewhere {
		if i, ok := at[id]; ok {
			all[i].Place, all[i].Since = a.Place, a.Since
		}
	}
	for id, v := range w.Latest() {
		if i, ok := at[id]; ok {
			all[i].Last, all[i].Camera, all[i].Face = v.Last, v.Cameras[0], v.Face
		}
	}
	for id, face := range w.Chosen() {
		if i, ok := at[id]; ok {
			all[i].Face, all[i].Chosen = face, face
		}
	}
	return all
}
