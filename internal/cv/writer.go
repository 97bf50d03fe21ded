// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"

	"gocv.io/x/gocv"
)

// VideoWriter writes frames of one size into an AVI or MP4 container, by the ending of its path.
type VideoWriter struct {
	path, codec string
	fps         float64
	size        image.Point       // of the first frame
	w           *gocv.VideoWriter // nil before it
	frames      int
}

// ErrNoCodec is wrapped by the error for a file that cannot be begun: FFmpeg lacks the codec, or
// the file cannot be created. OpenCV does not say which.
var ErrNoCodec = errors.New("the file cannot be created, or its codec is missing")

// NewVideoWriter returns a writer of motion JPEG, "MJPG", or of H.264, "H264" in AVI and "avc1" in
// MP4, which not every build of FFmpeg can write. The first frame makes the file at path.
func NewVideoWriter(path, codec string, fps float64) *VideoWriter {
	return &VideoWriter{path: path, codec: codec, fps: fps}
}

// Write appends a frame, which must have the size of the first.
func (v *VideoWriter) Write(img *Image) error {
	if err := img.check(); err != nil {
		return fmt.Errorf("writing video %s: %w", v.path, err)
	}
	size := img.Size()
	if v.w == nil {
		if !(v.fps > 0 && v.fps <= 1000) || max(size.X, size.Y) > 1<<14 {
			return fmt.Errorf("writing video %s: %dx%d pixels at %g frames a second", v.path,
				size.X, size.Y, v.fps)
		}
		w, err := gocv.VideoWriterFile(v.path, v.codec, v.fps, size.X, size.Y, true)
		if err != nil {
			return fmt.Errorf("writing video %s: %w", v.path, err)
		}
		if !w.IsOpened() {
			w.Close()
			return fmt.Errorf("writing video %s: %w", v.path, ErrNoCodec)
		}
		v.w, v.size = w, size
	}
	if size != v.size {
		return fmt.Errorf("writing video %s: frame of %v pixels in a video of %v", v.path, size,
			v.size)
	}
	if err := v.w.Write(img.mat); err != nil {
		return err
	}
	v.frames++
	return nil
}

// Close ends the file. The error wraps [ErrCutOff] if the file has fewer frames than were written.
// It may be called twice.
func (v *VideoWriter) Close() error {
	if v.w == nil {
		return nil
	}
	err := v.w.Close()
	v.w = nil
	if err != nil {
		return fmt.Errorf("writing video %s: %w", v.path, err)
	}
	n, err := countFrames(v.path)
	if filepath.Ext(v.path) == ".mp4" {
		n, err = indexed(v.path)
	}
	if err != nil {
		return fmt.Errorf("writing video %s: %w", v.path, err)
	}
	if n < v.frames {
		return fmt.Errorf("writing video %s: %w: it holds %d of %d frames; is the disk full?",
			v.path, ErrCutOff, n, v.frames)
	}
	return nil
}

// indexed returns the number of frames in the index of an MP4 file, which is written last.
func indexed(path string) (int, error) {
	f, err := OpenFilm(path, "", "", 0)
	if err != nil {
		return 0, fmt.Errorf("%w: %w; is the disk full?", ErrCutOff, err)
	}
	defer f.Close()
	return f.About().Frames, nil
}

// countFrames returns the number of complete pictures in an AVI file. The libraries that write it
// do not report a full disk: the file just ends early. A chunk has four letters, the length of its
// content as 32 bits, the content, and a padding byte if this length is odd. Chunks named RIFF and
// LIST contain four more letters, and then chunks.
func countFrames(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	for at := int64(0); ; {
		var head [8]byte
		if _, err := f.ReadAt(head[:], at); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		name, size := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		if name == "RIFF" || name == "LIST" {
			at += 12
			continue
		}
		if at += 8 + size; name == "00dc" && at <= info.Size() {
			n++
		}
		at += size % 2
	}
}
