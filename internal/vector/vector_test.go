// SPDX-License-Identifier: Apache-2.0

package vector_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/vector"
)

// Existing files have these bytes, so the format must not change. The bytes convert back to the
// same values.
func TestBytes(t *testing.T) {
	x := []float32{1, -2, 0, math.MaxFloat32}
	b := vector.Bytes(x)
	if want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0xff, 0xff, 0x7f,
		0x7f}; !bytes.Equal(b, want) {
		t.Errorf("bytes % x", b)
	}
	if got := vector.Floats(b); !slices.Equal(got, x) {
		t.Errorf("values %v", got)
	}
	if got := vector.Append([]byte{9}, x[:1]); !bytes.Equal(got, []byte{9, 0, 0, 0x80, 0x3f}) {
		t.Errorf("appended bytes % x", got)
	}
	if len(vector.Bytes(nil)) != 0 || len(vector.Floats(nil)) != 0 {
		t.Error("an empty vector did not stay empty")
	}
}
