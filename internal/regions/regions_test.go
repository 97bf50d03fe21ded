// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/regions"
)

// put writes a photograph, held so (EXIF), with XMP in it and beside it; "" for none.
func put(t *testing.T, held byte, inside, beside string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.jpg")
	exif := "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" +
		string([]byte{held}) + "\x00\x00\x00\x00\x00\x00"
	data := "\xff\xd8"
	for _, s := range []string{exif, "http://ns.adobe.com/xap/1.0/\x00" + inside} {
		data += "\xff\xe1" + string([]byte{byte((len(s) + 2) >> 8), byte(len(s) + 2)}) + s
	}
	fixture.Check(t, os.WriteFile(path, []byte(data+"\xff\xd9"), 0o640))
	if beside != "" {
		fixture.Check(t, os.WriteFile(path+".xmp", []byte(beside), 0o604))
	}
	return path
}

// described returns XMP with properties, in the namespaces of regions.
func described(properties string) string {
	return `<?xpacket begin="` + "\ufeff" + `" id="W5M0MpCehiHzreSzNTczkc9d"?>` +
		`<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF ` +
		`xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description r:about="urn:x" ` +
		`xmlns:m="http://www.metadataworkinggroup.com/schemas/regions/" ` +
		`xmlns:a="http://ns.adobe.com/xmp/sType/Area#" ` +
		`xmlns:d="http://ns.adobe.com/xap/1.0/sType/Dimensions#" ` +
		`xmlns:MP="http://ns.microsoft.com/photo/1.2/" ` +
		`xmlns:I="http://ns.microsoft.com/photo/1.2/t/RegionInfo#" ` +
		`xmlns:R="http://ns.microsoft.com/photo/1.2/t/Region#">` + properties +
		`</r:Description></r:RDF></x:xmpmeta><?xpacket end="w"?>`
}

// listed returns MWG regions of these items.
func listed(items string) string {
	return described("<m:Regions><r:Description><m:AppliedToDimensions d:w='200' d:h='100' " +
		"d:unit='pixel'/><m:RegionList><r:Bag>" + items + "</r:Bag></m:RegionList>" +
		"</r:Description></m:Regions>")
}

const anna = `<r:li><r:Description m:Name="Anna &amp; co" m:Type="Face">` +
	`<m:Area a:x="0.3" a:y="0.4" a:w="0.2" a:h="0.4" a:unit="normalized"/></r:Description></r:li>`

func TestRead(t *testing.T) {
	people := func(items string) string {
		return described("<MP:RegionInfo r:parseType='Resource'><I:Regions><r:Bag>" + items +
			"</r:Bag></I:Regions></MP:RegionInfo>")
	}
	microsoft := `<r:li R:PersonDisplayName="Bob" R:Rectangle="0.1, 0.2, 0.25, 0.5"/>`
	const isAnna, isBob = "Anna & co 0.20 0.20 0.20 0.40", "Bob 0.10 0.20 0.25 0.50"
	for name, c := range map[string]struct{ inside, beside, want string }{
		"none":            {"", "", ""},
		"inside":          {listed(anna), "", isAnna},
		"beside":          {"", listed(anna), isAnna},
		"beside counts":   {people(microsoft), listed(anna), isAnna},
		"beside is empty": {people(microsoft), listed(""), isBob},
		"Microsoft":       {people(microsoft), "", isBob},
		"both kinds": {described(strings.SplitAfter(strings.SplitAfter(listed(anna),
			"Region#\">")[1], "</m:Regions>")[0] + "<MP:RegionInfo><r:Description><I:Regions>" +
			"<r:Bag>" + microsoft + "</r:Bag></I:Regions></r:Description></MP:RegionInfo>"), "",
			isAnna},
		"pixels": {listed("<r:li r:parseType='Resource'><m:Name>Bob</m:Name><m:Area " +
			"r:parseType='Resource'><a:x>45</a:x><a:y>45</a:y><a:w>50</a:w><a:h>50</a:h>" +
			"<a:unit>pixel</a:unit></m:Area></r:li>"), "", isBob},
		"a second packet": {described("") + listed(anna), "", isAnna},
		"a cut packet":    {listed(anna)[:300] + listed(anna), "", isAnna},
		"no person": {listed(strings.Replace(anna, "Face", "Pet", 1) +
			strings.Replace(anna, "Anna &amp; co", "", 1)), "", ""},
		"no place": {people(`<r:li R:PersonDisplayName="Bob"/>`), "", ""},
		"odd numbers": {listed(strings.Replace(anna, "0.3", "NaN", 1) +
			strings.Replace(anna, "0.3", "1e99", 1) + strings.Replace(anna, `a:w="0.2"`, "", 1) +
			strings.Replace(anna, "0.4", "-1", 1)), "", ""},
	} {
		got, err := regions.Read(put(t, 1, c.inside, c.beside))
		if err != nil || shown(got.Regions) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, shown(got.Regions), err, c.want)
		}
	}
	deep := described(strings.Repeat("<m:a>", 1000) + strings.Repeat("</m:a>", 1000))
	for name, beside := range map[string]string{"no XML": "<x:xmpmeta", "no XMP": "<a/>",
		"deep": deep, "entity": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"} {
		_, err := regions.Read(put(t, 1, listed(anna), beside))
		if !errors.Is(err, regions.ErrXMP) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func shown(all []regions.Region) string {
	var text []string
	for _, r := range all {
		text = append(text, fmt.Sprintf("%s %.2f %.2f %.2f %.2f", r.Name, r.Left, r.Top, r.Width,
			r.Height))
	}
	return strings.Join(text, ", ")
}

// What Exiv2 (0.27.6 of Debian 12, with the keys that digiKam 7.9 sets) and ExifTool (12.57) write.
func TestOtherPrograms(t *testing.T) {
	const want = "Anna 0.25 0.20 0.10 0.20, Bob 0.60 0.30 0.10 0.20"
	for _, name := range fixture.Must(filepath.Glob("testdata/*.xmp"))(t) {
		text := string(fixture.Must(os.ReadFile(name))(t))
		got, err := regions.Read(put(t, 1, "", text))
		if err != nil || shown(got.Regions) != want {
			t.Errorf("%s: %s, %v", name, shown(got.Regions), err)
		}
	}
}

// corner returns the shown place of a pixel of a stored picture of w by h, by the words of Exif
// 2.3: which side of the shown picture the first row and the first column are.
func corner(held, x, y, w, h int) image.Point {
	right, bottom := w-1-x, h-1-y
	return []image.Point{{x, y}, {right, y}, {right, bottom}, {x, bottom}, {y, x}, {bottom, x},
		{bottom, right}, {y, right}}[held-1]
}

// A region is where its face is, however the camera was held and the picture was turned, and is
// written there again; also if the program that wrote it has turned the picture before.
func TestOrientation(t *testing.T) {
	const w, h = 40, 30
	for held := 1; held <= 8; held++ {
		for turned := 0; turned < 360; turned += 90 {
			size := image.Pt(w, h)
			if held > 4 {
				size = image.Pt(h, w)
			}
			box := func(x0, y0, x1, y1 int) image.Rectangle { // of pixels of the stored picture
				a, b := corner(held, x0, y0, w, h), corner(held, x1-1, y1-1, w, h)
				for n, s := 0, size; n < turned; n += 90 {
					a, b = image.Pt(s.Y-1-a.Y, a.X), image.Pt(s.Y-1-b.Y, b.X)
					s = image.Pt(s.Y, s.X)
				}
				return image.Rect(min(a.X, b.X), min(a.Y, b.Y), max(a.X, b.X)+1, max(a.Y, b.Y)+1)
			}
			final := size
			if turned%180 != 0 {
				final = image.Pt(size.Y, size.X)
			}
			face0, face1 := box(8, 6, 16, 18), box(32, 24, 38, 29)
			f := face.Frame{Size: final, Turned: turned,
				Samples: []face.Sample{{Box: face1}, {Box: face0}}}
			path := put(t, byte(held), listed(anna), "")
			n := fixture.Must(regions.Read(path))(t)
			if got := n.Match(f); !slices.Equal(got, []int{1}) {
				t.Errorf("held %d, turned %d: face %v", held, turned, got)
			}
			path = put(t, byte(held), "", "")
			fixture.Must(regions.Add(path, "Anna & co", face0, final, turned))(t)
			again := fixture.Must(regions.Read(path))(t)
			if !reflect.DeepEqual(rounded(again.Regions), rounded(n.Regions)) {
				t.Errorf("held %d, turned %d: %v, want %v", held, turned, again.Regions, n.Regions)
			}
			text := string(fixture.Must(os.ReadFile(path + ".xmp"))(t))
			if !strings.Contains(text, `stDim:w="40" stDim:h="30" stDim:unit="pixel"`) {
				t.Errorf("held %d, turned %d: not of the stored size: %s", held, turned, text)
			}
			// the same region of the shown picture
			path = put(t, 1, "", "")
			fixture.Must(regions.Add(path, "Anna & co", face0, final, turned))(t)
			other := fixture.Must(regions.Read(path))(t)
			other.Held = []int{held}
			if got := other.Match(f); !slices.Equal(got, []int{1}) {
				t.Errorf("shown, held %d, turned %d: face %v", held, turned, got)
			}
		}
	}
}

func rounded(all []regions.Region) []regions.Region {
	all = slices.Clone(all)
	for i, r := range all {
		for _, x := range []*float64{&r.Left, &r.Top, &r.Width, &r.Height} {
			*x = math.Round(*x*1e5) / 1e5
		}
		all[i] = r
	}
	return all
}

// Each face has one region at most, the nearest; a region that is much larger, or beside, has none.
func TestMatch(t *testing.T) {
	f := face.Frame{Size: image.Pt(100, 100), Samples: []face.Sample{
		{Box: image.Rect(10, 10, 30, 30)}, {Box: image.Rect(20, 10, 40, 30)},
		{Box: image.Rect(70, 70, 80, 80)}}}
	r := func(x0, y0, x1, y1 float64) regions.Region {
		return regions.Region{Name: "a", Left: x0 / 100, Top: y0 / 100, Width: (x1 - x0) / 100,
			Height: (y1 - y0) / 100}
	}
	n := regions.Named{Held: []int{1}, Regions: []regions.Region{r(18, 8, 44, 34),
		r(11, 10, 31, 30), r(12, 12, 30, 30), r(55, 55, 95, 95), r(81, 70, 91, 80)}}
	if got := n.Match(f); !slices.Equal(got, []int{1, 0, -1, -1, -1}) {
		t.Error(got)
	}
}

// A region is added to whatever is beside a photograph, which stays as it is; the photograph is not
// touched, and what other programs have named is neither lost nor named again.
func TestAdd(t *testing.T) {
	at, size := image.Rect(600, 300, 700, 500), image.Pt(1000, 1000)
	const bob, both = "Bob 0.60 0.30 0.10 0.20", "Anna & co 0.20 0.20 0.20 0.40, " +
		"Bob 0.60 0.30 0.10 0.20"
	for name, c := range map[string]struct{ inside, beside, want string }{
		"nothing":       {"", "", bob},
		"inside":        {listed(anna), "", both},
		"beside":        {"", listed(anna), both},
		"notes beside":  {listed(anna), described("<m:x>note</m:x>"), both},
		"an empty list": {"", listed(""), bob},
		"a list in short": {"", strings.Replace(listed(""), "<r:Bag></r:Bag>", "<r:Bag />", 1),
			bob},
		"no property": {"", "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
			bob},
	} {
		path := put(t, 1, c.inside, c.beside)
		before := fixture.Must(os.ReadFile(path))(t)
		for again := range 2 {
			added, err := regions.Add(path, "Bob", at, size, 0)
			got, _ := regions.Read(path)
			if err != nil || added != (again == 0) || shown(got.Regions) != c.want {
				t.Errorf("%s: %t, %v: %s", name, added, err, shown(got.Regions))
			}
		}
		_, err := regions.Add(path, "Carol", at, size, 0)
		if !errors.Is(err, regions.ErrNamed) || !strings.Contains(err.Error(), "Bob") {
			t.Errorf("%s: error %v", name, err)
		}
		text := string(fixture.Must(os.ReadFile(path + ".xmp"))(t))
		for _, part := range strings.SplitAfter(c.beside, ">") {
			head, rest, found := strings.Cut(text, strings.TrimSuffix(part, "/>"))
			if !found || strings.Count(head, "Bob") > 1 {
				t.Errorf("%s: %q is gone", name, part)
			}
			text = rest
		}
		mode := fixture.Must(os.Stat(path + ".xmp"))(t).Mode().Perm()
		if mode != map[bool]os.FileMode{true: 0o640, false: 0o604}[c.beside == ""] {
			t.Errorf("%s: mode %o", name, mode)
		}
		if after := fixture.Must(os.ReadFile(path))(t); !slices.Equal(after, before) {
			t.Errorf("%s: the photograph has changed", name)
		}
		tool, err := exec.LookPath("exiftool")
		if err != nil || name != "notes beside" {
			continue // package libimage-exiftool-perl
		}
		out := fixture.Must(exec.Command(tool, "-validate", "-warning", "-RegionName",
			path+".xmp").CombinedOutput())(t)
		if !strings.Contains(string(out), "Bob") || strings.Contains(string(out), "Warning") {
			t.Errorf("%s: ExifTool says %s", name, out)
		}
	}
	for name, beside := range map[string]string{"no XMP": "<a/>",
		"no list": described("<m:Regions/>")} {
		_, err := regions.Add(put(t, 1, "", beside), "Bob", at, size, 0)
		if !errors.Is(err, regions.ErrXMP) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(listed(anna)), []byte(""))
	f.Add([]byte(""), []byte(listed(anna)))
	f.Fuzz(func(t *testing.T, inside, beside []byte) {
		path := filepath.Join(t.TempDir(), "a.jpg")
		fixture.Check(t, os.WriteFile(path, inside, 0o600))
		fixture.Check(t, os.WriteFile(path+".xmp", beside, 0o600))
		if _, err := regions.Add(path, "Bob", image.Rect(0, 0, 1, 1), image.Pt(9, 9),
			0); err == nil {
			if n, err := regions.Read(path); err != nil || len(n.Regions) == 0 {
				t.Error(n, err)
			}
		}
	})
}
