// SPDX-License-Identifier: Apache-2.0

package footage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
)

// write writes a file below dir.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	fixture.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	fixture.Check(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b/10.jpg": "", "b/2.jpg": "", "a/deep/c10.avi": "", "a/deep/c2.avi": "",
		".trash/x.avi": "",
		"alone.txt":    "a note", "notes/a.txt": "a note", "mixed/door.mp4": "",
		"mixed/door.jpg":    "",
		"mixed/below/x.mp4": "", "bare/photo": "\xff\xd8\xff\xe0", "bare/IMG.jfif": "",
		"bare/IMG.JPE": "",
		"2019/a.MP4":   "", "phone/1.PSD": "", "phone/2.psd": "", "phone/odd": "\x00\x01\x02\xfe",
		"x.mp4/y.mkv": "",
	} {
		write(t, dir, name, content)
	}
	for name, to := range map[string]string{"phone/gone": "nowhere", "b/loop": "..",
		"mixed/again": "door.mp4",
		"phone/self":  "self"} {
		fixture.Check(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	got := fixture.Must(footage.Find([]string{filepath.Join(dir, "alone.txt"), dir}))(t)
	var items []string
	for _, i := range got.Items {
		name, _ := filepath.Rel(dir, i.Path)
		items = append(items, fmt.Sprintf("%s %d", name, len(i.Files)))
	}
	if want := []string{"2019/a.MP4 0", "a/deep/c2.avi 0", "a/deep/c10.avi 0", "alone.txt 0", "b 2",
		"bare 3",
		"mixed 1", "mixed/below/x.mp4 0", "mixed/door.mp4 0", "x.mp4/y.mkv 0"}; !slices.Equal(items,
		want) {
		t.Errorf("%q, want %q", items, want)
	}
	const left = "left out: 2 .psd (cannot be read here), 2 broken links, 1 file without an " +
		"ending (cannot be read here)"
	if got.String() != left {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]error{
		filepath.Join(dir, "none"): fs.ErrNotExist, "0": footage.ErrNone,
		"http://camera":             footage.ErrNone,
		filepath.Join(dir, "notes"): footage.ErrNone, filepath.Join(dir, "phone"): footage.ErrNone,
	} {
		if _, err := footage.Find([]string{name}); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	t.Chdir(dir)
	fixture.Check(t, os.Symlink("a", "lnk"))
	// a name that exists is a file, and a link is followed
	for _, name := range []string{"2019", "lnk"} {
		if got, err := footage.Find([]string{name}); err != nil || len(got.Items) == 0 ||
			len(got.Left) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Photographs are looked at in pieces, and films one by one.
func TestParts(t *testing.T) {
	v := footage.Inventory{Items: []footage.Item{{"a", []string{"a/1", "a/2", "a/3"}},
		{"b.avi", nil},
		{"c", []string{"c/1"}}}}
	want := []footage.Item{{"b.avi", nil}, {"a/1", []string{"a/1", "a/2"}},
		{"a/3", []string{"a/3", "c/1"}}}
	if got := v.Parts(2); !reflect.DeepEqual(got, want) || v.Size() != 5 {
		t.Errorf("%v, %d", got, v.Size())
	}
}

// Everything is named unless it is text, sound, a font or a known companion.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"takeout.zip": "PK\x03\x04", "IMG_1.livp": "PK\x03\x04", "all.tar.gz": "\x1f\x8b\x08",
		"a.tga":    "\x00\x00\x02\x00\x00",
		"scan.pdf": "%PDF-1.4\n", "report.docx": "PK\x03\x04",
		"film.ogg": "OggS\x00\x02 \x80theora", "song.ogg": "OggS\x00\x02 \x01vorbis",
		"a.txt": "text", "font.ttf": "\x00\x01\x00\x00", "s.wav": "RIFF\x00\x00\x00\x00WAVE",
		"a.xmp": "<x/>", "a.html": "<html>",
		"a.HIF": "", "a.jxl": "", "a.NRW": "", "a.gpr": "II*\x00",
		"no ending":  "\x00\x00\x00\x18ftypheic",
		"still.avif": "\x00\x00\x00\x18ftypavif",
		"moves.avif": "\x00\x00\x00\x18ftypavis", "x.cr3": "", "raw": "FUJIFILMCCD-RAW",
	} {
		write(t, dir, name, content)
	}
	got := fixture.Must(footage.Find([]string{dir}))(t)
	var films, pictures []string
	for _, i := range got.Items {
		if i.Files == nil {
			films = append(films, filepath.Base(i.Path))
		}
		for _, f := range i.Files {
			pictures = append(pictures, filepath.Base(f))
		}
	}
	left := map[string]string{}
	for _, l := range got.Left {
		left[filepath.Base(string(l.Path))] = l.Why
	}
	if !slices.Equal(films, []string{"film.ogg", "moves.avif"}) {
		t.Errorf("films %q", films)
	}
	if !slices.Equal(pictures, []string{"a.HIF", "a.NRW", "a.gpr", "a.jxl", "no ending", "raw",
		"still.avif", "x.cr3"}) {
		t.Errorf("pictures %q", pictures)
	}
	want := map[string]string{"takeout.zip": ".zip (an archive; unpack it)",
		"IMG_1.livp": ".livp (an archive; unpack it)",
		"all.tar.gz": ".gz (an archive; unpack it)", "a.tga": ".tga (cannot be read here)",
		"scan.pdf": ".pdf (cannot be read here)", "report.docx": ".docx (cannot be read here)"}
	if !maps.Equal(left, want) {
		t.Errorf("left out: %q", left)
	}
}

// Folders that nobody wants looked at are passed over in one line, unless they are named.
func TestAside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"2023/a.jpg", "2023/@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg",
		"#recycle/gone.jpg",
		"$RECYCLE.BIN/S-1/x.jpg", "#snapshot/daily/2023/a.jpg", "Private/.nomedia",
		"Private/deep/x.jpg", "one/@eaDir/x.jpg"} {
		write(t, dir, name, "")
	}
	got := fixture.Must(footage.Find([]string{dir}))(t)
	if len(got.Items) != 1 || len(got.Items[0].Files) != 1 || len(got.Left) > 0 ||
		got.Asides() != "left out: 2 folders of a "+
			"storage's thumbnails, 2 folders of what was deleted, 1 folder of earlier states, 1 "+
			"folder with .nomedia" {
		t.Errorf("%+v, %s", got.Items, got.Asides())
	}
	for _, name := range []string{"#recycle", "Private", "2023/@eaDir"} {
		if got, err := footage.Find([]string{filepath.Join(dir, name)}); err != nil ||
			len(got.Items) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A list of files that are all in the inventory leaves nothing out.
func TestPlayed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "hls/all.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/index.m3u8\n")
	write(t, dir, "hls/low/index.m3u8",
		"#EXTM3U\r\n#EXTINF:4,\r\n0.ts?x=1\r\n#EXTINF:4,\r\n1.ts\r\n")
	write(t, dir, "hls/low/0.ts", "")
	if got := fixture.Must(footage.Find([]string{dir}))(t); len(got.Left) != 2 {
		t.Errorf("a part is missing: %v", got.Left)
	}
	write(t, dir, "hls/low/1.ts", "")
	if got := fixture.Must(footage.Find([]string{dir}))(t); len(got.Left) != 0 ||
		len(got.Items) != 2 {
		t.Errorf("%v", got)
	}
	write(t, dir, "hls/low/index.m3u8", "#EXT-X-MAP:URI=\"init.mp4\"\n0.ts\n")
	if got := fixture.Must(footage.Find([]string{dir}))(t); len(got.Left) != 2 {
		t.Errorf("its beginning is missing: %v", got.Left)
	}
}

// The line stays one of a few kinds, and counts all.
func TestLine(t *testing.T) {
	var v footage.Inventory
	for i := range 30 {
		for range i {
			v.Left = append(v.Left, footage.Left{Why: fmt.Sprintf(".%d (cannot be read here)", i)})
		}
	}
	if got := v.String(); strings.Count(got, "cannot") != 5 ||
		!strings.HasPrefix(got, "left out: 29 .29 ") ||
		!strings.HasSuffix(got, "25 .25 (cannot be read here), and 300 of other kinds") {
		t.Errorf("%s", got)
	}
}

// Whatever a tree holds, each file that may show people is in exactly one list, also by links, and
// the search ends.
func TestRandom(t *testing.T) {
	shown := []string{".jpg", ".HEIC", ".mp4", ".jfif", ".MKV"}
	ends := append([]string{"", ".txt", ".bin", ".mp3"}, shown...)
	heads := []string{"", "text", "\xff\xd8\xff\xe0", "\x00\x00\x00\x18ftypheic",
		"\x00\x00\x00\x18ftypisom",
		"\x00\x01\x02\x03\xff", "\x1a\x45\xdf\xa3", "GIF89a", "P5\n1 1\n255\n", "ID3\x04"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		root := t.TempDir()
		folders, all := []string{root}, []string{}
		for n := range 1 + r.IntN(25) {
			in := folders[r.IntN(len(folders))]
			path := filepath.Join(in, fmt.Sprintf("%d%s", n, ends[r.IntN(len(ends))]))
			switch r.IntN(5) {
			case 0:
				fixture.Check(t, os.Mkdir(path, 0o700))
				folders = append(folders, path)
			case 1: // a link to anything, also to nothing, to itself, or out of the tree
				to := []string{path, filepath.Join(root, "none"), folders[r.IntN(len(folders))],
					t.TempDir()}
				if len(all) > 0 {
					to = append(to, all[r.IntN(len(all))])
				}
				fixture.Check(t, os.Symlink(to[r.IntN(len(to))], path))
			case 2:
				fixture.Check(t, syscall.Mkfifo(path, 0o600))
			default:
				write(t, "/", path, heads[r.IntN(len(heads))])
				all = append(all, path)
			}
		}
		got, _ := footage.Find([]string{root})
		lists := map[string]int{}
		for _, i := range got.Items {
			for _, f := range i.Files {
				lists[f]++
			}
			if i.Files == nil {
				lists[i.Path]++
			}
		}
		for _, l := range got.Left {
			lists[string(l.Path)]++
		}
		for _, f := range all {
			if lists[f] != 1 && slices.Contains(shown, filepath.Ext(f)) {
				t.Errorf("seed %d: %s is in %d lists", seed, strings.TrimPrefix(f, root), lists[f])
			}
		}
		for f, n := range lists {
			if n != 1 {
				t.Errorf("seed %d: %s is in %d lists", seed, strings.TrimPrefix(f, root), n)
			}
		}
	}
}
