// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office"
	"github.com/spf13/cobra"
)

// seer finds the faces of pictures that others send, in an eye of its own, which begins with the first picture. The
// picture is a file, in memory if the user has a folder there, only while the eye looks at it.
type seer struct {
	o     *options
	c     *cobra.Command
	space face.Space

	mu  sync.Mutex
	dir string
	v   *vision
}

// sent looks at a picture of a visitor of the page: it is [page.Options].See.
func (s *seer) sent(ctx context.Context, picture []byte, end string, enrol bool) (face.Frame, error) {
	how := eye.Options{Gate: eye.Learn, Rotate: face.Auto}
	if enrol {
		how.Gate, how.Picture = eye.Enrol, 112
	}
	return s.see(ctx, picture, end, how)
}

// see finds the faces of a picture, whose name ends so. An error about the picture wraps [office.ErrPicture].
func (s *seer) see(ctx context.Context, picture []byte, end string, how eye.Options) (f face.Frame, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), "faceauth-picture-"); err != nil {
			return f, fmt.Errorf("looking at the picture: %w", err)
		}
	}
	if s.v == nil {
		if s.v, err = s.o.Look(s.c, &s.space); err != nil {
			return f, err
		}
	}
	s.v.Roots = []string{s.dir}
	path := filepath.Join(s.dir, "picture"+end)
	defer os.Remove(path)
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		return f, fmt.Errorf("looking at the picture: %w", err)
	}
	stream, err := s.v.Open(ctx, path, how)
	if err == nil {
		f, err = stream.Next(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	s.v.Drop() // whatever the picture has done to the eye
	why := err.Error()
	if _, rest, ok := strings.Cut(why, path+": "); ok { // the name of the file says nothing to a visitor
		why = rest
	}
	return f, fmt.Errorf("%w: %s", office.ErrPicture, why)
}

// close ends the eye, and removes the folder.
func (s *seer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.v != nil {
		s.v.Close()
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}
