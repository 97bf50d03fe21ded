// SPDX-License-Identifier: Apache-2.0

package heif_test

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/heif"
)

// files returns the pictures that libheif and libavif have written: see package cv.
func files(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"*.heic", "*.avif"} {
		for _, path := range fixture.Must(filepath.Glob(filepath.Join("../cv/testdata", pattern)))(t) {
			all[filepath.Base(path)] = fixture.Must(os.ReadFile(path))(t)
		}
	}
	if len(all) < 6 {
		t.Fatalf("only %d files", len(all))
	}
	return all
}

func TestRead(t *testing.T) {
	all := files(t)
	grid := fixture.Must(heif.Read(all["grid.avif"]))(t)
	if grid.Size != image.Pt(160, 128) || grid.Columns != 2 || grid.Tile != image.Pt(80, 64) || len(grid.Tiles) != 4 ||
		!grid.Tiles[3].AV1 || grid.Changes != nil {
		t.Errorf("%+v", grid)
	}
	turned := fixture.Must(heif.Read(all["turned.avif"]))(t)
	if len(turned.Changes) != 2 || turned.Changes[0].Turn != 270 || turned.Changes[1].Mirror != heif.Vertical {
		t.Errorf("%+v", turned.Changes)
	}
	crop := fixture.Must(heif.Read(all["crop.avif"]))(t)
	if len(crop.Changes) != 1 || crop.Changes[0].Crop != image.Rect(80, 48, 160, 96) {
		t.Errorf("%+v", crop.Changes)
	}
	pq := fixture.Must(heif.Read(all["pq.avif"]))(t)
	if pq.Colour == nil || pq.Colour.Transfer != 16 || pq.Colour.Matrix != 9 {
		t.Errorf("%+v", pq.Colour)
	}
	for name, b := range all {
		for n := range b {
			_, err := heif.Read(b[:n])
			if err == nil || !errors.Is(err, heif.ErrDamaged) && !errors.Is(err, heif.ErrUnsupported) {
				t.Errorf("%s: %d of %d bytes: %v", name, n, len(b), err)
			}
		}
	}
}

// Whatever a file says, reading it ends soon, and what is returned fits together and lies in the file.
func FuzzRead(f *testing.F) {
	for _, b := range files(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := heif.Read(b)
		if err != nil {
			return
		}
		bytes := 0
		for _, tile := range p.Tiles {
			if len(tile.Data) == 0 || len(tile.Config) == 0 {
				t.Error("an empty tile")
			}
			bytes += len(tile.Data)
		}
		if bytes > 2*len(b) || len(p.Tiles)%p.Columns != 0 || p.Size.X < 1 || p.Size.Y < 1 ||
			p.Tile.X*p.Columns < 1 || len(p.Tiles) == 0 {
			t.Errorf("%d bytes, %d tiles of %v in %d columns for %v", bytes, len(p.Tiles), p.Tile, p.Columns, p.Size)
		}
	})
}
