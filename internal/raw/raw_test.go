// SPDX-License-Identifier: Apache-2.0

package raw_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/raw"
)

// tiff begins a file as cameras do, with tags and their short values.
func tiff(order binary.AppendByteOrder, tags ...uint16) []byte {
	b := []byte("II*\x00")
	if order == binary.BigEndian {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint16(order.AppendUint32(b, 8), uint16(len(tags)/2))
	for tag := range slices.Chunk(tags, 2) {
		for _, v := range []uint16{tag[0], 3} {
			b = order.AppendUint16(b, v)
		}
		b = order.AppendUint16(order.AppendUint16(order.AppendUint32(b, 1), tag[1]), 0)
	}
	return append(b, 0, 0, 0, 0)
}

func encode(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	fixture.Check(t, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)), nil))
	return b.Bytes()
}

// The picture of a raw file is the largest JPEG in it, held as the camera was. Thumbnails, and the
// tiles of the sensor's values, are none.
func TestPreview(t *testing.T) {
	little, big := binary.LittleEndian, binary.BigEndian
	thumbnail, preview, tile := encode(t, 160, 120), encode(t, 1200, 800), encode(t, 1000, 1000)
	lossless, deep := slices.Clone(preview), slices.Clone(preview)
	frame := bytes.Index(preview, []byte("\xff\xc0"))
	lossless[frame+1] = 0xc3
	deep[frame+4] = 12
	cr3 := []byte("\x00\x00\x00\x18ftypcrx ")
	for _, c := range []struct {
		name  string
		parts [][]byte
		want  string // its size and orientation, or an error
	}{
		{"a.nef", [][]byte{tiff(big, 274, 8), thumbnail, preview}, "1200x800 8"},
		{"a.nrw", [][]byte{tiff(little, 274, 1), preview, thumbnail}, "1200x800 1"},
		{"unknown", [][]byte{tiff(little, 254, 1), preview}, "1200x800 0"},
		{"unknown", [][]byte{tiff(little, 330, 1), preview}, "1200x800 0"},
		{"a.raf", [][]byte{[]byte("FUJIFILMCCD-RAW 0201"), preview}, "1200x800 0"},
		{"a.cr3", [][]byte{cr3, preview}, "1200x800 0"},
		{"b.cr3", [][]byte{append(append(cr3, "CMT1"...), tiff(little, 274, 6)...), preview},
			"1200x800 6"},
		{"tiles.dng", [][]byte{tiff(little, 254, 1), tile, tile, tile, preview}, "1200x800 0"},
		{"sensor.dng", [][]byte{tiff(little, 254, 1), lossless, deep}, "no JPEG is in it"},
		{"a.arw", [][]byte{tiff(little, 274, 1), thumbnail},
			"only a thumbnail of 160x120 pixels is in it"},
		{"b.dng", [][]byte{tiff(little, 254, 1), tile, tile, tile, tile}, "no JPEG is in it"},
		{"c.iiq", [][]byte{tiff(little, 274, 1)}, "no JPEG is in it"},
		{"scan.tif", [][]byte{tiff(little, 274, 1)}, "no raw picture"},
		{"scan.tiff", [][]byte{tiff(little, 330, 1)}, "no raw picture"},
		{"a.nef", [][]byte{preview}, "no raw picture"}, // a JPEG under another name
	} {
		var file []byte
		for _, p := range c.parts {
			file = append(append(file, p...), make([]byte, 100)...)
		}
		got := "no raw picture"
		if raw.Is(c.name, file) {
			found, held, err := raw.Preview(file)
			got = fmt.Sprint(err)
			if err == nil {
				size := fixture.Must(jpeg.DecodeConfig(bytes.NewReader(found)))(t)
				got = fmt.Sprintf("%dx%d %d", size.Width, size.Height, held)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Whatever a file holds, looking for its picture ends soon.
func FuzzPreview(f *testing.F) {
	f.Add(append(tiff(binary.LittleEndian, 274, 6, 254, 1, 330, 8), encode(f, 900, 600)...))
	f.Add([]byte("II*\x00\xff\xff\xff\xff"))
	f.Add(append([]byte("\x00\x00\x00\x18ftypcrx CMT1MM\x00*"),
		bytes.Repeat([]byte("\xff\xd8\xff\xe0\x00\x02"), 99)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !raw.Is("a.dng", b) {
			return
		}
		found, _, err := raw.Preview(b)
		if err == nil && !bytes.HasPrefix(found, []byte("\xff\xd8\xff")) || err != nil &&
			!errors.Is(err, raw.ErrNone) {
			t.Errorf("%d bytes, %v", len(found), err)
		}
	})
}
