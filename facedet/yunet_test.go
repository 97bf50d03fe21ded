// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// YuNet finds heads of 24 pixels in frames, where the builtin detector finds fewer, heads that fill
// a photograph, and none where there is nobody, in both engines.
func TestYuNet(t *testing.T) {
	dir := t.TempDir()
	d := fixture.Must(models.Of(models.Detector, "yunet"))(t)
	landmarks := models.Default(models.Landmarks)
	fixture.Check(t, install.Named(t.Context(), d.Name,
		fixture.Recordings(t, "models/"+d.File), dir, func(string) {}))
	for _, file := range []string{landmarks.File, "libonnxruntime.so"} {
		fixture.Check(t, os.Symlink(filepath.Join(fixture.Models(t), file),
			filepath.Join(dir, file)))
	}
	var heads []*image.RGBA // each with as much around it as it is wide, and its true box
	var boxes []image.Rectangle
	builtin := fixture.Must(facedet.NewNetwork(models.Default(models.Detector), landmarks,
		fixture.Models(t)))(t)
	defer builtin.Close()
	for i := range 6 {
		s := fixture.Must(facedet.Open(t.Context(),
			fixture.Recordings(t, fmt.Sprintf("faces/vidtimit_rot/p%d", i)), facedet.Options{}))(t)
		f := fixture.Must(s.Next(t.Context()))(t)
		faces := fixture.Must(builtin.Detect(f.Image))(t)
		part := faces[0].Box.Inset(-faces[0].Box.Dx()).Intersect(f.Image.Bounds())
		crop := fixture.Must(f.Image.Crop(part))(t)
		heads = append(heads, fixture.Must(crop.Image())(t))
		boxes = append(boxes, faces[0].Box.Sub(part.Min))
		crop.Close()
		f.Close()
		s.Close()
	}
	for _, engine := range []string{"", "opencv"} {
		t.Setenv(network.Variable, engine)
		yunet := fixture.Must(facedet.NewNetwork(d, landmarks, dir))(t)
		defer yunet.Close()
		cases := []struct {
			size   image.Point
			height int
		}{{image.Pt(1280, 720), 24}, {image.Pt(1920, 1080), 40}, {image.Pt(1600, 1400), 700}}
		if engine != "" { // it takes three times as long
			cases = cases[:1]
		}
		for _, c := range cases {
			found, others := 0, 0
			for i, head := range heads {
				p, box := scene(t, c.size, head, boxes[i], c.height)
				faces := fixture.Must(yunet.Detect(p))(t)
				p.Close()
				for _, f := range faces {
					if face.Overlap(f.Box, box) > .35 && len(f.Landmarks) == 68 {
						found++
					} else {
						others++
					}
				}
			}
			if found != len(heads) || others > 0 {
				t.Errorf("%q: in %v, %d of %d heads of %d pixels are found, and %d others", engine,
					c.size, found, len(heads), c.height, others)
			}
		}
		empty := fixture.Must(facedet.FromImage(image.NewGray(image.Rect(0, 0, 1920, 1080))))(t)
		if faces := fixture.Must(yunet.Detect(empty))(t); len(faces) > 0 {
			t.Errorf("%q: %d faces of nobody", engine, len(faces))
		}
		empty.Close()
	}
}

// scene returns a grey picture with noise and a head of that height in its middle.
func scene(t *testing.T, size image.Point, head *image.RGBA, box image.Rectangle,
	height int) (*facedet.Picture, image.Rectangle) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(height)))
	m := image.NewRGBA(image.Rectangle{Max: size})
	for i := range m.Pix {
		m.Pix[i] = uint8(110 + r.IntN(20))
	}
	draw.Draw(m, m.Rect.Inset(size.Y/3), image.NewUniform(color.Gray{150}), image.Point{}, draw.Src)
	whole := fixture.Must(facedet.FromImage(head))(t)
	defer whole.Close()
	scaled := func(p image.Point) image.Point { return p.Mul(height).Div(box.Dy()) }
	small := fixture.Must(whole.Resize(scaled(head.Rect.Size())))(t)
	defer small.Close()
	at := size.Sub(small.Size()).Div(2)
	img := fixture.Must(small.Image())(t)
	draw.Draw(m, img.Rect.Add(at), img, image.Point{}, draw.Src)
	p := fixture.Must(facedet.FromImage(m))(t)
	return p, image.Rectangle{scaled(box.Min), scaled(box.Max)}.Add(at)
}
