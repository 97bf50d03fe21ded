// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
)

// Actor is a made-up face in a frame. Only Who is needed.
type Actor struct {
	// decides the vector and the picture; the name that the face is enrolled by may differ
	Who string `json:"who"`
	// Box is the face in pixels. By default it is in the middle of the frame, and 120 pixels wide.
	Box image.Rectangle `json:"box"`
	// View is how the person looks: faces of one view are one look, those of two views are not.
	View     int         `json:"view,omitempty"`
	Reason   face.Reason `json:"reason,omitempty"` // why the gate refuses the face
	Turn     float64     `json:"turn,omitempty"`   // see [face.Pose]
	Nod      float64     `json:"nod,omitempty"`    // the same, less .5
	Shut     bool        `json:"shut,omitempty"`   // the eyes
	Lifeless bool        `json:"lifeless,omitempty"`
}

// Film is a made-up recording: the actors of each frame.
type Film struct {
	FPS    float64
	Frames [][]Actor

	pictures []string // the files, if it is made of pictures
}

// size is that of every made-up frame.
var size = image.Pt(320, 240)

// filmed begins the file of a film. A line with the number of frames and their rate follows, and a
// line for each frame.
const filmed = "faceauth made-up film\n"

// Alone returns a film of 15 frames a second in which one person moves a little.
func Alone(who string, frames int) Film {
	f := Film{FPS: 15}
	for i := range frames {
		f.Frames = append(f.Frames, []Actor{Moving(who, .5, i)})
	}
	return f
}

// Demo writes films into a folder, named as the recordings of faceauth demo: alice.avi and bob.avi
// show one person each, and recording.avi shows alice, somebody unknown, bob, and then alice beside
// the stranger and beside bob.
func Demo(folder string) error {
	var all Film
	all.FPS = 15
	for i := range 480 {
		var shot []Actor
		switch {
		case i < 120:
			shot = []Actor{Moving("alice", .5, i)}
		case i < 240:
			shot = []Actor{Moving("stranger", .5, i)}
		case i < 360:
			shot = []Actor{Moving("bob", .5, i)}
		case i < 420:
			shot = []Actor{Moving("alice", .25, i), Moving("stranger", .75, i)}
		default:
			shot = []Actor{Moving("bob", .25, i), Moving("alice", .75, i)}
		}
		all.Frames = append(all.Frames, shot)
	}
	return errors.Join(Alone("alice", 48).Write(filepath.Join(folder, "alice.avi")),
		Alone("bob", 48).Write(filepath.Join(folder, "bob.avi")),
		all.Write(filepath.Join(folder, "recording.avi")))
}

// Read reads a film from a file.
func Read(path string) (Film, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Film{}, err
	}
	f, _, ok := read(b)
	if !ok {
		return f, fmt.Errorf("%s: %w", path, errNoFilm)
	}
	return f, nil
}

// Posing returns a film of 15 frames a second in which one person looks straight, to both sides and
// up, by turns, as somebody does who is being enrolled.
func Posing(who string, frames int) Film {
	f := Alone(who, frames)
	for i := range f.Frames {
		a := &f.Frames[i][0]
		switch i / 15 % 4 {
		case 1:
			a.Turn = .35
		case 2:
			a.Turn = -.35
		case 3:
			a.Nod = -.2
		}
	}
	return f
}

// Moving returns somebody who moves a little around a place, from 0, left, to 1, and whose view
// changes from time to time.
func Moving(who string, place float64, frame int) Actor {
	x := int(place*float64(size.X)) + frame%7 - 63
	x = min(max(x, 0), size.X-120)
	return Actor{Who: who, View: frame / 2, Box: image.Rect(x, 50, x+120, 190)}
}

// Write writes a film into a file, which the stand-in for faceauth-eye plays as it would a
// recording.
func (f Film) Write(path string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d %g\n", filmed, len(f.Frames), f.FPS)
	for _, shot := range f.Frames {
		if err := json.NewEncoder(&b).Encode(shot); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// pictured marks the comment of a picture that says who is in it.
const pictured = "faceauth made-up picture "

// JPEG returns a drawn picture of a frame. Its comment says who is in it, so that the stand-in for
// faceauth-eye can read it, alone, in a folder, or sent by a camera.
func JPEG(shot ...Actor) []byte { return annotated(draw(shot), shot) }

// annotated returns a picture as a JPEG whose comment says who is in it.
func annotated(img image.Image, shot []Actor) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		panic(err)
	}
	comment := append([]byte(pictured), described(shot)...)
	segment := []byte{0xff, 0xd8, 0xff, 0xfe, byte((len(comment) + 2) >> 8), byte(len(comment) + 2)}
	return append(append(segment, comment...), b.Bytes()[2:]...)
}

func described(shot []Actor) []byte {
	b, err := json.Marshal(shot)
	if err != nil {
		panic(err)
	}
	return b
}

// PNG is [JPEG] as a PNG.
func PNG(shot ...Actor) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, draw(shot)); err != nil {
		panic(err)
	}
	chunk := append([]byte("tEXtComment\x00"+pictured), described(shot)...)
	const first = 8 + 25 // the signature and IHDR
	all := bytes.Clone(b.Bytes()[:first])
	all = binary.BigEndian.AppendUint32(all, uint32(len(chunk)-4))
	all = append(all, chunk...)
	all = binary.BigEndian.AppendUint32(all, crc32.ChecksumIEEE(chunk))
	return append(all, b.Bytes()[first:]...)
}

// Folder writes the frames of a film into a new folder, as pictures.
func (f Film) Folder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i, shot := range f.Frames {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.jpg", i)), JPEG(shot...),
			0o600); err != nil {
			return err
		}
	}
	return nil
}

// read returns the film in a file, and the number of frames that it declares. Ok is false for any
// other file.
func read(b []byte) (f Film, declared int, ok bool) {
	if rest, found := bytes.CutPrefix(b, []byte(filmed)); found {
		lines := bufio.NewReader(bytes.NewReader(rest))
		if _, err := fmt.Fscanf(lines, "%d %g\n", &declared, &f.FPS); err != nil {
			return f, 0, false
		}
		for d := json.NewDecoder(lines); ; {
			var shot []Actor
			if d.Decode(&shot) != nil { // the end, also of a film that was cut off
				return f, declared, true
			}
			f.Frames = append(f.Frames, shot)
		}
	}
	if shot, found := note(b); found {
		return Film{FPS: 1, Frames: [][]Actor{shot}}, 1, true
	}
	return f, 0, false
}

// note returns who is in a picture.
func note(b []byte) (shot []Actor, ok bool) {
	_, rest, ok := bytes.Cut(b[:min(len(b), 64<<10)], []byte(pictured))
	if !ok {
		return nil, false
	}
	return shot, json.NewDecoder(bytes.NewReader(rest)).Decode(&shot) == nil
}

// hash is the same for the same words on every machine.
func hash(words ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, words...)
	return h.Sum64()
}

// Vector returns the vector of an actor in a space of unit vectors: near to all others of that
// person, and at about the distance of a right angle from everybody else's.
func (a Actor) Vector(s face.Space) []float32 {
	v := make([]float32, s.Dim)
	person := rand.New(rand.NewPCG(hash(a.Who), 1))
	view := rand.New(rand.NewPCG(hash(a.Who, a.View, a.Turn), 2))
	if !s.Unit {
		for i := range v {
			v[i] = float32(.3 + .4*person.Float64() + .02*view.Float64())
		}
		return v
	}
	spread := .25 / math.Sqrt(float64(s.Dim)) // two views are then about .35 apart
	length := 1 / math.Sqrt(float64(s.Dim))
	sum := 0.
	for i := range v {
		v[i] = float32(length*person.NormFloat64() + spread*view.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

// sample returns what a real eye would say about an actor.
func (a Actor) sample(track int, s face.Space) face.Sample {
	box := a.place()
	q := face.Quality{Size: min(box.Dx(), box.Dy()), Sharpness: 400, Brightness: 120, Contrast: 45,
		Turn: a.Turn, Streak: .3, Eyes: .4, Mouth: .3, Norm: cmp.Or(s.ClearNorm*1.1, 3)}
	x := face.Sample{Track: track, Box: box, Score: .99, Space: s.ID, Quality: q, Reason: a.Reason}
	if !s.Unit {
		x.Quality.Norm = 0
	}
	if x.Reason == "" && q.Size < face.LeastSide {
		x.Reason = face.TooSmall
	}
	eyes := .3
	if a.Shut {
		eyes = .1
	}
	x.Landmarks = fixture.Landmarks(a.Turn, .5+a.Nod, eyes)
	middle := box.Min.Add(box.Max).Div(2)
	stir := rand.New(rand.NewPCG(hash(a.Who, a.View), 3))
	for i := range x.Landmarks {
		x.Landmarks[i].X += float32(middle.X) - 100
		x.Landmarks[i].Y += float32(middle.Y) - 110
		// the brows and the lips move in each view, which a still does not do
		if i >= 17 && i < 30 || i >= 55 {
			x.Landmarks[i].X += float32(8 * stir.NormFloat64())
			x.Landmarks[i].Y += float32(8 * stir.NormFloat64())
		}
	}
	if a.Reason != face.NoVector && a.Reason != face.TooDark {
		x.Vector = a.Vector(s)
	}
	return x
}

func (a Actor) place() image.Rectangle {
	if box := a.Box.Intersect(image.Rectangle{Max: size}); !box.Empty() {
		return box
	}
	return image.Rect(100, 50, 220, 190)
}

// draw draws a frame: a disc with eyes and a mouth for each actor, in a colour of their own.
func draw(shot []Actor) *image.RGBA {
	img := image.NewRGBA(image.Rectangle{Max: size})
	for i := range img.Pix {
		img.Pix[i] = 200
	}
	for _, a := range shot {
		a.draw(img)
	}
	return img
}

func (a Actor) draw(img *image.RGBA) {
	box := a.place()
	h := hash(a.Who)
	skin := color.RGBA{uint8(120 + h%100), uint8(90 + h>>8%80), uint8(70 + h>>16%80), 255}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			u := 2*(float64(x-box.Min.X)+.5)/float64(box.Dx()) - 1
			v := 2*(float64(y-box.Min.Y)+.5)/float64(box.Dy()) - 1
			eye := math.Hypot(math.Abs(u)-.4, v+.2) < .12
			mouth := math.Abs(u) < .35 && math.Abs(v-.5) < .06
			switch {
			case u*u+v*v > 1:
			case eye || mouth:
				img.SetRGBA(x, y, color.RGBA{40, 30, 30, 255})
			default:
				img.SetRGBA(x, y, skin)
			}
		}
	}
}

// crop returns the picture of an actor, whose longer side has that many pixels, and which again
// says who is in it.
func (a Actor) crop(side int) []byte {
	box := a.place()
	alone := a
	alone.Box = image.Rectangle{}
	longer := max(box.Dx(), box.Dy())
	img := image.NewRGBA(image.Rect(0, 0, side*box.Dx()/longer, side*box.Dy()/longer))
	full := draw([]Actor{a})
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			img.Set(x, y, full.At(box.Min.X+x*box.Dx()/img.Rect.Dx(),
				box.Min.Y+y*box.Dy()/img.Rect.Dy()))
		}
	}
	return annotated(img, []Actor{alone})
}
