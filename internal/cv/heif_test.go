// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/heif"
)

// quarters names the colours of the four quarters of a picture: top left, top right, bottom left, bottom right.
func quarters(t *testing.T, img *cv.Image) string {
	t.Helper()
	size := img.Size()
	pixels := fixture.Must(img.BGR())(t)
	all := ""
	for _, at := range []image.Point{{1, 1}, {3, 1}, {1, 3}, {3, 3}} {
		i := 3 * (at.Y*size.Y/4*size.X + at.X*size.X/4)
		b, g, r := pixels[i], pixels[i+1], pixels[i+2]
		colour := "?"
		switch {
		case r > 190 && g > 190 && b > 190:
			colour = "w"
		case r > 150 && g < 90 && b < 90:
			colour = "r"
		case g > 150 && r < 100 && b < 90:
			colour = "g"
		case b > 150 && r < 90 && g < 90:
			colour = "b"
		}
		all += colour
	}
	return all
}

// The files in testdata are made by heif-enc (libheif 1.15) and avifenc (libavif 0.11) of one picture of 160x96 pixels:
// red, green, blue and white.
func TestHEIF(t *testing.T) {
	for name, want := range map[string]string{
		"single.heic": "160x96 rgbw", "single.avif": "160x96 rgbw",
		"grid.avif":   "160x128 rgbw",
		"turned.avif": "96x160 wgbr", // to the left, and mirrored then
		"crop.avif":   "80x48 wwww",
	} {
		img, err := cv.ReadImage(filepath.Join("testdata", name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		size := img.Size()
		if got := fmt.Sprintf("%dx%d %s", size.X, size.Y, quarters(t, img)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		img.Close()
	}
	// The values are those of sRGB, taken as PQ and HLG: 220 of 255 is brighter than the white of a display, and 30 is
	// dark.
	for _, name := range []string{"pq.avif", "hlg.avif"} {
		img := fixture.Must(cv.ReadImage(filepath.Join("testdata", name)))(t)
		pixels := fixture.Must(img.BGR())(t)
		first, last := pixels[:3], pixels[len(pixels)-3:]
		if last[0] != 255 || last[1] != 255 || first[2] < 200 || first[0] > 60 {
			t.Errorf("%s: from %v to %v", name, first, last)
		}
		img.Close()
	}
}

// u makes a box of parts: numbers are big-endian, as wide as they are.
func u(kind string, parts ...any) []byte {
	var body []byte
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			body = append(body, p...)
		case string:
			body = append(body, p...)
		default:
			body, _ = binary.Append(body, binary.BigEndian, p)
		}
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return append(append(b, kind...), body...)
}

// telephone lays tiles as an iPhone does: a grid in idat, and its tiles in mdat. The last column and row reach beyond the
// picture. Rotation is that of irot.
func telephone(t *testing.T, tile heif.Tile, of, size image.Point, columns, rows int, rotation byte) []byte {
	t.Helper()
	n := columns * rows
	head := u("ftyp", "heic", uint32(0), "mif1", "heic")
	grid := []any{[]byte{0, 0}, []byte{byte(rows - 1), byte(columns - 1)}, uint16(size.X), uint16(size.Y)}
	var infos, links []byte
	infos = append(infos, u("infe", uint32(2<<24), uint16(1), uint16(0), "grid", byte(0))...)
	for k := range n {
		infos = append(infos, u("infe", uint32(2<<24), uint16(k+2), uint16(0), "hvc1", byte(0))...)
		links = binary.BigEndian.AppendUint16(links, uint16(k+2))
	}
	uses := []byte{0, 1, 3, 3, 4, 5} // of the grid: its size, irot, and a property that nobody knows
	for k := range n {
		uses = append(uses, 0, byte(k+2), 2, 0x81, 2)
	}
	build := func(mdat uint32) []byte {
		places := []any{uint32(1 << 24), uint16(0x4400), uint16(n + 1),
			uint16(1), uint16(1), uint16(0), uint16(1), uint32(0), uint32(8)}
		for k := range n {
			places = append(places, uint16(k+2), uint16(0), uint16(0), uint16(1), mdat, uint32(len(tile.Data)))
		}
		return u("meta", uint32(0), u("hdlr", uint32(0), "\x00\x00\x00\x00pict", make([]byte, 13)),
			u("pitm", uint32(0), uint16(1)), u("iinf", uint32(0), uint16(n+1), infos),
			u("iref", uint32(0), u("dimg", uint16(1), uint16(n), links)),
			u("iprp", u("ipco", u("hvcC", tile.Config), u("ispe", uint32(0), uint32(of.X), uint32(of.Y)),
				u("ispe", uint32(0), uint32(size.X), uint32(size.Y)), u("irot", rotation), u("what", uint32(7))),
				u("ipma", uint32(0), uint32(n+1), uses)),
			u("idat", grid...), u("iloc", places...))
	}
	meta := build(0)
	meta = build(uint32(len(head) + len(meta) + 8))
	return append(append(head, meta...), u("mdat", tile.Data)...)
}

// The tiles of an iPhone's photograph make one picture, turned as the container says: EXIF, which says it again, does
// not count.
func TestTelephone(t *testing.T) {
	single := fixture.Must(heif.Read(fixture.Must(os.ReadFile("testdata/single.heic"))(t)))(t)
	of := single.Size
	size := image.Pt(2*of.X-10, 2*of.Y-6)
	file := telephone(t, single.Tiles[0], of, size, 2, 2, 3) // counter-clockwise by 270 degrees
	img := fixture.Must(cv.DecodeImage(file))(t)
	defer img.Close()
	if img.Size() != image.Pt(size.Y, size.X) {
		t.Fatalf("%v", img.Size())
	}
	back := fixture.Must(img.Turn(270))(t)
	defer back.Close()
	for k := range 4 {
		at := image.Pt(k%2*of.X, k/2*of.Y)
		tile := fixture.Must(back.Crop(image.Rectangle{at, at.Add(image.Pt(of.X-10, of.Y-6))}))(t)
		if got := quarters(t, tile); got != "rgbw" {
			t.Errorf("tile %d: %s", k, got)
		}
		tile.Close()
	}
	// A tile that is missing, cut off, or damaged is no picture: the others alone would be another one.
	for _, cut := range []int{1, len(single.Tiles[0].Data)} {
		if _, err := cv.DecodeImage(file[:len(file)-cut]); !errors.Is(err, cv.ErrNotImage) {
			t.Errorf("without %d bytes: %v", cut, err)
		}
	}
	large := telephone(t, single.Tiles[0], of, image.Pt(65000, 65000), 255, 255, 0)
	if _, err := cv.DecodeImage(large); err == nil {
		t.Error("four billion pixels are a picture")
	}
	for _, name := range []string{"grid.avif", "single.heic"} {
		b := fixture.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
		for n := range b {
			img, err := cv.DecodeImage(b[:n])
			if err == nil {
				t.Errorf("%s: %d of %d bytes are a picture", name, n, len(b))
				img.Close()
			} else if n > 11 && strings.Contains(err.Error(), "panic") {
				t.Error(err)
			}
		}
	}
}

// A raw file is judged by the JPEG of full size in it, held as the camera was. Thumbnails and tiles are none.
func TestRaw(t *testing.T) {
	tiff := func(entries ...any) []byte { // of tags and short values
		b := fmt.Appendf(nil, "II*\x00\x08\x00\x00\x00")
		b, _ = binary.Append(b, binary.LittleEndian, uint16(len(entries)/2))
		for i := 0; i < len(entries); i += 2 {
			b, _ = binary.Append(b, binary.LittleEndian, []uint16{uint16(entries[i].(int)), 3, 1, 0,
				uint16(entries[i+1].(int)), 0})
		}
		return append(b, make([]byte, 64)...)
	}
	jpeg := func(w, h int) []byte {
		img := fixture.Must(cv.NewImage(image.Pt(w, h), color.RGBA{200, 0, 0, 255}))(t)
		defer img.Close()
		return fixture.Must(img.JPEG(60))(t)
	}
	thumbnail, preview, tile := jpeg(160, 120), jpeg(1200, 800), jpeg(1000, 1000)
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(append(all, p...), make([]byte, 100)...)
		}
		return all
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"a.nef", join(tiff(274, 8), thumbnail, preview), "800x1200"},
		{"a.nrw", join(tiff(274, 1), preview, thumbnail), "1200x800"},
		{"unknown", join(tiff(254, 1), preview), "1200x800"},
		{"a.raf", join([]byte("FUJIFILMCCD-RAW 0201"), preview), "1200x800"},
		{"a.cr3", join([]byte("\x00\x00\x00\x18ftypcrx "), []byte("CMT1"), preview), "1200x800"},
		{"b.cr3", join(append([]byte("\x00\x00\x00\x18ftypcrx CMT1"), tiff(274, 6)...), preview), "800x1200"},
		{"tiles.dng", join(tiff(254, 1), tile, tile, tile, preview), "1200x800"},
		{"a.arw", join(tiff(274, 1), thumbnail), "only a thumbnail of 160x120 pixels is in it"},
		{"b.dng", join(tiff(254, 1), tile, tile, tile, tile), "no JPEG is in it"},
		{"c.iiq", tiff(274, 1), "no JPEG is in it"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		fixture.Check(t, os.WriteFile(path, c.file, 0o600))
		img, err := cv.ReadImage(path)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%dx%d", img.Size().X, img.Size().Y)
		}
		img.Close()
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
