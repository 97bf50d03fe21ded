// SPDX-License-Identifier: Apache-2.0

package vector_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/vector"
)

// The bytes are those of files that are there already, and come back as the same values.
func TestBytes(t *testing.T) {
	x := []float32{1, -2, 0, math.MaxFloat32}
	b := vector.Bytes(x)
	if want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0xff, 0xff, 0x7f, 0x7f}; !bytes.Equal(b, want) {
		t.Errorf("% x", b)
	}
	if got := vector.Floats(b); !slices.Equal(got, x) {
		t.Errorf("%v", got)
	}
	if got := vector.Append([]byte{9}, x[:1]); !bytes.Equal(got, []byte{9, 0, 0, 0x80, 0x3f}) {
		t.Errorf("% x", got)
	}
	if len(vector.Bytes(nil)) != 0 || len(vector.Floats(nil)) != 0 {
		t.Error("nothing became something")
	}
}
