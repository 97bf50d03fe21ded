// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"errors"
	"io"
	"testing"

	"github.com/faceauth/faceauth/face"
)

// The newest faces are kept, with their pictures; the other faces are only counted.
func TestLessons(t *testing.T) {
	var none *lessons
	none.add(face.Frame{Samples: make([]face.Sample, 1)})
	var k lessons
	for i := range mostLessons {
		k.add(face.Frame{Index: i, Samples: make([]face.Sample, i%3)})
		k.add(face.Frame{Index: i, Samples: []face.Sample{{JPEG: []byte{1}}}})
	}
	total := mostLessons // one in each second frame; the loop adds the others
	for i := range mostLessons {
		total += i % 3
	}
	if k.faces > mostLessons || k.faces < mostLessons-2 || k.faces+k.left != total {
		t.Errorf("%d faces are kept and %d left out, of %d", k.faces, k.left, total)
	}
	faces, again := 0, k
	for {
		f, err := again.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		for _, s := range f.Samples {
			if faces++; f.Index%3 == 0 && s.JPEG == nil {
				t.Fatal("a picture is lost")
			}
		}
	}
	if faces != k.faces || again.left != k.left {
		t.Errorf("%d faces are given, of %d", faces, k.faces)
	}
}
