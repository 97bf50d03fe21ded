// SPDX-License-Identifier: Apache-2.0

// Package cv is the only one that touches OpenCV, through gocv where a check beforehand makes a call
// safe, and through a few C++ functions of its own where only a file's content decides whether it
// succeeds. A failed assertion in OpenCV is a C++ exception, which aborts a Go process and cannot be
// recovered; nothing that a caller of this package does leads to one.
//
// An [Image] is always 8-bit BGR with at least one pixel, and a [Gray] always 8-bit with one channel:
// what other packages hold has the right type already. The caller who gets a picture closes it.
package cv

/*
#cgo CXXFLAGS: -std=c++11 -O2
#cgo pkg-config: opencv4
#include <stdlib.h>
#include "safe.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"gocv.io/x/gocv"
)

// Errors that functions of this package wrap.
var (
	ErrNotImage = errors.New("not an image that can be read")
	ErrTooLarge = errors.New("image too large")
	ErrClosed   = errors.New("used after it was closed")
	ErrCutOff   = errors.New("the file is cut off")
	ErrMemory   = errors.New("out of memory")
)

func init() { C.fa_quiet() }

// Version returns the version of OpenCV.
func Version() string { return gocv.OpenCVVersion() }

// failure takes the text of a C++ exception over from the C side and frees it.
func failure(err *C.char) error {
	if err == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(err))
	return classify(C.GoString(err))
}

// classify returns the error that the text of an exception stands for. It wraps [ErrMemory] where that is the reason,
// so that a full machine is not taken for a damaged file.
func classify(text string) error {
	if strings.Contains(text, "bad_alloc") || strings.Contains(text, "Insufficient memory") {
		return fmt.Errorf("%w: %s", ErrMemory, text)
	}
	return errors.New(text)
}
