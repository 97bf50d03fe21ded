// SPDX-License-Identifier: Apache-2.0

// Package vector converts vectors to bytes and back: little-endian float32, as in all files and
// messages.
package vector

import (
	"encoding/binary"
	"math"
)

// Append appends the bytes of x to b.
func Append(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Bytes returns the 4 len(x) bytes of x.
func Bytes(x []float32) []byte { return Append(make([]byte, 0, 4*len(x)), x) }

// Floats returns the len(b)/4 values in b.
func Floats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}
