// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/wire"
)

// Stream returns the frames of a source.
type Stream struct {
	eye    *Eye
	asked  Options
	count  face.Count
	index  int // index of the last frame, plus one
	time   time.Duration
	turned int   // Turned of the last frame
	look   []int // tracks of which the next frame shall have a vector
	ended  error
}

var _ face.Holding = (*Stream)(nil)

// Look implements [face.Holding].
func (s *Stream) Look(tracks ...int) { s.look = slices.Clone(tracks) }

// answer reads messages up to the one that ends the answer. Each message may take as long as the
// first.
func (s *Stream) answer(ctx context.Context) (wire.Message, error) {
	e, sleep := s.eye, s.asked.Timeout
	limits := wire.Limits{Space: e.c.Space, Faces: s.asked.Faces, Picture: s.asked.Picture,
		Spare: s.asked.Spare, Turns: s.asked.Gate == Enrol}
	for {
		m, err := e.read(ctx, limits, sleep)
		if err != nil {
			return m, err
		}
		sleep = s.asked.Timeout
		switch m.Kind {
		case wire.Opened, wire.Image, wire.Progress, wire.End:
			before := s.count
			if m.Kind != wire.Opened && (m.Count.Declared != before.Declared ||
				m.Count.Read < before.Read ||
				m.Count.Dropped < before.Dropped || m.Count.Damaged < before.Damaged) {
				return m, e.breach("it has read fewer frames than before")
			}
			if m.Count.Dropped > m.Count.Read {
				return m, e.breach("it has dropped more frames than it has read")
			}
			if m.Kind == wire.Progress {
				// Otherwise the eye could keep the program waiting for ever. Only the frames of a
				// recording are skipped.
				if m.Wait == 0 && m.Count == before || m.Wait > 0 && !s.asked.Pace ||
					s.asked.Live && !s.asked.Pace {
					return m, e.breach("progress without any")
				}
				sleep += m.Wait
			}
			s.count = m.Count
			if m.Kind != wire.Opened && s.asked.Step != nil {
				s.asked.Step(m.Count)
			}
			if m.Kind == wire.Progress {
				continue
			}
			return m, nil
		case wire.Beat:
		case wire.Damaged:
			// a camera, with -1, has no files
			if s.count.Damaged++; s.count.Damaged > s.count.Declared {
				return m, e.breach("more damaged files than there are")
			}
			if s.asked.Damaged != nil {
				s.asked.Damaged(m.Text)
			}
		case wire.Failed:
			return m, m.Err()
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
		s.ended = err
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
	q := wire.Next{Picture: s.asked.Frame != nil && s.asked.Frame(), Look: s.look}
	s.look = nil
	if err := e.send(ctx, request{Next: &q}); err != nil {
		return f, err
	}
	m, err := s.answer(ctx)
	if err != nil {
		return f, err
	}
	f = m.Frame
	switch {
	case m.Kind == wire.End:
		return f, io.EOF
	case m.Kind != wire.Image:
		return f, e.breach("it said %d where a frame was to come", m.Kind)
	case f.Index < s.index:
		return f, e.breach("frame %d after frame %d", f.Index, s.index-1)
	case s.asked.Files != nil && f.Index >= len(s.asked.Files):
		return f, e.breach("frame %d of %d photographs", f.Index, len(s.asked.Files))
	case f.Time < s.time:
		return f, e.breach("a frame that is older than its predecessor")
	case f.JPEG != nil && !q.Picture:
		return f, e.breach("picture of a frame that nobody asked for")
	}
	if fixed, auto, _ := s.asked.Rotate.Degrees(); !auto && f.Turned != fixed {
		return f, e.breach("a frame that is turned by %d degrees", f.Turned)
	}
	if !f.Still && f.Turned != s.turned && f.Turned != 0 && s.asked.Rotate == face.Auto &&
		s.asked.Turned != nil {
		s.asked.Turned(f.Turned)
	}
	s.turned = f.Turned
	s.index, s.time = f.Index+1, f.Time
	return f, nil
}

// Count returns the numbers of frames read so far.
func (s *Stream) Count() face.Count { return s.count }

// Dropped returns the number of frames that were skipped because newer ones had come.
func (s *Stream) Dropped() int { return s.count.Dropped }

// Close ends the eye of the stream.
func (s *Stream) Close() error { return s.eye.Close() }
