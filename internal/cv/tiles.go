// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include "safe.h"
*/
import "C"

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"unsafe"

	"github.com/faceauth/faceauth/internal/heif"
	"gocv.io/x/gocv"
)

// decodeHEIF decodes a HEIF picture: HEIC, HIF or AVIF. Whatever EXIF says, the container turns it.
func decodeHEIF(data []byte) (*Image, error) {
	p, err := heif.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotImage, err)
	}
	// a tile may be larger than the picture that is cut out of it
	err = cmp.Or(checkSize(p.Size), checkSize(p.Tile))
	if err != nil {
		return nil, err
	}
	mat, err := lay(p)
	if err != nil {
		return nil, err
	}
	img := &Image{mat: mat}
	for _, c := range p.Changes {
		next, err := img.changed(c)
		img.Close()
		if err != nil {
			return nil, err
		}
		img = next
	}
	return img, nil
}

// lay decodes the tiles of a picture side by side.
func lay(p *heif.Picture) (gocv.Mat, error) {
	mat := gocv.NewMatWithSize(p.Size.Y, p.Size.X, gocv.MatTypeCV8UC3)
	var decoder unsafe.Pointer
	var opened heif.Tile
	defer func() { C.fa_tiles_close(decoder) }()
	for i, t := range p.Tiles {
		var err error
		if decoder == nil || t.AV1 != opened.AV1 || !bytes.Equal(t.Config, opened.Config) {
			C.fa_tiles_close(decoder)
			coding := C.fa_coding(C.FA_HEVC)
			if t.AV1 {
				coding = C.FA_AV1
			}
			const block = 128 // the greatest, in which tiles are coded
			decoder, err = openDecoder(coding, t.Config, (p.Tile.X+block)*(p.Tile.Y+block))
			opened = t
		}
		if err == nil {
			at := image.Pt(i%p.Columns*p.Tile.X, i/p.Columns*p.Tile.Y)
			err = decodeTile(decoder, t, p, mat, at)
		}
		if err != nil {
			mat.Close()
			return gocv.Mat{}, err
		}
	}
	return mat, nil
}

// openDecoder opens a decoder of pictures of so many pixels at most. The caller closes it.
func openDecoder(coding C.fa_coding, config []byte, most int) (unsafe.Pointer, error) {
	var fail *C.char
	decoder := C.fa_tiles_open(coding, unsafe.Pointer(unsafe.SliceData(config)),
		C.int(len(config)), C.longlong(most), &fail)
	err := failure(fail)
	if err == nil && decoder == nil {
		err = fmt.Errorf("%w: there is no decoder for it", ErrNotImage)
	}
	return decoder, err
}

// isJXL reports whether data are JPEG XL: in boxes, or bare (ISO/IEC 18181-2).
func isJXL(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\x00\x00\x00\x0cJXL \r\n\x87\n")) ||
		bytes.HasPrefix(data, []byte("\xff\x0a"))
}

// decodeJXL decodes JPEG XL. The decoder turns the picture, whatever EXIF says.
func decodeJXL(data []byte) (*Image, error) {
	decoder, err := openDecoder(C.FA_JPEGXL, nil, maxPixels)
	if err != nil {
		return nil, err
	}
	defer C.fa_tiles_close(decoder)
	mat := gocv.NewMat()
	err = decodeTile(decoder, heif.Tile{Data: data}, &heif.Picture{}, mat, image.Point{})
	if err != nil {
		mat.Close()
		return nil, err
	}
	return adopt(mat)
}

// decodeTile decodes a tile into a picture, where it begins. An empty picture becomes the tile.
func decodeTile(decoder unsafe.Pointer, t heif.Tile, p *heif.Picture, to gocv.Mat,
	at image.Point) error {
	matrix, full, transfer := C.int(-1), C.int(-1), C.int(-1)
	if p.Colour != nil {
		matrix, full, transfer = C.int(p.Colour.Matrix), 0, C.int(p.Colour.Transfer)
		if p.Colour.Full {
			full = 1
		}
	}
	var w, h C.int
	var fail *C.char
	ok := C.fa_tiles_decode(decoder, unsafe.Pointer(&t.Data[0]), C.int(len(t.Data)), matrix, full,
		transfer, unsafe.Pointer(to.Ptr()), C.int(at.X), C.int(at.Y), &w, &h, &fail)
	switch err := failure(fail); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotImage, err)
	case ok == 0:
		return fmt.Errorf("%w: a part of it cannot be decoded", ErrNotImage)
	case p.Tile != image.Point{} && image.Pt(int(w), int(h)) != p.Tile:
		return fmt.Errorf("%w: a tile of %dx%d pixels, and not of %dx%d", ErrNotImage, w, h,
			p.Tile.X, p.Tile.Y)
	}
	return nil
}

// changed returns a picture cropped, turned or mirrored.
func (m *Image) changed(c heif.Change) (*Image, error) {
	switch {
	case !c.Crop.Empty():
		return m.Crop(c.Crop)
	case c.Mirror == heif.Vertical:
		return m.oriented(2)
	case c.Mirror == heif.Horizontal:
		return m.oriented(4)
	}
	return m.Turn(c.Turn)
}
