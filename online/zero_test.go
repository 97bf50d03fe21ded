// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// The zero value knows nobody, and takes no face. No call of it panics.
func TestZeroLearner(t *testing.T) {
	kind := reflect.TypeFor[*online.Learner]()
	for i := range kind.NumMethod() {
		m := kind.Method(i)
		for _, l := range []*online.Learner{new(online.Learner), learner(t, online.Settings{})} {
			t.Run(m.Name, func(t *testing.T) {
				in := []reflect.Value{reflect.ValueOf(l)}
				for j := 1; j < m.Type.NumIn() && !(m.Type.IsVariadic() && j == m.Type.NumIn()-1); j++ {
					in = append(in, reflect.Zero(m.Type.In(j)))
				}
				m.Func.Call(in)
			})
		}
	}
	l := new(online.Learner)
	for _, x := range [][]float32{nil, {}, {1, 2}} {
		_, judged := l.Judge(x)
		_, observed := l.Observe(x)
		for what, err := range map[string]error{
			"Judge": judged, "Observe": observed, "Label": l.Label(x, alice), "Reject": l.Reject(x, alice),
		} {
			if !errors.Is(err, face.ErrDimension) {
				t.Errorf("%s of %d values: error %v", what, len(x), err)
			}
		}
	}
	if len(l.People()) > 0 || len(l.Labels()) > 0 {
		t.Errorf("it knows %v", l.People())
	}
}
