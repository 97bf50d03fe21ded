// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// turnedBy returns a source of pictures that are turned.
func turnedBy(t testing.TB, images []*facedet.Picture, degrees int) *loop {
	t.Helper()
	l := &loop{last: len(images)}
	for _, img := range images {
		turned := fixture.Must(img.Turn(degrees))(t)
		t.Cleanup(func() { turned.Close() })
		l.images = append(l.images, turned)
	}
	return l
}

// enrolmentTurns returns the sums of the norms of the first four faces that may be labelled.
func enrolmentTurns(t testing.TB, s facedet.Source, d facedet.Detector,
	e preprocess.Extractor) (sums face.Turns,
	faces, turned int) {
	t.Helper()
	p := pipeline.New(s, d, e, pipeline.Options{Gate: preprocess.EnrolGate, Turns: true})
	for faces < 4 {
		f, err := p.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		fixture.Check(t, err)
		if len(f.Samples) == 1 && f.Samples[0].Turns != nil {
			sums.Add(*f.Samples[0].Turns)
			faces, turned = faces+1, f.Turned
		}
	}
	return sums, faces, turned
}

// An enrolment from a turned camera is refused with the right angle, and an upright one is not.
// Faces that lie on their side may have norms that are as great when they stand on their head: then
// both angles are named.
func TestTurnedEnrolment(t *testing.T) {
	d, e := network(t)
	people := []string{"p0", "p3"}
	if !testing.Short() {
		people = []string{"p0", "p1", "p2", "p3", "p4", "p5"}
	}
	for _, name := range people {
		images := load(t, fixture.Recordings(t, "faces/vidtimit_rot/"+name))[:30]
		for _, degrees := range []int{0, 90, 180, 270} {
			sums, faces, turned := enrolmentTurns(t, turnedBy(t, images, degrees), d, e)
			t.Logf("%s turned by %d: %d faces, norms %.1f", name, degrees, faces, sums)
			want := []string{"<nil>"}
			if right := 360 - degrees; degrees > 0 && faces > 0 {
				try := fmt.Sprintf("the camera seems to be turned; try --rotate %d", right)
				other := fmt.Sprintf("the camera seems to be turned; try --rotate %d or %d",
					(right+180)%360, right)
				want = []string{try, fmt.Sprint(try, " or ", (right+180)%360), other}
			}
			if got := fmt.Sprint(sums.Check(turned)); !slices.Contains(want, got) {
				t.Errorf("%s turned by %d: %s, want one of %q", name, degrees, got, want)
			}
			if degrees == 0 && faces < 4 {
				t.Errorf("%s: %d faces of an upright recording may be labelled", name, faces)
			}
		}
	}
}

// The first faces decide how a recording is turned, and every frame arrives once, in order and
// upright.
func TestUpright(t *testing.T) {
	d, e := network(t)
	people := []string{"p0", "p3"}
	if !testing.Short() {
		people = []string{"p0", "p1", "p2", "p3", "p4", "p5"}
	}
	for _, name := range people {
		images := load(t, fixture.Recordings(t, "faces/vidtimit_rot/"+name))[:12]
		for _, degrees := range []int{0, 90, 180, 270} {
			src := pipeline.Upright(turnedBy(t, images, degrees), d, e, face.Auto)
			for i := range images {
				f := fixture.Must(src.Next(context.Background()))(t)
				if f.Index != i || f.Turned != (360-degrees)%360 ||
					f.Image.Size() != images[i].Size() {
					t.Fatalf("%s turned by %d: frame %d of %v is turned by %d at %d", name, degrees,
						f.Index, f.Image.Size(), f.Turned, i)
				}
				f.Close()
			}
			if _, err := src.Next(context.Background()); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v", err)
			}
			src.Close()
		}
	}
}

// A source with too few faces stays as it is, and a fixed turn needs no faces.
func TestUprightWithoutDecision(t *testing.T) {
	d, e := network(t)
	images := load(t, fixture.Recordings(t, "faces/vidtimit_rot/p0"))
	blank := fixture.Must(facedet.FromBGR(images[0].Size(),
		make([]byte, 3*images[0].Size().X*images[0].Size().Y)))(t)
	defer blank.Close()
	nobody := make([]*facedet.Picture, 12)
	for i := range nobody {
		nobody[i] = blank
	}
	for _, test := range []struct {
		name   string
		images []*facedet.Picture
		how    face.Rotation
		want   int
	}{
		{"four faces", images[:4], face.Auto, 0},
		{"nobody", nobody, face.Auto, 0},
		{"faces that are rare", append(append(images[:1:1], nobody...), images[:4]...), face.Auto,
			180},
		{"fixed", nobody, "90", 90},
		{"as they are", images[:6], "0", 0},
	} {
		src := pipeline.Upright(turnedBy(t, test.images, 180), d, e, test.how)
		last := -1
		for i := range test.images {
			f := fixture.Must(src.Next(context.Background()))(t)
			if f.Index != i {
				t.Errorf("%s: frame %d at %d", test.name, f.Index, i)
			}
			last = f.Turned
			f.Close()
		}
		src.Close()
		if last != test.want {
			t.Errorf("%s: the last frame is turned by %d, want %d", test.name, last, test.want)
		}
	}
}

// counting counts the searches of a detector.
type counting struct {
	facedet.Detector
	searches int
}

func (c *counting) Detect(img *facedet.Picture) ([]facedet.Face, error) {
	c.searches++
	return c.Detector.Detect(img)
}

// stills are photographs.
type stills struct{ *loop }

func (s stills) Next(ctx context.Context) (*facedet.Frame, error) {
	f, err := s.loop.Next(ctx)
	if err == nil {
		f.Still = true
	}
	return f, err
}

// Of a photograph with a clear upright face no other turn is tried, and a large one is turned as a
// small one is.
func TestUprightPhotograph(t *testing.T) {
	d, e := network(t)
	face := load(t, fixture.Recordings(t, "faces/vidtimit_rot/p0"))[0]
	large := fixture.Must(face.Resize(face.Size().Mul(8)))(t)
	defer large.Close()
	for _, test := range []struct {
		picture                   *facedet.Picture
		degrees, turned, searches int
	}{{face, 0, 0, 1}, {large, 0, 0, 1}, {face, 90, 270, 4}, {large, 180, 180, 4}} {
		counted := &counting{Detector: d}
		src := stills{turnedBy(t, []*facedet.Picture{test.picture}, test.degrees)}
		f := fixture.Must(pipeline.Upright(src, counted, e, "auto").Next(t.Context()))(t)
		if f.Turned != test.turned || counted.searches != test.searches {
			t.Errorf("%v turned by %d: %d after %d searches", test.picture.Size(), test.degrees,
				f.Turned, counted.searches)
		}
		f.Close()
	}
}

// An empty room is searched in four turns once, and again when something moves.
func TestUprightEmptyRoom(t *testing.T) {
	d, e := network(t)
	pixels := make([]byte, 3*320*240)
	blank := fixture.Must(facedet.FromBGR(image.Pt(320, 240), pixels))(t)
	defer blank.Close()
	for i := range pixels[:len(pixels)/2] {
		pixels[i] = 200
	}
	moved := fixture.Must(facedet.FromBGR(image.Pt(320, 240), pixels))(t)
	defer moved.Close()
	room := make([]*facedet.Picture, 40)
	for i := range room {
		if room[i] = blank; i == 30 {
			room[i] = moved
		}
	}
	c := &counting{Detector: d}
	src := pipeline.Upright(&loop{images: room, last: len(room)}, c, e, face.Auto)
	defer src.Close()
	for i := range room {
		f := fixture.Must(src.Next(context.Background()))(t)
		f.Close()
		if want := map[bool]int{false: 4, true: 8}[i >= 30]; i <= 30 && c.searches != want {
			t.Fatalf("%d searches after frame %d, want %d", c.searches, i, want)
		}
	}
	if c.searches > 12 {
		t.Errorf("%d searches", c.searches)
	}
}

// strict is an extractor whose space has a greater least norm.
type strict struct {
	preprocess.Extractor
	least float64
}

func (s strict) Space() face.Space {
	space := s.Extractor.Space()
	space.LearnNorm = s.least
	return space
}

// A face below the least norm of the space has a reason at every gate, so nothing is learned from
// it.
func TestUnclear(t *testing.T) {
	d, e := network(t)
	images := load(t, fixture.Recordings(t, "faces/vidtimit_rot/p0"))[:1]
	for name, gate := range map[string]preprocess.Gate{"learn": preprocess.LearnGate,
		"login": preprocess.LoginGate,
		"enrol": preprocess.EnrolGate} {
		for least, want := range map[float64]face.Reason{0: "", 1: "", 9: face.Unclear} {
			s := strict{e, least}
			p := pipeline.New(&loop{images: images, last: 1}, d, s, pipeline.Options{Gate: gate})
			f, err := p.Next(context.Background())
			if err != nil || len(f.Samples) != 1 {
				t.Fatalf("%d faces, %v", len(f.Samples), err)
			}
			if x := f.Samples[0]; x.Reason != want || x.Vector == nil {
				t.Errorf("%s, least norm %g: norm %.2f, reason %q, want %q", name, least,
					x.Quality.Norm, x.Reason, want)
			}
		}
	}
}

// photographs is a source of pictures that do not follow one another.
type photographs struct {
	*loop
	halved bool // they were read at half their size
}

func (p photographs) Next(ctx context.Context) (*facedet.Frame, error) {
	f, err := p.loop.Next(ctx)
	if err == nil {
		f.Still = true
		if p.halved {
			f.Full = f.Image.Size().Mul(2)
		}
	}
	return f, err
}

// Each photograph is turned on its own, and has tracks of its own. In one that was read at half its
// size, places are those in the file.
func TestPhotographs(t *testing.T) {
	d, e := network(t)
	images := load(t, fixture.Recordings(t, "faces/vidtimit_rot/p0"))[:4]
	all := &loop{last: len(images)}
	for i, img := range images {
		turned := fixture.Must(img.Turn(90 * i))(t)
		defer turned.Close()
		all.images = append(all.images, turned)
	}
	src := pipeline.Upright(photographs{loop: all}, d, e, face.Auto)
	o := pipeline.Options{Gate: preprocess.LearnGate, Spare: true}
	p := pipeline.New(src, d, e, o)
	var frames []face.Frame
	for i := range images {
		f := fixture.Must(p.Next(context.Background()))(t)
		frames = append(frames, f)
		if f.Turned != (360-90*i)%360 || !f.Still || len(f.Samples) != 1 ||
			f.Samples[0].Track != i+1 ||
			f.Samples[0].Held {
			t.Errorf("picture %d: turned by %d, still %t, %d faces", i, f.Turned, f.Still,
				len(f.Samples))
		}
	}
	all.next = 1
	large := pipeline.Upright(photographs{all, true}, d, e, face.Auto)
	f := fixture.Must(pipeline.New(large, d, e, o).Next(t.Context()))(t)
	s, want := f.Samples[0], frames[1].Samples[0]
	if f.Size != frames[1].Size.Mul(2) || s.Box.Min != want.Box.Min.Mul(2) ||
		s.Box.Size() != want.Box.Size().Mul(2) || s.Landmarks[9].X != 2*want.Landmarks[9].X ||
		s.Quality != want.Quality {
		t.Errorf("read at half of %v: %v %v, want twice %v", f.Size, s.Box, s.Landmarks[9],
			want.Box)
	}
	all.next = 1
	p = pipeline.New(src, d, e, pipeline.Options{NoFaces: true, Width: 99,
		Frame: func() bool { return true }})
	f = fixture.Must(p.Next(t.Context()))(t)
	if len(f.Samples) > 0 || len(f.JPEG) == 0 || f.Turned != 270 {
		t.Errorf("of the picture alone there are %d faces, and %d bytes", len(f.Samples),
			len(f.JPEG))
	}
}

// The photographs of a page lie in all directions: each face is taken upright, and its box is that
// on the page.
func TestAlbumPage(t *testing.T) {
	d, e := network(t)
	one := load(t, fixture.Recordings(t, "faces/vidtimit_rot/p0"))[12]
	const side = 512
	pixels := make([]byte, 3*4*side*side)
	places := map[int]image.Rectangle{}
	for i := range 4 {
		img := fixture.Must(one.Turn(90 * i))(t)
		size := img.Size()
		at := image.Pt(i%2*side, i/2*side)
		places[i] = image.Rectangle{Min: at, Max: at.Add(size)}
		part := fixture.Must(img.BGR())(t)
		for y := range size.Y {
			copy(pixels[3*((at.Y+y)*2*side+at.X):], part[3*y*size.X:3*(y+1)*size.X])
		}
		img.Close()
	}
	page := fixture.Must(facedet.FromBGR(image.Pt(2*side, 2*side), pixels))(t)
	defer page.Close()
	src := photographs{loop: &loop{images: []*facedet.Picture{page}, last: 1}}
	p := pipeline.New(src, d, e, pipeline.Options{Righted: true})
	f := fixture.Must(p.Next(t.Context()))(t)
	right := map[int]bool{}
	for i, place := range places {
		for _, s := range f.Samples {
			if s.Box.In(place) && s.Vector != nil && s.Quality.Norm >= e.Space().ClearNorm {
				right[i] = true
			}
		}
	}
	if len(right) < 4 {
		t.Errorf("%v are upright, of %d faces", right, len(f.Samples))
	}
}
