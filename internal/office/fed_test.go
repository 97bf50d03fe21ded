// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/office"
)

// fed is a camera that shows the frames that the test gives it.
type fed struct{ frames chan face.Frame }

func (s fed) Next(ctx context.Context) (face.Frame, error) {
	select {
	case f, ok := <-s.frames:
		if !ok {
			return f, io.EOF
		}
		return f, nil
	case <-ctx.Done():
		return face.Frame{}, ctx.Err()
	}
}
func (fed) Close() error { return nil }
func (fed) Dropped() int { return 0 }

// feed runs an office with one camera. Show gives the camera the frames of a script, at 5 a second,
// and fails if it takes none of them for minutes; end lets it end, and the office with it.
func feed(t *testing.T, w *office.Office) (show func(script string), end func()) {
	t.Helper()
	camera := fed{make(chan face.Frame)}
	ended := make(chan error)
	go func() {
		ended <- w.Run(t.Context(), []office.Camera{{Name: "door", Ends: true,
			Open: func(context.Context, func() bool) (office.Stream, error) {
				return camera,
					nil
			}}})
	}()
	index := 0
	show = func(script string) {
		t.Helper()
		for _, f := range frames(script) {
			f.Index, f.Time = index, time.Duration(index)*time.Second/5
			index++
			select {
			case camera.frames <- f:
			case err := <-ended:
				t.Fatalf("the office has ended: %v", err)
			case <-time.After(4 * time.Minute):
				t.Fatal("the camera is held up")
			}
		}
	}
	return show, func() {
		t.Helper()
		close(camera.frames)
		nothing(t, <-ended)
	}
}
