// SPDX-License-Identifier: Apache-2.0

package cv

/*
#include <stdlib.h>
#include "safe.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Tensor is an output of a network, in Go's memory.
type Tensor struct {
	Shape []int
	Data  []float32
}

// Blob describes the input of a network: the image is scaled to Size, then (x - Mean)·Scale is
// computed for each channel. The order of the channels is BGR, or RGB if RGB is set. If Gray is
// set, there is one grey channel.
type Blob struct {
	Size  image.Point
	Scale float64
	Mean  [3]float64 // in the order of the channels
	RGB   bool
	Gray  bool
}

// Net is a neural network in ONNX. It is not safe for concurrent use.
type Net struct {
	p    unsafe.Pointer
	runs string
}

var forwarded atomic.Int64

// ForwardTime returns the total time of the forward passes of all networks in this process, without
// the work before and after them. Only other networks can reduce this time.
func ForwardTime() time.Duration { return time.Duration(forwarded.Load()) }

// OpenNet reads a network from an ONNX file. A damaged file, or a layer that OpenCV does not know,
// is an error; attributes that it does not know it leaves out in silence (see package network).
func OpenNet(path string) (*Net, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var fail *C.char
	p := C.fa_net_open(name, &fail)
	if err := failure(fail); err != nil {
		return nil, fmt.Errorf("reading network %s: %w", path, err)
	}
	return &Net{p, "OpenCV " + Version()}, nil
}

// runtime is ONNX Runtime in this process: it is loaded once, and opens one network after another.
var runtime struct {
	sync.Mutex
	version string
}

// OpenRuntime is OpenNet in ONNX Runtime, from the content of an ONNX file. The first call loads
// the library at a path, which must be trusted: its code runs in this process. A library that
// cannot be used is an error, and later calls may name another.
func OpenRuntime(library string, model []byte) (*Net, error) {
	runtime.Lock()
	defer runtime.Unlock()
	var fail *C.char
	if runtime.version == "" {
		name := C.CString(library)
		defer C.free(unsafe.Pointer(name))
		version := C.fa_ort_load(name, &fail)
		if err := failure(fail); err != nil {
			return nil, fmt.Errorf("loading ONNX Runtime from %s: %w", library, err)
		}
		runtime.version = C.GoString(version)
	}
	p := C.fa_ort_open(unsafe.Pointer(unsafe.SliceData(model)), C.size_t(len(model)), &fail)
	if err := failure(fail); err != nil {
		return nil, fmt.Errorf("ONNX Runtime %s does not take the network: %w", runtime.version,
			err)
	}
	return &Net{p, "ONNX Runtime " + runtime.version}, nil
}

// Processor names the processor of this machine, as far as programs without privileges can tell.
func Processor() string {
	var name [64]C.char
	C.fa_processor(&name[0], C.size_t(len(name)))
	return C.GoString(&name[0])
}

// Runs names what runs the network, with its version.
func (n *Net) Runs() string { return n.runs }

// Forward runs the network on img and returns the named outputs. Without names it returns the last
// output.
func (n *Net) Forward(img *Image, in Blob, outputs ...string) ([]Tensor, error) {
	if n.p == nil {
		return nil, fmt.Errorf("network: %w", ErrClosed)
	}
	if err := cmp.Or(img.check(), checkSize(in.Size)); err != nil {
		return nil, fmt.Errorf("running network: %w", err)
	}
	if len(outputs) == 0 {
		outputs = []string{""}
	}
	blob := C.fa_blob{width: C.int(in.Size.X), height: C.int(in.Size.Y), scale: C.double(in.Scale)}
	for i, m := range in.Mean {
		blob.mean[i] = C.double(m)
	}
	if in.RGB {
		blob.rgb = 1
	}
	if in.Gray {
		blob.gray = 1
	}
	names := make([]*C.char, len(outputs))
	for i, name := range outputs {
		names[i] = C.CString(name)
		defer C.free(unsafe.Pointer(names[i]))
	}
	out := make([]C.fa_tensor, len(outputs))
	defer func() {
		for _, t := range out {
			C.free(unsafe.Pointer(t.data))
		}
	}()
	var fail *C.char
	var ns C.longlong
	C.fa_net_forward(n.p, unsafe.Pointer(img.mat.Ptr()), &blob, &names[0], C.int(len(names)),
		&out[0], &ns, &fail)
	forwarded.Add(int64(ns))
	if err := failure(fail); err != nil {
		return nil, fmt.Errorf("running network: %w", err)
	}
	tensors := make([]Tensor, len(out))
	for i, t := range out {
		size := 1
		for d := range int(t.dims) {
			tensors[i].Shape = append(tensors[i].Shape, int(t.shape[d]))
			size *= int(t.shape[d])
		}
		if size > 0 {
			tensors[i].Data = append([]float32(nil),
				unsafe.Slice((*float32)(unsafe.Pointer(t.data)), size)...)
		}
		for _, x := range tensors[i].Data {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("running network: output %d is not finite", i+1)
			}
		}
	}
	return tensors, nil
}

// Close frees the network. It may be called twice.
func (n *Net) Close() error {
	if n.p != nil {
		C.fa_net_close(n.p)
		n.p = nil
	}
	return nil
}
