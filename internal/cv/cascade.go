// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include <stdlib.h>
#include "safe.h"
*/
import "C"

import (
	"fmt"
	"image"
	"os"
	"unsafe"

	"gocv.io/x/gocv"
)

// Cascade is a cascade of boosted classifiers (Viola and Jones 2001). It is not safe for concurrent
// use.
type Cascade struct{ p unsafe.Pointer }

// OpenCascade reads a cascade from an XML file.
func OpenCascade(path string) (*Cascade, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var fail *C.char
	p := C.fa_cascade_open(name, &fail)
	if err := failure(fail); err != nil {
		return nil, fmt.Errorf("reading cascade %s: %w", path, err)
	}
	return &Cascade{p}, nil
}

// mostFaces bounds the faces of one frame.
const mostFaces = 256

// Detect returns the boxes found in img, none smaller than smallest pixels. The grey picture is
// equalised first.
func (c *Cascade) Detect(img *Image, smallest int) ([]image.Rectangle, error) {
	if c.p == nil {
		return nil, fmt.Errorf("cascade: %w", ErrClosed)
	}
	if err := img.check(); err != nil {
		return nil, fmt.Errorf("running cascade: %w", err)
	}
	g := img.Gray()
	defer g.Close()
	gocv.EqualizeHist(g.mat, &g.mat)
	var raw [4 * mostFaces]C.int
	var fail *C.char
	n := C.fa_cascade_detect(c.p, unsafe.Pointer(g.mat.Ptr()), C.int(max(smallest, 1)), &raw[0],
		mostFaces, &fail)
	if err := failure(fail); err != nil {
		return nil, fmt.Errorf("running cascade: %w", err)
	}
	var boxes []image.Rectangle
	for i := range int(n) {
		b := raw[4*i:]
		r := image.Rect(int(b[0]), int(b[1]), int(b[0]+b[2]),
			int(b[1]+b[3])).Intersect(img.Bounds())
		if !r.Empty() {
			boxes = append(boxes, r)
		}
	}
	return boxes, nil
}

// Close frees the cascade. It may be called twice.
func (c *Cascade) Close() error {
	if c.p != nil {
		C.fa_cascade_close(c.p)
		c.p = nil
	}
	return nil
}
