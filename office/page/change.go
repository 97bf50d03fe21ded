// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/faceauth/faceauth/office"
)

// said is the answer to a change.
type said struct {
	// The entry in the journal; it may be possible to undo it.
	Correction *office.Correction `json:"correction,omitempty"`
	// Naming is the naming that gave the corrected name: it may be wrong, too.
	Naming *office.Correction `json:"naming,omitempty"`
	// Learned is the number of learned faces that were taken back.
	Learned int `json:"learned,omitempty"`
}

// change adds the handlers of changes.
func (p *Page) change(m *http.ServeMux) {
	w := p.office
	post(p, m, "name", func(q struct {
		Group uint64 `json:"group"`
		Name  string `json:"name"`
		Force bool   `json:"force,omitempty"`
	}, _ *said) error {
		return w.Name(q.Group, q.Name, q.Force)
	})
	post(p, m, "correct", func(q struct {
		Sighting uint64 `json:"sighting"`
		Is       string `json:"is"`
	}, s *said) error {
		naming, ok := w.Naming(q.Sighting) // must be read before the correction
		err := w.Correct(q.Sighting, q.Is)
		if ok && err == nil {
			s.Naming = &naming
		}
		return err
	})
	post(p, m, "confirm", func(q struct {
		Sighting uint64   `json:"sighting"`
		Faces    []uint64 `json:"faces,omitempty"`
	}, _ *said) error {
		return w.Confirm(q.Sighting, q.Faces...)
	})
	post(p, m, "merge", func(q struct {
		Into uint64 `json:"into"`
		From uint64 `json:"from"`
	}, _ *said) error {
		return w.Merge(q.Into, q.From)
	})
	post(p, m, "split", func(q struct {
		Group uint64   `json:"group"`
		Faces []uint64 `json:"faces"`
	}, _ *said) error {
		return w.Split(q.Group, q.Faces)
	})
	post(p, m, "ignore", func(q struct {
		Group   uint64 `json:"group"`
		Ignored bool   `json:"ignored"`
	}, _ *said) error {
		return w.Ignore(q.Group, q.Ignored)
	})
	post(p, m, "forget-stranger", func(q struct {
		Group uint64 `json:"group"`
	}, _ *said) error {
		return w.ForgetGroup(q.Group)
	})
	post(p, m, "keep", func(q struct {
		On bool `json:"on"`
	}, _ *said) error {
		return w.KeepUnknown(q.On)
	})
	post(p, m, "forget", func(q struct {
		Name string `json:"name"`
	}, _ *said) error {
		return w.Forget(q.Name)
	})
	post(p, m, "rename", func(q struct {
		From string `json:"from"`
		To   string `json:"to"`
	}, _ *said) error {
		return w.Rename(q.From, q.To)
	})
	post(p, m, "undo", func(q struct {
		ID uint64 `json:"id"`
	}, _ *said) error {
		return w.Undo(q.ID)
	})
	post(p, m, "same", func(q struct {
		Name  string `json:"name"`
		Other string `json:"other"`
	}, _ *said) error {
		return w.Same(q.Name, q.Other)
	})
	post(p, m, "alike", func(q struct {
		Name  string `json:"name"`
		Other string `json:"other"`
	}, _ *said) error {
		return w.Alike(q.Name, q.Other)
	})
	post(p, m, "picture", func(q struct {
		Name string `json:"name"`
		Face uint64 `json:"face"`
	}, _ *said) error {
		return w.Choose(q.Name, q.Face)
	})
	post(p, m, "unlabel", func(q struct {
		Face     uint64 `json:"face"`
		Name     string `json:"name"`
		Not      bool   `json:"not"`
		Other    string `json:"other,omitempty"`
		OtherNot bool   `json:"other_not,omitempty"`
	}, _ *said) error {
		if q.Other == "" {
			return w.Unlabel(q.Face, q.Name, q.Not)
		}
		return w.Unlabel(q.Face, q.Name, q.Not, office.Against{Name: q.Other, Negative: q.OtherNot})
	})
	post(p, m, "take-back", func(q struct {
		Face int64 `json:"face"`
	}, s *said) (err error) {
		s.Learned, err = w.TakeBack(q.Face)
		return err
	})
}

// post adds a handler that decodes a strict JSON request and calls do.
func post[Q any](p *Page, m *http.ServeMux, path string, do func(Q, *said) error) {
	p.route("POST /api/"+path, reflect.TypeFor[Q]())
	m.HandleFunc("POST /api/"+path, func(w http.ResponseWriter, r *http.Request) {
		if mediaType(r) != "application/json" {
			http.Error(w, "send JSON, with the header Content-Type: application/json", http.StatusUnsupportedMediaType)
			return
		}
		err := asked(r).err
		var q Q
		if err == nil {
			err = readBody(r, &q)
		}
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			http.Error(w, "the request has more than 64 KiB", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, err.Error()+"; see api/openapi.json", http.StatusBadRequest)
			return
		}
		s, err := p.say(func(s *said) error { return do(q, s) })
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		answer(w, r, s)
	})
}

// say makes a change, and returns its correction in the journal.
func (p *Page) say(do func(*said) error) (s said, err error) {
	p.saying.Lock()
	defer p.saying.Unlock()
	last := uint64(0)
	if before := p.office.Corrections(0, 1); len(before) > 0 {
		last = before[0].ID
	}
	if err := do(&s); err != nil {
		return s, err
	}
	if c := p.office.Corrections(0, 1); len(c) > 0 && c[0].ID > last {
		s.Correction = &c[0]
	}
	return s, nil
}
