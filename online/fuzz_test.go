// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"testing"

	"github.com/faceauth/faceauth/online"
)

// FuzzUnmarshal checks that any bytes read as a snapshot give an error or a learner that works. The
// operations of a learner are fuzzed together with those of package gallery.
func FuzzUnmarshal(f *testing.F) {
	data := small(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		var l online.Learner
		switch err := l.UnmarshalBinary(data); {
		case err == nil:
			works(t, &l)
		case !errors.Is(err, online.ErrDamaged) && !errors.Is(err, online.ErrVersion):
			t.Fatal(err)
		}
	})
}
