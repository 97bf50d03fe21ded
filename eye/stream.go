// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"context"
	"fmt"
	"image"
	"io"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/input"
)

// Stream returns the frames of a source.
type Stream struct {
	eye    *Eye
	o      Options
	limits Limits
	count  face.Count
	index  int // index of the last frame, plus one
	time   time.Duration
	pixels []byte
	size   image.Point
	turned int                   // Turned of the last frame
	look   bool                  // examine each face of the next frame
	sure   bool                  // no closer look will be asked for while faces are held
	ahead  int                   // number of frames that may still come without a request
	more   bool                  // the next frame comes without a request
	looked map[int]time.Duration // time of each track's last face that was not held
	ended  error
}

var (
	_ face.Stream = (*Stream)(nil)
	_ face.Looker = (*Stream)(nil)
)

// Look implements [face.Looker]. Empty frames of a recording may be on their way already: then it applies to the next
// frame after them.
func (s *Stream) Look() { s.look = true }

// Sure implements [face.Looker].
func (s *Stream) Sure() { s.sure = true }

// answer reads messages up to the one that ends the answer. Each message may take as long as the first.
func (s *Stream) answer(ctx context.Context) (Message, error) {
	e, within := s.eye, s.o.Timeout+s.eye.c.Slack
	for {
		m, err := e.read(ctx, s.limits, within)
		if err != nil {
			return m, err
		}
		within = s.o.Timeout + e.c.Slack
		switch m.Kind {
		case Opened, Image, Progress, End:
			before := s.count
			if m.Kind != Opened && (m.Count.Declared != before.Declared || m.Count.Read < before.Read ||
				m.Count.Dropped < before.Dropped || m.Count.Damaged < before.Damaged) {
				return m, e.breach("it has read fewer frames than before")
			}
			if m.Count.Dropped > m.Count.Read {
				return m, e.breach("it has dropped more frames than it has read")
			}
			if m.Kind == Progress {
				if m.Wait == 0 && m.Count == before || m.Wait > 0 && !s.o.Pace {
					return m, e.breach(
						"progress without any") // otherwise the eye could keep the program waiting for ever
				}
				within += m.Wait
			}
			s.count = m.Count
			if m.Kind != Opened && s.o.Step != nil {
				s.o.Step(m.Count)
			}
			if m.Kind == Progress {
				continue
			}
			return m, nil
		case Damaged:
			if s.count.Damaged++; s.count.Declared >= 0 && s.count.Damaged > s.count.Declared {
				return m, e.breach("more damaged files than there are")
			}
			if s.o.Damaged != nil {
				s.o.Damaged(m.Text)
			}
		case Failed:
			return m, failed(m)
		default:
			return m, e.breach("it said %d where a source was asked for", m.Kind)
		}
	}
}

// Next implements [face.Stream]. After the end or an error, it returns the same error again.
func (s *Stream) Next(ctx context.Context) (face.Frame, error) {
	e := s.eye
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.ended != nil {
		return face.Frame{}, s.ended
	}
	f, err := s.next(ctx)
	if err != nil {
		s.ended, s.pixels = err, nil
		return face.Frame{}, err
	}
	return f, nil
}

func (s *Stream) next(ctx context.Context) (f face.Frame, err error) {
	e := s.eye
	switch {
	case e.broken != nil:
		return f, e.broken
	case e.stream != s:
		return f, ErrClosed
	case ctx.Err() != nil:
		return f, e.fault(ctx, ctx.Err())
	}
	var q Next
	if !s.more {
		q = Next{Picture: s.o.Frame != nil && s.o.Frame(), Look: s.look}
		if s.o.Spare && !s.o.Live && !s.o.Pixels && !q.Picture {
			q.Ahead, q.Sure = mostAhead, s.sure && !s.look
		}
		s.look, s.ahead = false, q.Ahead
		if err := e.send(ctx, Request{Next: &q}, e.c.Slack); err != nil {
			return f, err
		}
	}
	s.sure = false
	m, err := s.answer(ctx)
	if err != nil {
		return f, err
	}
	f = m.Frame
	switch {
	case m.Kind == End:
		return f, io.EOF
	case m.Kind != Image:
		return f, e.breach("it said %d where a frame was to come", m.Kind)
	case m.More && s.ahead == 0:
		return f, e.breach("more frames than were asked for")
	case f.Index < s.index:
		return f, e.breach("frame %d after frame %d", f.Index, s.index-1)
	case f.Time < s.time:
		return f, e.breach("a frame that is older than its predecessor")
	case f.JPEG != nil && !q.Picture:
		return f, e.breach("picture of a frame that nobody asked for")
	case !s.holds(f, q.Look):
		return f, e.breach("face that is held for more than %v, against a wish, or from the beginning", longestHeld)
	}
	if fixed, auto, _ := s.o.Rotate.Degrees(); !auto && f.Turned != fixed {
		return f, e.breach("a frame that is turned by %d degrees", f.Turned)
	}
	if !f.Still && f.Turned != s.turned && f.Turned != 0 && s.o.Rotate == face.Auto && s.o.Turned != nil {
		s.o.Turned(f.Turned)
	}
	s.turned = f.Turned
	s.index, s.time, s.pixels, s.size = f.Index+1, f.Time, m.Pixels, f.Size
	if s.more = m.More; s.more {
		s.ahead--
	}
	return f, nil
}

// longestHeld is the longest time for which a face may be held. Package pipeline examines faces more often.
const longestHeld = time.Minute

// holds reports whether the held faces of a frame are allowed: the eye must have examined each of them recently.
func (s *Stream) holds(f face.Frame, look bool) bool {
	if !s.o.Spare {
		return true // no face is held
	}
	looked := make(map[int]time.Duration)
	for track, at := range s.looked {
		if f.Time-at <= longestHeld && len(s.looked) <= 4*MostFaces {
			looked[track] = at
		}
	}
	for _, x := range f.Samples {
		at, known := s.looked[x.Track]
		switch {
		case !x.Held:
			looked[x.Track] = f.Time
		case look, !known, f.Time-at > longestHeld:
			return false
		default:
			looked[x.Track] = at
		}
	}
	s.looked = looked
	return true
}

// Pixels returns the pixels of the last frame (blue, green and red, row by row) and its size, or nil if they were not
// requested. They are valid until the next call of Next.
func (s *Stream) Pixels() (pix []byte, size image.Point) { return s.pixels, s.size }

// Count returns the numbers of frames read so far.
func (s *Stream) Count() face.Count { return s.count }

// Dropped returns the number of frames that were skipped because newer ones had come.
func (s *Stream) Dropped() int { return s.count.Dropped }

// Close ends the eye of the stream.
func (s *Stream) Close() error { return s.eye.Close() }

// Lasting is a source that is opened again, in a new eye, when its eye breaks; but not a recording, which would break
// the new eye, too. [OpenLasting] makes one.
type Lasting struct {
	*Stream
	name  string
	open  func(ctx context.Context, name string) (*Stream, error)
	warn  func(error)
	pause backoff.Pause
	index int // index of the next frame, and start of the stream: a new eye counts from 0 again
	since time.Time
	ahead time.Duration
}

// OpenLasting opens a source. Open opens it in an eye that is not broken. Warn is called each time that an eye breaks.
func OpenLasting(ctx context.Context, name string, open func(ctx context.Context, name string) (*Stream, error),
	warn func(error)) (*Lasting, error) {
	s, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Lasting{Stream: s, name: name, open: open, warn: warn, since: time.Now(),
		pause: backoff.Pause{First: time.Second, Longest: 30 * time.Second}}, nil
}

// Next implements [face.Stream].
func (s *Lasting) Next(ctx context.Context) (face.Frame, error) {
	f, err := s.Stream.Next(ctx)
	for Broken(err) && ctx.Err() == nil && !input.IsRecording(s.name) {
		s.Close()
		s.warn(fmt.Errorf("%w; the camera is opened again", err))
		if !s.pause.Wait(ctx) {
			return f, ctx.Err()
		}
		var next *Stream
		if next, err = s.open(ctx, s.name); err == nil {
			s.index, s.ahead = s.index+s.Count().Read, time.Since(s.since)
			s.Stream = next
			f, err = s.Stream.Next(ctx)
		}
	}
	if err == nil {
		s.pause.Reset()
		f.Index, f.Time = f.Index+s.index, f.Time+s.ahead
	}
	return f, err
}
