// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"image"

	"github.com/faceauth/faceauth/internal/cv"
)

// Errors of pictures.
var (
	ErrNotPicture = cv.ErrNotImage // the bytes are no picture of a supported kind
	ErrTooLarge   = cv.ErrTooLarge // a picture has more than 64 million pixels, or a JPEG 256
	ErrClosed     = cv.ErrClosed   // a picture is nil, or was used after it was closed
)

// Picture is an 8-bit picture in blue, green and red, of at least one pixel. Its pixels lie in
// memory of OpenCV, which Go's collector does not see: close every picture that you get or make.
// The zero Picture counts as closed.
//
// [FromImage] and [FromBGR] convert a picture from memory. [ReadPicture] and [DecodePicture] read a
// file. Several goroutines may read a picture at once; DrawBox, Blacken and Close change it.
// Its methods are:
//
//   - Size, Bounds, Clone, Close, Whole, which reports whether all data of the picture came, Film,
//     whether its file holds a film, too, and Full, the size in the file of one that was halved;
//   - Image and BGR, which copy the pixels out, for package image, or row by row as a Mat of gocv
//     has them;
//   - Crop, Resize, Shrunk, Turn, Warp and Brightened, which return another picture, and Thumbnail,
//     in grey;
//   - DrawBox, Blacken, which makes polygons black, and JPEG, the file.
type Picture = cv.Image

// FromImage returns a copy of an image. Alpha is dropped. The error wraps [ErrNotPicture] or
// [ErrTooLarge].
func FromImage(m image.Image) (*Picture, error) { return cv.FromImage(m) }

// FromBGR returns a picture of that size with these pixels: blue, green and red, row by row. The
// error wraps [ErrNotPicture] or [ErrTooLarge].
func FromBGR(size image.Point, pix []byte) (*Picture, error) { return cv.FromBGR(size, pix) }

// ReadPicture reads an image file of any kind that OpenCV reads. 16 bits become 8, grey becomes
// BGR, alpha is dropped, and an EXIF orientation is applied. What is missing of a JPEG that ends
// too early is grey. One of more than 64 and at most 256 million pixels is read at half its width
// and height: Full says so. The error wraps [ErrNotPicture], [ErrTooLarge], or an error of package
// fs.
func ReadPicture(path string) (*Picture, error) { return cv.ReadImage(path) }

// DecodePicture is [ReadPicture] for the bytes of a file.
func DecodePicture(data []byte) (*Picture, error) { return cv.DecodeImage(data) }
