// SPDX-License-Identifier: Apache-2.0

package search_test

import (
	"bytes"
	"errors"
	"image"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/recordings/search"
)

// opened opens an index for the test.
func opened(t *testing.T, path string, by eye.Vision) *search.Index {
	t.Helper()
	x := &search.Index{Space: space, Vision: by}
	fixture.Check(t, x.Open(path))
	t.Cleanup(func() { x.Close() })
	return x
}

// A recording is read once, as long as the index is there.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	video, path := filepath.Join(dir, "day.avi"), filepath.Join(dir, "cache", "index.db")
	fixture.Check(t, os.WriteFile(video, []byte("film"), 0o600))
	scans := 0
	o := eye.Options{FPS: 5}
	find := func(x *search.Index) search.Recording {
		t.Helper()
		r := fixture.Must(x.Recording(footage.Item{Path: video}, o, func() (search.Recording,
			error) {
			scans++
			return scan(t, n(5, "a"), 0), nil
		}))(t)
		if r.Path != video || len(r.Sightings) != 1 {
			t.Fatalf("%s with %d sightings", r.Path, len(r.Sightings))
		}
		return r
	}
	plain := eye.Vision{Detector: "network"}
	expect := func(what string, want int) {
		t.Helper()
		if scans != want {
			t.Errorf("%s: %d scans, want %d", what, scans, want)
		}
	}
	x := opened(t, path, plain)
	find(x)
	find(x)
	find(opened(t, path, plain))
	expect("twice", 1)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	find(&search.Index{Space: space})
	find(&search.Index{Space: space})
	expect("without a file", 3)

	broken := errors.New("broken")
	none := func() (search.Recording, error) {
		return search.Recording{}, broken
	}
	if _, err := new(search.Index).Recording(footage.Item{Path: video}, o, none); !errors.Is(err,
		broken) {
		t.Errorf("a scan that fails: %v", err)
	}
	if _, err := x.Recording(footage.Item{Path: filepath.Join(dir, "none")}, o,
		none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing recording: %v", err)
	}
	if err := new(search.Index).Open(video); !errors.Is(err, search.ErrIndex) {
		t.Errorf("another file: %v", err)
	}
}

// Whatever changes in the options, in what finds the faces, or in the files, another result is
// asked for. A result of all frames answers for a slower search, too.
func TestKey(t *testing.T) {
	dir := t.TempDir()
	item := footage.Item{Path: filepath.Join(dir, "album")}
	fixture.Check(t, os.Mkdir(item.Path, 0o700))
	for _, name := range []string{"a.jpg", "b.jpg"} {
		item.Files = append(item.Files, filepath.Join(item.Path, name))
		fixture.Check(t, os.WriteFile(item.Files[len(item.Files)-1], []byte(name), 0o600))
	}
	x := opened(t, filepath.Join(dir, "index.db"), eye.Vision{})
	scanned := func(x *search.Index, item footage.Item, o eye.Options) (yes bool) {
		t.Helper()
		fixture.Must(x.Recording(item, o, func() (search.Recording, error) {
			yes = true
			return search.Recording{}, nil
		}))(t)
		return yes
	}
	var o eye.Options
	if !scanned(x, item, o) || scanned(x, item, o) {
		t.Fatal("not scanned once")
	}
	slow := o
	slow.FPS = 5
	if scanned(x, item, slow) {
		t.Error("all frames are in the index, and it was scanned for five a second")
	}
	fields := 0
	set := func(of reflect.Value) func() {
		switch of.Kind() {
		case reflect.String:
			of.SetString("other")
		case reflect.Bool:
			of.SetBool(true)
		case reflect.Int, reflect.Int64:
			of.SetInt(7)
		case reflect.Float64:
			of.SetFloat(7)
		case reflect.Slice:
			of.Set(reflect.MakeSlice(of.Type(), 1, 1))
		case reflect.Struct:
			of.Set(reflect.ValueOf(image.Pt(7, 7)))
		case reflect.Func:
			return nil // what is called changes no result
		default:
			t.Fatalf("a field of the kind %v", of.Kind())
		}
		fields++
		return func() { of.SetZero() }
	}
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		undo := set(v.Field(i))
		if undo == nil || v.Type().Field(i).Name == "FPS" {
			continue
		}
		where := slices.Contains([]string{"Roots", "Files", "From"}, v.Type().Field(i).Name)
		if scanned(x, item, o) == where {
			t.Errorf("the key and option %s", v.Type().Field(i).Name)
		}
		undo()
	}
	v = reflect.ValueOf(&x.Vision).Elem()
	for i := range v.NumField() {
		undo := set(v.Field(i))
		if !scanned(x, item, eye.Options{}) {
			t.Errorf("the key has no %s of the vision", v.Type().Field(i).Name)
		}
		undo()
	}
	if fields < 20 {
		t.Errorf("only %d fields", fields)
	}
	fixture.Check(t, os.WriteFile(item.Files[1], []byte("longer"), 0o600))
	if !scanned(x, item, eye.Options{}) {
		t.Error("a picture has changed, and nothing was scanned")
	}
	one := item
	one.Files = one.Files[:1]
	if !scanned(x, one, eye.Options{}) {
		t.Error("a picture is gone, and nothing was scanned")
	}
	fixture.Check(t, x.Keep(item, eye.Options{Faces: 3},
		search.Recording{Count: face.Count{Read: 2}}))
	if scanned(x, item, eye.Options{Faces: 3}) {
		t.Error("what a replay keeps was scanned again")
	}
}

// A photograph is looked at once, whatever lies beside it and whatever its folder is called. A
// changed one is looked at again, and one that is gone is left to the eye.
func TestPhotographsOfIndex(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"one/1.pgm", "one/2.pgm", "two/1.pgm"} {
		fixture.Check(t, os.MkdirAll(filepath.Dir(path(name)), 0o700))
		fixture.Check(t, os.WriteFile(path(name), []byte(name), 0o600)) // of one size
		at := time.Unix(1e9, 0)                                         // as from an archive
		fixture.Check(t, os.Chtimes(path(name), at, at))
	}
	x := opened(t, path("index.db"), eye.Vision{})
	rest := func(keep bool, names ...string) (left []string) {
		t.Helper()
		var files []string
		for _, n := range names {
			files = append(files, path(n))
		}
		p := fixture.Must(x.Photographs(files, eye.Options{FPS: float64(len(names))}))(t)
		if len(p.Rest)+len(p.Known) != len(names) {
			t.Fatalf("%d known and %d unknown of %d", len(p.Known), len(p.Rest), len(names))
		}
		var found []search.Recording
		for _, f := range p.Rest {
			name, _ := filepath.Rel(dir, f)
			left = append(left, name)
			found = append(found, search.Photograph(space, f,
				face.Frame{Samples: []face.Sample{{Vector: []float32{1, 2}}}}))
		}
		for f, r := range p.Known {
			if r.Path != f || len(r.Sightings) != 1 {
				t.Errorf("%s is %+v", f, r)
			}
		}
		if keep {
			fixture.Check(t, p.Keep(found))
		}
		return left
	}
	if got := rest(true, "one/1.pgm", "one/2.pgm"); len(got) != 2 {
		t.Errorf("at first %q", got)
	}
	if got := rest(false, "one/1.pgm", "two/1.pgm", "one/2.pgm", "one/3.pgm"); !slices.Equal(got,
		[]string{"two/1.pgm", "one/3.pgm"}) {
		t.Errorf("with others %q", got)
	}
	fixture.Check(t, os.Rename(path("one"), path("renamed")))
	if got := rest(false, "renamed/1.pgm", "renamed/2.pgm"); got != nil {
		t.Errorf("renamed: %q", got)
	}
	fixture.Check(t, os.WriteFile(path("renamed/2.pgm"), []byte("more in it"), 0o600))
	if got := rest(false, "renamed/1.pgm", "renamed/2.pgm"); !slices.Equal(got,
		[]string{"renamed/2.pgm"}) {
		t.Errorf("changed: %q", got)
	}
}

// What was found of a person who is forgotten goes, without a trace; that of others stays.
func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := opened(t, path, eye.Vision{})
	for _, who := range "ab" {
		video := filepath.Join(t.TempDir(), "film of "+string(who))
		fixture.Check(t, os.WriteFile(video, []byte("film"), 0o600))
		fixture.Must(x.Recording(footage.Item{Path: video}, eye.Options{},
			func() (search.Recording, error) {
				r := scan(t, n(5, string(who)), 0)
				r.Sightings[0].Album.Faces[0].JPEG = []byte("face of " + string(who))
				return r, nil
			}))(t)
	}
	for _, want := range []int{1, 0} {
		if n, err := x.Forget([][]float32{{0, 0}}); err != nil || n != want {
			t.Errorf("%d recordings, %v", n, err)
		}
	}
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + end)
		if err != nil || bytes.Contains(b, []byte("face of a")) {
			t.Errorf("%s: a trace is left, %v", end, err)
		}
		if end == "" && !bytes.Contains(b, []byte("face of b")) {
			t.Error("the other recording is gone")
		}
	}
}
