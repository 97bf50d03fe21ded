// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"errors"
	"image"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/quantized"
	"github.com/faceauth/faceauth/sighting"
)

// encodings returns pictures of the same unmoved still as a camera or a program may deliver it:
// compressed, brighter, darker, with the noise of a camera, and at dusk: in grey, and in about half
// of the light.
func encodings(t *testing.T, p *facedet.Picture) (all []*facedet.Picture) {
	t.Helper()
	add := func(q *facedet.Picture, err error) {
		fixture.Check(t, err)
		all = append(all, q)
	}
	for _, quality := range []int{80, 95} {
		b := fixture.Must(p.JPEG(quality))(t)
		add(facedet.DecodePicture(b))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		gain, noise float64
		grey        bool
	}{{.9, 0, false}, {.95, 0, false}, {1.05, 0, false}, {1, 2, false}, {1, 2, true},
		{.55, 2, true}} {
		m := fixture.Must(p.Image())(t)
		for i := 0; c.grey && i < len(m.Pix); i += 4 {
			y := .299*float64(m.Pix[i]) + .587*float64(m.Pix[i+1]) + .114*float64(m.Pix[i+2])
			m.Pix[i], m.Pix[i+1], m.Pix[i+2] = uint8(y), uint8(y), uint8(y)
		}
		for i, x := range m.Pix {
			if i%4 < 3 {
				m.Pix[i] = uint8(min(max(c.gain*float64(x)+c.noise*random.NormFloat64(), 0), 255))
			}
		}
		add(facedet.FromImage(m))
	}
	return all
}

// looksOf returns the looks of the faces in a picture.
func looksOf(t *testing.T, p *facedet.Picture, d facedet.Detector,
	e preprocess.Extractor) (all []sighting.Look) {
	t.Helper()
	faces := fixture.Must(d.Detect(p))(t)
	for _, f := range faces {
		aligned := fixture.Must(e.Align(p, f.Box, f.Landmarks))(t)
		x, _, err := e.Vector(aligned)
		small := fixture.Must(preprocess.Aligned(aligned))(t)
		aligned.Close()
		fixture.Check(t, err)
		q := fixture.Must(preprocess.Measure(p, f.Box, f.Landmarks))(t)
		all = append(all, sighting.Look{Vector: x, Landmarks: f.Landmarks,
			Aligned: small, Quality: q})
	}
	return all
}

// firstLook returns the first picture of a recording with one face that a login may use, and its
// look; nil if there is none.
func firstLook(t *testing.T, path string, d facedet.Detector,
	e preprocess.Extractor) (*facedet.Picture, sighting.Look) {
	t.Helper()
	src := fixture.Must(facedet.Open(t.Context(), path, facedet.Options{}))(t)
	defer src.Close()
	for {
		f, err := src.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return nil, sighting.Look{}
		}
		fixture.Check(t, err)
		looks := looksOf(t, f.Image, d, e)
		if len(looks) == 1 && preprocess.LoginGate.Check(looks[0].Quality) == "" {
			return f.Image, looks[0]
		}
		f.Close()
	}
}

// An unmoved still is one look, also if the camera changes to grey at dusk and its vector is far
// from the first one. The distance was chosen on these stills as a camera delivers them by day: .16
// on att and faces94_subset, and .2 after a still of fast_videos had moved by .17.
func TestStillIsOneLook(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	stills, twice := 0, make(map[string]bool)
	for _, set := range []string{"att/s*", "faces94_subset/*", "vidtimit_rot/*", "fast_videos/*"} {
		var far []float64 // of each still, the largest distance of an encoding
		for _, path := range fixture.Some(paths(t, set), 6) {
			p, first := firstLook(t, path, d, e)
			if p == nil {
				continue
			}
			largest := 0.
			for _, q := range encodings(t, p) {
				for _, x := range looksOf(t, q, d, e) {
					largest = max(largest, quantized.Distance(x.Vector, first.Vector, 1))
					looks, isNew := sighting.NewLook(e.Space(), x, []sighting.Look{first})
					if isNew && len(looks) > 0 {
						twice[path] = true
					}
				}
				q.Close()
			}
			p.Close()
			far = append(far, largest)
		}
		slices.Sort(far)
		t.Logf("%s: %d stills: an encoding is at most %.3f away, median %.3f", set, len(far),
			far[len(far)-1], far[len(far)/2])
		stills += len(far)
	}
	t.Logf("two looks: %v, of %d stills", slices.Collect(maps.Keys(twice)), stills)
	if len(twice)*20 > stills {
		t.Errorf("%d of %d stills make two looks", len(twice), stills)
	}
}

// lights are ways in which the light of a pixel of level v, from 0 to 1, changes: in part from 0
// to 1. Blue is 2, green 1, red 0.
var lights = map[string]func(v, part float64, colour int) float64{
	"half":     func(v, part float64, _ int) float64 { return v * (1 - .5*part) },
	"quarter":  func(v, part float64, _ int) float64 { return v * (1 - .75*part) },
	"brighter": func(v, part float64, _ int) float64 { return v * (1 + .4*part) },
	"gamma":    func(v, part float64, _ int) float64 { return math.Pow(v, 1+.6*part) },
	"light":    func(v, part float64, _ int) float64 { return math.Pow(v, 1-.4*part) },
	"flat":     func(v, part float64, _ int) float64 { return .5 + (v-.5)*(1-.4*part) },
	"contrast": func(v, part float64, _ int) float64 { return .5 + (v-.5)*(1+.4*part) },
	"haze":     func(v, part float64, _ int) float64 { return v*(1-.5*part) + .3*part },
	"warm":     func(v, part float64, c int) float64 { return v * (1 + .25*part*float64(1-c)) },
	"cold":     func(v, part float64, c int) float64 { return v * (1 - .25*part*float64(1-c)) },
	"dusk":     nil, // grey, and half of the light
	"grey":     nil,
}

// courses are how the light changes over a film, whose time goes from 0 to 1.
var courses = map[string]func(time float64) float64{
	"ramp":    func(time float64) float64 { return time },
	"step":    func(time float64) float64 { return math.Round(time) },
	"stairs":  func(time float64) float64 { return math.Floor(4*time) / 4 },
	"flicker": func(time float64) float64 { return .5 + .5*math.Sin(25*time) },
}

// lit returns a picture in a light, as a camera with noise delivers it in JPEG of some quality.
func lit(t *testing.T, m *image.RGBA, light string, part float64, r *rand.Rand) *facedet.Picture {
	t.Helper()
	m = &image.RGBA{Pix: slices.Clone(m.Pix), Stride: m.Stride, Rect: m.Rect}
	for i := 0; i < len(m.Pix); i += 4 {
		y := .299*float64(m.Pix[i]) + .587*float64(m.Pix[i+1]) + .114*float64(m.Pix[i+2])
		for c := range 3 {
			v := float64(m.Pix[i+c]) / 255
			switch change := lights[light]; {
			case change != nil:
				v = change(v, part, c)
			default:
				v += part * (y/255 - v)
				if light == "dusk" {
					v *= 1 - .5*part
				}
			}
			m.Pix[i+c] = uint8(min(max(255*v+3*r.NormFloat64(), 0), 255))
		}
	}
	p := fixture.Must(facedet.FromImage(m))(t)
	defer p.Close()
	b := fixture.Must(p.JPEG(95 - int(40*part)))(t) // what moves less is compressed more
	return fixture.Must(facedet.DecodePicture(b))(t)
}

// A still is never confirmed, however its light changes: twelve changes in four courses. Short,
// it is one still, and one course.
func TestLightIsNoLook(t *testing.T) {
	d, e := network(t)
	const frames = 12
	sets := []string{"vidtimit_rot/p0", "faces94_subset/04"}
	if testing.Short() {
		sets = sets[1:]
	}
	for _, set := range sets {
		path := paths(t, set)[0]
		p, enrolled := firstLook(t, path, d, e)
		still := fixture.Must(p.Image())(t)
		p.Close()
		for light := range lights {
			for course, part := range courses {
				if testing.Short() && course != "step" {
					continue
				}
				t.Run(filepath.Join(set, light, course), func(t *testing.T) {
					l := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
					fixture.Check(t, l.Label(enrolled.Vector, 1))
					w := sighting.NewWatcher(l)
					film := &loop{last: frames}
					r := rand.New(rand.NewPCG(1, 2)) // the films are the same in each run
					for n := range frames {
						film.images = append(film.images, lit(t, still, light,
							part(float64(n)/(frames-1)), r))
					}
					s := pipeline.New(film, d, e, pipeline.Options{Gate: preprocess.LearnGate})
					for f, err := range face.Frames(t.Context(), s) {
						fixture.Check(t, err)
						at := time.Duration(f.Index) * 100 * time.Millisecond
						for _, x := range fixture.Must(w.See(at, f.Samples, nil))(t) {
							if x.Belief.Trust == sighting.Confirmed {
								t.Errorf("confirmed in frame %d", f.Index)
							}
						}
					}
					for _, p := range film.images {
						p.Close()
					}
				})
			}
		}
	}
}

// Live people, who turn their heads or talk, soon show three looks.
func TestThreeLooks(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	for _, set := range []string{"vidtimit_rot/*", "fast_videos/*"} {
		var third []float64 // from every second on, the time until a login has seen three looks
		for _, path := range fixture.Some(paths(t, set), 3) {
			var looks []sighting.Look
			var times []time.Duration
			src := fixture.Must(facedet.Open(t.Context(), path, facedet.Options{}))(t)
			stream := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LoginGate})
			for f, err := range face.Frames(t.Context(), stream) {
				fixture.Check(t, err)
				if len(f.Samples) == 1 && f.Samples[0].Reason == "" {
					looks, times = append(looks, sighting.LookOf(f.Samples[0])),
						append(times, f.Time)
				}
				if f.Time >= 6*time.Second {
					break
				}
			}
			src.Close()
			for next, i := time.Duration(0), 0; i < len(times); i++ {
				if times[i] < next {
					continue
				}
				next = times[i] + time.Second
				var counted []sighting.Look
				for j := i; j < len(times) && len(counted) < 3; j++ {
					still, isNew := sighting.NewLook(e.Space(), looks[j], counted)
					if !isNew {
						continue
					}
					if counted = append(still, looks[j]); len(counted) == 3 {
						third = append(third, (times[j] - times[i]).Seconds())
					}
				}
			}
		}
		slices.Sort(third)
		last := third[len(third)-1]
		t.Logf("%s: the third look of %d: median %.2f s, 95 in 100 %.2f s, last %.2f s", set,
			len(third), third[len(third)/2], third[len(third)*95/100], last)
		if last > 5 {
			t.Errorf("%s: a live person takes %.2f s to show three looks", set, last)
		}
	}
}

// paths returns those of a set of recordings of faces.
func paths(t *testing.T, set string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces"), set))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}
