// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/preprocess"
	"gocv.io/x/gocv"
)

func encode(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	fixture.Check(t, png.Encode(&b, m))
	return b.Bytes()
}

// chart returns a picture of a few colours.
func chart(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, color.RGBA{uint8(40 * x), uint8(30 * y), uint8(20 * (x + y)), 255})
		}
	}
	return m
}

func TestDecodeImage(t *testing.T) {
	see := image.NewNRGBA(image.Rect(0, 0, 5, 4))
	deep := image.NewGray16(image.Rect(0, 0, 5, 4))
	deeper := image.NewRGBA64(image.Rect(0, 0, 5, 4))
	for i := range 20 {
		see.SetNRGBA(i%5, i/5, color.NRGBA{200, 100, 50, uint8(12 * i)})
		deep.SetGray16(i%5, i/5, color.Gray16{uint16(3000 * i)})
		deeper.SetRGBA64(i%5, i/5, color.RGBA64{60000, uint16(3000 * i), 100, 65535})
	}
	huge := encode(t, image.NewGray(image.Rect(0, 0, 1, 1)))
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // the header claims 65536x65536 pixels
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	whole := encode(t, chart(64, 48))
	for _, c := range []struct {
		name string
		data []byte
		size image.Point // 0,0 for an error
		err  error
	}{
		{"one pixel", encode(t, chart(1, 1)), image.Pt(1, 1), nil},
		{"colour", whole, image.Pt(64, 48), nil},
		{"grey", encode(t, image.NewGray(image.Rect(0, 0, 7, 3))), image.Pt(7, 3), nil},
		{"four channels", encode(t, see), image.Pt(5, 4), nil},
		{"16 bits grey", encode(t, deep), image.Pt(5, 4), nil},
		{"16 bits colour", encode(t, deeper), image.Pt(5, 4), nil},
		{"empty", nil, image.Point{}, cv.ErrNotImage},
		{"garbage", bytes.Repeat([]byte("no picture"), 100), image.Point{}, cv.ErrNotImage},
		{"header alone", whole[:8], image.Point{}, cv.ErrNotImage},
		{"too large", huge, image.Point{}, cv.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := cv.DecodeImage(c.data)
			if c.err != nil {
				if !errors.Is(err, c.err) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				return
			}
			fixture.Check(t, err)
			defer m.Close()
			if m.Size() != c.size {
				t.Errorf("size %v, want %v", m.Size(), c.size)
			}
			// A grey pixel has one byte, so the picture has the type on which all other code
			// relies.
			g := m.Gray()
			defer g.Close()
			if n := len(g.Bytes()); n != c.size.X*c.size.Y {
				t.Errorf("%d grey values, want %d", n, c.size.X*c.size.Y)
			}
		})
	}
}

// A 16-bit value is divided by 257, not cut off, and alpha is dropped. White is what the header of
// a PGM or PPM says, as 1023 of an infrared camera of 10 bits; OpenCV 4.6.0 takes it for 65535 there,
// and refuses a plain file that ends with its last number.
func TestDecodeDepth(t *testing.T) {
	deep := image.NewGray16(image.Rect(0, 0, 1, 1))
	deep.SetGray16(0, 0, color.Gray16{51400})
	see := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	see.SetNRGBA(0, 0, color.NRGBA{200, 200, 200, 0})
	for name, data := range map[string][]byte{
		"16 bits": encode(t, deep), "alpha": encode(t, see),
		"PGM of 8 bits":         []byte("P5 1 1 255\n\xc8"),
		"PGM to 51":             []byte("P5 1 1 51\n\x28"),
		"PGM of 10 bits":        []byte("P5\n# 10 bits\n1 1\n1023\n\x03\x22"),
		"PGM of 16 bits":        []byte("P5 1 1 65535\n\xc8\xc8"),
		"PPM of 10 bits":        []byte("P6 1 1 1023\n\x03\x22\x03\x22\x03\x22"),
		"plain PGM to 51":       []byte("P2 1 1 51\n40"),
		"plain PGM of 10 bits":  []byte("P2 1 1 1023 802"),
		"plain PPM, which ends": []byte("P3 1 1 255 200 200 200"),
	} {
		img, err := cv.DecodeImage(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		g := img.Gray()
		if b := g.Bytes()[0]; b != 200 {
			t.Errorf("%s: grey value %d, want 200", name, b)
		}
		g.Close()
		img.Close()
	}
}

func FuzzDecodeImage(f *testing.F) {
	whole := encode(f, chart(9, 7))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("P5 3 2 255\nabcdef"))
	f.Add([]byte("P6 1 1 65535\nabcdef"))
	f.Add([]byte("BM\x00\x00\x00\x00"))
	f.Add([]byte("II*\x00\x08\x00\x00\x00"))
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x10JFIF"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := cv.DecodeImage(data)
		if (m == nil) == (err == nil) {
			t.Fatal("DecodeImage returned an image and an error, or neither")
		}
		if m != nil {
			m.Gray().Close()
			m.Close()
		}
	})
}

func TestImageBounds(t *testing.T) {
	m := fixture.Must(cv.NewImage(image.Pt(20, 10), color.RGBA{10, 20, 30, 255}))(t)
	defer m.Close()
	part := fixture.Must(m.Crop(image.Rect(15, 5, 100, 100)))(t)
	if part.Size() != image.Pt(5, 5) {
		t.Errorf("cropped to %v, want the 5x5 pixels inside the image", part.Size())
	}
	part.Close()
	fails := func(what string, f func() (*cv.Image, error)) {
		if got, err := f(); err == nil {
			got.Close()
			t.Errorf("%s gave no error", what)
		}
	}
	fails("cropping outside the image", func() (*cv.Image, error) {
		return m.Crop(image.Rect(20, 0, 30, 10))
	})
	fails("cropping an empty rectangle", func() (*cv.Image, error) {
		return m.Crop(image.Rect(3, 3, 3, 9))
	})
	fails("resizing to a width of 0", func() (*cv.Image, error) { return m.Resize(image.Pt(0, 5)) })
	fails("resizing to too many pixels", func() (*cv.Image, error) {
		return m.Resize(image.Pt(1<<20, 1<<20))
	})
	fails("a negative border", func() (*cv.Image, error) { return m.Pad(-1, 0) })
	fails("an image of no size", func() (*cv.Image, error) {
		return cv.NewImage(image.Pt(0, 0), color.RGBA{})
	})
	fails("warping by infinity", func() (*cv.Image, error) {
		return m.Warp(cv.Affine{math.Inf(1)}, image.Pt(8, 6))
	})
	// Drawings are cut off at the edges of the image.
	m.DrawBox(image.Rect(-50, -50, 500, 500), "somebody with a long name",
		color.RGBA{200, 0, 0, 255})
	m.DrawBox(image.Rect(5, 0, 9, 3), "", color.RGBA{200, 0, 0, 255})
}

// The test compares Smooth and Equalize with their definitions, written out.
func TestFilters(t *testing.T) {
	const w, h = 13, 9
	grey := image.NewGray(image.Rect(0, 0, w, h))
	pix := grey.Pix
	for i := range pix {
		pix[i] = byte(i * i * 7)
	}
	img := fixture.Must(cv.FromImage(grey))(t)
	defer img.Close()
	g := img.Gray()
	defer g.Close()
	smooth := g.Smooth()
	defer smooth.Close()
	at := func(x, y int) int { // beyond its edge the picture is mirrored at the outermost pixel
		mirror := func(i, n int) int {
			if i < 0 {
				return -i
			}
			if i >= n {
				return 2*n - 2 - i
			}
			return i
		}
		return int(pix[mirror(y, h)*w+mirror(x, w)])
	}
	got := smooth.Bytes()
	for y := range h {
		for x := range w {
			sum := 0
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					sum += (2 - dx*dx) * (2 - dy*dy) * at(x+dx, y+dy)
				}
			}
			// OpenCV rounds to nearest; halves may go either way.
			if d := 16*int(got[y*w+x]) - sum; d < -8 || d > 8 {
				t.Fatalf("pixel %d,%d is %d, want %d/16", x, y, got[y*w+x], sum)
			}
		}
	}

	var hist, below [256]int
	for _, p := range pix {
		hist[p]++
	}
	first, sum := -1, 0
	for v, n := range hist {
		if n > 0 && first < 0 {
			first = v
		}
		sum += n
		below[v] = sum
	}
	flat := g.Equalize()
	defer flat.Close()
	for i, p := range flat.Bytes() {
		want := 255 * float64(below[pix[i]]-hist[first]) / float64(len(pix)-hist[first])
		if d := float64(p) - want; d < -.51 || d > .51 {
			t.Fatalf("value %d became %d, want %.2f", pix[i], p, want)
		}
	}
}

func TestNetErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		fixture.Check(t, os.WriteFile(path, data, 0o600))
		return path
	}
	paths := []string{
		filepath.Join(dir, "missing.onnx"),
		write("empty.onnx", nil),
		write("garbage.onnx", bytes.Repeat([]byte("not a network"), 99)),
	}
	whole := fixture.Must(os.ReadFile(filepath.Join(fixture.Models(t), "fr_landmark.onnx")))(t)
	for _, share := range []int{2, 10, 100} {
		paths = append(paths, write("cut.onnx", whole[:len(whole)/share]))
	}
	for _, path := range paths {
		n, err := cv.OpenNet(path)
		if err == nil {
			// A network that OpenCV accepts in spite of the damage must not crash the process when
			// it runs.
			img, _ := cv.NewImage(image.Pt(9, 9), color.RGBA{})
			n.Forward(img, cv.Blob{Size: image.Pt(64, 64), Scale: 1, Gray: true})
			img.Close()
			n.Close()
		}
	}
	if _, err := cv.OpenNet(paths[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening a missing network: error %v", err)
	}
}

// An input that does not fit the network is an error.
func TestForwardErrors(t *testing.T) {
	n := fixture.Must(cv.OpenNet(filepath.Join(fixture.Models(t),
		models.Default(models.Landmarks).File)))(t)
	img := fixture.Must(cv.NewImage(image.Pt(30, 30), color.RGBA{90, 90, 90, 255}))(t)
	defer img.Close()
	right := cv.Blob{Size: image.Pt(64, 64), Scale: 1. / 256, Gray: true}
	out, err := n.Forward(img, right)
	if err != nil || len(out) != 1 || len(out[0].Data) != 136 {
		t.Fatalf("the right input: %d outputs, %v", len(out), err)
	}
	for what, f := range map[string]func() ([]cv.Tensor, error){
		"three channels instead of one": func() ([]cv.Tensor, error) {
			return n.Forward(img, cv.Blob{Size: right.Size, Scale: 1})
		},
		"another size": func() ([]cv.Tensor, error) {
			return n.Forward(img, cv.Blob{Size: image.Pt(3, 5), Scale: 1, Gray: true})
		},
		"no size": func() ([]cv.Tensor, error) {
			return n.Forward(img, cv.Blob{Gray: true})
		},
		"an unknown output": func() ([]cv.Tensor, error) {
			return n.Forward(img, right, "no such output")
		},
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s gave no error", what)
		}
	}
	// An error does not affect the following calls.
	if again, err := n.Forward(img, right); err != nil || again[0].Data[7] != out[0].Data[7] {
		t.Errorf("Forward after the errors: another output, or error %v", err)
	}
	n.Close()
	n.Close()
	if _, err := n.Forward(img, right); !errors.Is(err, cv.ErrClosed) {
		t.Errorf("Forward after Close: error %v", err)
	}
}

func TestCascadeErrors(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"empty":         "",
		"garbage":       "no XML",
		"cut off":       "<?xml version=\"1.0\"?><opencv_storage><cascade>",
		"not a cascade": "<?xml version=\"1.0\"?><opencv_storage><a>1</a></opencv_storage>",
	} {
		path := filepath.Join(dir, "c.xml")
		fixture.Check(t, os.WriteFile(path, []byte(data), 0o600))
		if c, err := cv.OpenCascade(path); err == nil {
			c.Close()
			t.Errorf("%s gave no error", name)
		}
	}
	if _, err := cv.OpenCascade(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening a missing cascade: error %v", err)
	}
}

func TestVideo(t *testing.T) {
	for name, codec := range map[string]string{"v.avi": "MJPG", "v.mp4": "avc1"} {
		t.Run(codec, func(t *testing.T) { video(t, name, codec) })
	}
}

func video(t *testing.T, name, codec string) {
	path := filepath.Join(t.TempDir(), name)
	w := cv.NewVideoWriter(path, codec, 10)
	for i := range 5 {
		img := fixture.Must(cv.NewImage(image.Pt(64, 48),
			color.RGBA{uint8(50 * i), 80, 80, 255}))(t)
		err := w.Write(img)
		if errors.Is(err, cv.ErrNoCodec) {
			fixture.Missing(t, "no %s can be written; install a build of FFmpeg with x264", codec)
		}
		fixture.Check(t, err)
		img.Close()
	}
	other := fixture.Must(cv.NewImage(image.Pt(32, 48), color.RGBA{}))(t)
	defer other.Close()
	if err := w.Write(other); err == nil {
		t.Error("a frame of another size gave no error")
	}
	fixture.Check(t, w.Close())
	fixture.Check(t, w.Close())

	c := fixture.Must(cv.OpenFilm(path, "", "", time.Second))(t)
	if about := c.About(); about.Frames != 5 || about.Rate != 10 || !about.Ends {
		t.Errorf("%+v, want 5 frames at 10 a second", about)
	}
	if got := frames(t, path); len(got) != 5 {
		t.Errorf("read %d frames, want 5", len(got))
	}
	c.Close()
	c.Close()
	if _, _, err := c.Read(); !errors.Is(err, cv.ErrClosed) {
		t.Errorf("Read after Close: error %v", err)
	}
	err := cv.NewVideoWriter(filepath.Join(path, "below"+name), codec, 10).Write(other)
	if !errors.Is(err, cv.ErrNoCodec) {
		t.Errorf("a video below a file: %v", err)
	}

	if err := cv.NewVideoWriter(path, codec, 0).Write(other); err == nil {
		t.Error("a video with a frame rate of 0 gave no error")
	}
}

// A frame of a video has the same pixels whether they are asked for at once, after the video was
// closed, or by several goroutines. A frame that is closed before is never converted.
func TestFrames(t *testing.T) {
	const number = 12
	size, path := image.Pt(64, 48), filepath.Join(t.TempDir(), "film.avi")
	w := cv.NewVideoWriter(path, "H264", 10)
	if err := w.Write(fixture.Must(cv.NewImage(size, color.RGBA{}))(t)); err != nil {
		fixture.Missing(t, "no H.264 can be written (%v); install a build of FFmpeg with x264", err)
	}
	shoot(t, w, size, number-1)
	want := frames(t, path)
	if len(want) != number {
		t.Fatalf("%d frames", len(want))
	}
	c := fixture.Must(cv.OpenFilm(path, "", "", time.Minute))(t)
	var kept []*cv.Image
	for i := range number {
		img, at, err := c.Read()
		if err != nil || img == nil || !cv.Bare(img) || img.Size() != size || !cv.Bare(img) ||
			at != want[i].at {
			t.Fatalf("frame %d: %v, at %v, %v", i, img, at, err)
		}
		kept = append(kept, img)
		small := image.Pt(20, 15)
		grey := fixture.Must(img.Thumbnail(small))(t)
		if !cv.Bare(img) {
			t.Errorf("frame %d: colours were made for its grey values", i)
		}
		coloured := fixture.Must(cv.FromBGR(size, want[i].pix))(t)
		for k, v := range fixture.Must(coloured.Thumbnail(small))(t) {
			if max(v, grey[k])-min(v, grey[k]) > 3 {
				t.Fatalf("frame %d: grey value %d is %d, of its colours %d", i, k, grey[k], v)
			}
		}
		coloured.Close()
	}
	c.Close()
	for i, img := range kept {
		var all sync.WaitGroup
		for range 3 * (i % 3) {
			all.Go(func() {
				if got, err := img.BGR(); err != nil || !bytes.Equal(got, want[i].pix) {
					t.Errorf("frame %d: other pixels: %v", i, err)
				}
			})
		}
		all.Wait()
		img.Close()
		if err := img.Close(); err != nil || cv.Bare(img) {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := img.BGR(); !errors.Is(err, cv.ErrClosed) {
			t.Errorf("pixels of a closed frame: %v", err)
		}
	}
}

// Thumbnail returns the same values as the obvious computation: if the picture shrinks to less than
// half, the mean of four points, each interpolated; otherwise the mean over the area.
func TestThumbnail(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ from, to image.Point }{
		{image.Pt(640, 480), image.Pt(160, 120)}, {image.Pt(512, 384), image.Pt(160, 120)},
		{image.Pt(1921, 1079), image.Pt(160, 90)},
		{image.Pt(200, 150), image.Pt(160, 120)}, {image.Pt(160, 120), image.Pt(160, 120)},
		{image.Pt(17, 333), image.Pt(1, 16)}, {image.Pt(1, 1), image.Pt(1, 1)},
	} {
		pix := make([]byte, 3*c.from.X*c.from.Y)
		for y := range c.from.Y {
			for x := range c.from.X {
				for k := range 3 {
					pix[3*(y*c.from.X+x)+k] = uint8(128 + 60*math.Sin(float64(x)/9+float64(k)) +
						50*math.Cos(float64(y)/7) +
						10*rnd.Float64())
				}
			}
		}
		img := fixture.Must(cv.FromBGR(c.from, pix))(t)
		defer img.Close()
		got, err := img.Thumbnail(c.to)
		if err != nil || len(got) != c.to.X*c.to.Y {
			t.Fatalf("%v to %v: %d values, %v", c.from, c.to, len(got), err)
		}
		for i, want := range thumbnail(c.from, pix, c.to) {
			if d := math.Abs(float64(got[i]) - want); d > 2 { // two roundings in each of two steps
				t.Fatalf("%v to %v: value %d is %d, want %g", c.from, c.to, i, got[i], want)
			}
		}
	}
	img := fixture.Must(cv.FromBGR(image.Pt(4, 4), make([]byte, 48)))(t)
	for _, size := range []image.Point{{}, {5, 4}, {4, 5}, {-1, 2}} {
		if _, err := img.Thumbnail(size); err == nil {
			t.Errorf("a thumbnail of %v pixels from 4x4 pixels gave no error", size)
		}
	}
	img.Close()
	if _, err := img.Thumbnail(image.Pt(1, 1)); !errors.Is(err, cv.ErrClosed) {
		t.Errorf("Thumbnail of a closed picture: error %v", err)
	}
}

// thumbnail is the obvious computation.
func thumbnail(from image.Point, pix []byte, to image.Point) []float64 {
	grey := func(x, y int) float64 {
		x, y = min(max(x, 0), from.X-1), min(max(y, 0), from.Y-1)
		p := pix[3*(y*from.X+x):]
		return .114*float64(p[0]) + .587*float64(p[1]) + .299*float64(p[2])
	}
	all := make([]float64, to.X*to.Y)
	for i := range all {
		x, y := i%to.X, i/to.X
		if twice := to.Mul(2); twice.X < from.X && twice.Y < from.Y {
			for k := range 4 {
				px := (float64(2*x+k%2)+.5)*float64(from.X)/float64(twice.X) - .5
				py := (float64(2*y+k/2)+.5)*float64(from.Y)/float64(twice.Y) - .5
				fx, fy := math.Floor(px), math.Floor(py)
				dx, dy, ix, iy := px-fx, py-fy, int(fx), int(fy)
				all[i] += .25 * ((1-dy)*((1-dx)*grey(ix, iy)+dx*grey(ix+1, iy)) +
					dy*((1-dx)*grey(ix, iy+1)+dx*grey(ix+1, iy+1)))
			}
			continue
		}
		// The mean over the area.
		l, r := float64(x)*float64(from.X)/float64(to.X), float64(x+1)*float64(from.X)/float64(to.X)
		u, d := float64(y)*float64(from.Y)/float64(to.Y), float64(y+1)*float64(from.Y)/float64(to.Y)
		sum, area := 0., 0.
		for py := int(u); float64(py) < d; py++ {
			for px := int(l); float64(px) < r; px++ {
				w := (min(r, float64(px+1)) - max(l, float64(px))) * (min(d, float64(py+1)) - max(u,
					float64(py)))
				sum, area = sum+w*grey(px, py), area+w
			}
		}
		all[i] = sum / area
	}
	return all
}

// The test compares the thesis's preprocessing with the same steps written out with gocv. It is in
// this package because no other package may import gocv.
func TestPixelsGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, 200, 160))
	for i := range m.Pix {
		m.Pix[i] = uint8(r.IntN(256)) | 1
	}
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	file := encode(t, m)
	img := fixture.Must(cv.DecodeImage(file))(t)
	defer img.Close()
	for _, box := range []image.Rectangle{
		image.Rect(20, 10, 170, 150), // shrinks
		image.Rect(60, 60, 100, 110), // grows
		image.Rect(0, 0, 96, 96),
	} {
		got, _, err := preprocess.Extract(preprocess.Pixels, img, box, nil)
		fixture.Check(t, err)
		want := pixels(t, file, box)
		if len(got) != len(want) {
			t.Fatalf("%d values, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != float32(want[i])/255 {
				t.Fatalf("box %v: value %d is %g, want %d/255", box, i, got[i], want[i])
			}
		}
	}
}

func pixels(t *testing.T, file []byte, box image.Rectangle) []byte {
	t.Helper()
	frame := fixture.Must(gocv.IMDecode(file, gocv.IMReadColor))(t)
	defer frame.Close()
	part := frame.Region(box)
	defer part.Close()
	m := gocv.NewMat()
	defer m.Close()
	gocv.CvtColor(part, &m, gocv.ColorBGRToGray)
	how := gocv.InterpolationLinear
	if box.Dx() >= 96 && box.Dy() >= 96 {
		how = gocv.InterpolationArea
	}
	gocv.Resize(m, &m, image.Pt(96, 96), 0, 0, how)
	gocv.GaussianBlur(m, &m, image.Pt(3, 3), 0, 0, gocv.BorderDefault)
	gocv.EqualizeHist(m, &m)
	return m.ToBytes()
}

// A mask is black in the pixels and in the thumbnail, also of a picture that is decoded later, or
// was already.
func TestBlacken(t *testing.T) {
	size := image.Pt(64, 48)
	plain := fixture.Must(cv.NewImage(size, color.RGBA{200, 200, 200, 255}))(t)
	defer plain.Close()
	file := fixture.Must(plain.JPEG(95))(t)
	opened := fixture.Must(cv.FromJPEG(file))(t)
	fixture.Must(opened.BGR())(t)
	for name, img := range map[string]*cv.Image{"plain": fixture.Must(plain.Clone())(t),
		"later": fixture.Must(cv.FromJPEG(file))(t), "opened": opened} {
		defer img.Close()
		small := fixture.Must(img.Thumbnail(image.Pt(4, 4)))(t) // it may be kept
		fixture.Check(t, img.Blacken([]face.Polygon{{{}, {X: .5}, {X: .5, Y: .5}, {Y: .5}},
			{{}, {X: .5}, {X: .5, Y: .25}, {Y: .25}}}))
		small = append(small, fixture.Must(img.Thumbnail(image.Pt(4, 4)))(t)...)
		pix := fixture.Must(img.BGR())(t)
		at := func(x, y int) byte { return pix[3*(y*size.X+x)] }
		got := []byte{small[0], small[16], small[16+5], small[16+6], at(3, 3), at(30, 22),
			at(40, 3), at(3, 30)}
		for i, dark := range []bool{false, true, true, false, true, true, false, false} {
			if dark != (got[i] < 20) {
				t.Errorf("%s: %d", name, got)
			}
		}
		if img.Blacken([]face.Polygon{{{}, {X: 2}, {}}}) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if plain.Close(); !errors.Is(plain.Blacken([]face.Polygon{{{}, {X: 1}, {Y: 1}}}),
		cv.ErrClosed) {
		t.Error("a closed picture")
	}
}
