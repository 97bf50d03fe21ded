// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/viewer"
)

// formats are the formats of pictures that visitors may send, with the ends of the names of their
// files.
var formats = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}

const (
	mostPicture  = 16 << 20         // bytes of a picture
	mostPictures = 10               // pictures of one request
	mostHeld     = 256 << 20        // bytes of all pictures that are being read or wait
	mostSent     = 120              // pictures that one address may send in a minute
	longestQueue = 10 * time.Second // waiting for the picture of another visitor
	longestSight = 15 * time.Second
	longestSend  = 2 * time.Minute // for all pictures of one request
)

// refusal is the answer to a request that fails.
type refusal struct {
	status int
	text   string
	retry  int // seconds after which the visitor may try again; 0 for none
}

func (r *refusal) Error() string { return r.text }

// refuse answers an error: a refusal, or one with a status.
func refuse(w http.ResponseWriter, err error, status int) {
	no := &refusal{status: status, text: err.Error()}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		no = &refusal{http.StatusServiceUnavailable,
			"looking at the picture took too long; try again", 10}
	}
	errors.As(err, &no)
	if no.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(no.retry))
	}
	http.Error(w, no.text, no.status)
}

// mostBytes returns the greatest size of a request's body. Only pictures are large.
func mostBytes(r *http.Request) int64 {
	switch kind := mediaType(r); {
	case formats[kind] != "":
		return mostPicture
	case kind == multipartForm:
		return (mostPictures + 1) * mostPicture
	}
	return mostBody
}

const multipartForm = "multipart/form-data"

// pictures adds the handlers of pictures that visitors send.
func (p *Page) pictures(m *http.ServeMux) {
	sent(p, m, "POST /api/recognise", p.recognise)
	sent(p, m, "POST /api/people", func(r *http.Request) (enrolment, error) {
		q := asked(r, "name", "force")
		return p.enrol(r, q, q.text("name", true))
	})
	sent(p, m, "POST /api/people/{id}/faces", func(r *http.Request) (e enrolment, err error) {
		for _, known := range p.office.Now().Known {
			if r.PathValue("id") == strconv.FormatInt(known.ID, 10) {
				return p.enrol(r, asked(r, "force"), known.Name)
			}
		}
		return e, &refusal{status: http.StatusNotFound, text: "nobody has this number"}
	})
}

// sent adds a handler of pictures.
func sent[T any](p *Page, m *http.ServeMux, pattern string, answer func(*http.Request) (T, error)) {
	do := answering(http.StatusConflict, answer)
	p.handle(m, pattern, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		until := time.Now().Add(longestSend)
		// without a connection, as in a test, there are no deadlines
		if errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until)) == nil {
			ctx, stop := context.WithDeadline(r.Context(), until)
			defer stop()
			r = r.WithContext(ctx)
		}
		do(w, r)
	})
}

// recognise answers who is in a picture.
func (p *Page) recognise(r *http.Request) (x recognition, err error) {
	q := asked(r, "before")
	before := q.truth("before")
	if q.err != nil {
		return x, badRequest(q.err)
	}
	if formats[mediaType(r)] == "" {
		return x, &refusal{status: http.StatusUnsupportedMediaType,
			text: "send a picture, with the header Content-Type: image/jpeg, image/png or " +
				"image/webp"}
	}
	release, err := p.admit(r)
	if err != nil {
		return x, err
	}
	defer release()
	picture, err := p.take(r, r.Body)
	if err != nil {
		return x, err
	}
	done, err := p.turn(r)
	if err != nil {
		return x, err
	}
	defer done()
	f, err := p.look(r, picture, false)
	if errors.Is(err, viewer.ErrPicture) {
		return x, &refusal{status: http.StatusUnprocessableEntity, text: err.Error()}
	}
	if err != nil {
		return x, err
	}
	faces, err := p.office.Recognise(f.Samples)
	for i := range faces {
		if before && f.Samples[i].Vector != nil {
			faces[i].Before = p.office.Before(f.Samples[i].Vector)
		}
	}
	return recognition{[2]int{f.Size.X, f.Size.Y}, faces}, err
}

// recognition is the answer about a picture.
type recognition struct {
	Size  [2]int              `json:"size"`
	Faces []office.Recognised `json:"faces"`
}

// enrolled is the answer about a picture of an enrolment.
type enrolled struct {
	File     string `json:"file"` // name of its file
	Enrolled bool   `json:"enrolled"`
	Wrong    string `json:"wrong,omitempty"` // why its face was not enrolled
}

// enrol labels the faces of pictures with a name.
func (p *Page) enrol(r *http.Request, q *query, name string) (e enrolment, err error) {
	force := q.truth("force")
	if q.err != nil {
		return e, badRequest(q.err)
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return e, &refusal{status: http.StatusUnsupportedMediaType,
			text: "send pictures as a form, with the header Content-Type: " + multipartForm}
	}
	release, err := p.admit(r)
	if err != nil {
		return e, err
	}
	defer release()
	all := []enrolled{}
	var pictures [][]byte
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return e, unread(err)
		}
		if len(all) == mostPictures {
			return e, &refusal{status: http.StatusRequestEntityTooLarge,
				text: fmt.Sprintf("there are more than %d pictures; send fewer at once",
					mostPictures)}
		}
		picture, err := p.take(r, part)
		if err != nil {
			return e, err
		}
		all = append(all, enrolled{File: fileName(part, len(all)+1)})
		pictures = append(pictures, picture)
	}
	if len(all) == 0 {
		return e, &refusal{status: http.StatusUnprocessableEntity, text: "the form has no picture"}
	}
	done, err := p.turn(r)
	if err != nil {
		return e, err
	}
	defer done()
	var frames []face.Frame
	var of []int // the picture of each frame
	for i, picture := range pictures {
		f, err := p.look(r, picture, true)
		switch {
		case errors.Is(err, viewer.ErrPicture):
			all[i].Wrong = err.Error()
		case err != nil:
			return e, err
		default:
			frames, of = append(frames, f), append(of, i)
		}
	}
	c, wrong, err := p.office.Enrol(name, frames, force)
	for i, why := range wrong {
		all[of[i]].Enrolled, all[of[i]].Wrong = why == "", why
	}
	if errors.Is(err, gallery.ErrMixed) {
		err = errors.New("the pictures do not look like one person; send those of one person")
	}
	return enrolment{all, c}, err
}

// enrolment is the answer to an enrolment. Without a usable picture nothing has changed.
type enrolment struct {
	Pictures   []enrolled        `json:"pictures"`
	Correction office.Correction `json:"correction,omitzero"`
}

// fileName returns the name of a picture's file for the answer.
func fileName(part *multipart.Part, n int) string {
	name := path.Base("/" + part.FileName())
	if name == "/" || len(name) > 255 {
		return fmt.Sprint("picture ", n)
	}
	return name
}

// admit waits until there is memory for the pictures of a request, which are read before its turn:
// a slow line then holds up nobody else. The error is a refusal.
func (p *Page) admit(r *http.Request) (release func(), err error) {
	if p.o.See == nil {
		return nil, errors.New("this office takes no pictures")
	}
	size := mostBytes(r)
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	ctx, stop := context.WithTimeout(r.Context(), longestQueue)
	defer stop()
	if p.memory.Acquire(ctx, size) != nil {
		return nil, cmp.Or(r.Context().Err(), error(busy))
	}
	return func() { p.memory.Release(size) }, nil
}

var busy = &refusal{http.StatusServiceUnavailable, "other pictures are being looked at; try again",
	10}

// take reads a picture. The error is a refusal.
func (p *Page) take(r *http.Request, from io.Reader) ([]byte, error) {
	if p.sent.tired(p.source(r), true) {
		return nil, &refusal{http.StatusTooManyRequests,
			"Too many pictures came from your address. Wait a minute.", 60}
	}
	b, err := io.ReadAll(io.LimitReader(from, mostPicture+1))
	switch {
	case err != nil:
		return nil, unread(err)
	case len(b) > mostPicture:
		return nil, tooLarge
	}
	return b, nil
}

// turn waits until no other visitor's pictures are looked at, so that visitors cannot take the
// processor from the cameras. The error is a refusal.
func (p *Page) turn(r *http.Request) (done func(), err error) {
	wait := time.NewTimer(longestQueue)
	defer wait.Stop()
	select {
	case p.seeing <- struct{}{}:
		return func() { <-p.seeing }, nil
	case <-wait.C:
		return nil, busy
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// look finds the faces of a picture. The error wraps [viewer.ErrPicture].
func (p *Page) look(r *http.Request, picture []byte, enrol bool) (f face.Frame, err error) {
	end := formats[http.DetectContentType(picture)]
	if end == "" {
		return f, fmt.Errorf("%w: it is no JPEG, PNG or WebP", viewer.ErrPicture)
	}
	ctx, stop := context.WithTimeout(r.Context(), longestSight)
	defer stop()
	return p.o.See(ctx, picture, end, enrol)
}

var tooLarge = &refusal{status: http.StatusRequestEntityTooLarge,
	text: "a picture has more than 16 MiB"}

// unread returns the refusal for a body that cannot be read.
func unread(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return tooLarge
	}
	return badRequest(cmp.Or(err, io.ErrUnexpectedEOF))
}

func badRequest(err error) error {
	return &refusal{status: http.StatusBadRequest, text: err.Error() + "; see api/openapi.json"}
}
