// SPDX-License-Identifier: Apache-2.0

// Package eye runs camera, decoder and networks in a separate process, the eye, which holds no
// secrets. A hostile recording that attacks a decoder or a network can only reach that process.
//
// [Start] starts an eye. [Eye.Open] lets it open a source and returns a [Stream] of frames with
// faces. Package serve is the eye's side and links OpenCV; this package builds without cgo.
//
// # What is trusted
//
// The eye trusts the program. The program checks everything that the eye sends before it uses it:
// lengths, numbers that are finite and in range, boxes inside the frame, vectors of the space,
// pictures of the requested size, frames in order. An eye that breaks a rule is ended. One that is
// slow, or stopped, is waited for, as long as its context lasts. One that hangs is not: if it
// computes or sleeps without a message for longer than [Config] allows, it is ended, too. The
// errors of both, and that of an eye that ends by itself, as by a fault in a decoder, wrap
// [ErrBroken].
//
// # Caveats
//
// An attacker who controls an eye can still send false results within the rules, for example a face
// that is not there. Use one eye per source if this matters. The office does so for cameras of one
// owner, too: two cameras in one eye would share memory, so one that attacks a decoder could read
// and invent the frames of the other.
package eye

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/wire"
)

// Errors of an [Eye]. After such an error, close the eye and start a new one.
var (
	ErrClosed = errors.New("the eye is closed")
	// ErrBroken is wrapped if the eye is unusable through its own fault: a crash, a hang or a
	// broken rule. The source may be tried again with another eye.
	ErrBroken = errors.New("the eye, the process that decodes, is broken")
	errEnded  = broken{errors.New("the eye, the process that decodes, has ended")}
	errSilent = broken{errors.New("the eye, the process that decodes, gives no answer")}
)

// ErrVision is wrapped by errors of [Eye.Open] about the networks, and not the source.
var ErrVision = errors.New("the networks cannot be used")

// ErrSettings is wrapped by the errors of [Eye.Open] about what a user may ask for in [Options]: a
// timeout, a rate or a rotation. They name the field and its value. The eye stays usable.
var ErrSettings = errors.New("unusable setting")

// broken is an error that says how an eye broke.
type broken struct{ error }

// Is makes broken wrap [ErrBroken] without its words.
func (broken) Is(target error) bool { return target == ErrBroken }

func (b broken) Unwrap() error { return b.error }

// Vision tells an eye how to find faces and compute their vectors.
type Vision struct {
	Features      string `json:"features"` // "embedding" or "pixels"
	Detector      string `json:"detector"` // "network" or "haar"
	Models        string `json:"models"`   // folder of the model files
	DetectorModel string `json:"detector_model,omitempty"`
	// files with the user's own model descriptions
	EmbeddingModel string `json:"embedding_model,omitempty"`
	Liveness       bool   `json:"liveness,omitempty"` // score each face
	// file with the user's own model description
	LivenessModel string `json:"liveness_model,omitempty"`
	// Infrared opens sources by facedet.OpenInfrared. The vectors of embeddings are then of
	// [face.Space.Infrared], and the liveness score is that of the emitter's light, and not of a
	// network.
	Infrared bool `json:"infrared,omitempty"`
}

// Config of an [Eye].
type Config struct {
	Vision Vision
	Space  face.Space // space of the vectors; an eye with another space is refused

	// Socket is the name of a Unix socket at which eyes are started (see package serve). "" starts
	// a child of this process.
	Socket string
	// Command starts a child: a program and its arguments. The child finds the socket as file 3.
	// Default: this program, with the argument "eye".
	Command []string
	// Loader, if not nil, starts the children, which then share memory.
	Loader *Loader
	// Stderr receives the output of a child's libraries. nil discards it, because the child decides
	// every byte of it.
	Stderr io.Writer

	// Memory is the memory limit of a child in bytes. Default 3 GiB.
	Memory uint64
	// Work is the processor time that a child may use without a message. Default 3 min: an eye
	// speaks after each run of a network, and the longest work between two messages is to decode a
	// large picture.
	Work time.Duration
	// Idle is how long a child may sleep without a message beyond the timeout of its source; a
	// child that waits for the processor or for a disk, or that somebody has stopped, does not
	// sleep. Default 1 min.
	Idle time.Duration
}

func (c Config) defaults() Config {
	if c.Memory == 0 {
		c.Memory = 3 << 30
	}
	c.Work = cmp.Or(c.Work, 3*time.Minute)
	c.Idle = cmp.Or(c.Idle, time.Minute)
	return c
}

// check returns nil for usable options, or an error that wraps [ErrSettings].
func (o Options) check() error {
	_, _, known := o.Rotate.Degrees()
	switch {
	case o.Timeout < 0:
		return fmt.Errorf("%w: the timeout is %v, but must not be negative", ErrSettings, o.Timeout)
	case !known:
		return fmt.Errorf("%w: the rotation is %q; use auto, 0, 90, 180 or 270", ErrSettings,
			o.Rotate)
	case o.From < 0:
		return fmt.Errorf("%w: From is %d, but must not be negative", ErrSettings, o.From)
	case o.Series != face.Followed && o.Series != face.Photographs && o.Series != face.Filmed:
		return fmt.Errorf("%w: the series is %q; use no, yes or nothing", ErrSettings, o.Series)
	case !(o.FPS >= 0) || math.IsInf(o.FPS, 1):
		return fmt.Errorf("%w: FPS is %g, but must be finite and not negative", ErrSettings, o.FPS)
	}
	for _, m := range o.Mask {
		if err := m.Check(); err != nil {
			return fmt.Errorf("%w: the mask: %w", ErrSettings, err)
		}
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
	Gate Gate
	AsIs bool // brighten no dim frame, as for a login
	// greatest number of faces of a frame, the largest first. Default and maximum 256
	Faces int
	// Crowd keeps faces far behind the largest one, too, for a login or an enrolment.
	Crowd   bool
	Picture int     // longer side of the JPEG of each face, in pixels; 0 for none
	FPS     float64 // frames per second of a recording; 0 for all
	// Spare holds unchanged faces, and detects faces only after movement or from time to time. Use
	// it with the gate Learn, and not with liveness scores: a login must only rest on faces that
	// were really examined.
	Spare bool
	// Live delivers present frames: the newest frame of a camera or a stream. For a recording with
	// Pace it delivers the frame at the recording's clock.
	Live, Pace bool
	// Timeout is for opening a camera or a URL, and for each frame of it. Default 10 s. A file is
	// waited for.
	Timeout time.Duration
	// Files are photographs to open instead of what the name says; they may lie in several folders.
	// A frame has the place of its file in them as its index.
	Files []string
	// Series says whether the pictures of a folder are a film. Default [face.Followed].
	Series face.Series
	// From is the index of the first picture of Files or of a folder that is wanted.
	From int
	// Roots are all files, folders and devices that this eye may ever open besides the name, as for
	// later recordings. The first call of Open decides.
	Roots []string

	// Shape is the size of a picture with the shape in which frames are to be seen: others are
	// stretched to it before they are turned. The zero value leaves them as they are.
	Shape image.Point
	// Rotate turns the frames. Default "0". With [face.Auto] the first faces decide, each time that
	// a source is opened.
	Rotate face.Rotation
	// Mask are parts of a frame, as it is turned, that are black, and in which no face is found.
	Mask []face.Polygon
	// Turned is called when the frames of [face.Auto] begin to be turned, with the degrees
	// clockwise. May be nil.
	Turned func(degrees int) `cbor:"-"`
	// Damaged is called for each skipped file. May be nil.
	Damaged func(text string) `cbor:"-"`
	// Frame reports for each frame whether a picture of the whole frame is wanted. May be nil.
	Frame func() bool `cbor:"-"`
	Width int         // greatest width of that picture. Default 640
	// NoFaces looks for no faces, except to turn a picture: only pictures of frames are wanted.
	NoFaces bool `cbor:",omitempty"`
	// Step is called with the progress of reading, also while frames are skipped. May be nil.
	Step func(face.Count) `cbor:"-"`
}

// Report is an eye's description of its sandbox and of its networks.
type Report struct {
	Landlock int    // the active version of Landlock; 0 if the kernel has none
	Seccomp  bool   // the filter of system calls is active
	Runs     string // what runs the detector, with its version, if it is a network
}

type request = wire.Request[Vision, Options]

// Eye is a process that reads a camera and finds faces. Its methods are safe for concurrent use;
// those of its stream are not.
type Eye struct {
	c     Config
	conn  net.Conn
	child *child // nil if the system manager started the process

	mu      sync.Mutex // guards the fields below; held during a request
	ready   bool
	report  Report
	broken  error // the error that made the eye unusable
	stream  *Stream
	logins  map[string]*url.Userinfo // of the cameras whose requests the program signs
	closing chan struct{}
	once    sync.Once
}

// Start starts an eye. The eye opens its networks meanwhile: errors about them come from
// [Eye.Open]. The caller closes it.
func Start(ctx context.Context, c Config) (*Eye, error) {
	e := &Eye{c: c.defaults(), closing: make(chan struct{}), logins: make(map[string]*url.Userinfo)}
	var err error
	if c.Socket != "" {
		e.conn, err = dial(ctx, c.Socket)
	} else {
		e.conn, e.child, err = e.c.Loader.spawn(ctx, e.c)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the eye: %w", err)
	}
	err = e.send(ctx, request{Setup: &wire.Setup[Vision]{Version: wire.Version,
		Vision: c.Vision, Memory: e.c.Memory}})
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("starting the eye: %w", err)
	}
	return e, nil
}

// send sends a request.
func (e *Eye) send(ctx context.Context, q request) error {
	b := wire.AppendRequest(nil, q)
	if len(b) > wire.MostRequest {
		return fmt.Errorf("the names of the recordings have %d bytes; %d are allowed", len(b),
			wire.MostRequest)
	}
	p, release := e.patience(ctx, 0)
	_, err := p.Write(b)
	release()
	return e.fault(ctx, err)
}

// patience returns the patience with one request or message, for which the eye may sleep so much
// longer. The end of ctx ends the wait. Call release before the next one.
func (e *Eye) patience(ctx context.Context, sleep time.Duration) (p *patience, release func()) {
	p = &patience{ctx: ctx, conn: e.conn, eye: e.child, work: e.c.Work, idle: e.c.Idle + sleep}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		e.conn.SetDeadline(time.Unix(1, 0))
	})
	return p, func() {
		if !stop() {
			<-done
		}
	}
}

// fault makes the eye unusable after an error of the connection, and returns the error with its
// meaning.
func (e *Eye) fault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, wire.ErrRules):
		err = broken{err}
	case e.closed():
		err = ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSilent
	default:
		err = errEnded
		if why := e.child.fate(); why != "" {
			err = fmt.Errorf("%w: %s", errEnded, why)
		}
	}
	if e.broken == nil {
		e.broken = err
	}
	e.child.kill()
	if errors.Is(err, ErrBroken) {
		e.child.distrust()
	}
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

// read reads a message, for which the eye may sleep so much longer.
func (e *Eye) read(ctx context.Context, l wire.Limits, sleep time.Duration) (wire.Message, error) {
	p, release := e.patience(ctx, sleep)
	m, err := wire.Read(p, l)
	release()
	return m, e.fault(ctx, err)
}

// breach ends an eye that broke a rule.
func (e *Eye) breach(format string, args ...any) error {
	return e.fault(context.Background(),
		fmt.Errorf("%w: "+format, append([]any{wire.ErrRules}, args...)...))
}

// await waits until the networks are open.
func (e *Eye) await(ctx context.Context) error {
	if e.ready || e.broken != nil {
		return e.broken
	}
	m := wire.Message{Kind: wire.Beat}
	var err error
	for err == nil && m.Kind == wire.Beat {
		m, err = e.read(ctx, wire.Limits{Space: e.c.Space}, 0)
	}
	switch {
	case err != nil:
		return err
	case m.Kind == wire.Failed:
		e.broken = m.Err(ErrVision)
		return e.broken
	case m.Kind != wire.Ready:
		return e.breach("it said %d where its networks were to be ready", m.Kind)
	case m.Report.Version != wire.Version:
		return e.breach(
			"the eye speaks version %d, and this program %d; after an upgrade, restart both",
			m.Report.Version, wire.Version)
	case m.Space != e.c.Space.ID:
		return e.breach("its vectors are of another feature space than %s", e.c.Space.ID)
	}
	e.ready = true
	return nil
}

// Open lets the eye open a source, named as for facedet.Open, and ends the stream before. The first
// source decides which files the eye may ever read: see [Options].Roots. The error comes from the
// source, which leaves the eye usable, or one of this package's errors.
func (e *Eye) Open(ctx context.Context, name string, o Options) (*Stream, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Faces == 0 || o.Faces > wire.MostFaces {
		o.Faces = wire.MostFaces
	}
	s, err := e.open(ctx, name, o, e.logins[name])
	if !errors.Is(err, face.ErrRefused) {
		return s, err
	}
	login, why := e.login(ctx, name, o.Timeout)
	if login == nil || e.logins[name] != nil {
		return nil, fmt.Errorf("%w%s", err, why)
	}
	s, err = e.open(ctx, name, o, login)
	if err == nil {
		e.logins[name] = login
	}
	return s, err
}

// login asks a camera that refused the login of FFmpeg what it offers. It returns the login with
// which the program can sign requests, or nil; and what is to be said of the offer.
func (e *Eye) login(ctx context.Context, name string,
	within time.Duration) (*url.Userinfo, string) {
	u, err := url.Parse(name)
	if err != nil || u.User == nil {
		return nil, ""
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	offers, err := ask(ctx, name)
	if err != nil || len(offers) == 0 {
		return nil, ""
	}
	why := "; the camera offers " + offered(offers)
	if byFFmpeg(offers) {
		return nil, why
	}
	answered := slices.ContainsFunc(offers, func(c challenge) bool { return c.strength() > 0 })
	if !answered || strings.HasSuffix(strings.ToLower(u.Scheme), "s") || !e.child.relays() {
		return nil, why +
			", which cannot be answered here; choose Digest with MD5, or Basic, in the camera"
	}
	return u.User, why
}

// open is Open, with the login with which the program signs requests; nil if the eye does. The
// caller holds the mutex.
func (e *Eye) open(ctx context.Context, name string, o Options,
	login *url.Userinfo) (*Stream, error) {
	e.child.lead(name, o.Timeout, login)
	if err := e.await(ctx); err != nil {
		return nil, err
	}
	s := &Stream{eye: e, asked: o}
	q := wire.Open[Options]{Name: name, Options: o}
	q.Options.Roots = slices.Concat(o.Roots, []string{name}, o.Files)
	e.stream = nil
	if err := e.send(ctx, request{Open: &q}); err != nil {
		return nil, err
	}
	m, err := s.answer(ctx)
	if err != nil {
		return nil, err
	}
	if m.Kind != wire.Opened {
		return nil, e.breach("it said %d where a source was to be opened", m.Kind)
	}
	e.report = Report{m.Report.Landlock, m.Report.Seccomp, m.Report.Runs}
	s.count = m.Count
	e.stream = s
	return s, nil
}

// Err returns the error that made the eye unusable, or nil. It is [ErrClosed] for a closed eye.
func (e *Eye) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken == nil && e.closed() {
		return ErrClosed
	}
	return e.broken
}

// Report returns the eye's report; it is empty before the first source.
func (e *Eye) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.report
}

// Close ends the eye, and waits until a child has ended. It may be called twice, and during other
// calls.
func (e *Eye) Close() error {
	e.once.Do(func() {
		close(e.closing)
		e.conn.Close()
		e.child.end()
	})
	return nil
}
