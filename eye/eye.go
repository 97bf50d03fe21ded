// SPDX-License-Identifier: Apache-2.0

// Package eye runs camera, decoder and networks in a separate process, the eye, which holds no secrets. A hostile
// recording that attacks a decoder or a network can only reach that process.
//
// [Start] starts an eye. [Eye.Open] lets it open a source and returns a [Stream] of frames with faces. Package serve is
// the eye's side and links OpenCV; this package builds without cgo.
//
// # What is trusted
//
// The eye trusts the program. The program checks everything that the eye sends before it uses it: lengths, numbers that
// are finite and in range, boxes inside the frame, vectors of the space, pictures of the requested size, frames in
// order, and an answer in time. An eye that breaks a rule is ended, and the error wraps [ErrRules]. If the eye ends by
// itself, as after a fault in a decoder, the error wraps [ErrEnded]; if it does not answer, [ErrSilent].
//
// # Caveats
//
// An attacker who controls an eye can still send false results within the rules, for example a face that is not there.
// Use one eye per source if this matters.
package eye

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Errors of an [Eye]; [ErrRules] is a further one. After such an error, close the eye and start a new one.
var (
	ErrEnded  = errors.New("the eye, the process that decodes, has ended")
	ErrSilent = errors.New("the eye, the process that decodes, gives no answer")
	ErrClosed = errors.New("the eye is closed")
)

// ErrSettings is wrapped by the errors of [Start] and [Eye.Open] about an unusable [Config] or [Options]. They name the
// field and its value. The eye stays usable.
var ErrSettings = errors.New("unusable setting")

// Broken reports whether err means that the eye is unusable through its own fault: a crash, a hang or a broken rule.
// The source may be tried again with another eye.
func Broken(err error) bool {
	return errors.Is(err, ErrEnded) || errors.Is(err, ErrSilent) || errors.Is(err, ErrRules)
}

// Vision tells an eye how to find faces and compute their vectors.
type Vision struct {
	Features       string `json:"features"` // "embedding" or "pixels"
	Detector       string `json:"detector"` // "network", "haar" or "lbp"
	Models         string `json:"models"`   // folder of the model files
	DetectorModel  string `json:"detector_model,omitempty"`
	EmbeddingModel string `json:"embedding_model,omitempty"` // files with the user's own model descriptions
	Liveness       bool   `json:"liveness,omitempty"`        // score each face
	LivenessModel  string `json:"liveness_model,omitempty"`  // file with the user's own model description
}

// Config of an [Eye].
type Config struct {
	Vision Vision
	Space  face.Space // space of the vectors; an eye with another space is refused

	// Socket is the name of a Unix socket at which eyes are started (see package serve). "" starts a child of this
	// process.
	Socket string
	// Command starts a child: a program and its arguments, beginning with its own name. The child finds the socket as
	// file 3. Default: this program, under the name with which it was started, with the argument "eye".
	Command []string
	// Stderr receives the output of a child's libraries. nil discards it, because the child decides every byte of it.
	Stderr io.Writer

	// Memory is the memory limit of a child in bytes. Default 3 GiB.
	Memory uint64
	// Slack is the time that an answer may take beyond the timeout of the source. Default 20 s, because a large picture
	// takes seconds.
	Slack time.Duration
}

func (c Config) defaults() Config {
	if c.Memory == 0 {
		c.Memory = 3 << 30
	}
	if c.Slack == 0 {
		c.Slack = 20 * time.Second
	}
	return c
}

// check returns nil for usable options, or an error that wraps [ErrSettings].
func (o Options) check() error {
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("%w: the timeout is %v, but must not be negative", ErrSettings, o.Timeout)
	case o.Faces < 0:
		return fmt.Errorf("%w: the number of faces is %d, but must not be negative", ErrSettings, o.Faces)
	case o.Picture < 0:
		return fmt.Errorf("%w: the side of a picture is %d, but must not be negative", ErrSettings, o.Picture)
	case !(o.FPS >= 0) || math.IsInf(o.FPS, 1):
		return fmt.Errorf("%w: FPS is %g, but must be finite and not negative", ErrSettings, o.FPS)
	}
	return nil
}

// Gate is the quality gate for faces, as in package preprocess.
type Gate string

// Gates.
const (
	Learn Gate = "learn"
	Login Gate = "login"
	Enrol Gate = "enrol"
)

// Options of a [Stream].
type Options struct {
	Gate    Gate
	Faces   int     // greatest number of faces of a frame, the largest first. Default and maximum [MostFaces]
	Picture int     // longer side of the JPEG of each face, in pixels; 0 for none
	Pixels  bool    // send the pixels of each frame, for [Stream.Pixels]
	FPS     float64 // frames per second of a recording; 0 for all
	// Spare holds unchanged faces, and detects faces only after movement or from time to time. Use it with the gate
	// Learn, and not with liveness scores: a login must only rest on faces that were really examined.
	Spare bool
	// After is the index of the last frame to skip, because an earlier run has seen it; nil for none.
	After *int
	// Live delivers present frames: the newest frame of a camera or a stream. For a recording with Pace it delivers the
	// frame at the recording's clock.
	Live, Pace bool
	Timeout    time.Duration // for opening the source, and for each frame. Default 10 s
	// Roots are all files, folders and devices that this eye may ever open besides the name, as for later recordings.
	// The first call of Open decides.
	Roots []string

	// Damaged is called for each skipped file. May be nil.
	Damaged func(text string)
	// Frame reports for each frame whether a picture of the whole frame is wanted, at most 640 pixels wide. May be nil.
	Frame func() bool
	// Step is called with the progress of reading, also while frames are skipped. May be nil.
	Step func(face.Count)
}

// Setup is the first message to an eye.
type Setup struct {
	Version int    `json:"version"`
	Vision  Vision `json:"vision"`
	Memory  uint64 `json:"memory"`
}

// Request is a message to an eye. Exactly one field is set.
type Request struct {
	Setup *Setup `json:"setup,omitempty"`
	Open  *Open  `json:"open,omitempty"`
	Next  *Next  `json:"next,omitempty"`
}

// Open asks for a source.
type Open struct {
	Name    string        `json:"name"`
	Roots   []string      `json:"roots,omitempty"`
	Gate    Gate          `json:"gate"`
	Faces   int           `json:"faces"`
	Picture int           `json:"picture,omitempty"`
	Pixels  bool          `json:"pixels,omitempty"`
	FPS     float64       `json:"fps,omitempty"`
	Spare   bool          `json:"spare,omitempty"`
	Live    bool          `json:"live,omitempty"`
	Pace    bool          `json:"pace,omitempty"`
	After   *int          `json:"after,omitempty"`
	Timeout time.Duration `json:"timeout"`
}

// Next asks for the next frame.
type Next struct {
	Picture bool `json:"picture,omitempty"` // send a picture of the whole frame
	Look    bool `json:"look,omitempty"`    // hold no face
	// Ahead is the number of further frames that the eye may send without a request, as long as they show nobody. With
	// Sure, faces in them may be held, too.
	Ahead int  `json:"ahead,omitempty"`
	Sure  bool `json:"sure,omitempty"`
	Renew bool `json:"renew,omitempty"` // as if the source began with this frame
}

// mostAhead is the greatest number of frames of one request. Without movement, a request and an answer per frame would
// take longer than the work on the frame.
const mostAhead = 64

// mostRequest is the greatest size of a request in bytes. A folder may have many recordings with long names.
const mostRequest = 64 << 20

// ReadRequest reads a request of a program. The error comes from r or tells that the request is too large or malformed.
func ReadRequest(r io.Reader) (q Request, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return q, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > mostRequest {
		return q, fmt.Errorf("request of %d bytes; %d are allowed", n, mostRequest)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return q, err
	}
	return q, json.Unmarshal(b.Bytes(), &q)
}

// Eye is a process that reads a camera and finds faces. Its methods are safe for concurrent use; those of its stream
// are not.
type Eye struct {
	c     Config
	conn  net.Conn
	child *child // nil if the system manager started the process

	mu      sync.Mutex // guards the fields below; held during a request
	ready   bool
	report  Report
	broken  error // the error that made the eye unusable
	stream  *Stream
	closing chan struct{}
	once    sync.Once
}

// Start starts an eye. The eye opens its networks meanwhile: errors about them come from [Eye.Open]. The caller closes
// it.
func Start(ctx context.Context, c Config) (*Eye, error) {
	if c.Slack < 0 {
		return nil, fmt.Errorf("starting the eye: %w: the slack is %v, but must not be negative", ErrSettings, c.Slack)
	}
	e := &Eye{c: c.defaults(), closing: make(chan struct{})}
	var err error
	if c.Socket != "" {
		e.conn, err = dial(ctx, c.Socket)
	} else {
		e.conn, e.child, err = spawn(e.c)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the eye: %w", err)
	}
	if err := e.send(ctx, Request{Setup: &Setup{Version: Version, Vision: c.Vision, Memory: e.c.Memory}},
		e.c.Slack); err != nil {
		e.Close()
		return nil, fmt.Errorf("starting the eye: %w", err)
	}
	return e, nil
}

// send sends a request.
func (e *Eye) send(ctx context.Context, q Request, within time.Duration) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if len(b) > mostRequest {
		return fmt.Errorf("the names of the recordings have %d bytes; %d are allowed", len(b), mostRequest)
	}
	release := e.until(ctx, within)
	_, err = e.conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
	release()
	return e.fault(ctx, err)
}

// until sets a deadline for the connection; the end of ctx brings it forward. Call release before the next one.
func (e *Eye) until(ctx context.Context, within time.Duration) (release func()) {
	e.conn.SetDeadline(time.Now().Add(within))
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		e.conn.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// fault makes the eye unusable after an error of the connection, and returns the error with its meaning.
func (e *Eye) fault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, ErrRules):
	case e.closed():
		err = ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSilent
	default:
		err = ErrEnded
		if why := e.child.fate(); why != "" {
			err = fmt.Errorf("%w: %s", ErrEnded, why)
		}
	}
	if e.broken == nil {
		e.broken = err
	}
	e.child.kill()
	return err
}

func (e *Eye) closed() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// read reads a message.
func (e *Eye) read(ctx context.Context, l Limits, within time.Duration) (Message, error) {
	release := e.until(ctx, within)
	m, err := Read(e.conn, l)
	release()
	return m, e.fault(ctx, err)
}

// breach ends an eye that broke a rule.
func (e *Eye) breach(format string, args ...any) error {
	return e.fault(context.Background(), fmt.Errorf("%w: "+format, append([]any{ErrRules}, args...)...))
}

// await waits until the networks are open.
func (e *Eye) await(ctx context.Context) error {
	if e.ready || e.broken != nil {
		return e.broken
	}
	m, err := e.read(ctx, Limits{Space: e.c.Space}, e.c.Slack)
	switch {
	case err != nil:
		return err
	case m.Kind == Failed:
		e.broken = failed(m, ErrVision)
		return e.broken
	case m.Kind != Ready:
		return e.breach("it said %d where its networks were to be ready", m.Kind)
	case m.Report.Version != Version:
		return e.breach("the eye speaks version %d, and this program %d; after an upgrade, restart both", m.Report.Version,
			Version)
	case m.Space != e.c.Space.ID:
		return e.breach("its vectors are of another feature space than %s", e.c.Space.ID)
	}
	e.ready = true
	return nil
}

// Await waits until the networks are open or ctx ends, which ends the eye. Calling it is optional.
func (e *Eye) Await(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.await(ctx)
}

// Open lets the eye open a source, named as for facedet.Open, and ends the stream before. The first source decides
// which files the eye may ever read: see [Options].Roots. The error is that of the source, which leaves the eye usable,
// or one of this package's errors.
func (e *Eye) Open(ctx context.Context, name string, o Options) (*Stream, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Faces == 0 || o.Faces > MostFaces {
		o.Faces = MostFaces
	}
	e.child.lead(name, o.Timeout)
	if err := e.await(ctx); err != nil {
		return nil, err
	}
	s := &Stream{eye: e, o: o, limits: Limits{
		Space: e.c.Space, Faces: o.Faces, Picture: o.Picture, Pixels: o.Pixels, Spare: o.Spare,
	}}
	q := Open{
		Name: name, Roots: append(slices.Clone(o.Roots), name), Gate: o.Gate, Faces: o.Faces, Picture: o.Picture,
		Pixels: o.Pixels,
		FPS:    o.FPS, Spare: o.Spare, Live: o.Live, Pace: o.Pace, After: o.After, Timeout: o.Timeout,
	}
	e.stream = nil
	if err := e.send(ctx, Request{Open: &q}, e.c.Slack); err != nil {
		return nil, err
	}
	m, err := s.answer(ctx)
	if err != nil {
		return nil, err
	}
	if m.Kind != Opened {
		return nil, e.breach("it said %d where a source was to be opened", m.Kind)
	}
	e.report, s.count = m.Report, m.Count
	e.stream = s
	return s, nil
}

// Err returns the error that made the eye unusable, or nil.
func (e *Eye) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

// Report returns the eye's report about its sandbox; it is empty before the first source.
func (e *Eye) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.report
}

// Close ends the eye, and waits until a child has ended. It may be called twice, and during other calls.
func (e *Eye) Close() error {
	e.once.Do(func() {
		close(e.closing)
		e.conn.Close()
		e.child.end()
	})
	return nil
}

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
	look   bool                  // examine each face of the next frame
	sure   bool                  // no closer look will be asked for while faces are held
	renew  bool                  // start again with the next frame
	ahead  int                   // number of frames that may still come without a request
	more   bool                  // the next frame comes without a request
	looked map[int]time.Duration // time of each track's last face that was not held
	ended  error
}

var (
	_ face.Stream = (*Stream)(nil)
	_ face.Looker = (*Stream)(nil)

	_ face.Renewer = (*Stream)(nil)
)

// Look implements [face.Looker]. Empty frames of a recording may be on their way already: then it applies to the next
// frame after them.
func (s *Stream) Look() { s.look = true }

// Sure implements [face.Looker].
func (s *Stream) Sure() { s.sure = true }

// Renew lets the eye forget earlier frames: later frames come as if the source began with them, except for their number
// and time. It does nothing and returns false while frames are on their way, and for a live source.
func (s *Stream) Renew() bool {
	s.renew = !s.more && !s.o.Live
	return s.renew
}

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
					return m, e.breach("progress without any") // otherwise the eye could keep the program waiting for ever
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
		q.Renew = s.renew
		if s.renew {
			s.looked = nil
		}
		s.look, s.renew, s.ahead = false, false, q.Ahead
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
