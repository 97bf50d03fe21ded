// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/faceauth/faceauth/internal/office"
)

// said is the answer to a change.
type said struct {
	// The entry in the journal; it may be possible to undo it.
	Correction office.Correction `json:"correction,omitzero"`
	// Regret is a number for /api/keep-after-all; 0 if nobody waits to be forgotten.
	Regret uint64 `json:"regret,omitempty"`
	// Learned is the number of learned faces that were taken back.
	Learned int `json:"learned,omitempty"`
}

const wait = "With wait they are shown no more, and are erased after 30 seconds, or when the office ends; until then " +
	"/api/keep-after-all takes it back. Without it they are erased at once, and nothing can be undone."

// entry is the answer to a change that has an entry in the journal.
func entry(c office.Correction, err error) (said, error) { return said{Correction: c}, err }

// change adds the handlers of changes.
func (p *Page) change(m *http.ServeMux) {
	w := p.office
	post(p, m, "name", "Name a stranger", "Their first four faces are enrolled. Without force, faces are refused if "+
		"they look like another person, like several people, or unlike the person of that name.", func(q struct {
		Group uint64
		Name  string
		Force bool `json:",omitempty"`
	}) (said, error) {
		return entry(w.Name(q.Group, q.Name, q.Force))
	})
	post(p, m, "correct", "Correct the name of a sighting, or name an unknown one",
		"Is is the right name, or empty for an unknown person. Was is the name that the user has seen, or empty: it is "+
			"refused if the sighting has another name by now.", func(q struct {
			Sighting uint64
			Is       string
			Was      *string `json:",omitempty"`
		}) (said, error) {
			var was []string
			if q.Was != nil {
				was = append(was, *q.Was)
			}
			return entry(w.Correct(q.Sighting, q.Is, was...))
		})
	post(p, m, "confirm", "Confirm the name of a sighting that only learned faces support",
		"Faces are those that were shown, from /api/confirmable. Nothing is enrolled if others would be.", func(q struct {
			Sighting uint64
			Faces    []uint64 `json:",omitempty"`
		}) (said, error) {
			return entry(w.Confirm(q.Sighting, q.Faces...))
		})
	post(p, m, "merge", "Merge two strangers who are one person", "",
		func(q struct{ Into, From uint64 }) (said, error) { return entry(w.Merge(q.Into, q.From)) })
	post(p, m, "split", "Separate faces that show another person from a stranger", "", func(q struct {
		Group uint64
		Faces []uint64
	}) (said, error) {
		return entry(w.Split(q.Group, q.Faces))
	})
	post(p, m, "ignore", "Ignore a stranger, or notice them again", "", func(q struct {
		Group   uint64
		Ignored bool
	}) (said, error) {
		return entry(w.Ignore(q.Group, q.Ignored))
	})
	post(p, m, "forget-stranger", "Forget a stranger", wait, func(q struct {
		Group uint64
		Wait  bool `json:",omitempty"`
	}) (said, error) {
		if !q.Wait {
			return entry(w.ForgetGroup(q.Group))
		}
		if !slices.ContainsFunc(w.Strangers(), func(g office.Stranger) bool { return g.ID == q.Group }) {
			return said{}, fmt.Errorf("%w: %d", office.ErrNoGroup, q.Group)
		}
		return said{Regret: p.dooms.add(0, q.Group)}, nil
	})
	post(p, m, "keep", "Keep faces of strangers, or forget them and keep none", "",
		func(q struct{ On bool }) (said, error) { return said{}, w.KeepUnknown(q.On) })
	post(p, m, "forget", "Forget a person and all learned faces", wait, func(q struct {
		Name string
		Wait bool `json:",omitempty"`
	}) (said, error) {
		person := w.Number(q.Name)
		if !q.Wait || person == 0 {
			return entry(w.Forget(q.Name))
		}
		return said{Regret: p.dooms.add(person, 0)}, nil
	})
	post(p, m, "keep-after-all", "Do not forget somebody who waits to be forgotten",
		"Regret is the number from the answer to forget or forget-stranger.",
		func(q struct{ Regret uint64 }) (said, error) { return said{}, p.dooms.keep(q.Regret) })
	post(p, m, "rename", "Rename a person", "If another person has the name, the two become one person.",
		func(q struct{ From, To string }) (said, error) { return entry(w.Rename(q.From, q.To)) })
	post(p, m, "alike", "Say that two people look alike and are two",
		"That their faces contradict each other is no question any more.",
		func(q struct{ Name, Other string }) (said, error) { return entry(w.Alike(q.Name, q.Other)) })
	post(p, m, "picture", "Choose the picture of a person", "Face is the number of an enrolled face; 0 for none.",
		func(q struct {
			Name string
			Face uint64
		}) (said, error) {
			return entry(w.Choose(q.Name, q.Face))
		})
	post(p, m, "take-back", "Take back a face: a label, or a learned face with all faces accepted through it",
		"Face is the number from /api/person, or from a contradiction. Against is the other face of the contradiction: "+
			"then all faces of this side that contradict the other are taken back. A person is removed with their last face.",
		func(q struct {
			Face    int64
			Against int64 `json:",omitempty"`
		}) (said, error) {
			c, learned, err := w.TakeBack(q.Face, q.Against)
			return said{Correction: c, Learned: learned}, err
		})
	post(p, m, "undo", "Undo a correction", "The number is that of a correction whose can_undo is true.",
		func(q struct{ ID uint64 }) (said, error) { return said{}, w.Undo(q.ID) })
}

// post adds a handler that decodes a strict JSON request and calls do.
func post[Q any](p *Page, m *http.ServeMux, path, summary, more string, do func(Q) (said, error)) {
	r := route{pattern: "POST /api/" + path, summary: summary, more: more, takes: reflect.TypeFor[Q](),
		answer: reflect.TypeFor[said]()}
	p.handle(m, r, answering(http.StatusConflict, func(r *http.Request) (s said, err error) {
		if mediaType(r) != "application/json" {
			return s, &refusal{status: http.StatusUnsupportedMediaType,
				text: "send JSON, with the header Content-Type: application/json"}
		}
		var q Q
		err = asked(r).err
		if err == nil {
			err = readBody(r, &q)
		}
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			return s, &refusal{status: http.StatusRequestEntityTooLarge, text: "the request has more than 64 KiB"}
		case err != nil:
			return s, badRequest(err)
		}
		return do(q)
	}))
}
