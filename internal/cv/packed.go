// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include "safe.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"sync"
	"unsafe"

	"gocv.io/x/gocv"
)

// packed is a JPEG.
type packed struct {
	jpeg []byte
	size image.Point

	mu    sync.Mutex
	small *Gray // the last thumbnail
}

// FromJPEG returns a picture whose pixels are decoded when they are asked for. The picture keeps
// data. An EXIF orientation is not applied. If the header is good and the rest cannot be decoded,
// the picture is grey, as video decoders show a damaged frame, and so is what is missing of a JPEG
// that ends too early: see [Image.Whole]. The error wraps [ErrNotImage] or [ErrTooLarge].
func FromJPEG(data []byte) (*Image, error) {
	c, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNotImage, err)
	}
	size := image.Pt(c.Width, c.Height)
	if err := checkSize(size); err != nil {
		return nil, err
	}
	data, _, whole := ended(data)
	return &Image{later: &packed{jpeg: data, size: size}, part: !whole}, nil
}

func (p *packed) bounds() image.Point { return p.size }

func (p *packed) open() (gocv.Mat, error) {
	return p.decode(gocv.IMReadColor, p.size, gocv.MatTypeCV8UC3)
}

// thumbnail returns the grey values at a size. It decodes no more frequencies than this size needs,
// which makes each grey value the mean of nearly all of its pixels.
func (p *packed) thumbnail(size image.Point) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.small == nil || p.small.Size() != size {
		how, by := gocv.IMReadGrayScale, 1
		for _, r := range []struct {
			how gocv.IMReadFlag
			by  int
		}{{gocv.IMReadReducedGrayscale2, 2}, {gocv.IMReadReducedGrayscale4, 4},
			{gocv.IMReadReducedGrayscale8, 8}} {
			if s := p.reduced(r.by); s.X >= size.X && s.Y >= size.Y {
				how, by = r.how, r.by
			}
		}
		m, err := p.decode(how, p.reduced(by), gocv.MatTypeCV8UC1)
		if err != nil {
			return nil, err
		}
		g := &Gray{m}
		defer g.Close()
		small, err := g.Resize(size)
		if err != nil {
			return nil, err
		}
		p.close()
		p.small = small
	}
	return p.small.Bytes(), nil
}

// reduced returns the size of the picture at a scale of 1/by.
func (p *packed) reduced(by int) image.Point {
	return image.Pt((p.size.X+by-1)/by, (p.size.Y+by-1)/by)
}

// decode returns a Mat of exactly this size and type.
func (p *packed) decode(how gocv.IMReadFlag, size image.Point,
	kind gocv.MatType) (gocv.Mat, error) {
	m := gocv.NewMat()
	var fail *C.char
	C.fa_decode(unsafe.Pointer(&p.jpeg[0]), C.int(len(p.jpeg)),
		C.int(how|gocv.IMReadIgnoreOrientation), unsafe.Pointer(m.Ptr()), &fail)
	if err := failure(fail); errors.Is(err, ErrMemory) {
		m.Close()
		return gocv.Mat{}, err
	} else if err == nil && m.Type() == kind && sizeOf(m) == size {
		return m, nil
	}
	m.Close()
	return gocv.NewMatWithSizeFromScalar(gocv.NewScalar(128, 128, 128, 0), size.Y, size.X, kind),
		nil
}

func (p *packed) close() {
	if p.small != nil {
		p.small.Close()
	}
}
