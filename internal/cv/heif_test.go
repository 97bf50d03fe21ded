// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/heif"
)

// quarters names the size of a picture and the colours of its four quarters: top left, top right,
// bottom left, bottom right.
func quarters(t *testing.T, img *cv.Image) string {
	t.Helper()
	size := img.Size()
	pixels := fixture.Must(img.BGR())(t)
	all := fmt.Sprintf("%dx%d ", size.X, size.Y)
	for _, at := range []image.Point{{1, 1}, {3, 1}, {1, 3}, {3, 3}} {
		i := 3 * (at.Y*size.Y/4*size.X + at.X*size.X/4)
		colour := 0
		for _, v := range pixels[i : i+3] {
			switch {
			case v < 100:
				colour *= 3
			case v > 185:
				colour = 3*colour + 2
			default:
				colour = 3*colour + 1
			}
		}
		name, ok := map[int]string{2: "r", 6: "g", 18: "b", 26: "w"}[colour]
		if !ok {
			name = fmt.Sprint(pixels[i : i+3])
		}
		all += name
	}
	return all
}

// coded makes a HEIF picture of 160x96 pixels, whose quarters are red, green, blue and white.
func coded(t *testing.T, name string, arguments ...string) []byte {
	t.Helper()
	tool, from, files := "heif-enc", "libheif-examples", []string{"q.png", "-o", name}
	switch filepath.Ext(name) {
	case ".avif":
		tool, from = "avifenc", "libavif-bin"
	case ".jxl":
		tool, from, files = "ffmpeg", "ffmpeg", []string{"-i", "q.png", "-c:v", "libjxl", name}
	}
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("%s makes the pictures of this test: install %s", tool, from)
	}
	img := image.NewRGBA(image.Rect(0, 0, 160, 96))
	colours := []color.RGBA{{220, 30, 30, 255}, {30, 220, 30, 255}, {30, 30, 220, 255},
		{220, 220, 220, 255}}
	for i := range 160 * 96 {
		x, y := i%160, i/160
		img.Set(x, y, colours[x/80+y/48*2])
	}
	dir := t.TempDir()
	fixture.Check(t, os.WriteFile(filepath.Join(dir, "q.png"), encode(t, img), 0o600))
	command := exec.Command(tool, append(arguments, files...)...)
	command.Dir = dir
	if b, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", command, err, b)
	}
	return fixture.Must(os.ReadFile(filepath.Join(dir, name)))(t)
}

func TestHEIF(t *testing.T) {
	for _, c := range []struct {
		name, want string
		arguments  []string
	}{
		{"a.heic", "160x96 rgbw", nil},
		{"canon.hif", "160x96 rgbw", []string{"-b", "10", "-p", "chroma=422"}},
		{"grey.heic", "160x96 rgbw", []string{"-p", "chroma=444"}},
		{"a.avif", "160x96 rgbw", []string{"-s", "9"}},
		{"deep.avif", "160x96 rgbw", []string{"-s", "9", "-d", "12", "-y", "444", "-r", "limited"}},
		{"rec709.avif", "160x96 rgbw", []string{"-s", "9", "--cicp", "1/13/1"}},
		{"grid.avif", "160x96 rgbw", []string{"-s", "9", "-g", "2x1"}},
		{"mirror.avif", "96x160 wgbr", []string{"-s", "9", "--irot", "1", "--imir", "1"}},
		{"flip.avif", "160x96 bwrg", []string{"-s", "9", "--imir", "0"}},
		{"a.jxl", "160x96 rgbw", nil},
		{"crop.avif", "80x48 wwww", []string{"-s", "9", "--crop", "80,48,80,48"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			img := fixture.Must(cv.DecodeImage(coded(t, c.name, c.arguments...)))(t)
			defer img.Close()
			if got := quarters(t, img); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	// Values of sRGB, taken as PQ and HLG: 220 of 255 is brighter than the white of a display, and
	// 30 is dark.
	for _, transfer := range []string{"16", "18"} {
		b := coded(t, "bright.avif", "-s", "9", "-d", "10", "--cicp", "9/"+transfer+"/9")
		img := fixture.Must(cv.DecodeImage(b))(t)
		pixels := fixture.Must(img.BGR())(t)
		first, last := pixels[:3], pixels[len(pixels)-3:]
		if last[0] != 255 || last[1] != 255 || first[2] < 200 || first[0] > 60 {
			t.Errorf("transfer %s: from %v to %v", transfer, first, last)
		}
		img.Close()
	}
}

// A film has the colours that were filmed, by the matrix and the range that its stream names. It is
// the AV1 of an AVIF, in IVF.
func TestColoursOfFilms(t *testing.T) {
	for _, matrix := range []string{"1", "6", "9"} {
		for _, levels := range []string{"full", "limited"} {
			b := coded(t, "a.avif", "-s", "9", "--min", "0", "--max", "8", "-y", "444", "-r",
				levels, "--cicp", "1/13/"+matrix)
			tile := fixture.Must(heif.Read(b))(t).Tiles[0]
			le := binary.LittleEndian
			film := append([]byte("DKIF\x00\x00\x20\x00AV01\xa0\x00\x60\x00"),
				25, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0)
			for i := range 3 {
				film = le.AppendUint32(film, uint32(len(tile.Data)))
				film = append(le.AppendUint64(film, uint64(i)), tile.Data...)
			}
			path := filepath.Join(t.TempDir(), "a.ivf")
			fixture.Check(t, os.WriteFile(path, film, 0o600))
			video := fixture.Must(cv.OpenFilm(path, "", "", time.Minute))(t)
			img, _, err := video.Read()
			fixture.Check(t, err)
			red := bgr(t, img)[3*(20*160+40):]
			for i, want := range []float64{30, 30, 220} {
				if math.Abs(float64(red[i])-want) > 4 {
					t.Errorf("matrix %s, %s range: red is %v in BGR", matrix, levels, red[:3])
				}
			}
			img.Close()
			fixture.Check(t, video.Close())
		}
	}
}

// The tiles of a telephone's photograph make one picture, turned as the container says. If one is
// missing or damaged, the others are no picture.
func TestTiles(t *testing.T) {
	single := fixture.Must(heif.Read(coded(t, "a.heic")))(t)
	tile, of := single.Tiles[0], single.Size
	g := fixture.Grid{Kind: "hvc1", Config: tile.Config, Data: tile.Data, Tile: of, Columns: 2,
		Rows: 2,
		Size: image.Pt(2*of.X-10, 2*of.Y-6), Properties: [][]byte{fixture.Box("irot", byte(3))}}
	img := fixture.Must(cv.DecodeImage(g.File()))(t)
	defer img.Close()
	back := fixture.Must(img.Turn(270))(t)
	defer back.Close()
	if back.Size() != g.Size {
		t.Fatalf("%v", img.Size())
	}
	for k := range 4 {
		at := image.Pt(k%2*of.X, k/2*of.Y)
		part := fixture.Must(back.Crop(image.Rectangle{at, at.Add(image.Pt(of.X-10, of.Y-6))}))(t)
		if got := quarters(t, part); got != "150x90 rgbw" {
			t.Errorf("tile %d: %s", k, got)
		}
		part.Close()
	}
	for name, change := range map[string]func(g *fixture.Grid){
		"no data":          func(g *fixture.Grid) { g.Data = []byte{0} },
		"half a tile":      func(g *fixture.Grid) { g.Data = g.Data[:len(g.Data)/2] },
		"no configuration": func(g *fixture.Grid) { g.Config = []byte{1} },
		"another codec":    func(g *fixture.Grid) { g.Kind = "av01" },
		"larger tiles":     func(g *fixture.Grid) { g.Tile, g.Size = of.Mul(2), of.Mul(4) },
		"smaller tiles":    func(g *fixture.Grid) { g.Tile, g.Size = of.Div(2), of },
		"tiny tiles": func(g *fixture.Grid) {
			g.Tile, g.Size = image.Pt(1, 1), image.Pt(2, 2)
		},
		"too large": func(g *fixture.Grid) {
			g.Tile, g.Size, g.Columns, g.Rows = image.Pt(6500, 6500), image.Pt(65000, 65000), 10, 10
		},
	} {
		other := g
		change(&other)
		img, err := cv.DecodeImage(other.File())
		if !errors.Is(err, cv.ErrNotImage) && !errors.Is(err, cv.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		img.Close()
	}
	for _, file := range [][]byte{g.File(), coded(t, "a.jxl")} {
		for n := 0; n < len(file); n += 7 {
			img, err := cv.DecodeImage(file[:n])
			if err == nil {
				t.Errorf("%d of %d bytes are a picture", n, len(file))
				img.Close()
			}
		}
	}
}

// The limits of a picture hold for its tiles, too, before anything is decoded.
func TestHEIFLimits(t *testing.T) {
	g := fixture.Grid{Kind: "hvc1", Config: []byte("config"), Data: []byte("a coded tile"),
		Tile: image.Pt(512, 512), Size: image.Pt(512, 512), Columns: 1, Rows: 1}
	for name, c := range map[string]struct {
		change func(*fixture.Grid)
		err    error
	}{
		"pixels": {func(g *fixture.Grid) {
			g.Columns, g.Rows, g.Size = 40, 40, image.Pt(40*512, 40*512)
		}, cv.ErrTooLarge},
		"pixels of a tile": {func(g *fixture.Grid) { g.Tile = image.Pt(20_000, 20_000) },
			cv.ErrTooLarge},
		"tiles": {func(g *fixture.Grid) {
			g.Columns, g.Rows, g.Size = 128, 128, image.Pt(128*512, 128*512)
		}, heif.ErrUnsupported},
	} {
		g := g
		c.change(&g)
		img, err := cv.DecodeImage(g.File())
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		img.Close()
	}
}
