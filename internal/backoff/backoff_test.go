// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/internal/backoff"
)

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := backoff.Pause{First: time.Second, Longest: 5 * time.Second}
		wait := func(want time.Duration) {
			t.Helper()
			begun := time.Now()
			if !p.Wait(t.Context()) || time.Since(begun) != want {
				t.Errorf("waited %v, want %v", time.Since(begun), want)
			}
		}
		for _, want := range []time.Duration{1, 2, 4, 5, 5} {
			wait(want * time.Second)
		}
		p.Reset()
		wait(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		begun := time.Now()
		if p.Wait(ctx) || time.Since(begun) != time.Second/2 {
			t.Errorf("a context that ends: waited %v", time.Since(begun))
		}
	})
}
