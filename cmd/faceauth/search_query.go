// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/search"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// whyNot says why nobody was found. Closest is the nearest face of all, or nil. Reach is the greatest distance between
// two faces of one person. Poor is the defect of the given picture, if it is known.
func whyNot(closest *search.Hit, reach float64, poor face.Reason) string {
	if closest == nil {
		return "no face in them can be used; they may be too small, blurred or turned away"
	}
	where := fmt.Sprintf("the nearest face, in %s, is at distance %.2f", place(*closest), closest.Distance)
	if reach > 0 && closest.Distance > reach {
		where += fmt.Sprintf(", and faces of one person are within %.2f", reach)
	} else if closest.File != "" {
		where += ", but not near enough for a name"
	} else {
		where += fmt.Sprintf(", but too few of the %s of that sighting look like it", cli.Count(closest.Frames,
			"frame"))
	}
	if poor != "" {
		where += fmt.Sprintf("; the picture is poor (%s), try another one", poor)
	}
	return where
}

// place names a recording and the time in it, or a picture.
func place(h search.Hit) string {
	if h.File != "" {
		return cell(h.File)
	}
	return cell(h.Recording) + " at " + stamp(h.From)
}

// query returns the query for the person, and opens the detector. Poor is the defect of the given picture, if there is
// one.
func (o *options) query(c *cobra.Command, h searchFlags) (q *search.Query, v *cli.Vision, poor face.Reason, err error) {
	if h.name != "" {
		g, _, v, err := o.recogniser(c)
		if err != nil {
			return nil, nil, "", err
		}
		defer g.Close()
		q, err := search.NewQuery(g.Learner(), g.Number(h.name), h.name)
		if err != nil {
			err = fmt.Errorf("%w; known are %q", err, g.Names())
			v.Close()
			return nil, nil, "", cli.Fail(cli.Refused, err)
		}
		return q, v, "", nil
	}
	if v, err = o.Look(c, nil); err != nil {
		return nil, nil, "", err
	}
	if q, poor, err = o.likeness(c, v, h.like); err != nil {
		v.Close()
		return nil, nil, "", err
	}
	return q, v, poor, nil
}

// likeness returns a query for the person in a picture, and the defect of the picture.
func (o *options) likeness(c *cobra.Command, v *cli.Vision, path string) (*search.Query, face.Reason, error) {
	x, poor, err := o.portrait(c, v, path)
	if err != nil {
		return nil, "", err
	}
	l, err := online.New(v.Space, o.settings(c, online.Settings{}))
	if err != nil {
		return nil, "", cli.Fail(cli.BadUsage, err)
	}
	if err := l.Label(x, 1); err != nil {
		return nil, "", cli.Fail(cli.BadUsage, err)
	}
	q, err := search.NewQuery(l, 1, filepath.Base(path))
	return q, poor, err
}

// portrait returns the vector of the face in a picture, and the defect of the picture.
func (o *options) portrait(c *cobra.Command, v *cli.Vision, path string) ([]float32, face.Reason, error) {
	src, err := o.stream(c.Context(), c, v, path, eye.Options{Gate: eye.Learn})
	if err != nil {
		return nil, "", err
	}
	defer v.Drop()
	f, err := src.Next(c.Context())
	if err != nil {
		return nil, "", err
	}
	switch n := len(f.Samples); {
	case n == 0:
		return nil, "", cli.Fail(cli.NoFace,
			fmt.Errorf("no face was found in %s; use a sharp picture with a face that looks at the camera", path))
	case n > 1:
		return nil, "", cli.Fail(cli.NoFace,
			fmt.Errorf("there are %d faces in %s; cut out the face to search for", n, path))
	}
	s := f.Samples[0]
	if s.Vector == nil {
		return nil, "", cli.Fail(cli.NoFace,
			fmt.Errorf("the face in %s cannot be used: %s; use another picture", path,
				s.Reason))
	}
	if s.Reason != "" {
		cli.Warn(c, fmt.Sprintf("the face in %s is poor (%s), and may not be found", path, s.Reason))
	}
	return s.Vector, s.Reason, nil
}
