// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"net/http"
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

// entry is the answer to a change that has an entry in the journal.
func entry(c office.Correction, err error) (said, error) { return said{Correction: c}, err }

// change adds the handlers of changes.
func (p *Page) change(m *http.ServeMux) {
	w := p.office
	post(p, m, "name", func(q struct {
		Group uint64
		Name  string
		Force bool `json:",omitempty"`
	}) (said, error) {
		return entry(w.Name(q.Group, q.Name, q.Force))
	})
	post(p, m, "correct", func(q struct {
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
	post(p, m, "confirm", func(q struct {
		Sighting uint64
		Faces    []uint64 `json:",omitempty"`
	}) (said, error) {
		return entry(w.Confirm(q.Sighting, q.Faces...))
	})
	post(p, m, "merge", func(q struct{ Into, From uint64 }) (said, error) {
		return entry(w.Merge(q.Into, q.From))
	})
	post(p, m, "split", func(q struct {
		Group uint64
		Faces []uint64
	}) (said, error) {
		return entry(w.Split(q.Group, q.Faces))
	})
	post(p, m, "ignore", func(q struct {
		Group   uint64
		Ignored bool
	}) (said, error) {
		return entry(w.Ignore(q.Group, q.Ignored))
	})
	post(p, m, "forget-stranger", func(q struct {
		Group uint64
		Wait  bool `json:",omitempty"`
	}) (said, error) {
		if !q.Wait {
			return entry(w.ForgetGroup(q.Group))
		}
		if !slices.ContainsFunc(w.Strangers(), func(g office.Stranger) bool {
			return g.ID == q.Group
		}) {
			return said{}, fmt.Errorf("%w: %d", office.ErrNoGroup, q.Group)
		}
		return said{Regret: p.dooms.add(0, q.Group)}, nil
	})
	post(p, m, "keep", func(q struct{ On bool }) (said, error) {
		return said{}, w.KeepUnknown(q.On)
	})
	post(p, m, "forget", func(q struct {
		Name string
		Wait bool `json:",omitempty"`
	}) (said, error) {
		person := w.Number(q.Name)
		if !q.Wait || person == 0 {
			return entry(w.Forget(q.Name))
		}
		return said{Regret: p.dooms.add(person, 0)}, nil
	})
	post(p, m, "keep-after-all", func(q struct{ Regret uint64 }) (said, error) {
		return said{}, p.dooms.keep(q.Regret)
	})
	post(p, m, "rename", func(q struct{ From, To string }) (said, error) {
		return entry(w.Rename(q.From, q.To))
	})
	post(p, m, "alike", func(q struct{ Name, Other string }) (said, error) {
		return entry(w.Alike(q.Name, q.Other))
	})
	post(p, m, "picture", func(q struct {
		Name string
		Face uint64
	}) (said, error) {
		return entry(w.Choose(q.Name, q.Face))
	})
	post(p, m, "take-back", func(q struct {
		Face    int64
		Against int64 `json:",omitempty"`
	}) (said, error) {
		c, learned, err := w.TakeBack(q.Face, q.Against)
		return said{Correction: c, Learned: learned}, err
	})
	post(p, m, "undo", func(q struct{ ID uint64 }) (said, error) { return said{}, w.Undo(q.ID) })
}

// post adds a handler that decodes a strict JSON request and calls do.
func post[Q any](p *Page, m *http.ServeMux, path string, do func(Q) (said, error)) {
	p.handle(m, "POST /api/"+path,
		answering(http.StatusConflict, func(r *http.Request) (s said, err error) {
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
				return s, &refusal{status: http.StatusRequestEntityTooLarge,
					text: "the request has more than 64 KiB"}
			case err != nil:
				return s, badRequest(err)
			}
			return do(q)
		}))
}
