// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/vector"
)

// Version is the version of the messages. An eye of another version is refused.
const Version = 4

// Kind is the kind of an eye's message.
type Kind byte

// Kinds of messages. An eye only answers requests, and each answer ends with one of Ready, Opened, Image, End and
// Failed. Progress and Damaged may come before it.
const (
	Ready    Kind = 1 + iota // the networks are open
	Opened                   // the source is open
	Image                    // a frame
	Progress                 // the eye skips frames or waits for the next one
	Damaged                  // a file was skipped
	End                      // after the last frame
	Failed                   // an error
)

// Limits of messages.
const (
	// MostFaces is the greatest number of faces of a frame.
	MostFaces = 256
	// landmarks is the number of landmarks of a face that has any.
	landmarks = 68
	// mostFaceJPEG and mostFrameJPEG are in bytes. Pictures of 112 and of 640 pixels have 6 and 90 kB.
	mostFaceJPEG, mostFrameJPEG = 64 << 10, 2 << 20
	// mostPixels is the same limit as in package facedet.
	mostPixels = 64 << 20
	mostText   = 1 << 10
	mostSide   = 1 << 16
	// farthest is the greatest coordinate of a landmark in pixels. A landmark may be outside the frame.
	farthest = 1e6
	longest  = 10 * 365 * 24 * time.Hour
)

// ErrRules is wrapped by errors about a message that no eye may send. Such an eye is ended.
var ErrRules = errors.New("the eye broke the rules of its messages")

// Limits describe the request. An answer may leave parts of it out, and may not have others.
type Limits struct {
	Space   face.Space
	Faces   int  // greatest number of faces
	Picture int  // longer side of the picture of a face; 0 for none
	Pixels  bool // the pixels of each frame
	Spare   bool // faces may be held
	Turns   bool // norms of turned faces
}

// size returns the greatest length of a message.
func (l Limits) size(k Kind) int {
	switch k {
	case Image:
		n := 64 + l.Faces*(240+8*landmarks+4*l.Space.Dim) + mostFrameJPEG
		if l.Picture > 0 {
			n += l.Faces * mostFaceJPEG
		}
		if l.Pixels {
			n += 3 * mostPixels
		}
		return n
	default:
		return 64 + mostText
	}
}

// Report is an eye's description of its sandbox.
type Report struct {
	Version  int
	Landlock int  // the active version of Landlock; 0 if the kernel has none
	Seccomp  bool // the filter of system calls is active
}

// Message is a message of an eye. Its kind decides which fields are used.
type Message struct {
	Kind   Kind
	Report Report        // Ready, Opened
	Space  string        // Ready
	Count  face.Count    // Opened, Image, Progress, End
	Wait   time.Duration // Progress: until the next frame is due
	Frame  face.Frame    // Image
	More   bool          // Image: another answer follows without a request
	Pixels []byte        // Image: blue, green and red, row by row; nil unless asked for
	Code   Code          // Failed
	Text   string        // Damaged, Failed
}

var reasons = []face.Reason{"", face.TooSmall, face.TooDark, face.TooBright, face.Flat, face.Blurred, face.TurnedAway,
	face.Moved, face.Tilted, face.CutOff, face.Covered, face.NoVector, face.Unclear}

// Append appends an encoded message to b, for [Read].
func Append(b []byte, m Message) []byte {
	begin := len(b)
	le := binary.LittleEndian
	b = append(b, byte(m.Kind), 0, 0, 0, 0)
	num := func(n int) { b = le.AppendUint32(b, uint32(int32(n))) }
	text := func(s string) {
		num(len(s))
		b = append(b, s...)
	}
	real := func(x float64) { b = le.AppendUint64(b, math.Float64bits(x)) }
	short := func(x float32) { b = le.AppendUint32(b, math.Float32bits(x)) }
	flag := func(set bool) {
		if set {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	count := func(c face.Count) {
		num(c.Declared)
		num(c.Read)
		num(c.Dropped)
		num(c.Damaged)
	}
	report := func(r Report) {
		num(r.Version)
		num(r.Landlock)
		flag(r.Seccomp)
	}
	switch m.Kind {
	case Ready:
		report(m.Report)
		text(m.Space)
	case Opened:
		report(m.Report)
		count(m.Count)
	case Progress:
		count(m.Count)
		b = le.AppendUint64(b, uint64(m.Wait))
	case End:
		count(m.Count)
	case Damaged:
		text(m.Text)
	case Failed:
		b = append(b, byte(m.Code))
		text(m.Text)
	case Image:
		f := m.Frame
		count(m.Count)
		flag(m.More)
		num(f.Index)
		b = le.AppendUint64(b, uint64(f.Time))
		num(f.Size.X)
		num(f.Size.Y)
		num(f.Turned)
		num(len(f.Samples))
		for _, s := range f.Samples {
			num(s.Track)
			num(s.Box.Min.X)
			num(s.Box.Min.Y)
			num(s.Box.Max.X)
			num(s.Box.Max.Y)
			short(s.Score)
			num(len(s.Landmarks))
			for _, p := range s.Landmarks {
				short(p.X)
				short(p.Y)
			}
			flag(s.Held)
			reason := 0
			for i, r := range reasons {
				if r == s.Reason {
					reason = i
				}
			}
			b = append(b, byte(reason))
			num(len(s.Vector))
			for _, x := range s.Vector {
				short(x)
			}
			q := s.Quality
			num(q.Size)
			real(q.Sharpness)
			real(q.Brightness)
			real(q.Contrast)
			real(q.Turn)
			real(q.Roll)
			real(q.Cut)
			real(q.Streak)
			real(q.Eyes)
			real(q.Mouth)
			real(q.Norm)
			real(q.Gain)
			real(q.Noise)
			flag(s.Turns != nil)
			if s.Turns != nil {
				for _, x := range s.Turns {
					real(x)
				}
			}
			flag(s.Liveness != nil)
			if s.Liveness != nil {
				short(*s.Liveness)
			}
			text(string(s.JPEG))
		}
		text(string(f.JPEG))
		num(len(m.Pixels))
		b = append(b, m.Pixels...)
	}
	le.PutUint32(b[begin+1:], uint32(len(b)-begin-5))
	return b
}

// Read reads a message, and checks everything that does not depend on earlier messages. The error wraps [ErrRules], or
// comes from r.
func Read(r io.Reader, l Limits) (Message, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Message{}, err
	}
	kind, n := Kind(head[0]), int64(binary.LittleEndian.Uint32(head[1:]))
	if kind < Ready || kind > Failed {
		return Message{}, fmt.Errorf("%w: message of the unknown kind %d", ErrRules, kind)
	}
	if most := int64(l.size(kind)); n > most {
		return Message{}, fmt.Errorf("%w: message of %d bytes; %d are allowed", ErrRules, n, most)
	}
	// The buffer grows with the received bytes, and not with the announced length.
	var body bytes.Buffer
	body.Grow(int(min(n, 256<<10)))
	if _, err := io.CopyN(&body, r, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, err
	}
	return parse(kind, body.Bytes(), l)
}

// parser decodes a message. It keeps the first error; later values are zero.
type parser struct {
	b   []byte
	err error
}

func (p *parser) wrong(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{ErrRules}, args...)...)
		p.b = nil
	}
}

func (p *parser) take(n int) []byte {
	if p.err == nil && n > len(p.b) {
		p.wrong("message that is too short")
	}
	if p.err != nil {
		return make([]byte, min(n, 8))
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

// num returns a whole number from low to high. Name is for the error.
func (p *parser) num(name string, low, high int) int {
	n := int(int32(binary.LittleEndian.Uint32(p.take(4))))
	if p.err == nil && (n < low || n > high) {
		p.wrong("%s %d, which is not from %d to %d", name, n, low, high)
	}
	if p.err != nil {
		return max(low, 0)
	}
	return n
}

func (p *parser) long() int64 { return int64(binary.LittleEndian.Uint64(p.take(8))) }

func (p *parser) flag() bool {
	b := p.take(1)[0]
	if b > 1 {
		p.wrong("flag that is neither 0 nor 1")
	}
	return b == 1
}

// short returns a number from low to high. The error does not contain the number, which may be part of a face.
func (p *parser) short(name string, low, high float32) float32 {
	x := math.Float32frombits(binary.LittleEndian.Uint32(p.take(4)))
	if p.err == nil && !(x >= low && x <= high) {
		p.wrong("%s that is not a number from %g to %g", name, low, high)
	}
	return x
}

func (p *parser) real(name string, low, high float64) float64 {
	x := math.Float64frombits(binary.LittleEndian.Uint64(p.take(8)))
	if p.err == nil && !(x >= low && x <= high) {
		p.wrong("%s that is not a number from %g to %g", name, low, high)
	}
	return x
}

// bytes returns a copy of at most "most" bytes, or nil for none.
func (p *parser) bytes(name string, most int) []byte {
	n := p.num("length of the "+name, 0, most)
	if n == 0 || p.err != nil {
		return nil
	}
	return bytes.Clone(p.take(n))
}

// text returns a text for people: one line without control characters.
func (p *parser) text() string {
	b := p.bytes("text", mostText)
	if p.err != nil {
		return ""
	}
	s := string(b)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		p.wrong("text that cannot be printed")
		return ""
	}
	return s
}

func (p *parser) count() face.Count {
	return face.Count{
		Declared: p.num("declared frames", -1, math.MaxInt32), Read: p.num("frames read", 0, math.MaxInt32),
		Dropped: p.num("frames dropped", 0, math.MaxInt32), Damaged: p.num("damaged files", 0, math.MaxInt32),
	}
}

func (p *parser) report() Report {
	return Report{Version: p.num("version", 0, math.MaxInt32), Landlock: p.num("version of Landlock", 0, 1000),
		Seccomp: p.flag()}
}

// jpeg returns a JPEG file whose picture is at most side pixels wide and high.
func (p *parser) jpeg(name string, most, side int) []byte {
	b := p.bytes(name, most)
	if p.err != nil || b == nil {
		return nil
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(b))
	switch {
	case err != nil:
		p.wrong("%s that is not a JPEG", name)
	case c.Width > side || c.Height > side:
		p.wrong("%s of %dx%d pixels; %d are allowed", name, c.Width, c.Height, side)
	default:
		return b
	}
	return nil
}

func parse(kind Kind, b []byte, l Limits) (Message, error) {
	p := &parser{b: b}
	m := Message{Kind: kind}
	switch kind {
	case Ready:
		m.Report = p.report()
		m.Space = p.text()
	case Opened:
		m.Report = p.report()
		m.Count = p.count()
	case Progress:
		m.Count = p.count()
		if m.Wait = time.Duration(p.long()); m.Wait < 0 || m.Wait > longest {
			p.wrong("time to wait that is negative or longer than ten years")
		}
	case End:
		m.Count = p.count()
	case Damaged:
		m.Text = p.text()
	case Failed:
		if m.Code = Code(p.take(1)[0]); m.Code >= lastCode {
			p.wrong("unknown code %d of an error", m.Code)
		}
		m.Text = p.text()
	case Image:
		m.Count = p.count()
		m.More = p.flag()
		m.Frame = p.frame(l)
		if n := p.num("length of the pixels", 0, 3*mostPixels); n > 0 && p.err == nil {
			if !l.Pixels || n != 3*m.Frame.Size.X*m.Frame.Size.Y {
				p.wrong("%d bytes of pixels that nobody asked for, or of another size", n)
			} else {
				m.Pixels = p.take(n) // no copy: nobody else uses the message
			}
		} else if l.Pixels {
			p.wrong("frame without the pixels that were asked for")
		}
	}
	if p.err == nil && len(p.b) > 0 {
		p.wrong("%d bytes after the end of a message", len(p.b))
	}
	if p.err != nil {
		return Message{}, p.err
	}
	return m, nil
}

func (p *parser) frame(l Limits) face.Frame {
	var f face.Frame
	f.Index = p.num("index of a frame", 0, math.MaxInt32)
	if f.Time = time.Duration(p.long()); f.Time < 0 || f.Time > longest {
		p.wrong("time of a frame that is negative or longer than ten years")
	}
	f.Size = image.Pt(p.num("width", 1, mostSide), p.num("height", 1, mostSide))
	if f.Size.X*f.Size.Y > mostPixels {
		p.wrong("frame of %dx%d pixels", f.Size.X, f.Size.Y)
	}
	if f.Turned = p.num("turn of a frame", 0, 270); f.Turned%90 != 0 {
		p.wrong("frame that is turned by %d degrees", f.Turned)
	}
	n := p.num("number of faces", 0, min(l.Faces, MostFaces))
	for range n {
		if p.err != nil {
			return face.Frame{}
		}
		s := p.sample(f.Size, l)
		for _, other := range f.Samples {
			if s.Track == other.Track {
				p.wrong("two faces of the track %d in a frame", s.Track)
			}
		}
		f.Samples = append(f.Samples, s)
	}
	f.JPEG = p.jpeg("picture of a frame", mostFrameJPEG, mostSide)
	return f
}

func (p *parser) sample(size image.Point, l Limits) face.Sample {
	s := face.Sample{Space: l.Space.ID, Track: p.num("track", 1, math.MaxInt32)}
	side := func(name string, most int) int { return p.num(name+" of a box", 0, most) }
	s.Box.Min = image.Pt(side("left", size.X), side("top", size.Y))
	s.Box.Max = image.Pt(side("right", size.X), side("bottom", size.Y))
	if s.Box.Empty() {
		p.wrong("box that is empty")
	}
	s.Score = p.short("score", 0, 1.001)
	if n := p.num("number of landmarks", 0, landmarks); n == landmarks {
		s.Landmarks = make([]face.Point, n)
		for i := range s.Landmarks {
			s.Landmarks[i] = face.Point{
				X: p.short("landmark", -farthest, farthest),
				Y: p.short("landmark", -farthest, farthest),
			}
		}
	} else if n != 0 {
		p.wrong("face with %d landmarks; 0 or %d are allowed", n, landmarks)
	}
	if s.Held = p.flag(); s.Held && (!l.Spare || s.Landmarks != nil) {
		p.wrong("face that is held and has landmarks, or that nobody asked to hold")
	}
	if r := int(p.take(1)[0]); r < len(reasons) {
		s.Reason = reasons[r]
	} else {
		p.wrong("unknown reason %d", r)
	}
	switch n := p.num("length of a vector", 0, l.Space.Dim); {
	case p.err != nil:
	case s.Held && n > 0:
		p.wrong("vector of a face that is held")
	case !s.Held && n > 0 && s.Reason == face.NoVector,
		!s.Held && n == 0 && s.Reason != face.NoVector && s.Reason != face.TooDark:
		p.wrong("vector that is missing without a reason, or there in spite of one")
	case n > 0:
		b := p.take(4 * n)
		if p.err != nil {
			break
		}
		s.Vector = vector.Floats(b)
		if err := l.Space.Check(s.Vector); err != nil {
			p.wrong("%v", err)
		}
	}
	const large = 1e9 // far above all measures of 8-bit pictures
	s.Quality = face.Quality{
		Size:      p.num("size of a face", 0, mostSide),
		Sharpness: p.real("sharpness", 0, large), Brightness: p.real("brightness", 0, 256),
		Contrast: p.real("contrast", 0, 256), Turn: p.real("turn", -large, large),
		Roll: p.real("roll", -180, 180), Cut: p.real("cut", 0, 1), Streak: p.real("streak", 0, 1),
		Eyes: p.real("eyes", 0, 100), Mouth: p.real("mouth", 0, 100),
		Norm: p.real("norm", 0, large), Gain: p.real("gain", 0, 256),
		Noise: p.real("noise", 0, 256),
	}
	if p.flag() {
		s.Turns = new(face.Turns)
		for i := range s.Turns {
			s.Turns[i] = p.real("norm of a turned face", 0, large)
		}
		if !l.Turns || s.Held {
			p.wrong("norms of turned faces that nobody asked for")
		}
	}
	if p.flag() {
		x := p.short("liveness", 0, 1)
		s.Liveness = &x
	}
	if s.JPEG = p.jpeg("picture of a face", mostFaceJPEG, l.Picture); s.JPEG != nil && l.Picture == 0 {
		p.wrong("picture of a face that nobody asked for")
	}
	if s.Held && (s.Liveness != nil || s.JPEG != nil) {
		p.wrong("face that is held, with its liveness or a picture")
	}
	return s
}
