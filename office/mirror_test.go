// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"image"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
)

// Alice and her mirror image, which is sometimes the better match: she arrives, nobody unknown is there, and no group and
// no past sighting is made of the image. A stranger beside them is told as before.
func TestMirror(t *testing.T) {
	g := peopleAt(t, filepath.Join(t.TempDir(), "g.db"))
	p := past(t, g)
	var k recorded
	o := k.options()
	o.Past = p
	all := frames(strings.Repeat("as ", 60))
	for i := range all {
		near, mirrored := []float32{.1 * float32(i%2), 0}, []float32{.1 * float32((i+1)%2), .05}
		all[i].Samples[0].Vector = near
		all[i].Samples = append(all[i].Samples, face.Sample{Box: image.Rect(5, 50, 13, 58), Vector: mirrored})
	}
	w, err := run(t.Context(), t, g, o, film(all, nil))
	nothing(t, err)
	if len(w.Strangers()) != 1 {
		t.Errorf("%d groups", len(w.Strangers()))
	}
	unknown := 0
	for _, e := range k.events {
		if strings.HasPrefix(e, "unknown") {
			unknown++
		}
	}
	if unknown != 1 || !slices.ContainsFunc(k.events, func(e string) bool { return strings.HasPrefix(e, "arrived alice") }) {
		t.Errorf("%q", k.events)
	}
}
