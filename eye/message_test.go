// SPDX-License-Identifier: Apache-2.0

package eye_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/wire"
)

// space has few values, so that a frame is small.
var space = face.Space{ID: "test", Dim: 4, Scale: 1, Look: .2, Unit: true}

var limits = wire.Limits{Space: space, Faces: 8, Picture: 112, Turns: true}

func jpegOf(t testing.TB, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	fixture.Check(t, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, side, side)), nil))
	return b.Bytes()
}

// truth is a valid frame of an wire.
func truth(t testing.TB) wire.Message {
	points := make([]face.Point, 68)
	for i := range points {
		points[i] = face.Point{X: float32(i), Y: 20}
	}
	live := float32(.5)
	return wire.Message{Kind: wire.Image, Count: face.Count{Declared: 10, Read: 3, Dropped: 1},
		Frame: face.Frame{
			Index: 2, Time: 80 * time.Millisecond, Size: image.Pt(320, 240),
			Samples: []face.Sample{{
				Track: 1, Box: image.Rect(10, 20, 110, 140), Score: .9, Landmarks: points,
				Space: "test", Vector: []float32{0, 1, 0, 0}, Aligned: alignedFace(),
				Quality: face.Quality{Size: 100, Sharpness: 20, Brightness: 100, Contrast: 30,
					Colour: .2, Turn: -.2, Roll: -12,
					Cut: .1, Streak: .3, Eyes: .2, Mouth: .3, Gain: 2, Noise: .7, Norm: 3.7},
				Liveness: &live, JPEG: jpegOf(t, 112),
			}, {
				Track: 2, Box: image.Rect(200, 20, 210, 30), Score: 1, Space: "test",
				Reason: face.NoVector, Quality: face.Quality{Size: 10},
			}},
		}}
}

// alignedFace returns an aligned face.
func alignedFace() []byte { return make([]byte, face.AlignedSide*face.AlignedSide) }

// held is a valid held face of an wire.
func held(s face.Sample) face.Sample {
	s.Held, s.Landmarks, s.Vector, s.Aligned = true, nil, nil, nil
	s.Liveness, s.JPEG, s.Turns = nil, nil, nil
	return s
}

// A face may be held only if this was asked for, and then it has none of the values that would be
// new.
func TestHeld(t *testing.T) {
	spare := limits
	spare.Spare = true
	for _, c := range []struct {
		what   string
		limits wire.Limits
		change func(s *face.Sample)
		want   string
	}{
		{"truth", spare, func(*face.Sample) {}, ""},
		{"poor", spare, func(s *face.Sample) { s.Reason = face.Blurred }, ""},
		{"without a vector before", spare, func(s *face.Sample) { s.Reason = face.NoVector }, ""},
		{"unasked", limits, func(*face.Sample) {}, "nobody asked for it"},
		{"landmarks", spare, func(s *face.Sample) { s.Landmarks = make([]face.Point, 68) },
			"held and has"},
		{"vector", spare, func(s *face.Sample) { s.Vector = []float32{0, 1, 0, 0} },
			"held and has"},
		{"aligned", spare, func(s *face.Sample) { s.Aligned = alignedFace() }, "held and has"},
		{"liveness", spare, func(s *face.Sample) { x := float32(1); s.Liveness = &x },
			"held and has"},
		{"turned", spare, func(s *face.Sample) { s.Turns = new(face.Turns) }, "held and has"},
		{"picture", spare, func(s *face.Sample) { s.JPEG = jpegOf(t, 20) }, "held and has"},
	} {
		m := truth(t)
		m.Frame.Samples[0] = held(m.Frame.Samples[0])
		c.change(&m.Frame.Samples[0])
		got, err := wire.Read(bytes.NewReader(wire.Append(nil, m)), c.limits)
		switch {
		case c.want == "" && (err != nil || !reflect.DeepEqual(got, m)):
			t.Errorf("%s: %+v, %v", c.what, got, err)
		case c.want != "" && (!errors.Is(err, wire.ErrRules) ||
			!strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	turned := truth(t)
	turned.Frame.Turned, turned.Frame.Samples[0].Turns = 90, &face.Turns{3.7, 2, 2.2, 1.9}
	dark := truth(t)
	dark.Frame.Samples[1].Reason, dark.Frame.Samples[1].Quality.Gain = face.TooDark, 10
	for _, m := range []wire.Message{
		truth(t), turned, dark,
		{Kind: wire.Ready, Report: wire.Report{Version: wire.Version}, Space: "test"},
		{Kind: wire.Opened, Report: wire.Report{Version: wire.Version, Landlock: 7, Seccomp: true},
			Count: face.Count{Declared: -1}},
		{Kind: wire.Progress, Count: face.Count{Declared: 4, Read: 1}, Wait: time.Minute},
		{Kind: wire.Damaged, Text: "a.jpg: it is none"},
		{Kind: wire.End, Count: face.Count{Declared: 4, Read: 3, Damaged: 1}},
		wire.Failure(face.ErrNotVideo),
	} {
		got, err := wire.Read(bytes.NewReader(wire.Append(nil, m)), limits)
		if err != nil {
			t.Errorf("kind %d: %v", m.Kind, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("kind %d: read %+v, want %+v", m.Kind, got, m)
		}
	}
}

// lies are invalid messages of an eye, by their fault.
var lies = []struct {
	what string
	lie  func(t testing.TB, m *wire.Message)
	want string
}{
	{"declared", func(_ testing.TB, m *wire.Message) { m.Count.Declared = -2 },
		"declared frames outside"},
	{"read", func(_ testing.TB, m *wire.Message) { m.Count.Read = -1 }, "frames read outside"},
	{"dropped", func(_ testing.TB, m *wire.Message) { m.Count.Dropped = -1 },
		"frames dropped outside"},
	{"damaged", func(_ testing.TB, m *wire.Message) { m.Count.Damaged = -1 },
		"damaged files outside"},
	{"index", func(_ testing.TB, m *wire.Message) { m.Frame.Index = -1 },
		"index of a frame outside"},
	{"time", func(_ testing.TB, m *wire.Message) { m.Frame.Time = -1 },
		"time of a frame that is negative"},
	{"far time", func(_ testing.TB, m *wire.Message) { m.Frame.Time = math.MaxInt64 },
		"longer than ten years"},
	{"no width", func(_ testing.TB, m *wire.Message) { m.Frame.Size.X = 0 }, "width outside"},
	{"no height", func(_ testing.TB, m *wire.Message) { m.Frame.Size.Y = 0 }, "height outside"},
	{"width", func(_ testing.TB, m *wire.Message) { m.Frame.Size.X = 1 << 20 }, "width outside"},
	{"pixels", func(_ testing.TB, m *wire.Message) { m.Frame.Size = image.Pt(1<<16, 1<<16) },
		"frame of 65536x65536 pixels"},
	{"faces", func(_ testing.TB, m *wire.Message) {
		for i := range 9 {
			s := m.Frame.Samples[0]
			s.Track = 10 + i
			m.Frame.Samples = append(m.Frame.Samples, s)
		}
	}, "number of faces outside"},
	{"track", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Track = 0 }, "track outside"},
	{"same track", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Track = 2 },
		"two faces of the track 2"},
	{"left", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Box.Min.X = -1 },
		"outside the frame"},
	{"right", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Box.Max.X = 321 },
		"outside the frame"},
	{"bottom", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Box.Max.Y = 241 },
		"outside the frame"},
	{"another space", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Space = "other" },
		"another feature space than test"},
	{"empty box", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Box.Max.X = 10 },
		"box that is empty"},
	{"score", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Score = 2 }, "score outside"},
	{"score NaN", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Score = nan },
		"score outside"},
	{"67 landmarks", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Landmarks = m.Frame.Samples[0].Landmarks[1:]
	}, "536 bytes of landmarks"},
	{"69 landmarks", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Landmarks = append(m.Frame.Samples[0].Landmarks, face.Point{})
	}, "552 bytes of landmarks"},
	{"a row of an aligned face is missing", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Aligned = alignedFace()[face.AlignedSide:]
	}, "aligned face of 3080 bytes"},
	{"an aligned face without a vector", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[1].Aligned = alignedFace()
	}, "beside a vector"},
	{"landmark NaN", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Landmarks[3].X = nan },
		"landmark outside"},
	{"landmark infinite", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Landmarks[3].Y = inf
	},
		"landmark outside"},
	{"vector NaN", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Vector[2] = nan },
		"not a finite number"},
	{
		"vector infinite",
		func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Vector[2] = inf },
		"not a finite number",
	},
	{"vector of zeros", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Vector = make([]float32, 4)
	},
		"not of unit length"},
	{"long vector", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Vector = make([]float32, 5)
	},
		"vector of 20 bytes"},
	{"short vector", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Vector = []float32{1, 0, 0}
	},
		"vector of 12 bytes"},
	{
		"vector not of unit length",
		func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Vector[0] = 3 },
		"unit length",
	},
	{"no vector without a reason", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[1].Reason = ""
	},
		"missing without a reason"},
	{"vector in spite of a reason",
		func(_ testing.TB, m *wire.Message) { m.Frame.Samples[1].Vector = []float32{0, 1, 0, 0} },
		"a reason why there is none"},
	{"size", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Quality.Size = -1 },
		"size of a face outside"},
	{"sharpness", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Quality.Sharpness = math.NaN()
	},
		"sharpness outside"},
	{"brightness", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Quality.Brightness = 1000
	},
		"brightness outside"},
	{
		"contrast",
		func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Quality.Contrast = -1 },
		"contrast outside",
	},
	{"turn", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Quality.Turn = math.Inf(1) },
		"turn outside"},
	{"liveness", func(_ testing.TB, m *wire.Message) {
		x := float32(1.5)
		m.Frame.Samples[0].Liveness = &x
	},
		"liveness outside"},
	{"picture that is none", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].JPEG = []byte("<script>")
	},
		"not a JPEG"},
	{"picture too large", func(t testing.TB, m *wire.Message) {
		m.Frame.Samples[0].JPEG = jpegOf(t, 113)
	},
		"113x113 pixels"},
	{"turn", func(_ testing.TB, m *wire.Message) { m.Frame.Turned = 45 },
		"frame that is turned by 45 degrees"},
	{"far turn", func(_ testing.TB, m *wire.Message) { m.Frame.Turned = 360 }, "turned by 360"},
	{"pulse", func(_ testing.TB, m *wire.Message) { m.Frame.Pulse = 300 }, "pulse outside 0 to 256"},
	{"norm", func(_ testing.TB, m *wire.Message) { m.Frame.Samples[0].Quality.Norm = -1 },
		"norm outside"},
	{"norm without end", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Quality.Norm = math.Inf(1)
	},
		"norm outside"},
	{"norm that is none", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Quality.Norm = math.NaN()
	},
		"norm outside"},
	{"norm of a turned face", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].Turns = &face.Turns{2, 2, math.NaN(), 2}
	},
		"norm of a turned face outside"},
	{"picture too long", func(_ testing.TB, m *wire.Message) {
		m.Frame.Samples[0].JPEG = make([]byte, 1<<17)
	},
		"length of the picture of a face"},
	{"picture of the frame", func(_ testing.TB, m *wire.Message) { m.Frame.JPEG = []byte("no") },
		"not a JPEG"},
	{"text", func(_ testing.TB, m *wire.Message) {
		*m = wire.Message{Kind: wire.Damaged, Text: "\x1b[2J"}
	},
		"cannot be printed"},
	{"long text", func(_ testing.TB, m *wire.Message) {
		*m = wire.Message{Kind: wire.Damaged, Text: strings.Repeat("a", 1025)}
	}, "length of the text outside"},
	{"code", func(_ testing.TB, m *wire.Message) { *m = wire.Message{Kind: wire.Failed, Code: 200} },
		"unknown code 200"},
	{"kind", func(_ testing.TB, m *wire.Message) { m.Kind = 99 }, "unknown kind 99"},
	{"wait", func(_ testing.TB, m *wire.Message) { *m = wire.Message{Kind: wire.Progress, Wait: -1} },
		"time to wait"},
}

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func TestLies(t *testing.T) {
	for _, c := range lies {
		m := truth(t)
		c.lie(t, &m)
		_, err := wire.Read(bytes.NewReader(wire.Append(nil, m)), limits)
		if !errors.Is(err, wire.ErrRules) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// What was not asked for is refused, though it would be valid in another answer.
func TestUnasked(t *testing.T) {
	m := truth(t)
	m.Frame.Samples[0].Turns = &face.Turns{3, 2, 2, 2}
	l := limits
	l.Turns = false
	_, err := wire.Read(bytes.NewReader(wire.Append(nil, m)), l)
	if !errors.Is(err, wire.ErrRules) || !strings.Contains(err.Error(), "nobody asked for") {
		t.Errorf("norms of turned faces: %v", err)
	}
}

// An announced length takes no memory before its data arrives. A length that no message can have is
// refused at once.
func TestLengths(t *testing.T) {
	head := func(k wire.Kind, n uint32) []byte {
		return binary.LittleEndian.AppendUint32([]byte{byte(k)}, n)
	}
	if _, err := wire.Read(bytes.NewReader(head(wire.Image, math.MaxUint32)), limits); !errors.Is(err,
		wire.ErrRules) {
		t.Errorf("a message of 4 GiB: %v", err)
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.Read(bytes.NewReader(head(wire.Image, 8<<20)), limits); !errors.Is(err,
				io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 1<<20 {
		t.Errorf("8 MiB that do not come cost %d bytes", allocated)
	}
	whole := wire.Append(nil, truth(t))
	for n := range len(whole) {
		if _, err := wire.Read(bytes.NewReader(whole[:n]), limits); err == nil {
			t.Fatalf("the first %d of %d bytes are a message", n, len(whole))
		}
	}
	longer := append(bytes.Clone(whole), 0)
	binary.LittleEndian.PutUint32(longer[1:], uint32(len(longer)-5))
	if _, err := wire.Read(bytes.NewReader(longer), limits); !errors.Is(err, wire.ErrRules) {
		t.Errorf("a byte after the end: %v", err)
	}
}

// Every accepted message keeps the rules, and is written again as it was read.
func FuzzRead(f *testing.F) {
	f.Add(wire.Append(nil, truth(f)))
	for _, c := range lies {
		m := truth(f)
		c.lie(f, &m)
		if b := wire.Append(nil, m); len(b) < 64<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.Read(bytes.NewReader(b), limits)
		if err != nil {
			return
		}
		if len(m.Frame.Samples) > limits.Faces {
			t.Error("too many faces")
		}
		for _, s := range m.Frame.Samples {
			if s.Vector != nil && space.Check(s.Vector) != nil {
				t.Error("a vector that is none")
			}
			if !s.Box.In(image.Rectangle{Max: m.Frame.Size}) || len(s.Landmarks) != 0 &&
				len(s.Landmarks) != 68 {
				t.Error("a face that is none")
			}
		}
		again, err := wire.Read(bytes.NewReader(wire.Append(nil, m)), limits)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("not the same again: %v", err)
		}
	})
}
