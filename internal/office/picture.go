// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"fmt"
	"image"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/enrol"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// Recognised is a face in a picture that a user has sent.
type Recognised struct {
	Box    [4]int `json:"box"`              // left, top, right and bottom, in pixels
	Name   string `json:"name"`             // "" if nobody known is recognised
	Person int64  `json:"person,omitempty"` // number of that person
	// Near says that an enrolled face of the person is near. One picture is never enough to confirm
	// a name.
	Near bool `json:"near"`
	// to the nearest enrolled face of the person; 0 without a name
	Distance float64 `json:"distance"`
	Rarity   string  `json:"rarity,omitempty"` // how seldom a stranger comes as near, in words
	Reason   string  `json:"reason,omitempty"` // why nobody is recognised
	Poor     string  `json:"poor,omitempty"`   // what is wrong with the picture of the face
	Size     int     `json:"size"`             // of the face, in pixels
	// Before are the sightings in which this face may have been seen, if they were asked for.
	Before []Sighting `json:"before,omitempty"`
}

// Recognise judges the faces of a picture; nobody is in it twice. It stores nothing, and the
// learner learns nothing.
func (w *Office) Recognise(faces []face.Sample) ([]Recognised, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Recognised, len(faces))
	verdicts, err := online.JudgePhotograph(w.gallery.Learner(),
		face.Frame{Samples: faces}.Vectors())
	if err != nil {
		return nil, err
	}
	for i, f := range faces {
		x := &all[i]
		x.Box = corners(f.Box)
		x.Poor, x.Size = string(f.Reason), f.Quality.Size
		if f.Vector == nil {
			x.Reason = x.Poor
			continue
		}
		v := verdicts[i]
		x.Name, x.Person, x.Near = w.gallery.Name(v.Person), v.Person, v.Anchored
		n := near(w.gallery.Space(), &v)
		x.Distance, x.Rarity, x.Reason = n.Distance, n.Rarity, string(v.Reason)
	}
	return all, nil
}

// near returns how near a face with a name is, by its verdict; nil is none.
func near(space face.Space, v *online.Verdict) (n sighting.Near) {
	if v != nil && v.Person != 0 {
		n = sighting.NearAt(space, v.Distance)
	}
	return n
}

// corners returns the left, top, right and bottom of a box.
func corners(r image.Rectangle) [4]int { return [4]int{r.Min.X, r.Min.Y, r.Max.X, r.Max.Y} }

// Enrol labels the faces of pictures with the name of a new or a known person. A picture must show
// one clear face. Wrong says of each picture why its face was not labelled; "" if it was. The
// labels are a correction, which can be undone.
//
// Without force, faces are refused if they look like another person, or unlike the person of that
// name. Err is that of [gallery.Gallery.Enroll] or of the database, and nothing has changed then.
func (w *Office) Enrol(name string, pictures []face.Frame, force bool) (
	c Correction, wrong []string, err error) {
	err = face.CheckName(name)
	if err != nil {
		return c, nil, err
	}
	c, err = w.change(func(t *gallery.Tx) error {
		wrong = make([]string, len(pictures))
		var faces []album.Face
		for i, p := range pictures {
			wrong[i], err = w.unfit(name, p, faces, force)
			if err != nil {
				return err
			}
			if wrong[i] != "" {
				continue
			}
			number, _ := t.Next("face", 1)
			x := p.Samples[0]
			faces = append(faces, album.Face{ID: uint64(number), Vector: x.Vector, JPEG: x.JPEG,
				Sharp: album.Sharp(x.Quality), At: w.o.Now()})
		}
		if len(faces) == 0 {
			return nil
		}
		person, err := w.enrol(t, name, faces, force)
		if err != nil {
			return err
		}
		for _, f := range faces {
			putFace(t, f, w.past.id, 0, 0)
		}
		w.state(t, Correction{Kind: Named, Person: person})
		return nil
	})
	return c, wrong, err
}

// unfit returns why the face of a picture cannot be labelled, or "". Before are the faces of the
// pictures before it.
func (w *Office) unfit(name string, picture face.Frame, before []album.Face,
	force bool) (string, error) {
	switch n := len(picture.Samples); {
	case n == 0:
		return "no face was found", nil
	case n > 1:
		return fmt.Sprintf("it shows %d faces; cut out one of them", n), nil
	}
	x := picture.Samples[0]
	poor := cmp.Or(x.Reason, enrol.Doubtful(x, w.gallery.Space()))
	switch {
	case poor != "":
		return string(poor), nil
	case x.Turns != nil && x.Turns.Best(1) != 0:
		return fmt.Sprintf("it seems to be turned; turn it by %d degrees clockwise",
			x.Turns.Best(1)), nil
	case slices.ContainsFunc(before, func(f album.Face) bool {
		return slices.Equal(f.Vector, x.Vector)
	}):
		return "it is the same picture as another one", nil
	}
	other, _, err := w.gallery.Resembles(name, [][]float32{x.Vector})
	if err == nil && other != "" && !force {
		return "it looks like " + other, nil
	}
	return "", err
}

// ClipPicture returns a picture of the film of the beginning of a sighting, counted from 0, as
// JPEG, or nil: there are two pictures per second. Films are stored only if [PastSettings] says so.
func (w *Office) ClipPicture(sighting, n uint64) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.fresh() { // it may not be written yet
		if s.ID != sighting || !w.keeps(s) {
			continue
		}
		clip := w.clip(s)
		if n < uint64(len(clip)) {
			return clip[n]
		}
	}
	w.look(func(t *gallery.Tx) {
		jpeg, _ = t.Blob(`select jpeg from film join sighting on id = sighting
			where office = ? and id = ? and number = ?`, w.past.id, int64(sighting), int64(n))
	})
	return jpeg
}

// Face returns the picture of a face of a stranger, a sighting or a label, or nil.
func (w *Office) Face(id uint64) (jpeg []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.fresh() { // it may not be written yet
		f, there := s.album.Find(id)
		if there && w.keeps(s) {
			return f.JPEG
		}
	}
	w.note(w.gallery.Rows().Look(func(t *gallery.Tx) (err error) {
		jpeg, err = t.Blob(`select coalesce((select jpeg from face where number = ?1),
			(select jpeg from portrait where number = ?1))`, int64(id))
		return err
	}))
	return jpeg
}

// CameraOf returns the camera that has seen the face with a number, or "".
func (w *Office) CameraOf(id uint64) (camera string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.fresh() { // it may not be written yet
		f, there := s.album.Find(id)
		if there {
			return f.Camera
		}
	}
	w.look(func(t *gallery.Tx) {
		for r := range t.Rows("select camera from face where number = ?", int64(id)) {
			camera = r.ColumnText(0)
		}
	})
	return camera
}

// Picture returns the latest picture of a camera, or nil while there is none, the time of its
// frame, and whether there is such a camera. Pictures are made only for some seconds after a call.
func (w *Office) Picture(camera string) (jpeg []byte, at time.Time, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.views {
		if v.camera.Name == camera {
			v.wanted = w.o.Now()
			return v.picture, v.pictured, true
		}
	}
	return nil, at, false
}

// Shot returns the best picture that there is now of the person of a [presence.Unknown] event. It
// has none if strangers are not kept, or if a user has named, ignored or forgotten this person
// since.
func (w *Office) Shot(e presence.Event) (best album.Face) {
	if e.Kind != presence.Unknown {
		return best
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(func(t *gallery.Tx) {
		for _, x := range w.sightings(t, sightingByNumber, int64(e.Sighting)) {
			if w.unknown.Get(x.Group) == nil || w.unknown.Ignored(x.Group) {
				continue
			}
			for _, f := range album.Best(w.gallery.Space(), facesOf(t, x.ID), 1) {
				if f.JPEG != nil {
					best = f
				}
			}
		}
	})
	return best
}
