// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
)

// A face that two people claim alike is nobody's.
func TestTieIsNobodys(t *testing.T) {
	l := fixture.Must(online.New(plane, online.Settings{Accept: .01}))(t)
	fixture.Check(t, l.Label([]float32{-.3, 0}, alice))
	fixture.Check(t, l.Label([]float32{.3, 0}, bob))
	v := fixture.Must(l.Observe([]float32{0, 0}))(t)
	if v.Person != 0 || v.Best != 0 || v.Reason != online.Tie {
		t.Errorf("%+v", v)
	}
}
