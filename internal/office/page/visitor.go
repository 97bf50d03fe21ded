// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// Look is a second token: its owners see the page and change nothing.
type Look struct {
	Token   string   // at least 16 characters, another one than in [Options]; "" for none
	Cameras []string // what they see is of these alone; nil for all
}

// key lets visitors in.
type key struct {
	token   string
	cookie  http.Cookie
	visitor visitor
}

// visitor is the sender of a request.
type visitor struct {
	looks   bool     // and changes nothing
	cameras []string // whose sights they may see; nil for all
}

type visitorOf struct{}

// as returns a request with its visitor.
func (v visitor) as(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitorOf{}, v))
}

// who returns the visitor of a request, who may do everything unless the token says something else.
func who(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorOf{}).(visitor)
	return v
}

// partly are the paths that show the sights of some cameras alone, or nothing of any.
var partly = []string{"/", "/api/now", "/api/people", "/api/changes", "/api/sightings",
	"/api/visits", "/api/attendance", "/api/events", "/api/inbox", "/api/strangers",
	"/api/corrections", "/api/sinks", "/api/openapi.json"}

// refusal returns why the visitor may not ask for that, or nil.
func (p *Page) refusal(v visitor, r *http.Request) error {
	path := r.URL.Path
	seen := v.cameras == nil || slices.Contains(partly, path)
	if name, is := strings.CutPrefix(path, "/camera/"); is {
		seen = v.sees(name)
	}
	if number, is := strings.CutPrefix(path, "/face/"); is && !seen {
		id := (&query{values: map[string][]string{"id": {number}}}).needed("id", 0)
		seen = v.sees(p.office.CameraOf(id))
	}
	switch {
	case v.looks && r.Method != http.MethodGet && r.Method != http.MethodHead &&
		path != "/api/recognise":
		return &refusal{status: http.StatusForbidden, text: "this token looks, and changes nothing"}
	case !seen:
		return &refusal{status: http.StatusForbidden, text: "this token shows some cameras alone"}
	}
	return nil
}

// sees reports whether the visitor may see what a camera sees.
func (v visitor) sees(camera string) bool {
	return v.cameras == nil || slices.Contains(v.cameras, camera)
}

// seen returns those of a list whose camera the visitor may see.
func seen[T any](v visitor, all []T, camera func(T) string) []T {
	if v.cameras == nil {
		return all
	}
	return slices.DeleteFunc(append([]T{}, all...), func(x T) bool { return !v.sees(camera(x)) })
}

// whole returns a list that belongs to no camera: for who sees only some it is empty.
func whole[T any](v visitor, all []T) []T {
	return seen(v, all, func(T) string { return "" })
}

// now returns what the visitor may see of a state.
func (v visitor) now(n office.Now) office.Now {
	if v.cameras == nil {
		return n
	}
	n.Cameras = seen(v, n.Cameras, func(c office.View) string { return c.Camera })
	n.People = seen(v, n.People, func(p presence.Presence) string { return p.Camera })
	n.Known = v.known(n.Known)
	groups := make(map[uint64]bool)
	for _, c := range n.Cameras {
		for _, s := range c.Seen {
			if s.Group != 0 && s.Name == "" && !s.Ignored {
				groups[s.Group] = true
			}
		}
	}
	n.Unknown = len(groups)
	return n
}

// known returns the people whom a camera that the visitor may see has seen last.
func (v visitor) known(all []office.KnownPerson) []office.KnownPerson {
	return seen(v, all, func(p office.KnownPerson) string { return p.Camera })
}
