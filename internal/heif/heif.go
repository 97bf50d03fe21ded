// SPDX-License-Identifier: Apache-2.0

// Package heif reads the structure of HEIF pictures (ISO/IEC 23008-12): those of telephones and
// cameras (HEIC, HIF) and AVIF. It finds the coded tiles of the picture, and how they are laid and
// turned; it decodes nothing.
//
// [Read] reads a file, of which nothing is trusted: its limits are those of Read.
package heif

import (
	"errors"
	"fmt"
	"image"
	"slices"
)

// Errors of [Read].
var (
	ErrDamaged     = errors.New("the HEIF file is cut off or damaged")
	ErrUnsupported = errors.New("a kind of HEIF that is not read")
)

// Limits of what is read.
const (
	mostMeta = 16 << 20 // bytes of the box that describes the items
	// items, their parts and properties; 1,000 in a picture of 200 million pixels in tiles
	mostParts = 1 << 16
	mostTiles = 4096
)

// Picture is the main picture of a file.
type Picture struct {
	Size    image.Point // before the changes
	Columns int         // of tiles
	// the size of a tile. The right and the lower ones may reach beyond the picture
	Tile    image.Point
	Tiles   []Tile   // row by row
	Changes []Change // to be made in this order
	Colour  *Colour  // nil: what the coded pictures say
}

// Tile is a coded picture.
type Tile struct {
	AV1    bool   // or HEVC
	Config []byte // the box hvcC or av1C
	Data   []byte
}

// Change is one of three: a crop, a turn or a mirror image.
type Change struct {
	Crop   image.Rectangle // unless it is empty
	Turn   int             // degrees clockwise
	Mirror Axis
}

// Axis is that of a mirror image.
type Axis byte

// Axes.
const (
	None       Axis = iota
	Vertical        // left and right change places
	Horizontal      // top and bottom do
)

// Colour says what the values of pixels mean, by the numbers of ITU-T H.273.
type Colour struct {
	Transfer, Matrix int
	Full             bool // from 0 to 255
}

// brands are the first brands of files that hold pictures. Those of sequences are films, and may
// hold a picture, too.
var brands = []string{"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "avif"}

// Is reports whether a file begins as a HEIF picture does.
func Is(head []byte) bool {
	return len(head) >= 12 && string(head[4:8]) == "ftyp" &&
		slices.Contains(brands, string(head[8:12]))
}

// item is a picture, or another part of a file.
type item struct {
	kind    string
	extents [][2]uint64 // offsets and lengths
	from    uint64      // the construction method: 0 for the file, 1 for the box idat
	props   []int       // from 1
	parts   []uint32    // of a derived picture
}

// file is what is known of a file.
type file struct {
	data, idat []byte
	primary    uint32
	items      map[uint32]*item
	props      []box
	left       int // bytes of coded pictures that may still be taken
	parts      int // items, and what belongs to them
}

// Read returns the main picture of a file. Its tiles are parts of data. The error wraps
// [ErrDamaged] or [ErrUnsupported].
func Read(data []byte) (*Picture, error) {
	f := &file{data: data, items: map[uint32]*item{}, left: 2 * len(data)}
	meta, err := find(data, "meta")
	if err != nil {
		return nil, err
	}
	if len(meta) > mostMeta {
		return nil, fmt.Errorf("%w: %d bytes describe its items; at most %d are read",
			ErrUnsupported, len(meta), mostMeta)
	}
	if err := f.describe(meta); err != nil {
		return nil, err
	}
	return f.picture(f.primary)
}

func (f *file) item(id uint32) *item {
	if f.items[id] == nil {
		f.items[id] = &item{}
		f.parts++
	}
	return f.items[id]
}

// more reports whether there is more to read, and room for it.
func (f *file) more(r *reader) bool { return r.more() && f.parts <= mostParts }

// describe reads the box meta (ISO/IEC 14496-12, section 8.11).
func (f *file) describe(meta []byte) error {
	r := reader{b: meta}
	r.n(4)
	for r.more() {
		b := r.box()
		in := reader{b: b.body}
		switch b.kind {
		case "idat":
			f.idat = b.body
		case "pitm":
			f.primary = in.id(in.full() > 0)
		case "iinf":
			f.infos(&in)
		case "iloc":
			f.places(&in)
		case "iref":
			f.references(&in)
		case "iprp":
			f.properties(&in)
		}
		if in.short {
			return fmt.Errorf("%w: the box %q", ErrDamaged, b.kind)
		}
		if f.parts > mostParts {
			return fmt.Errorf("%w: more than %d items, parts and properties", ErrUnsupported,
				mostParts)
		}
	}
	if r.short {
		return ErrDamaged
	}
	return nil
}

// infos reads the kinds of the items: the box iinf.
func (f *file) infos(r *reader) {
	r.id(r.full() > 0)
	for f.more(r) {
		e := reader{b: r.box().body}
		version := e.full()
		id := e.id(version >= 3)
		e.n(2)
		f.item(id).kind = string(e.take(4))
	}
}

// places reads where the items are: the box iloc.
func (f *file) places(r *reader) {
	version := r.full()
	sizes := r.n(2)
	size := func(shift int) int { return int(sizes >> shift & 15) }
	for n := r.id(version == 2); n > 0 && f.more(r); n-- {
		i := f.item(r.id(version == 2))
		if version > 0 {
			i.from = r.n(2) & 15
		}
		r.n(2)
		base := r.n(size(4))
		for n := r.n(2); n > 0 && !r.short && f.parts <= mostParts; n-- {
			if version > 0 {
				r.n(size(0))
			}
			f.parts++ // it may take no bytes at all
			at := base + r.n(size(12))
			i.extents = append(i.extents, [2]uint64{at, r.n(size(8))})
		}
	}
}

// references reads of what pictures derived ones are made: the box iref.
func (f *file) references(r *reader) {
	wide := r.full() > 0
	for f.more(r) {
		b := r.box()
		e := reader{b: b.body}
		i := f.item(e.id(wide))
		for n := e.n(2); n > 0 && b.kind == "dimg" && f.more(&e); n-- {
			i.parts = append(i.parts, e.id(wide))
			f.parts++
		}
		r.short = r.short || e.short
	}
}

// properties reads the boxes of iprp: the properties, and which ones an item has.
func (f *file) properties(r *reader) {
	for r.more() {
		b := r.box()
		e := reader{b: b.body}
		switch b.kind {
		case "ipco":
			for f.more(&e) {
				f.props = append(f.props, e.box())
				f.parts++
			}
		case "ipma":
			version := e.n(1)
			wide := e.n(3)&1 != 0
			for n := e.n(4); n > 0 && f.more(&e); n-- {
				i := f.item(e.id(version > 0))
				for n := e.n(1); n > 0 && f.more(&e); n-- {
					f.parts++
					if wide {
						i.props = append(i.props, int(e.n(2)&0x7fff))
					} else {
						i.props = append(i.props, int(e.n(1)&0x7f))
					}
				}
			}
		}
		r.short = r.short || e.short
	}
}

// each calls do with the properties of an item, in order.
func (f *file) each(i *item, do func(box)) {
	for _, p := range i.props {
		if p > 0 && p <= len(f.props) {
			do(f.props[p-1])
		}
	}
}

// picture returns the picture of an item.
func (f *file) picture(id uint32) (*Picture, error) {
	i := f.items[id]
	if i == nil {
		return nil, fmt.Errorf("%w: it holds no main picture", ErrUnsupported)
	}
	p := &Picture{Columns: 1}
	var err error
	switch i.kind {
	case "hvc1", "av01":
		var t Tile
		t, p.Size, err = f.tile(i)
		p.Tile, p.Tiles = p.Size, []Tile{t}
	case "grid":
		err = f.grid(i, p)
	default:
		return nil, fmt.Errorf("%w: its main picture is of the kind %q", ErrUnsupported, i.kind)
	}
	if err != nil {
		return nil, err
	}
	return p, f.change(i, p)
}

// tile returns a coded picture and its size.
func (f *file) tile(i *item) (t Tile, size image.Point, err error) {
	t.AV1 = i.kind == "av01"
	f.each(i, func(b box) {
		switch {
		case b.kind == "ispe":
			size = sizeOf(b)
		case b.kind == "hvcC" && !t.AV1, b.kind == "av1C" && t.AV1:
			t.Config = b.body
		}
	})
	if len(t.Config) == 0 || size.X < 1 || size.Y < 1 {
		return t, size, fmt.Errorf("%w: a picture without a size or a configuration", ErrDamaged)
	}
	t.Data, err = f.bytes(i)
	return t, size, err
}

// sizeOf reads the property ispe.
func sizeOf(b box) image.Point {
	r := reader{b: b.body}
	r.full()
	w, h := r.n(4), r.n(4)
	if r.short || w > 1<<20 || h > 1<<20 {
		return image.Point{}
	}
	return image.Pt(int(w), int(h))
}

// grid reads a picture that is laid of tiles (ISO/IEC 23008-12, section 6.6.2.3).
func (f *file) grid(i *item, p *Picture) error {
	b, err := f.bytes(i)
	if err != nil {
		return err
	}
	r := reader{b: b}
	r.n(1)
	side := 2
	if r.n(1)&1 != 0 {
		side = 4
	}
	rows := int(r.n(1)) + 1
	p.Columns = int(r.n(1)) + 1
	p.Size = image.Pt(int(r.n(side)), int(r.n(side)))
	n := rows * p.Columns
	switch {
	case r.short || p.Size.X < 1 || p.Size.Y < 1 || p.Size.X > 1<<20 || p.Size.Y > 1<<20 ||
		len(i.parts) != n:
		return fmt.Errorf("%w: its tiles", ErrDamaged)
	case n > mostTiles:
		return fmt.Errorf("%w: %d tiles; at most %d are read", ErrUnsupported, n, mostTiles)
	}
	p.Colour = f.colour(f.items[i.parts[0]])
	for k, id := range i.parts {
		part := f.items[id]
		if part == nil || part.kind != "hvc1" && part.kind != "av01" {
			return fmt.Errorf("%w: a tile that is no coded picture", ErrUnsupported)
		}
		t, size, err := f.tile(part)
		if err != nil {
			return err
		}
		if k == 0 {
			p.Tile = size
		}
		if size != p.Tile {
			return fmt.Errorf("%w: tiles of two sizes", ErrDamaged)
		}
		p.Tiles = append(p.Tiles, t)
	}
	fits := func(n, tile, whole int) bool { return n*tile >= whole && (n-1)*tile < whole }
	if !fits(p.Columns, p.Tile.X, p.Size.X) || !fits(rows, p.Tile.Y, p.Size.Y) {
		return fmt.Errorf("%w: its tiles do not cover it", ErrDamaged)
	}
	return nil
}

// colour reads the property colr, if it has the numbers of H.273. A profile of the ICC says nothing
// of the coding.
func (f *file) colour(i *item) (c *Colour) {
	if i == nil {
		return nil
	}
	f.each(i, func(b box) {
		r := reader{b: b.body}
		if b.kind != "colr" || string(r.take(4)) != "nclx" {
			return
		}
		r.n(2) // the primaries
		found := Colour{int(r.n(2)), int(r.n(2)), r.n(1)&0x80 != 0}
		if !r.short {
			c = &found
		}
	})
	return c
}

// change reads how a picture is to be cropped, turned and mirrored.
func (f *file) change(i *item, p *Picture) (err error) {
	c := f.colour(i)
	if c != nil {
		p.Colour = c
	}
	size := p.Size
	f.each(i, func(b box) {
		r := reader{b: b.body}
		var c Change
		switch b.kind {
		case "irot": // counter-clockwise
			c.Turn = int(4-r.n(1)&3) % 4 * 90
			if c.Turn%180 != 0 {
				size = image.Pt(size.Y, size.X)
			}
		case "imir":
			c.Mirror = Vertical
			if r.n(1)&1 == 0 {
				c.Mirror = Horizontal
			}
		case "clap":
			c.Crop = crop(&r, size)
			if c.Crop.Empty() {
				err = fmt.Errorf("%w: its crop", ErrDamaged)
				return
			}
			size = c.Crop.Size()
		default:
			return
		}
		if c != (Change{}) {
			p.Changes = append(p.Changes, c)
		}
	})
	return err
}

// crop reads the property clap: fractions for width, height, and how far the middle lies from that
// of the picture. It is empty if it does not fit.
func crop(r *reader, size image.Point) image.Rectangle {
	var v [4]float64
	for i := range v {
		above, below := int32(r.n(4)), int32(r.n(4))
		if r.short || below <= 0 {
			return image.Rectangle{}
		}
		v[i] = float64(above) / float64(below)
	}
	w, h := int(v[0]), int(v[1])
	if w < 1 || h < 1 || w > size.X || h > size.Y {
		return image.Rectangle{}
	}
	at := image.Pt(int(v[2]+float64(size.X-w)/2), int(v[3]+float64(size.Y-h)/2))
	c := image.Rectangle{at, at.Add(image.Pt(w, h))}
	if !c.In(image.Rectangle{Max: size}) {
		return image.Rectangle{}
	}
	return c
}

// bytes returns what an item holds.
func (f *file) bytes(i *item) ([]byte, error) {
	from := f.data
	switch i.from {
	case 0:
	case 1:
		from = f.idat
	default:
		return nil, fmt.Errorf("%w: parts that lie in others", ErrUnsupported)
	}
	var all []byte
	for k, e := range i.extents {
		at, n := e[0], e[1]
		if at > uint64(len(from)) {
			return nil, ErrDamaged
		}
		if n == 0 {
			n = uint64(len(from)) - at
		}
		f.left -= int(min(n, uint64(len(from))))
		if n > uint64(len(from))-at || f.left < 0 {
			return nil, ErrDamaged
		}
		part := from[at : at+n]
		if k == 0 {
			all = part[:n:n] // mostly there is one
		} else {
			all = append(all, part...)
		}
	}
	if len(all) == 0 {
		return nil, ErrDamaged
	}
	return all, nil
}
