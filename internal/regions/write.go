// SPDX-License-Identifier: Apache-2.0

package regions

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
)

// ErrNamed is wrapped if the face has another name already.
var ErrNamed = errors.New("the face has another name")

// same is the overlap from which two regions are one face.
const same = .3

// Add writes a named face into the file .xmp beside a photograph, and leaves all else in that file
// as it is. It never writes into the photograph. A new file gets the regions in the photograph,
// too: other programs read either. The box is in a shown picture of this size that was turned
// clockwise by these degrees. Added is false if the face has the name already. The error wraps
// [ErrNamed] or [ErrXMP], or comes from package fs.
func Add(photo, name string, box image.Rectangle, size image.Point,
	turned int) (added bool, err error) {
	n, path, err := read(photo)
	if err != nil {
		return false, err
	}
	r := Region{name, float64(box.Min.X) / float64(size.X), float64(box.Min.Y) / float64(size.Y),
		float64(box.Dx()) / float64(size.X), float64(box.Dy()) / float64(size.Y)}
	r = r.turned((360 - turned) % 360)
	stored := size
	if turned%180 != 0 {
		stored = image.Pt(stored.Y, stored.X)
	}
	for _, o := range slices.Backward(n.Held) {
		if o > 4 { // on its side
			stored = image.Pt(stored.Y, stored.X)
		}
		// these two are not their own inverse
		if o == 6 || o == 8 {
			o = 14 - o
		}
		r = r.oriented(o)
	}
	grid := image.Pt(10_000, 10_000)
	for _, old := range n.Regions {
		switch {
		case face.Overlap(old.in(grid), r.in(grid)) < same:
		case face.PlainName(old.Name) == face.PlainName(name):
			return false, nil
		default:
			return false, fmt.Errorf("%s: %w: %s", photo, ErrNamed, old.Name)
		}
	}
	data := []byte(empty)
	like := photo
	if path == "" {
		path = photo + ".xmp"
	} else {
		path, err = filepath.EvalSymlinks(path)
		if err == nil {
			data, err = content(path)
		}
		like = path
	}
	if err == nil {
		data, err = inserted(data, append(n.Regions, r), stored)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	f, err := safefile.Create(path)
	if err != nil {
		return false, err
	}
	defer f.Abort()
	info, err := os.Stat(like)
	if err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err != nil {
		return false, err
	}
	return true, f.Commit()
}

const empty = `<?xpacket begin="` + "\ufeff" + `" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
`

// inserted returns XMP with the last of the regions, or with all if it has none of this kind; then
// with the size of the stored picture, too, without which Immich takes no region.
func inserted(data []byte, all []Region, stored image.Point) ([]byte, error) {
	x, err := parse(data)
	if err != nil {
		return nil, err
	}
	regions := x.property(mwg("Regions"))
	list := regions.property(mwg("RegionList")).list()
	switch {
	case list != nil:
		return into(data, list, item(all[len(all)-1])), nil
	case regions != nil:
		return nil, fmt.Errorf("%w: it has regions without a list", ErrXMP)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<rdf:Description xmlns:rdf=%q rdf:about=\"%s\" xmlns:mwg-rs=%q "+
		"xmlns:stDim=%q>", rdf("").Space, escaped(x.value(rdf("about"))), mwg("").Space,
		dimensions("").Space)
	fmt.Fprintf(&b, "<mwg-rs:Regions rdf:parseType=\"Resource\"><mwg-rs:AppliedToDimensions "+
		"stDim:w=\"%d\" stDim:h=\"%d\" stDim:unit=\"pixel\"/>", stored.X, stored.Y)
	b.WriteString("<mwg-rs:RegionList><rdf:Bag>\n")
	for _, r := range all {
		b.WriteString(item(r))
	}
	b.WriteString("</rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions></rdf:Description>\n")
	return into(data, x, b.String()), nil
}

// item returns a region as an item of the list.
func item(r Region) string {
	return fmt.Sprintf("<rdf:li xmlns:rdf=%q xmlns:mwg-rs=%q xmlns:stArea=%q "+
		"rdf:parseType=\"Resource\"><mwg-rs:Name>%s</mwg-rs:Name><mwg-rs:Type>Face</mwg-rs:Type>"+
		"<mwg-rs:Area stArea:x=\"%.6f\" stArea:y=\"%.6f\" stArea:w=\"%.6f\" stArea:h=\"%.6f\" "+
		"stArea:unit=\"normalized\"/></rdf:li>\n", rdf("").Space, mwg("").Space, area("").Space,
		escaped(r.Name), r.Left+r.Width/2, r.Top+r.Height/2, r.Width, r.Height)
}

func escaped(text string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(text))
	return b.String()
}

// into puts a text at the end of an element.
func into(data []byte, n *node, text string) []byte {
	if n.outside < n.end { // it has an end tag
		return slices.Concat(data[:n.outside], []byte(text), data[n.outside:])
	}
	tag := data[n.start : n.inside-2] // <rdf:Bag/>
	name := bytes.Fields(tag[1:])[0]
	return slices.Concat(data[:n.start], tag, []byte(">"+text+"</"), name, []byte(">"),
		data[n.end:])
}
