// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gocv.io/x/gocv"

	"github.com/faceauth/faceauth/internal/fixture"
)

// track is a video stream of motion JPEG.
type track struct {
	size   image.Point
	frames int
	matrix [4]int    // a, b, c and d of an MP4: it shows x, y at ax+cy, bx+dy; none as it is
	pixel  [2]uint32 // width and height of a pixel
	late   int       // milliseconds after which an MKV shows the first frame
}

// pictures returns the frames of a track: black, with a white quarter at the top left.
func (k track) pictures(t *testing.T) (all [][]byte) {
	t.Helper()
	mat := gocv.NewMatWithSize(k.size.Y, k.size.X, gocv.MatTypeCV8UC3)
	mat.SetTo(gocv.NewScalar(0, 0, 0, 0))
	gocv.Rectangle(&mat, image.Rectangle{Max: k.size.Div(2)}, color.RGBA{255, 255, 255, 0}, -1)
	img := &Image{mat: mat}
	defer img.Close()
	jpeg := fixture.Must(img.JPEG(95))(t)
	for range k.frames {
		all = append(all, jpeg)
	}
	return all
}

// u writes numbers of 32 bits, or bytes, one after another.
func u(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case int16:
			b = binary.BigEndian.AppendUint16(b, uint16(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

// boxed returns a box of an MP4.
func boxed(kind string, parts ...any) []byte {
	body := u(parts...)
	return u(len(body)+8, kind, body)
}

// mp4 returns an MP4 of tracks.
func mp4(t *testing.T, tracks ...track) []byte {
	t.Helper()
	file := boxed("ftyp", "isom", 512, "isomiso2mp41")
	var samples, moov []byte
	at := len(file) + 8
	moov = boxed("mvhd", 0, 0, 0, 25, 25, 0x10000, int16(0x100), make([]byte, 10), 0x10000, 0, 0, 0,
		0x10000, 0, 0, 0, 0x40000000, make([]byte, 24), 9)
	for i, k := range tracks {
		one := 0x10000
		m := k.matrix
		if m == [4]int{} {
			m = [4]int{1, 0, 0, 1}
		}
		matrix := u(m[0]*one, m[1]*one, 0, m[2]*one, m[3]*one, 0)
		pictures := k.pictures(t)
		sizes := u(0, 0, len(pictures))
		begin := at + len(samples)
		for _, p := range pictures {
			sizes, samples = append(sizes, u(len(p))...), append(samples, p...)
		}
		var pasp []byte
		if k.pixel[0] > 0 {
			pasp = boxed("pasp", int(k.pixel[0]), int(k.pixel[1]))
		}
		entry := boxed("jpeg", 0, int16(0), int16(1), make([]byte, 16), int16(k.size.X),
			int16(k.size.Y), 0x480000, 0x480000,
			0, int16(1), make([]byte, 32), int16(24), int16(-1), pasp)
		stbl := boxed("stbl", boxed("stsd", 0, 1, entry), boxed("stts", 0, 1, len(pictures), 1),
			boxed("stsc", 0, 1, 1, len(pictures), 1), boxed("stsz", sizes),
			boxed("stco", 0, 1, begin))
		dinf := boxed("dinf", boxed("dref", 0, 1, boxed("url ", 1)))
		mdia := boxed("mdia", boxed("mdhd", 0, 0, 0, 25, len(pictures), 0),
			boxed("hdlr", 0, 0, "vide", make([]byte, 12), "video\x00"),
			boxed("minf", boxed("vmhd", 1, 0, 0), dinf, stbl))
		tkhd := boxed("tkhd", 7, 0, 0, i+1, 0, len(pictures), 0, 0, 0, 0, matrix,
			0, 0, 0x40000000, k.size.X<<16, k.size.Y<<16)
		moov = append(moov, boxed("trak", tkhd, mdia)...)
	}
	return append(append(file, boxed("mdat", samples)...), boxed("moov", moov)...)
}

// held returns an element of Matroska.
func held(id uint32, body ...any) []byte {
	b := bytes.TrimLeft(u(int(id)), "\x00")
	content := u(body...)
	return append(append(b, 0x01, 0, 0, 0), u(len(content), content)...)
}

// mkv returns an MKV of tracks. Their frames alternate.
func mkv(t *testing.T, tracks ...track) []byte {
	t.Helper()
	var entries, blocks []byte
	all := make([][][]byte, len(tracks))
	most := 0
	for i, k := range tracks {
		all[i] = k.pictures(t)
		most = max(most, k.frames)
		video := held(0xe0, held(0xb0, int16(k.size.X)), held(0xba, int16(k.size.Y)))
		entries = append(entries, held(0xae, held(0xd7, []byte{byte(i + 1)}),
			held(0x73c5, []byte{byte(i + 1)}),
			held(0x83, []byte{1}), held(0x86, "V_MJPEG"), held(0x23e383, 40000000), video)...)
	}
	for n := range most {
		for i := range tracks {
			if n < len(all[i]) {
				at := int16(tracks[i].late + 40*n)
				blocks = append(blocks,
					held(0xa3, []byte{0x80 | byte(i+1)}, at, []byte{0x80}, all[i][n])...)
			}
		}
	}
	head := held(0x1a45dfa3, held(0x4286, []byte{1}), held(0x42f7, []byte{1}),
		held(0x42f2, []byte{4}),
		held(0x42f3, []byte{8}), held(0x4282, "matroska"), held(0x4287, []byte{4}),
		held(0x4285, []byte{2}))
	return append(head, held(0x18538067, held(0x1549a966, held(0x2ad7b1, 1000000)),
		held(0x1654ae6b, entries),
		held(0x1f43b675, held(0xe7, []byte{0}), blocks))...)
}

// open opens the bytes of a file.
func open(t *testing.T, name string, content []byte) *Film {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fixture.Check(t, os.WriteFile(path, content, 0o600))
	c, err := OpenFilm(path, "", "", 10*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// white returns the middle of the white quarter of a picture, as parts of its sides.
func white(t *testing.T, m *Image) (x, y float64) {
	t.Helper()
	img := fixture.Must(m.Image())(t)
	n := 0.
	size := m.Size()
	for i := range size.X {
		for j := range size.Y {
			if img.RGBAAt(i, j).G > 128 {
				n++
				x, y = x+(float64(i)+.5)/float64(size.X), y+(float64(j)+.5)/float64(size.Y)
			}
		}
	}
	return x / n, y / n
}

// A frame is what a player shows: turned as the container says, and with square pixels.
func TestShown(t *testing.T) {
	wide, high, narrow := image.Pt(64, 48), image.Pt(48, 64), [2]uint32{1, 2}
	right := [4]int{0, 1, -1, 0}
	for name, c := range map[string]struct {
		track track
		size  image.Point
		x, y  float64 // of the white quarter
	}{
		"as it is":    {track{size: wide, frames: 3}, wide, .25, .25},
		"phone":       {track{size: wide, frames: 3, matrix: right}, high, .75, .25},
		"upside down": {track{size: wide, frames: 3, matrix: [4]int{-1, 0, 0, -1}}, wide, .75, .75},
		"to the left": {track{size: wide, frames: 3, matrix: [4]int{0, -1, 1, 0}}, high, .25, .75},
		// FFmpeg 5.1.9 shows these the other way round, left for right, and people upright as here.
		"mirrored": {track{size: wide, frames: 3, matrix: [4]int{-1, 0, 0, 1}}, wide, .25, .25},
		"mirrored, upside down": {track{size: wide, frames: 3, matrix: [4]int{1, 0, 0, -1}},
			wide, .75, .75},
		"mirrored, phone": {track{size: wide, frames: 3, matrix: [4]int{0, 1, 1, 0}}, high, .75, .25},
		"2CIF":            {track{size: wide, frames: 3, pixel: narrow}, image.Pt(64, 96), .25, .25},
		"anamorphic": {track{size: wide, frames: 3, pixel: [2]uint32{4, 3}}, image.Pt(85, 48),
			.25, .25},
		"both": {track{size: wide, frames: 3, matrix: right, pixel: narrow}, image.Pt(96, 64),
			.75, .25},
	} {
		video := open(t, "film.mp4", mp4(t, c.track))
		n := 0
		for {
			m, _, err := video.Read()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if m == nil {
				break
			}
			n++
			x, y := white(t, m)
			if m.Size() != c.size || max(x-c.x, c.x-x, y-c.y, c.y-y) > .03 {
				t.Errorf("%s: %v, the white quarter at %.2f,%.2f; want %v, %.2f,%.2f", name,
					m.Size(), x, y, c.size, c.x, c.y)
			}
			m.Close()
		}
		if n != 3 {
			t.Errorf("%s: %d frames", name, n)
		}
	}
}

// A cover does not stand for the film, wherever it lies, and further films are counted.
func TestFilm(t *testing.T) {
	cover, film, other := track{size: image.Pt(80, 80), frames: 1},
		track{size: image.Pt(64, 48), frames: 20},
		track{size: image.Pt(32, 48), frames: 20}
	for kind, muxed := range map[string]func(*testing.T, ...track) []byte{"mp4": mp4, "mkv": mkv} {
		for name, c := range map[string]struct {
			tracks []track
			frames int
			size   image.Point
			others int
		}{
			"alone":         {[]track{film}, 20, film.size, 0},
			"cover first":   {[]track{cover, film}, 20, film.size, 0},
			"cover last":    {[]track{film, cover}, 20, film.size, 0},
			"two covers":    {[]track{cover, cover, film, other}, 20, film.size, 1},
			"two films":     {[]track{film, other}, 20, film.size, 1},
			"only a cover":  {[]track{cover}, 1, cover.size, 0},
			"cover between": {[]track{other, cover, film}, 20, other.size, 1},
		} {
			video := open(t, "film."+kind, muxed(t, c.tracks...))
			n := 0
			for {
				m, _, err := video.Read()
				fixture.Check(t, err)
				if m == nil {
					break
				}
				if n++; m.Size() != c.size {
					t.Errorf("%s, %s: frame of %v, want %v", kind, name, m.Size(), c.size)
				}
				m.Close()
			}
			if n != c.frames || video.About().Others != c.others {
				t.Errorf("%s, %s: %d frames, %+v, want %d and %d more films", kind, name, n,
					video.About(), c.frames, c.others)
			}
		}
	}
}

// A film that begins later than its container, as after its sound, has the times of the container.
// One that begins within a tenth of a second begins with it.
func TestLate(t *testing.T) {
	for late, want := range map[int]time.Duration{0: 0, 80: 0, 5000: 5 * time.Second} {
		film := track{size: image.Pt(64, 48), frames: 20, late: late}
		video := open(t, "film.mkv", mkv(t, film, track{size: image.Pt(32, 48), frames: 20}))
		for n := range time.Duration(20) {
			m, at, err := video.Read()
			fixture.Check(t, err)
			if at != want+n*40*time.Millisecond {
				t.Errorf("%d ms late: frame %d at %v", late, n, at)
			}
			m.Close()
		}
	}
}

// The orientation in the EXIF of a WebP or a JPEG is applied, of a JPEG also after XMP, where
// OpenCV does not see it.
func TestOrientation(t *testing.T) {
	m := gocv.NewMatWithSize(48, 64, gocv.MatTypeCV8UC3)
	defer m.Close()
	m.SetTo(gocv.NewScalar(0, 0, 0, 0))
	gocv.Rectangle(&m, image.Rect(0, 0, 32, 24), color.RGBA{255, 255, 255, 0}, -1)
	webp := fixture.Must(gocv.IMEncode(".webp", m))(t)
	defer webp.Close()
	jpeg := fixture.Must(gocv.IMEncode(".jpg", m))(t)
	defer jpeg.Close()
	segment := func(content ...any) []byte {
		b := u(content...)
		return append(u("\xff\xe1", int16(len(b)+2)), b...)
	}
	for orientation, at := range [][2]float64{{}, {.25, .25}, {.75, .25}, {.75, .75}, {.25, .75},
		{.25, .25},
		{.75, .25},
		{.75, .75}, {.25, .75}} {
		if orientation == 0 {
			continue
		}
		exif := u("MM\x00\x2a", 8, int16(1), int16(0x112), int16(3), 1, int16(orientation),
			int16(0), 0)
		inWebP := append(bytes.Clone(webp.GetBytes()), "EXIF"...)
		inWebP = append(binary.LittleEndian.AppendUint32(inWebP, uint32(len(exif))), exif...)
		binary.LittleEndian.PutUint32(inWebP[4:], uint32(len(inWebP)-8))
		inJPEG := u("\xff\xd8", segment("Exif\x00\x00", exif), jpeg.GetBytes()[2:])
		afterXMP := u("\xff\xd8", segment("http://ns.adobe.com/xap/1.0/\x00<x/>"), inJPEG[2:])
		want := image.Pt(64, 48)
		if orientation >= 5 {
			want = image.Pt(48, 64)
		}
		for kind, file := range map[string][]byte{"WebP": inWebP, "JPEG": inJPEG,
			"JPEG with XMP": afterXMP} {
			img := fixture.Must(DecodeImage(file))(t)
			x, y := white(t, img)
			if img.Size() != want || max(x-at[0], at[0]-x, y-at[1], at[1]-y) > .05 {
				t.Errorf("%s, orientation %d: %v, the white quarter at %.2f,%.2f, want %v at %v",
					kind, orientation, img.Size(), x, y, want, at)
			}
			img.Close()
		}
	}
}
