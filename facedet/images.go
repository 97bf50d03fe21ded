// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/footage"
)

// images is a Source over image files.
type images struct {
	paths   []string
	still   bool // photographs, and no series
	step    time.Duration
	damaged func(path string, err error) // called for each damaged file; may be nil
	next    int
	count   Count
}

var _ Source = (*images)(nil)

// openFolder opens the pictures in dir itself, 2.jpg before 10.jpg.
func openFolder(dir string, o Options) (*images, error) {
	paths, err := footage.Pictures(dir)
	if err != nil {
		return nil, fmt.Errorf("opening source: %w", err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("opening source %s: %w", dir, ErrNoImages)
	}
	s, err := openImages(paths, o)
	if err == nil {
		s.still = !follow(paths)
	}
	return s, err
}

// openImages opens the named files, one frame each. If there is only one file, it must be readable.
func openImages(paths []string, o Options) (*images, error) {
	s := &images{paths: paths, still: true, step: time.Duration(float64(time.Second) / o.FPS), damaged: o.Damaged,
		count: Count{Declared: len(paths)}}
	if len(paths) > 1 {
		return s, nil
	}
	img, err := cv.ReadImage(paths[0])
	if errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("opening source %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening source %s: %w", paths[0], ErrNotVideo)
	}
	img.Close()
	return s, nil
}

// Next implements [Source]. A file that is not an image does not end the recording: it is skipped and counted.
func (s *images) Next(ctx context.Context) (*Frame, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.next >= len(s.paths) {
			return nil, endOf(s.count)
		}
		i := s.next
		s.next++
		img, err := cv.ReadImage(s.paths[i])
		if err != nil {
			s.count.Damaged++
			if s.damaged != nil {
				s.damaged(s.paths[i], err)
			}
			continue
		}
		s.count.Read++
		return &Frame{Index: i, Time: time.Duration(i) * s.step, Image: img, Still: s.still,
			File: filepath.Base(s.paths[i])}, nil
	}
}

// Count implements [Source].
func (s *images) Count() Count { return s.count }

// Close implements [Source].
func (s *images) Close() error {
	s.next = len(s.paths)
	return nil
}
