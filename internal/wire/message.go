// SPDX-License-Identifier: Apache-2.0

// Package wire has the messages between a program and its eye: see packages eye and eye/serve.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/fxamacker/cbor/v2"
)

// Version is the version of the messages. An eye of another version is refused.
const Version = 16

// Kind is the kind of an eye's message.
type Kind byte

// Kinds of messages. An eye only answers requests, and each answer ends with one of Ready, Opened,
// Image, End and Failed. Beat, Progress and Damaged may come before it.
const (
	Ready    Kind = 1 + iota // the networks are open
	Opened                   // the source is open
	Image                    // a frame
	Progress                 // the eye skips frames or waits for the next one
	Damaged                  // a file was skipped
	End                      // after the last frame
	Failed                   // an error
	Beat                     // the eye has begun, or a part of its work is done
)

// Limits of messages.
const (
	// MostFaces is the greatest number of faces of a frame.
	MostFaces = 256
	// landmarks is the number of landmarks of a face that has any.
	landmarks = 68
	// aligned is the length of [face.Sample].Aligned.
	aligned = face.AlignedSide * face.AlignedSide
	// mostFaceJPEG and mostFrameJPEG are in bytes. Pictures of 112, 640 and 1920 pixels have 6, 90
	// and 500 kB.
	mostFaceJPEG, mostFrameJPEG = 64 << 10, 8 << 20
	mostPixels                  = 256 << 20 // package facedet reads fewer
	mostText                    = 1 << 10
	mostSide                    = 1 << 16
	// mostFields is the greatest size of the names and numbers of a message, and of a face in it,
	// in bytes.
	mostFields = 1 << 10
	// farthest is the greatest coordinate of a landmark in pixels. A landmark may be outside the
	// frame.
	farthest = 1e6
	longest  = 10 * 365 * 24 * time.Hour
)

// ErrRules is wrapped by errors about a message that no eye may send. Such an eye is ended.
var ErrRules = errors.New("the eye broke the rules of its messages")

// Limits are what was asked for. An answer may leave parts of it out, and may not have others.
type Limits struct {
	Space   face.Space
	Faces   int  // the greatest number of faces of a frame
	Picture int  // the longer side of the picture of a face; 0 for none
	Spare   bool // faces may be held
	Turns   bool // the norms of turned faces are wanted
}

// size returns the greatest length of a message.
func (l Limits) size(k Kind) int {
	n := mostFields + mostText
	if k == Image {
		n += l.Faces*(mostFields+8*landmarks+4*l.Space.Dim+aligned) + mostFrameJPEG
		if l.Picture > 0 {
			n += l.Faces * mostFaceJPEG
		}
	}
	return n
}

// Report is an eye's description of its sandbox and of its networks.
type Report struct {
	Version  int
	Landlock int  // the active version of Landlock; 0 if the kernel has none
	Seccomp  bool // the filter of system calls is active
	// what runs the detector, with its version, if it is a network
	Runs string `json:",omitempty"`
}

// Message is a message of an eye. Its kind decides which fields are used.
type Message struct {
	Kind   Kind          `json:"-"`
	Report Report        `json:",omitzero"`  // Ready, Opened
	Space  string        `json:",omitempty"` // Ready
	Count  face.Count    `json:",omitzero"`  // Opened, Image, Progress, End
	Wait   time.Duration `json:",omitempty"` // Progress: until the next frame is due
	Frame  face.Frame    `json:"-"`          // Image
	Code   Code          `json:",omitempty"` // Failed
	Text   string        `json:",omitempty"` // Damaged, Failed
}

// A message is a byte with its kind, the length of its body, and the body in CBOR, in which vectors
// and landmarks are bytes.
type encoded struct {
	*Message
	Frame *encodedFrame `json:"frame,omitempty"`
}

type encodedFrame struct {
	face.Frame
	Size    image.Point
	File    []byte          `json:"file,omitempty"` // perhaps no UTF-8
	Samples []encodedSample `json:"samples,omitempty"`
	JPEG    []byte          `json:"jpeg,omitempty"`
}

type encodedSample struct {
	face.Sample
	Landmarks []byte      `json:"landmarks,omitempty"`
	Vector    []byte      `json:"vector,omitempty"`
	Aligned   []byte      `json:"aligned,omitempty"`
	Turns     *face.Turns `json:"turns,omitempty"`
}

var (
	encoding, _ = cbor.EncOptions{}.UserBufferEncMode()
	decoding, _ = cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, MaxNestedLevels: 8,
		MaxArrayElements: MostFaces,
		MaxMapPairs:      64, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
	}.DecMode()
)

// Append appends an encoded message to b, for [Read].
func Append(b []byte, m Message) []byte {
	e := encoded{Message: &m}
	if m.Kind == Image {
		e.Frame = &encodedFrame{Frame: m.Frame, Size: m.Frame.Size, File: []byte(m.Frame.File),
			JPEG: m.Frame.JPEG}
		for _, s := range m.Frame.Samples {
			x := encodedSample{Sample: s, Vector: vector.Bytes(s.Vector), Aligned: s.Aligned,
				Turns: s.Turns}
			for _, p := range s.Landmarks {
				x.Landmarks = vector.Append(x.Landmarks, []float32{p.X, p.Y})
			}
			e.Frame.Samples = append(e.Frame.Samples, x)
		}
	}
	return appendBody(append(b, byte(m.Kind)), e)
}

// appendBody appends the length of an encoded value and the value to b.
func appendBody(b []byte, v any) []byte {
	begin := len(b) + 4
	to := bytes.NewBuffer(append(b, 0, 0, 0, 0))
	if err := encoding.MarshalToBuffer(v, to); err != nil {
		panic("wire: message that cannot be encoded: " + err.Error())
	}
	b = to.Bytes()
	binary.LittleEndian.PutUint32(b[begin-4:], uint32(len(b)-begin))
	return b
}

// readBody reads a length and the bytes after it. The buffer grows with the received bytes, and not
// with the announced length.
func readBody(r io.Reader, most int) ([]byte, error) {
	var n uint32
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return nil, err
	}
	if int64(n) > int64(most) {
		return nil, fmt.Errorf("%w: message of %d bytes; %d are allowed", ErrRules, n, most)
	}
	var body bytes.Buffer
	body.Grow(int(min(n, 256<<10)))
	if _, err := io.CopyN(&body, r, int64(n)); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// Read reads a message, and checks everything that does not depend on earlier messages. The error
// wraps [ErrRules], or comes from r.
func Read(r io.Reader, l Limits) (Message, error) {
	var kind [1]byte
	if _, err := io.ReadFull(r, kind[:]); err != nil {
		return Message{}, err
	}
	m := Message{Kind: Kind(kind[0])}
	if m.Kind < Ready || m.Kind > Beat {
		return Message{}, fmt.Errorf("%w: message of the unknown kind %d", ErrRules, m.Kind)
	}
	body, err := readBody(r, l.size(m.Kind))
	if err != nil {
		return Message{}, err
	}
	e := encoded{Message: &m}
	if err := decoding.Unmarshal(body, &e); err != nil {
		return Message{}, fmt.Errorf("%w: %s", ErrRules, Printable(err.Error()))
	}
	var c checker
	c.message(m)
	c.rule((e.Frame != nil) == (m.Kind == Image), "a frame in another message, or none")
	if c.err == nil && e.Frame != nil {
		m.Frame = c.frame(*e.Frame, l)
	}
	if c.err != nil {
		return Message{}, c.err
	}
	return m, nil
}

// checker keeps the first error. No error contains a value of a face.
type checker struct{ err error }

func (c *checker) rule(kept bool, format string, args ...any) {
	if !kept && c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrRules}, args...)...)
	}
}

// within checks a number, which must be from low to high.
func (c *checker) within(name string, x, low, high float64) {
	if !(x >= low && x <= high) {
		c.rule(false, "%s outside %g to %g", name, low, high)
	}
}

func (c *checker) whole(name string, n, low, high int) {
	c.within(name, float64(n), float64(low), float64(high))
}

func (c *checker) duration(name string, d time.Duration) {
	c.rule(d >= 0 && d <= longest, "%s that is negative or longer than ten years", name)
}

// jpeg checks a JPEG file, whose picture must be at most side pixels wide and high.
func (c *checker) jpeg(name string, b []byte, most, side int) {
	if b == nil {
		return
	}
	c.whole("length of the "+name, len(b), 0, most)
	d, err := jpeg.DecodeConfig(bytes.NewReader(b))
	c.rule(err == nil, "%s that is not a JPEG", name)
	c.rule(d.Width <= side && d.Height <= side, "%s of %dx%d pixels; %d are allowed", name, d.Width,
		d.Height, side)
}

// message checks what does not depend on the request.
func (c *checker) message(m Message) {
	c.whole("declared frames", m.Count.Declared, -1, math.MaxInt32)
	c.whole("frames read", m.Count.Read, 0, math.MaxInt32)
	c.whole("frames dropped", m.Count.Dropped, 0, math.MaxInt32)
	c.whole("further films", m.Count.Others, 0, math.MaxInt32)
	c.whole("damaged files", m.Count.Damaged, 0, math.MaxInt32)
	c.whole("files that end too early", m.Count.Partial, 0, m.Count.Read)
	c.whole("version", m.Report.Version, 0, math.MaxInt32)
	c.whole("version of Landlock", m.Report.Landlock, 0, 1000)
	c.duration("time to wait", m.Wait)
	for _, d := range []time.Duration{m.Count.Length, m.Count.Last, m.Count.Gap, m.Count.GapAt} {
		c.duration("time of a recording", d)
	}
	c.rule(m.Code < lastCode, "unknown code %d of an error", m.Code)
	for _, s := range []string{m.Space, m.Text, m.Report.Runs} {
		c.whole("length of the text", len(s), 0, mostText)
		control := strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
		c.rule(!control, "text that cannot be printed")
	}
}

// frame returns the checked frame.
func (c *checker) frame(e encodedFrame, l Limits) face.Frame {
	f := e.Frame
	f.Size, f.JPEG, f.File = e.Size, e.JPEG, string(e.File)
	c.whole("length of the name of a file", len(f.File), 0, 255)
	c.rule(!strings.ContainsAny(f.File, "/\x00") && f.File != "." && f.File != "..",
		"name of a file in another folder")
	c.whole("index of a frame", f.Index, 0, math.MaxInt32)
	c.duration("time of a frame", f.Time)
	c.within("pulse", f.Pulse, 0, 256)
	c.whole("width", f.Size.X, 1, mostSide)
	c.whole("height", f.Size.Y, 1, mostSide)
	c.rule(c.err != nil || f.Size.X*f.Size.Y <= mostPixels, "frame of %dx%d pixels", f.Size.X,
		f.Size.Y)
	c.rule(slices.Contains([]int{0, 90, 180, 270}, f.Turned), "frame that is turned by %d degrees",
		f.Turned)
	c.whole("number of faces", len(e.Samples), 0, min(l.Faces, MostFaces))
	if c.err != nil {
		return f
	}
	tracks := make(map[int]bool)
	for _, x := range e.Samples {
		f.Samples = append(f.Samples, c.sample(x, f.Size, l))
		c.rule(!tracks[x.Track], "two faces of the track %d in a frame", x.Track)
		tracks[x.Track] = true
	}
	c.jpeg("picture of a frame", f.JPEG, mostFrameJPEG, mostSide)
	return f
}

var reasons = []face.Reason{"", face.TooSmall, face.TooDark, face.TooBright, face.Flat,
	face.Blurred, face.TurnedAway,
	face.Moved, face.Tilted, face.CutOff, face.Covered, face.NoVector, face.Incomplete,
	face.Unclear}

func (c *checker) sample(x encodedSample, size image.Point, l Limits) face.Sample {
	s := x.Sample
	s.Turns, s.Aligned = x.Turns, x.Aligned
	c.whole("track", s.Track, 1, math.MaxInt32)
	c.rule(!s.Box.Empty() && s.Box.In(image.Rectangle{Max: size}),
		"box that is empty or outside the frame")
	c.rule(s.Space == l.Space.ID, "face of another feature space than %s", l.Space.ID)
	c.rule(slices.Contains(reasons, s.Reason), "unknown reason of a face")
	c.rule(!s.Held || l.Spare, "face that is held, though nobody asked for it")

	if n := len(x.Landmarks); n == 8*landmarks {
		points := vector.Floats(x.Landmarks)
		s.Landmarks = make([]face.Point, landmarks)
		for i := range s.Landmarks {
			s.Landmarks[i] = face.Point{X: points[2*i], Y: points[2*i+1]}
		}
		for _, v := range points {
			c.within("landmark", float64(v), -farthest, farthest)
		}
	} else {
		c.rule(n == 0, "face with %d bytes of landmarks; 0 or %d are allowed", n, 8*landmarks)
	}

	if len(x.Vector) > 0 {
		c.rule(len(x.Vector) == 4*l.Space.Dim, "vector of %d bytes; %d are allowed", len(x.Vector),
			4*l.Space.Dim)
		s.Vector = vector.Floats(x.Vector)
		if err := l.Space.Check(s.Vector); err != nil {
			c.rule(false, "%v", err)
		}
		c.rule(s.Reason != face.NoVector, "vector, and a reason why there is none")
	} else {
		c.rule(s.Held || s.Reason == face.NoVector || s.Reason == face.TooDark,
			"vector that is missing without a reason")
	}

	if n := len(s.Aligned); n > 0 {
		c.rule(n == aligned && (s.Vector != nil || s.Held) && l.Space.Look > 0,
			"aligned face of %d bytes; %d are allowed, beside a vector whose stills are told", n,
			aligned)
	} else {
		s.Aligned = nil
	}

	const large = 1e9 // far above all measures of 8-bit pictures
	q := s.Quality
	c.whole("size of a face", q.Size, 0, mostSide)
	for _, v := range []struct {
		name         string
		x, low, high float64
	}{
		{"score", float64(s.Score), 0, 1.001},
		{"sharpness", q.Sharpness, 0, large}, {"brightness", q.Brightness, 0, 256},
		{"contrast", q.Contrast, 0, 256},
		{"colour", q.Colour, 0, large},
		{"turn", q.Turn, -large, large}, {"roll", q.Roll, -180, 180}, {"cut", q.Cut, 0, 1},
		{"streak", q.Streak, 0, 1},
		{"eyes", q.Eyes, 0, 100}, {"mouth", q.Mouth, 0, 100}, {"gain", q.Gain, 0, 256},
		{"noise", q.Noise, 0, 256},
		{"norm", q.Norm, 0, large},
	} {
		c.within(v.name, v.x, v.low, v.high)
	}
	if s.Turns != nil {
		for _, v := range s.Turns {
			c.within("norm of a turned face", v, 0, large)
		}
		c.rule(l.Turns, "norms of turned faces that nobody asked for")
	}
	if s.Liveness != nil {
		c.within("liveness", float64(*s.Liveness), 0, 1)
	}
	c.rule(s.JPEG == nil || l.Picture > 0, "picture of a face that nobody asked for")
	c.jpeg("picture of a face", s.JPEG, mostFaceJPEG, l.Picture)
	c.rule(!s.Held || s.Landmarks == nil && s.Vector == nil && s.Aligned == nil &&
		s.Turns == nil && s.Liveness == nil && s.JPEG == nil,
		"face that is held and has landmarks, a vector, norms, its liveness or a picture")
	return s
}
