// SPDX-License-Identifier: Apache-2.0

// Package cv is the only package that uses OpenCV, ONNX Runtime, which runs networks faster, and
// FFmpeg's libraries, which read films and streams. It calls gocv after checks that make a call
// safe. If only the content of a file decides whether a call succeeds, it calls its own C++
// functions, which catch exceptions. A failed assertion in OpenCV is a C++ exception, which aborts
// a Go process. No caller of this package can cause one.
//
// An [Image] is always 8-bit BGR with at least one pixel, and a [Gray] always 8-bit with one
// channel, so functions that take one need no further checks. The caller of a function that returns
// a picture closes the picture.
package cv

/*
#cgo CXXFLAGS: -std=c++11 -O2
#cgo pkg-config: opencv4 libavformat libavcodec libswscale libavutil
#cgo LDFLAGS: -ldl
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

// OneThread makes OpenCV work in the caller's thread alone, and keep the memory of one frame for
// the next: for a process that sees, and does nothing else.
func OneThread() { C.fa_one_thread() }

// Reuse keeps the memory of a large photograph for the next one, where pages that are mapped anew
// take a third of the time (lab/NOTES.md).
func Reuse() { C.fa_reuse() }

// Trim gives memory that was freed in C++ back to the system.
func Trim() { C.fa_trim() }

// Version returns the version of OpenCV.
func Version() string { return gocv.OpenCVVersion() }

// failure copies the text of a C++ exception from the C side and frees it.
func failure(err *C.char) error {
	if err == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(err))
	return classify(C.GoString(err))
}

// classify returns the error for the text of an exception. It wraps [ErrMemory] if memory was
// short, so that callers do not take the exception for a damaged file.
func classify(text string) error {
	if strings.Contains(text, "bad_alloc") || strings.Contains(text, "Insufficient memory") ||
		strings.Contains(text, "Failed to allocate memory") {
		return fmt.Errorf("%w: %s", ErrMemory, text)
	}
	return errors.New(text)
}
