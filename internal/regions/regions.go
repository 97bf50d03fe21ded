// SPDX-License-Identifier: Apache-2.0

// Package regions reads and writes the names that people have given to faces in photographs with
// other programs: regions in XMP, in the photograph or in the file .xmp beside it.
//
// [Read] reads regions as digiKam, Picasa, Lightroom and Apple's Photos write them (Metadata
// Working Group, Guidelines for Handling Image Metadata 2.0, section 5.9), and those of Windows
// (People Tagging Overview). [Named.Match] finds their faces, and [Add] writes a region.
package regions

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/exif"
	"github.com/faceauth/faceauth/internal/heif"
	"github.com/faceauth/faceauth/internal/raw"
	"github.com/faceauth/faceauth/internal/safefile"
)

// Region is a named face. Its sides are shares of those of the photograph.
type Region struct {
	Name                     string
	Left, Top, Width, Height float64
}

// Named are the named faces of a photograph, as they lie in the stored picture, and the EXIF
// orientations that lead from it to the shown one, one after another.
type Named struct {
	Regions []Region
	Held    []int
}

const mostFile = 256 << 20 // bytes of a photograph that are read

func rdf(name string) xml.Name {
	return xml.Name{Space: "http://www.w3.org/1999/02/22-rdf-syntax-ns#", Local: name}
}

func mwg(name string) xml.Name {
	return xml.Name{Space: "http://www.metadataworkinggroup.com/schemas/regions/", Local: name}
}

func area(name string) xml.Name {
	return xml.Name{Space: "http://ns.adobe.com/xmp/sType/Area#", Local: name}
}

func dimensions(name string) xml.Name {
	return xml.Name{Space: "http://ns.adobe.com/xap/1.0/sType/Dimensions#", Local: name}
}

func microsoft(of, name string) xml.Name {
	return xml.Name{Space: "http://ns.microsoft.com/photo/1.2/" + of, Local: name}
}

// Sidecars returns the names that the file .xmp of a photograph may have: that of digiKam and
// darktable first, then that of Lightroom.
func Sidecars(photo string) []string {
	bare := strings.TrimSuffix(photo, filepath.Ext(photo))
	return []string{photo + ".xmp", photo + ".XMP", bare + ".xmp", bare + ".XMP"}
}

// Read returns the named faces of a photograph. Those of a file .xmp count, if it has some, and
// otherwise those in the photograph: programs that write such a file leave the photograph as it
// was. The error wraps [ErrXMP], or comes from package fs.
func Read(photo string) (Named, error) {
	n, _, err := read(photo)
	return n, err
}

// read is Read, and also returns which file .xmp there is, or "".
func read(photo string) (n Named, sidecar string, err error) {
	for _, path := range Sidecars(photo) {
		data, err := content(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var found *node
		if err == nil {
			found, err = parse(data)
		}
		if err != nil {
			return n, path, fmt.Errorf("%s: %w", path, err)
		}
		sidecar, n.Regions = path, regionsOf(found)
		break
	}
	data, err := content(photo)
	if err != nil {
		return n, sidecar, err
	}
	for packet := range packets(data) {
		if len(n.Regions) > 0 {
			break
		}
		found, err := parse(packet) // that of a thumbnail or a film inside may be cut
		if err == nil {
			n.Regions = regionsOf(found)
		}
	}
	n.Held = held(photo, data)
	return n, sidecar, nil
}

func content(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err == nil && len(data) > mostFile {
		err = fmt.Errorf("%w: the file has more than %d bytes", ErrXMP, mostFile)
	}
	return data, err
}

// held returns the orientations that lead from the stored picture to the shown one. In HEIF the
// container says it, whatever EXIF says.
func held(path string, data []byte) (all []int) {
	switch {
	case heif.Is(data):
		p, err := heif.Read(data)
		if err != nil {
			return nil // looking at it says why
		}
		for _, c := range p.Changes {
			all = append(all, map[int]int{0: 1, 90: 6, 180: 3, 270: 8}[c.Turn],
				map[heif.Axis]int{heif.None: 1, heif.Vertical: 2, heif.Horizontal: 4}[c.Mirror])
		}
		return all
	case raw.Is(path, data):
		return []int{raw.Held(data)}
	}
	return []int{exif.Orientation(data)}
}

// regionsOf returns the named faces in XMP. A program that writes both kinds writes the same ones.
func regionsOf(x *node) (all []Region) {
	whole := x.property(mwg("Regions"))
	for _, item := range whole.property(mwg("RegionList")).items() {
		kind := item.value(mwg("Type"))
		if kind != "" && kind != "Face" { // a pet, a barcode, what was in focus
			continue
		}
		in := item.property(mwg("Area"))
		var v [4]float64 // the middle, and the size
		for i, side := range []string{"x", "y", "w", "h"} {
			v[i] = number(in.value(area(side)))
			if in.value(area("unit")) == "pixel" {
				by := dimensions([]string{"w", "h"}[i%2])
				v[i] /= number(whole.property(mwg("AppliedToDimensions")).value(by))
			}
		}
		all = add(all, Region{item.value(mwg("Name")), v[0] - v[2]/2, v[1] - v[3]/2, v[2], v[3]})
	}
	if len(all) > 0 {
		return all
	}
	people := x.property(microsoft("", "RegionInfo"))
	for _, item := range people.property(microsoft("t/RegionInfo#", "Regions")).items() {
		sides := strings.Split(item.value(microsoft("t/Region#", "Rectangle")), ",")
		if len(sides) != 4 {
			continue // the name of somebody without a place
		}
		var v [4]float64
		for i, side := range sides {
			v[i] = number(strings.TrimSpace(side))
		}
		name := item.value(microsoft("t/Region#", "PersonDisplayName"))
		all = add(all, Region{name, v[0], v[1], v[2], v[3]})
	}
	return all
}

// number reads a number; one that cannot be read is none.
func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// add adds a region that has a name, a size, and its middle in the picture.
func add(all []Region, r Region) []Region {
	x, y := r.Left+r.Width/2, r.Top+r.Height/2
	if r.Name == "" || !(x >= 0 && x <= 1 && y >= 0 && y <= 1 && r.Width > 0 && r.Width <= 2 &&
		r.Height > 0 && r.Height <= 2) {
		return all
	}
	return append(all, r)
}

// turned returns where a region is when its picture is turned clockwise.
func (r Region) turned(degrees int) Region {
	for ; degrees > 0; degrees -= 90 {
		r.Left, r.Top, r.Width, r.Height = 1-r.Top-r.Height, r.Left, r.Height, r.Width
	}
	return r
}

// oriented returns where a region is when its picture gets an EXIF orientation.
func (r Region) oriented(orientation int) Region {
	mirror, degrees := exif.Change(orientation)
	if mirror {
		r.Left = 1 - r.Left - r.Width
	}
	return r.turned(degrees)
}

// in returns the pixels of a region in a picture of this size.
func (r Region) in(size image.Point) image.Rectangle {
	at := func(x float64, side int) int { return int(math.Round(x * float64(side))) }
	return image.Rect(at(r.Left, size.X), at(r.Top, size.Y), at(r.Left+r.Width, size.X),
		at(r.Top+r.Height, size.Y))
}

// Match returns for each region the index of its face in a frame, or -1. A program may have written
// regions of the stored picture, as the guidelines ask, or of the shown one: what fits more faces
// was meant, and the guidelines if both fit as many.
func (n Named) Match(f face.Frame) []int {
	match := func(held []int) (all []int, fit int) {
		at := make([]image.Rectangle, len(n.Regions))
		for i, r := range n.Regions {
			for _, o := range held {
				r = r.oriented(o)
			}
			at[i] = r.turned(f.Turned).in(f.Size)
		}
		return pairs(at, f.Samples)
	}
	stored, fit := match(n.Held)
	shown, fits := match(nil)
	if fits > fit {
		return shown
	}
	return stored
}

// The middle of a face and that of its region lie in each other, and neither side is more than so
// many times as long: Lightroom draws squares around whole heads, and people draw as they like.
const unlike = 3

// pairs returns for each region the index of its face, the best pairs first, or -1, and how many
// have one.
func pairs(regions []image.Rectangle, faces []face.Sample) (all []int, n int) {
	middle := func(r image.Rectangle) image.Point { return r.Min.Add(r.Max).Div(2) }
	overlap := func(r image.Rectangle, s face.Sample) float64 {
		b := s.Box
		if !middle(r).In(b) || !middle(b).In(r) || r.Dx() > unlike*b.Dx() ||
			b.Dx() > unlike*r.Dx() || r.Dy() > unlike*b.Dy() || b.Dy() > unlike*r.Dy() {
			return 0
		}
		return face.Overlap(r, b)
	}
	all = slices.Repeat([]int{-1}, len(regions))
	for {
		best, region, at := 0., 0, 0
		for i, r := range regions {
			for k, s := range faces {
				free := all[i] < 0 && !slices.Contains(all, k)
				if free && overlap(r, s) > best {
					best, region, at = overlap(r, s), i, k
				}
			}
		}
		if best == 0 {
			return all, n
		}
		all[region] = at
		n++
	}
}
