// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"fmt"
	"image"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
)

// What a frame of H.264 costs: decoded; with its small grey picture, as where nothing moves; and
// with its pixels.
func BenchmarkFilm(b *testing.B) {
	for _, size := range []image.Point{{640, 480}, {1280, 720}, {1920, 1080}, {3840, 2160}} {
		path := filepath.Join(b.TempDir(), "film.avi")
		shoot(b, cv.NewVideoWriter(path, "H264", 10), size, 20)
		for name, use := range map[string]func(m *cv.Image){
			"decoded": func(*cv.Image) {},
			"grey": func(m *cv.Image) {
				fixture.Must(m.Thumbnail(image.Pt(160, 160*size.Y/size.X)))(b)
			},
			"pixels": func(m *cv.Image) { fixture.Must(m.Crop(m.Bounds()))(b) },
		} {
			b.Run(fmt.Sprintf("%d/%s", size.Y, name), func(b *testing.B) {
				var c *cv.Film
				for b.Loop() {
					var m *cv.Image
					if c != nil {
						m, _, _ = c.Read()
					}
					if m == nil {
						c.Close()
						c = fixture.Must(cv.OpenFilm(path, "", "", time.Minute))(b)
						m, _, _ = c.Read()
					}
					use(m)
					m.Close()
				}
				c.Close()
			})
		}
	}
}
