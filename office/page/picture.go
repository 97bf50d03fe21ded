// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office"
)

// ErrPicture is wrapped by an error of [Options].See about a picture that cannot be used.
var ErrPicture = errors.New("the picture cannot be used")

// pictures are the kinds of pictures that visitors may send, with the ends of the names of their files.
var pictures = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}

const (
	mostPicture  = 16 << 20         // bytes of a picture
	longestQueue = 10 * time.Second // waiting for the picture of another visitor
	longestSight = 15 * time.Second
)

// recognisePath is the path of the only requests that may be large.
const recognisePath = "/api/recognise"

// recognise answers who is in a picture.
func (p *Page) recognise(m *http.ServeMux) {
	p.routes = append(p.routes, "POST "+recognisePath)
	m.HandleFunc("POST "+recognisePath, func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		end, known := pictures[kind]
		switch err := asked(r).err; {
		case err != nil:
			http.Error(w, err.Error()+"; see api/openapi.json", http.StatusBadRequest)
			return
		case !known:
			http.Error(w, "send a picture, with the header Content-Type: image/jpeg, image/png or image/webp",
				http.StatusUnsupportedMediaType)
			return
		case p.o.See == nil:
			http.Error(w, "this office takes no pictures", http.StatusConflict)
			return
		}
		// One picture at a time, so that visitors cannot take the processor from the cameras.
		wait := time.NewTimer(longestQueue)
		defer wait.Stop()
		select {
		case p.seeing <- struct{}{}:
			defer func() { <-p.seeing }()
		case <-wait.C:
			w.Header().Set("Retry-After", "10")
			http.Error(w, "other pictures are being looked at; try again", http.StatusServiceUnavailable)
			return
		case <-r.Context().Done():
			return
		}
		picture, err := io.ReadAll(r.Body)
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, "the picture has more than 16 MiB", http.StatusRequestEntityTooLarge)
			return
		}
		var f face.Frame
		var faces []office.Recognised
		if err == nil {
			ctx, stop := context.WithTimeout(r.Context(), longestSight)
			defer stop()
			f, err = p.o.See(ctx, picture, end)
		}
		if err == nil {
			faces, err = p.office.Recognise(f.Samples)
		}
		switch {
		case errors.Is(err, ErrPicture):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case err != nil:
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			answer(w, struct {
				Size  [2]int              `json:"size"`
				Faces []office.Recognised `json:"faces"`
			}{[2]int{f.Size.X, f.Size.Y}, faces})
		}
	})
}
