// SPDX-License-Identifier: Apache-2.0

package footage_test

import (
	"errors"
	"fmt"
	"io/fs"
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
		"b/10.jpg": "", "b/2.jpg": "", "a/deep/c10.avi": "", "a/deep/c2.avi": "", ".trash/x.avi": "",
		"alone.txt": "a note", "notes/a.txt": "a note", "mixed/door.mp4": "", "mixed/door.jpg": "",
		"mixed/below/x.mp4": "", "bare/photo": "\xff\xd8\xff\xe0", "bare/IMG.jfif": "", "bare/IMG.JPE": "",
		"2019/a.MP4": "", "phone/1.HEIC": "", "phone/2.heic": "", "phone/odd": "\x00\x01\x02\xfe", "x.mp4/y.mkv": "",
	} {
		write(t, dir, name, content)
	}
	for name, to := range map[string]string{"phone/gone": "nowhere", "b/loop": "..", "mixed/again": "door.mp4",
		"phone/self": "self"} {
		fixture.Check(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	got := fixture.Must(footage.Find([]string{filepath.Join(dir, "alone.txt"), dir}))(t)
	var items []string
	for _, i := range got.Items {
		name, _ := filepath.Rel(dir, i.Path)
		items = append(items, fmt.Sprintf("%s %d", name, len(i.Files)))
	}
	if want := []string{"2019/a.MP4 0", "a/deep/c2.avi 0", "a/deep/c10.avi 0", "alone.txt 0", "b 2", "bare 3",
		"mixed 1", "mixed/below/x.mp4 0", "mixed/door.mp4 0", "x.mp4/y.mkv 0"}; !slices.Equal(items, want) {
		t.Errorf("%q, want %q", items, want)
	}
	const left = "left out: 2 .heic (cannot be read here), 2 broken links, 1 file without an ending (cannot be read here)"
	if got.String() != left {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]error{
		filepath.Join(dir, "none"): fs.ErrNotExist, "0": footage.ErrNone, "http://camera": footage.ErrNone,
		filepath.Join(dir, "notes"): footage.ErrNone, filepath.Join(dir, "phone"): footage.ErrNone,
	} {
		if _, err := footage.Find([]string{name}); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	t.Chdir(dir)
	fixture.Check(t, os.Symlink("a", "lnk"))
	for _, name := range []string{"2019", "lnk"} { // a name that exists is a file, and a link is followed
		if got, err := footage.Find([]string{name}); err != nil || len(got.Items) == 0 || len(got.Left) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Photographs are looked at in pieces, and films one by one.
func TestParts(t *testing.T) {
	v := footage.Inventory{Items: []footage.Item{{"a", []string{"a/1", "a/2", "a/3"}}, {"b.avi", nil},
		{"c", []string{"c/1"}}}}
	want := []footage.Item{{"b.avi", nil}, {"a/1", []string{"a/1", "a/2"}}, {"a/3", []string{"a/3", "c/1"}}}
	if got := v.Parts(2); !reflect.DeepEqual(got, want) || v.Size() != 5 {
		t.Errorf("%v, %d", got, v.Size())
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
	if got := v.String(); strings.Count(got, "cannot") != 5 || !strings.HasPrefix(got, "left out: 29 .29 ") ||
		!strings.HasSuffix(got, "25 .25 (cannot be read here), and 300 of other kinds") {
		t.Errorf("%s", got)
	}
}

// Whatever a tree holds, each file that may show people is in exactly one list, also by links, and the search ends.
func TestRandom(t *testing.T) {
	shown := []string{".jpg", ".HEIC", ".mp4", ".jfif", ".MKV"}
	ends := append([]string{"", ".txt", ".bin", ".mp3"}, shown...)
	heads := []string{"", "text", "\xff\xd8\xff\xe0", "\x00\x00\x00\x18ftypheic", "\x00\x00\x00\x18ftypisom",
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
				to := []string{path, filepath.Join(root, "none"), folders[r.IntN(len(folders))], t.TempDir()}
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
