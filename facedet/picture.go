// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"image"
	"image/color"

	"github.com/faceauth/faceauth/internal/cv"
)

// Errors of pictures.
var (
	ErrNotPicture = cv.ErrNotImage // the bytes or the Mat are no picture of a supported kind
	ErrTooLarge   = cv.ErrTooLarge // a picture has more than 64 million pixels
	ErrClosed     = cv.ErrClosed   // a picture is nil, or was used after it was closed
)

// Picture is an 8-bit picture in blue, green and red, of at least one pixel. Its pixels lie in memory of OpenCV, which
// Go's collector does not see: close every picture that you get or make. The zero Picture counts as closed.
//
// [FromImage] and [FromMat] convert a picture from memory. [ReadPicture] and [DecodePicture] read a file. Several
// goroutines may read a picture at once; only DrawBox and Close change it.
type Picture cv.Image

// Mat is gocv.io/x/gocv.Mat.
type Mat = cv.Mat

// FromMat returns a copy of an 8-bit Mat with one channel (grey), three (BGR) or four (BGRA; alpha is dropped). The
// caller keeps the Mat. The error wraps [ErrNotPicture] or [ErrTooLarge].
func FromMat(m Mat) (*Picture, error) { return picture(cv.FromMat(m)) }

// FromImage returns a copy of an image. Alpha is dropped. The error wraps [ErrNotPicture] or [ErrTooLarge].
func FromImage(m image.Image) (*Picture, error) { return picture(cv.FromImage(m)) }

// FromBGR returns a picture of that size with these pixels: blue, green and red, row by row. The error wraps
// [ErrNotPicture] or [ErrTooLarge].
func FromBGR(size image.Point, pix []byte) (*Picture, error) { return picture(cv.FromBGR(size, pix)) }

// ReadPicture reads an image file of any kind that OpenCV reads. 16 bits become 8, grey becomes BGR, alpha is dropped,
// and an EXIF orientation is applied. The error wraps [ErrNotPicture], [ErrTooLarge], or an error of package fs.
func ReadPicture(path string) (*Picture, error) { return picture(cv.ReadImage(path)) }

// DecodePicture is [ReadPicture] for the bytes of a file.
func DecodePicture(data []byte) (*Picture, error) { return picture(cv.DecodeImage(data)) }

func picture(m *cv.Image, err error) (*Picture, error) { return (*Picture)(m), err }

func (p *Picture) native() *cv.Image { return (*cv.Image)(p) }

// Mat returns a copy of the pixels as a Mat of gocv of the type CV8UC3, in the order BGR. The caller closes it.
func (p *Picture) Mat() (Mat, error) { return p.native().Mat() }

// Image returns a copy of the pixels in Go's memory.
func (p *Picture) Image() (*image.RGBA, error) { return p.native().RGBA() }

// BGR returns a copy of the pixels in Go's memory: blue, green and red, row by row.
func (p *Picture) BGR() ([]byte, error) { return p.native().BGR() }

// Size returns the width and the height in pixels, or 0,0 for a closed picture.
func (p *Picture) Size() image.Point { return p.native().Size() }

// Bounds returns the rectangle of the picture. It begins at 0,0.
func (p *Picture) Bounds() image.Rectangle { return image.Rectangle{Max: p.Size()} }

// Clone returns a copy. The error is [ErrClosed].
func (p *Picture) Clone() (*Picture, error) { return picture(p.native().Clone()) }

// Crop returns a copy of the part of r that lies in the picture, or an error if there is none.
func (p *Picture) Crop(r image.Rectangle) (*Picture, error) { return picture(p.native().Crop(r)) }

// Resize returns the picture scaled to size: by the mean over areas if it shrinks, bilinear if it grows.
func (p *Picture) Resize(size image.Point) (*Picture, error) { return picture(p.native().Resize(size)) }

// Thumbnail returns the grey values of the picture scaled down to size, row by row. Neither side of size may be larger
// than the picture. In a large picture some pixels are left out.
func (p *Picture) Thumbnail(size image.Point) ([]byte, error) { return p.native().Thumbnail(size) }

// Brightened returns the picture with each value multiplied by gain, 0 to 255. Values above 255 become 255.
func (p *Picture) Brightened(gain float64) (*Picture, error) {
	return picture(p.native().Brightened(gain))
}

// Warp maps the picture into a picture of the given size: the point x, y goes to a[0]x + a[1]y + a[2], a[3]x + a[4]y +
// a[5]. The interpolation is bilinear, and pixels from beyond the edges are black.
func (p *Picture) Warp(a [6]float64, size image.Point) (*Picture, error) {
	return picture(p.native().Warp(a, size))
}

// JPEG returns the picture as a JPEG file of that quality, 1 to 100.
func (p *Picture) JPEG(quality int) ([]byte, error) { return p.native().JPEG(quality) }

// DrawBox draws a rectangle, and above it a line of text on a background of the same colour. It does nothing to a
// closed picture.
func (p *Picture) DrawBox(r image.Rectangle, text string, c color.RGBA) {
	p.native().DrawBox(r, text, c)
}

// Close frees the picture. It may be called twice.
func (p *Picture) Close() error { return p.native().Close() }
