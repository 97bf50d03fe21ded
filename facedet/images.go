// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/still"
)

// images is a Source over image files.
type images struct {
	paths   []string
	still   bool                         // photographs, and no series
	damaged func(path string, err error) // called for each damaged file; may be nil
	next    int
	count   face.Count
}

var _ Source = (*images)(nil)

// openFolder opens the pictures in dir itself, 2.jpg before 10.jpg.
func openFolder(dir string, o Options) (*images, error) {
	paths, err := footage.Pictures(dir)
	if err != nil {
		return nil, input.Unopened(dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("opening source %s: %w", dir, face.ErrNoImages)
	}
	s, err := openImages(paths, o)
	if err == nil {
		s.still = o.Series == face.Photographs || o.Series == face.Followed && !follow(paths)
	}
	return s, err
}

// openImages opens the named files, one frame each. If there is only one file, it must be readable.
func openImages(paths []string, o Options) (*images, error) {
	s := &images{paths: paths, still: true, damaged: o.Damaged,
		next: min(o.From, len(paths)), count: face.Count{Declared: len(paths)}}
	if len(paths) > 1 {
		return s, nil
	}
	img, err := cv.ReadImage(paths[0])
	if errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("opening source %w", err)
	}
	if err != nil {
		return nil, unreadable(paths[0], err)
	}
	img.Close()
	return s, nil
}

// unreadable returns the error about a file that is no film, and of which reading a picture has
// failed so.
func unreadable(path string, failed error) error {
	_, why, _ := strings.Cut(failed.Error(), cv.ErrNotImage.Error()+": ")
	if why == "" {
		why = footage.Unreadable(path)
	}
	if why == "" {
		return fmt.Errorf("opening source %s: %w", path, face.ErrNotVideo)
	}
	return fmt.Errorf("opening source %s: %w: %s", path, face.ErrNotVideo, why)
}

// imageStep is the time from one image of a folder to the next.
const imageStep = 40 * time.Millisecond

// Next implements [Source]. A file that is not an image does not end the recording: it is skipped
// and counted.
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
		if !img.Whole() {
			s.count.Partial++
		}
		return &Frame{Index: i, Time: time.Duration(i) * imageStep, Image: img, Still: s.still,
			Full: img.Full(), File: filepath.Base(s.paths[i])}, nil
	}
}

func (s *images) Count() face.Count { return s.count }

func (s *images) Close() error {
	s.next = len(s.paths)
	return nil
}

// A program writes the frames of a series in order and in equal steps, and they look alike.
const (
	fewest   = 25
	rounded  = 2 * time.Second // to which FAT and ZIP round the time of a file
	compared = 9               // neighbours that are compared
	// alike bounds the median of 1 - r, r the correlation of two small grey pictures. Of
	// photographs it is above .1.
	alike      = .08
	thumbnails = 16 // side of the small picture
)

// follow reports whether pictures, in natural order, are frames of a series that follow one
// another: their names have consecutive numbers, their files were written in this order and in
// equal steps, none has a camera's time, their sizes are equal, and neighbours look alike.
// Otherwise they are photographs: portraits before one backdrop look alike, too.
func follow(paths []string) bool {
	if len(paths) < fewest {
		return false
	}
	head, number, tail := numbered(paths[0])
	var last time.Time
	var steps []time.Duration
	for i, path := range paths {
		h, n, t := numbered(path)
		info, err := os.Stat(path)
		if err != nil || n < 0 || n != number+i || h != head || t != tail {
			return false
		}
		if i > 0 {
			steps = append(steps, info.ModTime().Sub(last))
		}
		last = info.ModTime()
	}
	if !equal(steps) {
		return false
	}
	var unlike []float64
	var size image.Point
	step := max(1, (len(paths)-1)/compared)
	for i := 0; i+1 < len(paths); i += step {
		if taken(paths[i]) {
			return false
		}
		a, sizeA := small(paths[i])
		b, sizeB := small(paths[i+1])
		if a == nil || b == nil {
			continue // it cannot be read, or is tiny
		}
		if size == (image.Point{}) {
			size = sizeA
		}
		if sizeA != size || sizeB != size {
			return false
		}
		unlike = append(unlike, 1-still.Alike(a, b))
	}
	slices.Sort(unlike)
	return len(unlike) > 0 && unlike[len(unlike)/2] <= alike
}

// equal reports whether no step goes back, and nine of ten are a quarter from their median at most:
// a program may have had to wait.
func equal(steps []time.Duration) bool {
	slices.Sort(steps)
	n := len(steps)
	usual := steps[n/2]
	near := usual/4 + rounded
	low, _ := slices.BinarySearch(steps, usual-near)
	high, _ := slices.BinarySearch(steps, usual+near+1)
	return steps[0] >= 0 && 10*(high-low) >= 9*n
}

// moment is a time as cameras write it into pictures (Exif 2.3, section 4.6.5).
var moment = regexp.MustCompile(`[12]\d{3}:[01]\d:[0-3]\d [0-2]\d:[0-5]\d:[0-5]\d\x00`)

// taken reports whether a picture says when it was taken.
func taken(path string) bool {
	f, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64<<10))
	return err == nil && moment.Match(head)
}

// numbered splits the name of a file at its last number; the number is -1 if there is none.
func numbered(path string) (head string, n int, tail string) {
	name := filepath.Base(path)
	const digits = "0123456789"
	end := strings.LastIndexAny(strings.TrimSuffix(name, filepath.Ext(name)), digits) + 1
	begin := len(strings.TrimRight(name[:end], digits))
	n, err := strconv.Atoi(name[begin:end])
	if err != nil {
		return name, -1, ""
	}
	return name[:begin], n, name[end:]
}

// small returns the small grey picture of a file, and the size of the file's picture, or nil.
func small(path string) ([]byte, image.Point) {
	img, err := cv.ReadImage(path)
	if err != nil {
		return nil, image.Point{}
	}
	defer img.Close()
	grey, err := img.Thumbnail(image.Pt(thumbnails, thumbnails))
	if err != nil {
		return nil, image.Point{}
	}
	return grey, img.Size()
}
