// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include "safe.h"
*/
import "C"

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"sync"
	"unsafe"

	"github.com/faceauth/faceauth/internal/exif"
	"github.com/faceauth/faceauth/internal/heif"
	"github.com/faceauth/faceauth/internal/raw"
	"github.com/faceauth/faceauth/internal/safefile"
	"gocv.io/x/gocv"
	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
)

const (
	maxPixels = C.FA_MOST_PIXELS // of an image
	maxFile   = 256 << 20        // bytes of an image file
)

// Image is an 8-bit BGR picture of at least one pixel.
type Image struct {
	mat gocv.Mat // use it after check
	// makes the pixels when somebody asks for them; nil if they were always there, or after Close
	later  source
	mu     sync.Mutex  // several goroutines may read a picture at once
	failed error       // why later makes none
	part   bool        // of the picture's data, a part is missing
	film   bool        // the file holds a film, too
	full   image.Point // size in the file, if it is read at half of it
}

// source is a picture without pixels: most frames of a camera are only compared with others at a
// small scale, or skipped.
type source interface {
	bounds() image.Point
	open() (gocv.Mat, error)
	// thumbnail returns what [Image.Thumbnail] does. The error is errors.ErrUnsupported if it needs
	// the pixels.
	thumbnail(size image.Point) ([]byte, error)
	close()
}

// NewImage returns an image of one colour.
func NewImage(size image.Point, c color.RGBA) (*Image, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	s := gocv.NewScalar(float64(c.B), float64(c.G), float64(c.R), 0)
	return &Image{mat: gocv.NewMatWithSizeFromScalar(s, size.Y, size.X, gocv.MatTypeCV8UC3)}, nil
}

// ReadImage reads an image file of any kind that OpenCV reads, or a HEIF picture (HEIC, AVIF), in
// any depth and number of channels: 16 bits become 8, grey becomes BGR, and alpha is dropped. It is
// turned as its EXIF orientation says, or its HEIF container. What is missing of a JPEG that ends
// too early is grey: see [Image.Whole]. One of more than 64 and at most 256 million pixels is read
// at half its width and height: see [Image.Full]. The error wraps [ErrNotImage], [ErrTooLarge], or
// an error of package fs.
func ReadImage(path string) (*Image, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	m, err := decode(path, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// DecodeImage is ReadImage for the bytes of a file.
func DecodeImage(data []byte) (*Image, error) { return decode("", data) }

// decode decodes a file with a name.
func decode(path string, data []byte) (*Image, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrNotImage)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxFile)
	}
	if heif.Is(data) {
		img, err := decodeHEIF(data)
		if err == nil {
			img.film = moving(data[12:])
		}
		return img, err
	}
	if isJXL(data) {
		return decodeJXL(data)
	}
	held := 0
	if raw.Is(path, data) {
		var err error
		data, held, err = raw.Preview(data)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotImage, err)
		}
	}
	how := gocv.IMReadColor
	var full image.Point
	if exif.IsJPEG(data) {
		var err error
		full, err = measure(data)
		if err != nil {
			return nil, err
		}
		if full != (image.Point{}) {
			how = gocv.IMReadReducedColor2
		}
	} else if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		// If Go knows the format, its header gives the size before memory is allocated.
		if err := checkSize(image.Pt(c.Width, c.Height)); err != nil {
			return nil, err
		}
	}
	data, rest, whole := ended(data)
	orientation := cmp.Or(exif.Orientation(data), held)
	if orientation > 0 || exif.IsJPEG(data) {
		// done here: OpenCV misses it in WebP, and in a JPEG with XMP before EXIF
		how |= gocv.IMReadIgnoreOrientation
	}
	white := pnmWhite(data)
	if white > 0 {
		how |= gocv.IMReadAnyDepth
		data = append(data[:len(data):len(data)], '\n') // OpenCV refuses a number at the end
	}
	m := gocv.NewMat()
	var fail *C.char
	C.fa_decode(unsafe.Pointer(&data[0]), C.int(len(data)), C.int(how), unsafe.Pointer(m.Ptr()),
		&fail)
	if err := failure(fail); err != nil {
		m.Close()
		return nil, fmt.Errorf("%w: %v", ErrNotImage, err)
	}
	if m.Empty() {
		m.Close()
		return nil, ErrNotImage
	}
	if white > 0 && white != 255 && (white > 255 || data[1] > '3') {
		m.ConvertToWithParams(&m, gocv.MatTypeCV8U, 255/float32(white), 0)
	}
	img, err := adopt(m)
	if err != nil {
		return nil, err
	}
	img.part, img.film = !whole, moving(rest)
	if orientation > 1 {
		img, err = img.oriented(orientation)
		if err != nil {
			return nil, err
		}
		_, degrees := exif.Change(orientation)
		if degrees%180 != 0 {
			full.X, full.Y = full.Y, full.X
		}
	}
	img.full = full
	return img, nil
}

// pnmHeader matches the header of a PGM or PPM file, plain or binary, whose last number is the
// value of white. (Netpbm, pgm(5).)
var pnmHeader = regexp.MustCompile(`^P[2356](?:(?:\s|#[^\n\r]*[\n\r])+(\d{1,9})){3}\s?`)

// pnmWhite returns the value of white in a PGM or PPM file, 0 for any other file. Of 10 bits, as
// those of an infrared camera, it is 1023. OpenCV takes it for 255 or 65535, but in a plain file of
// 8 bits.
func pnmWhite(data []byte) int {
	found := pnmHeader.FindSubmatch(data[:min(len(data), 1<<10)])
	if found == nil {
		return 0
	}
	white, err := strconv.Atoi(string(found[1]))
	if err != nil || white > math.MaxUint16 {
		return 0
	}
	return white
}

// adopt makes an Image from a Mat of any type. The Image owns the Mat afterwards.
func adopt(m gocv.Mat) (*Image, error) {
	fail := func(err error) (*Image, error) {
		m.Close()
		return nil, err
	}
	if m.Empty() || m.Rows() <= 0 || m.Cols() <= 0 {
		return fail(ErrNotImage)
	}
	if err := checkSize(image.Pt(m.Cols(), m.Rows())); err != nil {
		return fail(err)
	}
	var code gocv.ColorConversionCode
	switch m.Type() {
	case gocv.MatTypeCV8UC3:
		return &Image{mat: m}, nil
	case gocv.MatTypeCV8UC1:
		code = gocv.ColorGrayToBGR
	case gocv.MatTypeCV8UC4:
		code = gocv.ColorBGRAToBGR
	default:
		return fail(fmt.Errorf("%w: pixels of type %d", ErrNotImage, m.Type()))
	}
	dst := gocv.NewMat()
	gocv.CvtColor(m, &dst, code)
	m.Close()
	return &Image{mat: dst}, nil
}

func checkSize(size image.Point) error {
	if size.X < 1 || size.Y < 1 {
		return fmt.Errorf("%w: %dx%d pixels", ErrNotImage, size.X, size.Y)
	}
	if size.X > maxPixels/size.Y {
		return fmt.Errorf("%w: %dx%d pixels; at most %d million are read", ErrTooLarge, size.X,
			size.Y, maxPixels/1_000_000)
	}
	return nil
}

// check returns [ErrClosed] for a picture that is nil, zero or closed. Other modules can pass such
// pictures, too, and a call of OpenCV with a null pointer ends the process. It makes the pixels of
// a picture that has none yet.
func (m *Image) check() error {
	if m == nil {
		return fmt.Errorf("picture: %w", ErrClosed)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.later != nil && m.mat.Ptr() == nil && m.failed == nil {
		m.mat, m.failed = m.later.open()
	}
	if m.failed == nil && m.mat.Ptr() == nil {
		return fmt.Errorf("picture: %w", ErrClosed)
	}
	return m.failed
}

// Whole reports whether all data of the picture came. Of a JPEG that ends too early, or a frame of
// a film whose data are damaged, a part is missing: a decoder shows it grey, or as it was in the
// frame before.
func (m *Image) Whole() bool { return m == nil || !m.part }

// Film reports whether the picture is of a motion photograph: its file holds a film, too.
func (m *Image) Film() bool { return m != nil && m.film }

// Full returns the size of the picture in its file, turned as the picture is, if it was read at
// half its width and height, and otherwise 0: places in the file are twice those in the picture.
func (m *Image) Full() image.Point { return m.full }

// with returns a picture with these pixels, made of those of m.
func (m *Image) with(mat gocv.Mat) *Image { return &Image{mat: mat, part: m.part, film: m.film} }

// Close frees the picture. It may be called twice.
func (m *Image) Close() error {
	if m == nil {
		return nil
	}
	if m.later != nil {
		m.later.close()
		m.later, m.failed = nil, nil
	}
	return closeMat(&m.mat)
}

// Size returns the width and height in pixels, 0 for a closed picture.
func (m *Image) Size() image.Point {
	if m != nil && m.later != nil {
		return m.later.bounds()
	}
	if m.check() != nil {
		return image.Point{}
	}
	return sizeOf(m.mat)
}

// Bounds returns the rectangle of the picture. It begins at 0,0.
func (m *Image) Bounds() image.Rectangle { return image.Rectangle{Max: m.Size()} }

// Shrunk returns a copy of which no side is longer than long pixels, smaller by a whole number:
// each pixel is the mean of a square of pixels.
func (m *Image) Shrunk(long int) (*Image, error) {
	size := m.Size()
	by := (max(size.X, size.Y) + long - 1) / long
	if by <= 1 {
		return m.Clone()
	}
	return m.Resize(image.Pt(max(1, size.X/by), max(1, size.Y/by)))
}

// Clone returns a copy.
func (m *Image) Clone() (*Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return m.with(m.mat.Clone()), nil
}

// Crop returns a copy of the part of the picture inside r, or an error if this part is empty.
func (m *Image) Crop(r image.Rectangle) (*Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	mat, err := crop(m.mat, r)
	if err != nil {
		return nil, err
	}
	return m.with(mat), nil
}

// Resize returns the picture scaled to size: with the mean over areas if it shrinks, and bilinear
// if it grows.
func (m *Image) Resize(size image.Point) (*Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	mat, err := resize(m.mat, size)
	if err != nil {
		return nil, err
	}
	return m.with(mat), nil
}

// Stretch returns the picture by times as wide, compared with its height. The side that is too
// short becomes longer.
func (m *Image) Stretch(by float64) (*Image, error) { return m.Resize(stretched(m.Size(), by)) }

func stretched(size image.Point, by float64) image.Point {
	if by > 1 {
		size.X = int(float64(size.X)*by + .5)
	} else {
		size.Y = int(float64(size.Y)/by + .5)
	}
	return size
}

// Pad returns the picture with a border of this many pixels of one grey value on each side.
func (m *Image) Pad(border int, value uint8) (*Image, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if border < 0 {
		return nil, fmt.Errorf("border of %d pixels", border)
	}
	if err := checkSize(m.Size().Add(image.Pt(2*border, 2*border))); err != nil {
		return nil, err
	}
	dst := gocv.NewMat()
	gocv.CopyMakeBorder(m.mat, &dst, border, border, border, border, gocv.BorderConstant,
		color.RGBA{value, value, value, 0})
	return m.with(dst), nil
}

// BGR returns a picture with three equal channels.
func (g *Gray) BGR() *Image {
	dst := gocv.NewMat()
	gocv.CvtColor(g.mat, &dst, gocv.ColorGrayToBGR)
	return &Image{mat: dst}
}

// Gray returns the picture in grey. The picture must not be closed.
func (m *Image) Gray() *Gray {
	if err := m.check(); err != nil {
		panic("cv: " + err.Error())
	}
	dst := gocv.NewMat()
	gocv.CvtColor(m.mat, &dst, gocv.ColorBGRToGray)
	return &Gray{dst}
}

// JPEG returns the picture as a JPEG file of that quality, 1 to 100.
func (m *Image) JPEG(quality int) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	b, err := gocv.IMEncodeWithParams(gocv.JPEGFileExt, m.mat,
		[]int{gocv.IMWriteJpegQuality, min(max(quality, 1), 100)})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return bytes.Clone(b.GetBytes()), nil
}

// DrawBox draws a rectangle, and above it a line of text on a background of the same colour.
func (m *Image) DrawBox(r image.Rectangle, text string, c color.RGBA) {
	if m.check() != nil {
		return
	}
	gocv.Rectangle(&m.mat, r, c, 2)
	if text == "" {
		return
	}
	const scale = .5
	size := gocv.GetTextSize(text, gocv.FontHersheySimplex, scale, 1)
	at := image.Pt(max(r.Min.X-1, 0), r.Min.Y-4)
	if at.Y < size.Y+6 {
		at.Y = r.Max.Y + size.Y + 8
	}
	gocv.Rectangle(&m.mat, image.Rect(at.X, at.Y-size.Y-4, at.X+size.X+6, at.Y+5), c, -1)
	ink := color.RGBA{255, 255, 255, 255}
	if 299*int(c.R)+587*int(c.G)+114*int(c.B) > 140_000 {
		ink = color.RGBA{0, 0, 0, 255}
	}
	gocv.PutTextWithParams(&m.mat, text, at.Add(image.Pt(3, 0)), gocv.FontHersheySimplex, scale,
		ink, 1, gocv.LineAA, false)
}

// Gray is an 8-bit picture with one channel and at least one pixel.
type Gray struct{ mat gocv.Mat }

// Close frees the picture. It may be called twice.
func (g *Gray) Close() error { return closeMat(&g.mat) }

// Size returns the width and height in pixels.
func (g *Gray) Size() image.Point { return sizeOf(g.mat) }

// Resize is [Image.Resize].
func (g *Gray) Resize(size image.Point) (*Gray, error) {
	mat, err := resize(g.mat, size)
	if err != nil {
		return nil, err
	}
	return &Gray{mat}, nil
}

// Bytes returns a copy of the pixels, row by row.
func (g *Gray) Bytes() []byte { return g.mat.ToBytes() }

func closeMat(m *gocv.Mat) error {
	if m.Ptr() == nil {
		return nil
	}
	err := m.Close()
	*m = gocv.Mat{}
	return err
}

func sizeOf(m gocv.Mat) image.Point { return image.Pt(m.Cols(), m.Rows()) }

func crop(m gocv.Mat, r image.Rectangle) (gocv.Mat, error) {
	r = r.Intersect(image.Rectangle{Max: sizeOf(m)})
	if r.Empty() {
		return gocv.Mat{}, errors.New("cropping outside the picture")
	}
	part := m.Region(r)
	defer part.Close()
	return part.Clone(), nil
}

func resize(m gocv.Mat, size image.Point) (gocv.Mat, error) {
	if err := checkSize(size); err != nil {
		return gocv.Mat{}, err
	}
	how := gocv.InterpolationLinear
	if from := sizeOf(m); size.X <= from.X && size.Y <= from.Y {
		how = gocv.InterpolationArea
	}
	dst := gocv.NewMat()
	gocv.Resize(m, &dst, size, 0, 0, how)
	return dst, nil
}
