// SPDX-License-Identifier: Apache-2.0

// Package eye sees by way of another process: camera, decoder and networks run in a child, the eye, that holds nothing
// worth stealing. What a decoder or a network does with a hostile recording happens there.
//
// [Start] starts an eye, and [Eye.Open] has it open a source and returns a [Stream] of frames of samples. Package serve
// is the other side of it, which links OpenCV; this package builds without cgo.
//
// # What is trusted
//
// The eye believes the program, and the program believes nothing that the eye says before it has checked it: lengths,
// numbers that are finite and in range, boxes inside the frame, vectors of the space, pictures of the size that was
// asked for, frames in order, and an answer in time. An eye that breaks a rule is ended, and the error wraps
// [ErrRules]. One that ends by itself, as after a fault in a decoder, gives [ErrEnded], and one that does not answer
// [ErrSilent].
//
// # Caveats
//
// An eye that was taken over can still say what it likes within the rules: that a face is there which is not. Use an
// eye for one source where that matters.
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

// Errors of an [Eye]. [ErrRules] is another one. The eye is then of no more use: close it, and start another one.
var (
	ErrEnded  = errors.New("the eye, the process that decodes, has ended")
	ErrSilent = errors.New("the eye, the process that decodes, gives no answer")
	ErrClosed = errors.New("the eye is closed")
)

// ErrSettings is wrapped by the errors of [Start] and [Eye.Open] about a [Config] or [Options] that cannot be used.
// They say which field, and its value. They cost the eye nothing.
var ErrSettings = errors.New("unusable setting")

// Broken reports whether err means that the eye is of no more use, through its own fault: a crash, a hang or a lie. The
// source may be tried again, with another eye.
func Broken(err error) bool {
	return errors.Is(err, ErrEnded) || errors.Is(err, ErrSilent) || errors.Is(err, ErrRules)
}

// Vision says how an eye finds faces and makes vectors of them.
type Vision struct {
	Features       string `json:"features"` // "embedding" or "pixels"
	Detector       string `json:"detector"` // "network", "haar" or "lbp"
	Models         string `json:"models"`   // folder of the model files
	DetectorModel  string `json:"detector_model,omitempty"`
	EmbeddingModel string `json:"embedding_model,omitempty"` // files of descriptions of one's own
	Liveness       bool   `json:"liveness,omitempty"`        // score each face
	LivenessModel  string `json:"liveness_model,omitempty"`  // file of a description of one's own
}

// Config of an [Eye].
type Config struct {
	Vision Vision
	Space  face.Space // in which vectors must lie; the eye is refused if it makes others

	// Socket is the name of a Unix socket at which eyes are started (see package serve); "" for a child of this process.
	Socket string
	// Command starts a child: a program, and its arguments from its own name on. It finds the socket as file 3. Default:
	// this program, with the name that it was started with and the argument "eye".
	Command []string
	// Stderr takes what the libraries of a child print; nil discards it, as the child decides on every byte.
	Stderr io.Writer

	// Memory is how many bytes of its own a child may have. Default 3 GiB.
	Memory uint64
	// Slack is how long an answer may take beyond what the source may. Default 20 s, as a large picture takes seconds.
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

// check returns nil for options that can be used, or an error that wraps [ErrSettings].
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

// Gate says what a face must pass: those of package preprocess.
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
	Faces   int     // of a frame, the largest first. Default [MostFaces], which is also the most
	Picture int     // longer side of a JPEG of each face in pixels; 0 for none
	Pixels  bool    // the pixels of each frame, for [Stream.Pixels]
	FPS     float64 // frames a second of a recording to look at; 0 for all
	// Spare holds faces that are as they were, and looks for faces again only where something moved, or now and then. It
	// is for the gate Learn, and not for an eye that scores liveness: no login rests on a face that was not looked at.
	Spare bool
	// After is the index of the last frame that is passed over, as an earlier run has seen it; nil for none.
	After *int
	// Live gives what is now: of a camera or a stream the newest frame, of a recording with Pace what its clock says.
	Live, Pace bool
	Timeout    time.Duration // to open the source, and for each frame. Default 10 s
	// Roots are the files, folders and devices that this eye may ever open, beside the name: those of all recordings that
	// it is to open. The first call of Open decides.
	Roots []string

	// Damaged, if it is not nil, is told of each file that is passed over.
	Damaged func(text string)
	// Frame, if it is not nil, says of each frame whether a picture of all of it is wanted, at most 640 pixels wide.
	Frame func() bool
	// Step, if it is not nil, is told what was read so far, also where frames are passed over.
	Step func(face.Count)
}

// Setup is the first that an eye is told.
type Setup struct {
	Version int    `json:"version"`
	Vision  Vision `json:"vision"`
	Memory  uint64 `json:"memory"`
}

// Request is what an eye is asked for: one of its fields is there.
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
	Picture bool `json:"picture,omitempty"` // of the whole frame
	Look    bool `json:"look,omitempty"`    // no face is to be held
	// Ahead is how many more frames may follow without being asked for, as long as nobody is in them. With Sure the faces
	// in them may be held, too.
	Ahead int  `json:"ahead,omitempty"`
	Sure  bool `json:"sure,omitempty"`
	Renew bool `json:"renew,omitempty"` // as if the source began with this frame
}

// mostAhead is how many frames an eye is asked for at once. A message of its own for each of them, with the answer to
// it, takes longer than finding out that nothing moved.
const mostAhead = 64

// mostRequest is how long a request may be. A folder has many recordings, and their names are long.
const mostRequest = 64 << 20

// ReadRequest reads what a program asks for.
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

// Eye is a process that sees. Its methods are safe for concurrent use, those of its stream are not.
type Eye struct {
	c     Config
	conn  net.Conn
	child *child // nil where the process is another's

	mu      sync.Mutex // of what follows; held while something is asked
	ready   bool
	report  Report
	broken  error // with which the eye ceased to be of use
	stream  *Stream
	closing chan struct{}
	once    sync.Once
}

// Start starts an eye, which opens its networks meanwhile: errors about them come from [Eye.Open]. Close it.
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

// send asks for something.
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

// until gives what follows a deadline, which the end of ctx brings forward. Call release before the next one.
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

// fault says what an error of the connection means. The eye is of no more use then.
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

// lie ends an eye that said something that it may not.
func (e *Eye) lie(format string, args ...any) error {
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
		return e.lie("it said %d where its networks were to be ready", m.Kind)
	case m.Report.Version != Version:
		return e.lie("the eye speaks version %d, and this program %d; after an upgrade, restart both", m.Report.Version,
			Version)
	case m.Space != e.c.Space.ID:
		return e.lie("its vectors are of another feature space than %s", e.c.Space.ID)
	}
	e.ready = true
	return nil
}

// Await waits until the networks are open, or ctx ends, which ends the eye. Nobody has to call it.
func (e *Eye) Await(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.await(ctx)
}

// Open has the eye open a source, named as for facedet.Open, and ends the stream before. The first source decides what
// the eye may see of the system: see [Options].Roots. The error is that of the source, which leaves the eye as it is,
// or one of those of this package.
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
		return nil, e.lie("it said %d where a source was to be opened", m.Kind)
	}
	e.report, s.count = m.Report, m.Count
	e.stream = s
	return s, nil
}

// Err returns the error with which the eye ceased to be of use, or nil.
func (e *Eye) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

// Report returns what the eye says of its sandbox, from the first source on.
func (e *Eye) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.report
}

// Close ends the eye, and waits until a child has ended. It may be called twice, and while something waits.
func (e *Eye) Close() error {
	e.once.Do(func() {
		close(e.closing)
		e.conn.Close()
		e.child.end()
	})
	return nil
}

// Stream gives the frames of a source.
type Stream struct {
	eye    *Eye
	o      Options
	limits Limits
	count  face.Count
	index  int // of the frame before, plus one
	time   time.Duration
	pixels []byte
	size   image.Point
	look   bool                  // at each face of the next frame
	sure   bool                  // no closer look will be asked for while faces are held
	renew  bool                  // begin anew with the next frame
	ahead  int                   // frames that may still come without being asked for
	more   bool                  // the next one does
	looked map[int]time.Duration // when a track had a face that was not held
	ended  error
}

var (
	_ face.Stream = (*Stream)(nil)
	_ face.Looker = (*Stream)(nil)

	_ face.Renewer = (*Stream)(nil)
)

// Look implements [face.Looker]. Of a recording, frames in which nobody is may be on their way already: then the frame
// after them is meant.
func (s *Stream) Look() { s.look = true }

// Sure implements [face.Looker].
func (s *Stream) Sure() { s.sure = true }

// Renew has the eye forget what it knows of the frames so far: those that follow come as if the source began with them,
// but for their number and time. It does nothing and returns false while frames are on their way, and for what is live.
func (s *Stream) Renew() bool {
	s.renew = !s.more && !s.o.Live
	return s.renew
}

// answer reads what the eye answers, up to the message that ends it. Each message gives it as much time as the first.
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
				return m, e.lie("it has read fewer frames than before")
			}
			if m.Count.Dropped > m.Count.Read {
				return m, e.lie("it has dropped more frames than it has read")
			}
			if m.Kind == Progress {
				if m.Wait == 0 && m.Count == before || m.Wait > 0 && !s.o.Pace {
					return m, e.lie("progress without any") // or it could keep a program waiting for ever
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
				return m, e.lie("more damaged files than there are")
			}
			if s.o.Damaged != nil {
				s.o.Damaged(m.Text)
			}
		case Failed:
			return m, failed(m)
		default:
			return m, e.lie("it said %d where a source was asked for", m.Kind)
		}
	}
}

// Next implements [face.Stream]. A source that has ended, or failed, stays so.
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
		return f, e.lie("it said %d where a frame was to come", m.Kind)
	case m.More && s.ahead == 0:
		return f, e.lie("more frames than were asked for")
	case f.Index < s.index:
		return f, e.lie("frame %d after frame %d", f.Index, s.index-1)
	case f.Time < s.time:
		return f, e.lie("a frame that is older than its predecessor")
	case f.JPEG != nil && !q.Picture:
		return f, e.lie("picture of a frame that nobody asked for")
	case !s.holds(f, q.Look):
		return f, e.lie("face that is held for more than %v, against a wish, or from the beginning", longestHeld)
	}
	s.index, s.time, s.pixels, s.size = f.Index+1, f.Time, m.Pixels, f.Size
	if s.more = m.More; s.more {
		s.ahead--
	}
	return f, nil
}

// longestHeld is for how long a face may be held. Package pipeline looks closely more often than that.
const longestHeld = time.Minute

// holds reports whether the faces that are held in a frame may be: an eye must have looked at them not long ago.
func (s *Stream) holds(f face.Frame, look bool) bool {
	if !s.o.Spare {
		return true // none is held
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

// Pixels returns those of the frame that came last, blue, green and red, row by row, and its size; nil unless they were
// asked for. They are valid until the next call of Next.
func (s *Stream) Pixels() (pix []byte, size image.Point) { return s.pixels, s.size }

// Count returns what has been read so far.
func (s *Stream) Count() face.Count { return s.count }

// Dropped returns how many frames were passed over as newer ones had come.
func (s *Stream) Dropped() int { return s.count.Dropped }
