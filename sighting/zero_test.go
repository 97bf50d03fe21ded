// SPDX-License-Identifier: Apache-2.0

package sighting_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

// A watcher without a learner, and every zero value, take no face, and no call of them panics.
func TestZero(t *testing.T) {
	for _, make := range []func() any{
		func() any { return new(sighting.Watcher) }, func() any { return new(sighting.Tracker) },
		func() any { return new(sighting.Identities) },
		func() any { return sighting.NewWatcher(nil) },
		func() any { return sighting.NewWatcher(new(online.Learner)) },
	} {
		kind := reflect.TypeOf(make())
		for i := range kind.NumMethod() {
			m := kind.Method(i)
			t.Run(fmt.Sprint(kind, m.Name), func(t *testing.T) {
				in := []reflect.Value{reflect.ValueOf(make())}
				for j := 1; j < m.Type.NumIn() && !(m.Type.IsVariadic() && j == m.Type.NumIn()-1); j++ {
					in = append(in, reflect.Zero(m.Type.In(j)))
				}
				m.Func.Call(in)
			})
		}
		if w, ok := make().(*sighting.Watcher); ok {
			if _, err := w.See(0, []face.Sample{{Vector: []float32{1}}}, nil); !errors.Is(err, face.ErrDimension) {
				t.Errorf("error %v", err)
			}
		}
	}
}
