// SPDX-License-Identifier: Apache-2.0

package substream

import (
	"context"
	"errors"
	"image"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
)

// pretended is a camera whose faces a test decides: their sides in pixels of the small stream.
type pretended struct {
	at     time.Time
	faces  []int
	useful bool // a face that is too small in the small stream is large enough in the large one
	broken map[string]error
	opened []string
	name   string
	shape  image.Point
}

func (p *pretended) open(_ context.Context, name string, shape image.Point) (frames, error) {
	p.opened, p.shape = append(p.opened, name), shape
	if err := p.broken[name]; err != nil {
		return nil, err
	}
	p.name = name
	return p, nil
}

func (p *pretended) Next(context.Context) (f face.Frame, err error) {
	p.at = p.at.Add(time.Second)
	if err := p.broken["reading "+p.name]; err != nil {
		return f, err
	}
	scale := 1
	if p.name == "large" {
		scale = 3
	}
	f.Size = image.Pt(640, 360).Mul(scale)
	for _, side := range p.faces {
		x := face.Sample{Quality: face.Quality{Size: scale * side}}
		if x.Quality.Size < face.LeastSide || p.name == "large" && !p.useful {
			x.Reason = face.TooSmall
		}
		f.Samples = append(f.Samples, x)
	}
	return f, nil
}

func (p *pretended) Look(...int)  {}
func (p *pretended) Dropped() int { return 1 }
func (p *pretended) Close() error { return nil }

// The large stream is read while a face is too small in the small one, and for ten seconds more. If
// it does not help, or does not open, or ends, the small one goes on.
func TestSubstream(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		broken map[string]error
		useful bool
		faces  func(second int) []int
		opened string // S or L for each opening
		most   int    // seconds with the large stream
		warned int
		err    error
	}{
		"nobody":       {faces: func(int) []int { return nil }, opened: "S"},
		"a large face": {faces: func(int) []int { return []int{40} }, opened: "S"},
		"a small face": {useful: true, faces: func(int) []int { return []int{60, 20} },
			opened: "SL", most: 99},
		"it comes nearer": {useful: true, faces: func(i int) []int { return []int{20 + i} },
			opened: "SLS", most: 30},
		"twice": {useful: true, faces: func(i int) []int {
			if i%50 < 5 {
				return []int{30}
			}
			return nil
		}, opened: "SLSLS", most: 28},
		"no face in large": {faces: func(int) []int { return []int{20} }, opened: "SLSLS",
			most: 20},
		"does not open": {broken: map[string]error{"large": gone}, faces: func(int) []int {
			return []int{20}
		},
			opened: "SLS", warned: 1},
		"ends": {broken: map[string]error{"reading large": gone}, faces: func(int) []int {
			return []int{20}
		},
			opened: "SLS", most: 1, warned: 1},
		"a broken eye": {broken: map[string]error{"large": eye.ErrBroken}, faces: func(int) []int {
			return []int{20}
		},
			opened: "SL", err: eye.ErrBroken},
		"the small one ends": {broken: map[string]error{"reading small": gone},
			faces:  func(int) []int { return nil },
			opened: "S", err: gone},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pretended{at: time.Unix(0, 0), useful: c.useful, broken: c.broken}
			warned := 0
			s := &Camera{small: "small", large: "large", open: p.open, warn: func(error) {
				warned++
			},
				now: func() time.Time { return p.at }}
			err := s.read(t.Context(), false)
			large := 0
			for i := 0; i < 100 && err == nil; i++ {
				p.faces = c.faces(i)
				var f face.Frame
				if f, err = s.Next(t.Context()); f.Size.X == 1920 {
					large++
				}
			}
			opened := ""
			for _, name := range p.opened {
				opened += strings.ToUpper(name[:1])
			}
			if opened != c.opened || large > c.most || large < c.most*2/3 || warned != c.warned ||
				!errors.Is(err, c.err) {
				t.Errorf("opened %s, large for %d s, %d warnings, %v", opened, large, warned, err)
			}
			if n := strings.Count(opened, "L") + strings.Count(opened, "S"); c.err == nil &&
				c.warned == 0 &&
				s.Dropped() != n {
				t.Errorf("%d frames dropped by %d streams", s.Dropped(), n)
			}
		})
	}
}

// The small stream is opened with the shape of the large one, if that opens and is not turned.
func TestShape(t *testing.T) {
	for name, c := range map[string]struct {
		broken map[string]error
		want   image.Point
		opened int
		err    error
	}{
		"both": {nil, image.Pt(1920, 1080), 2, nil},
		"no large one": {map[string]error{"large": errors.New("gone")}, image.Point{}, 2,
			nil},
		"it ends": {map[string]error{"reading large": errors.New("gone")},
			image.Point{}, 2, nil},
		"it breaks the eye": {map[string]error{"reading large": eye.ErrBroken}, image.Point{}, 1,
			eye.ErrBroken},
		"the small one fails": {map[string]error{"small": face.ErrTimeout}, image.Pt(1920, 1080), 2,
			face.ErrTimeout},
	} {
		p := &pretended{at: time.Unix(0, 0), broken: c.broken}
		s := &Camera{small: "small", large: "large", open: p.open, warn: func(error) {},
			now: func() time.Time { return p.at }}
		err := s.begin(t.Context())
		if !errors.Is(err, c.err) || p.shape != c.want || len(p.opened) != c.opened || err == nil &&
			s.zoomed {
			t.Errorf("%s: %v, %v, opened %q, %t", name, err, p.shape, p.opened, s.zoomed)
		}
	}
}
