// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/maruel/natural"
)

// images is a Source over image files.
type images struct {
	paths   []string
	step    time.Duration
	damaged func(path string, err error) // called for each damaged file; may be nil
	next    int
	count   Count
}

var _ Source = (*images)(nil)

// openFolder opens the image files in dir itself, 2.jpg before 10.jpg.
func openFolder(dir string, o Options) (*images, error) {
	names, err := input.Images(dir)
	if err != nil {
		return nil, fmt.Errorf("opening source: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("opening source %s: %w; it should hold %s files", dir, ErrNoImages,
			strings.Join(input.ImageExtensions, ", "))
	}
	slices.SortFunc(names, natural.Compare)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return openImages(names, o)
}

// openImages opens the named files, one frame each. If there is only one file, it must be readable.
func openImages(paths []string, o Options) (*images, error) {
	s := &images{paths: paths, step: time.Duration(float64(time.Second) / o.FPS), damaged: o.Damaged,
		count: Count{Declared: len(paths)}}
	if len(paths) == 1 && !s.readable() {
		return nil, fmt.Errorf("opening source %s: %w", paths[0], ErrNotVideo)
	}
	return s, nil
}

func (s *images) readable() bool {
	img, err := cv.ReadImage(s.paths[0])
	if err != nil {
		return false
	}
	img.Close()
	return true
}

// Next implements [Source]. A file that is not an image does not end the recording: it is skipped and counted.
func (s *images) Next(ctx context.Context) (*Frame, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.next >= len(s.paths) {
			return nil, io.EOF
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
		return &Frame{Index: i, Time: time.Duration(i) * s.step, Image: (*Picture)(img)}, nil
	}
}

// Count implements [Source].
func (s *images) Count() Count { return s.count }

// Close implements [Source].
func (s *images) Close() error {
	s.next = len(s.paths)
	return nil
}
