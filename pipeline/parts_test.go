// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"image"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
)

// A face of any size, anywhere in a large picture, is whole in a window in which it is large enough
// to be found.
func TestWindowsShowEveryFace(t *testing.T) {
	for _, name := range []string{"fr_detect", "yunet"} {
		showEveryFace(t, fixture.Must(models.Of(models.Detector, name))(t))
	}
	d := models.Default(models.Detector)
	for _, size := range []image.Point{{640, 480}, {960, 720}, {1, 1}, {0, 0}} {
		if w := facedet.Windows(d, image.Rectangle{Max: size}); len(w) != 1 {
			t.Errorf("%v: %d windows", size, len(w))
		}
	}
	if w := facedet.Windows(d, image.Rect(0, 0, 1920, 1080)); len(w) != 13 {
		t.Errorf("1920x1080 has %d windows", len(w))
	}
	yunet := fixture.Must(models.Of(models.Detector, "yunet"))(t)
	for size, n := range map[image.Point]int{{640, 480}: 1, {1920, 1080}: 1, {3840, 2160}: 7} {
		if w := facedet.Windows(yunet, image.Rectangle{Max: size}); len(w) != n {
			t.Errorf("%v: %d windows of YuNet, want %d", size, len(w), n)
		}
	}
}

func showEveryFace(t *testing.T, d models.Description) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []image.Point{{1280, 720}, {1920, 1080}, {1080, 1920}, {2560, 1440},
		{3840, 2160},
		{8000, 6000}, {20000, 900}} {
		windows, least := facedet.Windows(d, image.Rectangle{Max: size}), d.LeastSeen(size)
		if windows[0].Size() != size {
			t.Errorf("%v: the first window is %v", size, windows[0])
		}
		for range 2000 {
			h := max(face.LeastSide, least) + r.IntN(size.Y/2)
			w := h * 4 / 5
			at := image.Pt(r.IntN(size.X-w), r.IntN(size.Y-h))
			box := image.Rectangle{at, at.Add(image.Pt(w, h))}
			if !slices.ContainsFunc(windows, func(p image.Rectangle) bool {
				return box.In(p) && pipeline.Shown(d, h, p)
			}) {
				t.Fatalf("%v: a face in %v is in no window that shows it", size, box)
			}
		}
	}
}

// Fit holds the box, lies in the picture, and has the shape 4:3 where it can.
func TestFit(t *testing.T) {
	size := image.Pt(1920, 1080)
	for box, want := range map[image.Rectangle]image.Rectangle{
		image.Rect(900, 500, 940, 540):     image.Rect(600, 280, 1240, 760),
		image.Rect(0, 0, 40, 40):           image.Rect(0, 0, 640, 480),
		image.Rect(1900, 1000, 1920, 1080): image.Rect(1280, 600, 1920, 1080),
		image.Rect(100, 0, 400, 1080):      image.Rect(0, 0, 1440, 1080),
		image.Rect(0, 0, 1920, 1080):       image.Rect(0, 0, 1920, 1080),
	} {
		if got := pipeline.Fit(box, size); got != want {
			t.Errorf("%v: %v, want %v", box, got, want)
		}
	}
}
