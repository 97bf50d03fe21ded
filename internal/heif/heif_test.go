// SPDX-License-Identifier: Apache-2.0

package heif_test

import (
	"errors"
	"fmt"
	"image"
	"reflect"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/heif"
)

var box = fixture.Box

// telephone is a picture of 2x3 tiles, of which the right and the lower ones reach beyond it.
func telephone(properties ...[]byte) fixture.Grid {
	return fixture.Grid{Kind: "hvc1", Config: []byte("config"), Data: []byte("a coded tile"),
		Tile: image.Pt(512, 512), Size: image.Pt(1000, 1500), Columns: 2, Rows: 3,
		Properties: properties}
}

// clap is a crop to the size of the point, whose middle lies so far from that of the picture.
func clap(size, off image.Point) []byte {
	return box("clap", uint32(size.X), uint32(1), uint32(size.Y), uint32(1), int32(off.X),
		uint32(1), int32(off.Y), uint32(1))
}

// items is a file with any boxes that describe its items.
func items(boxes ...[]byte) []byte {
	meta := []any{uint32(0)}
	for _, b := range boxes {
		meta = append(meta, b)
	}
	return append(box("ftyp", "heic", uint32(0)), box("meta", meta...)...)
}

func TestRead(t *testing.T) {
	nclx := box("colr", "nclx", uint16(9), uint16(16), uint16(9), byte(0x80))
	for name, c := range map[string]struct {
		properties [][]byte
		changes    []heif.Change
		colour     *heif.Colour
		err        error
	}{
		"as it is": {},
		"turned": {properties: [][]byte{box("irot", byte(3))},
			changes: []heif.Change{{Turn: 90}}},
		"turned, mirrored, and what nobody knows": {
			properties: [][]byte{box("irot", byte(1)), box("what", byte(1)), box("imir", byte(1)),
				box("imir", byte(0))},
			changes: []heif.Change{{Turn: 270}, {Mirror: heif.Vertical}, {Mirror: heif.Horizontal}},
		},
		"cropped": {
			properties: [][]byte{clap(image.Pt(100, 50), image.Pt(-450, 725)),
				box("irot", byte(0))},
			changes: []heif.Change{{Crop: image.Rect(0, 1450, 100, 1500)}},
		},
		"cropped after it was turned": {
			properties: [][]byte{box("irot", byte(1)), clap(image.Pt(1500, 1000), image.Point{})},
			changes:    []heif.Change{{Turn: 270}, {Crop: image.Rect(0, 0, 1500, 1000)}},
		},
		"cropped outside": {properties: [][]byte{clap(image.Pt(100, 50), image.Pt(-451, 0))},
			err: heif.ErrDamaged},
		"PQ": {properties: [][]byte{nclx},
			colour: &heif.Colour{Transfer: 16, Matrix: 9, Full: true}},
	} {
		p, err := heif.Read(telephone(c.properties...).File())
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		tile := heif.Tile{Config: []byte("config"), Data: []byte("a coded tile")}
		if p.Size != image.Pt(1000, 1500) || p.Columns != 2 || p.Tile != image.Pt(512, 512) ||
			len(p.Tiles) != 6 ||
			!reflect.DeepEqual(p.Tiles[5], tile) || !reflect.DeepEqual(p.Changes, c.changes) ||
			!reflect.DeepEqual(p.Colour, c.colour) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// What is no whole picture has an error that says why.
func TestDamaged(t *testing.T) {
	whole := telephone().File()
	for n := range whole {
		_, err := heif.Read(whole[:n])
		if !errors.Is(err, heif.ErrDamaged) && !errors.Is(err, heif.ErrUnsupported) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	other := telephone()
	other.Tile.X = 400
	many := strings.Repeat("\x00\x01\x00\x00\xff\xff", 1<<20) // items with 65,535 parts of no bytes
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"small tiles": {other.File(), "cut off or damaged: its tiles do not cover it"},
		"no picture":  {items(box("pitm", uint32(0), uint16(1))), "it holds no main picture"},
		"another kind": {items(box("pitm", uint32(0), uint16(1)), box("iinf", uint32(0), uint16(1),
			box("infe", uint32(2<<24), uint16(1), uint16(0), "iovl"))), `of the kind "iovl"`},
		"many parts": {items(box("iloc", uint32(0), uint16(0), uint16(65535), many)),
			"more than 65536 items"},
		"a large description": {items(make([]byte, 17<<20)), "bytes describe its items"},
	} {
		_, err := heif.Read(c.file)
		if !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a file says, reading it ends soon, and what is returned fits together and lies in the
// file.
func FuzzRead(f *testing.F) {
	f.Add(telephone().File())
	f.Add(telephone(box("irot", byte(1)), box("imir", byte(1)),
		clap(image.Pt(9, 9), image.Pt(1, 1)),
		box("colr", "nclx", uint16(9), uint16(16), uint16(9), byte(0))).File())
	one := telephone()
	one.Kind, one.Size, one.Columns, one.Rows = "av01", one.Tile, 1, 1
	f.Add(one.File())
	f.Add(items(box("iloc", uint32(2<<24), uint16(0xf8f8), uint32(1), uint32(1), uint16(1),
		make([]byte, 40))))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := heif.Read(b)
		if err != nil {
			if !errors.Is(err, heif.ErrDamaged) && !errors.Is(err, heif.ErrUnsupported) {
				t.Error(err)
			}
			return
		}
		bytes := 0
		for _, tile := range p.Tiles {
			if len(tile.Data) == 0 || len(tile.Config) == 0 {
				t.Error("an empty tile")
			}
			bytes += len(tile.Data)
		}
		rows := len(p.Tiles) / p.Columns
		if bytes > 2*len(b) || rows < 1 || rows*p.Columns != len(p.Tiles) || p.Size.X < 1 ||
			p.Size.Y < 1 ||
			p.Tile.X*p.Columns < p.Size.X || p.Tile.Y*rows < p.Size.Y {
			t.Errorf("%d bytes, %d tiles of %v in %d columns for %v", bytes, len(p.Tiles), p.Tile,
				p.Columns, p.Size)
		}
		whole := p.Size
		for _, c := range p.Changes {
			if !c.Crop.In(image.Rectangle{Max: whole}) || c.Turn%90 != 0 || c.Turn < 0 ||
				c.Turn > 270 {
				t.Errorf("%+v of %v", c, whole)
			}
			if !c.Crop.Empty() {
				whole = c.Crop.Size()
			}
			if c.Turn%180 != 0 {
				whole = image.Pt(whole.Y, whole.X)
			}
		}
	})
}
