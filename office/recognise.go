// SPDX-License-Identifier: Apache-2.0

package office

import (
	"github.com/faceauth/faceauth/face"
)

// Recognised is a face in a picture that a user has sent.
type Recognised struct {
	Box    [4]int `json:"box"`              // left, top, right and bottom, in pixels
	Name   string `json:"name"`             // "" if nobody known is recognised
	Person int64  `json:"person,omitempty"` // number of that person
	// Near says that an enrolled face of the person is near. One picture is never enough to confirm a name.
	Near       bool    `json:"near"`
	Distance   float64 `json:"distance"`         // to the nearest enrolled face of the person; 0 without a name
	Confidence float64 `json:"confidence"`       // of the best name, from 0 to 1
	Reason     string  `json:"reason,omitempty"` // why nobody is recognised
	Poor       string  `json:"poor,omitempty"`   // what is wrong with the picture of the face
	Size       int     `json:"size"`             // of the face, in pixels
}

// Recognise judges the faces of a picture, each for itself. It stores nothing, and the learner learns nothing.
func (w *Office) Recognise(faces []face.Sample) ([]Recognised, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Recognised, len(faces))
	for i, f := range faces {
		x := &all[i]
		x.Box = [4]int{f.Box.Min.X, f.Box.Min.Y, f.Box.Max.X, f.Box.Max.Y}
		x.Poor, x.Size = string(f.Reason), f.Quality.Size
		if f.Vector == nil {
			x.Reason = x.Poor
			continue
		}
		v, err := w.gallery.Learner().Judge(f.Vector)
		if err != nil {
			return nil, err
		}
		x.Name, x.Person, x.Near = v.Label, w.gallery.Number(v.Label), v.Anchored
		x.Distance, x.Confidence, x.Reason = v.Distance, v.Confidence, string(v.Reason)
	}
	return all, nil
}
