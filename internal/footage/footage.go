// SPDX-License-Identifier: Apache-2.0

// Package footage makes the inventory of a path: the films and pictures in it, and what is left
// out, with the reason. It decodes nothing.
package footage

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/maruel/natural"
)

// ErrNone is wrapped if a name is a camera or a URL, or if a folder holds no recording.
var ErrNone = errors.New("no recording")

// Item is a recording: a film, or pictures of one folder.
type Item struct {
	Path  string   // the source to open: the film, the picture, or the folder of the pictures
	Files []string // the pictures, in natural order; nil for a film
}

// Left is a file or folder that may show people and is left out.
type Left struct {
	Path Name `json:"recording"`
	// of what kind it is, and why it cannot be read: ".psd (cannot be read here)", "broken link"
	Why string `json:"why"`
}

// Name is the name of a file, perhaps no UTF-8.
type Name string

// MarshalJSON writes a name that is no UTF-8 as {"text": ..., "base64": ...}: a program needs the
// bytes to open it.
func (n Name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal(struct {
		Text   string `json:"text"`
		Base64 string `json:"base64"`
	}{strings.ToValidUTF8(string(n), "\ufffd"), base64.StdEncoding.EncodeToString([]byte(n))})
}

// Inventory is what a path holds. What shows nobody, as notes and sound, is not in it, and neither
// are hidden files.
type Inventory struct {
	Items []Item // in natural order
	Left  []Left // what may show people, and is left out
	Aside []Left // folders that are passed over on purpose: see [Aside]
}

// Paths returns the sources to open.
func (v Inventory) Paths() (all []string) {
	for _, i := range v.Items {
		all = append(all, i.Path)
	}
	return all
}

// Parts returns the recordings in pieces of work: each film, and the pictures of all folders, at
// most n together. A piece of pictures has the path of its first one.
func (v Inventory) Parts(n int) (all []Item) {
	var pictures []string
	for _, i := range v.Items {
		if i.Files == nil {
			all = append(all, i)
		}
		pictures = append(pictures, i.Files...)
	}
	for part := range slices.Chunk(pictures, n) {
		all = append(all, Item{part[0], part})
	}
	return all
}

// Size returns the number of films and of pictures.
func (v Inventory) Size() (n int) {
	for _, i := range v.Items {
		n += max(1, len(i.Files))
	}
	return n
}

// mostKinds are the kinds of files that are named in one line.
const mostKinds = 5

// plural makes "2 broken links" of "2 broken link"; endings such as .psd stay.
var plural = strings.NewReplacer("file", "files", "link", "links", "folder", "folders")

// String says in one line what is left out, the most frequent kinds first; "" if nothing is.
func (v Inventory) String() string { return counted(v.Left) }

// Asides says in one line which folders are passed over on purpose; "" if none are.
func (v Inventory) Asides() string { return counted(v.Aside) }

func counted(all []Left) string {
	if len(all) == 0 {
		return ""
	}
	n := map[string]int{}
	for _, l := range all {
		n[l.Why]++
	}
	kinds := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(n[b]-n[a], strings.Compare(a, b))
	})
	text, rest := "left out: ", len(all)
	for i, k := range kinds[:min(len(kinds), mostKinds)] {
		rest -= n[k]
		if n[k] > 1 {
			k = plural.Replace(k)
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", n[kinds[i]], k)
	}
	if rest > 0 {
		text += fmt.Sprintf(", and %d of other kinds", rest)
	}
	return text
}

// file is a device and an inode.
type file struct{ dev, ino uint64 }

func identity(info fs.FileInfo) file {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return file{uint64(s.Dev), s.Ino}
	}
	return file{}
}

// finder walks through folders.
type finder struct {
	Inventory
	pictures map[string][]string // the pictures of a folder
	folders  map[file]bool       // that were entered
	files    map[file]bool       // that are in a list
	unread   map[file]bool       // of these, what cannot be read
	// to follow when all else is found, so that a file has its own name
	links []string
}

// Find returns the inventory of names: files, and folders with all that is below them. Symbolic
// links are followed, and nothing is listed twice by a link. The error wraps [ErrNone], if there is
// nothing to read, or comes from package fs.
func Find(names []string) (Inventory, error) {
	f := finder{pictures: map[string][]string{}, folders: map[file]bool{}, files: map[file]bool{},
		unread: map[file]bool{}}
	for _, name := range names {
		if !input.IsRecording(name) {
			return Inventory{}, fmt.Errorf("%w: %s is a camera or a URL", ErrNone, name)
		}
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return Inventory{}, input.Unopened(name, err)
		case info.IsDir():
			if _, err := os.ReadDir(name); err != nil {
				return Inventory{}, input.Unopened(name, err)
			}
			f.folder(name, info, true)
		case !info.Mode().IsRegular():
			return Inventory{}, fmt.Errorf("%w: %s is a device or pipe", ErrNone, name)
		case f.files[identity(info)]:
		default:
			// What a user names is opened, whatever it is: the error says what was expected.
			f.files[identity(info)] = true
			item := Item{Path: name}
			if kind, _ := kindOf(name); kind == picture {
				item.Files = []string{name}
			}
			f.Items = append(f.Items, item)
		}
	}
	for len(f.links) > 0 {
		link := f.links[0]
		f.links = f.links[1:]
		f.follow(link)
	}
	f.played()
	for dir, files := range f.pictures {
		slices.SortFunc(files, natural.Compare)
		f.Items = append(f.Items, Item{Path: dir, Files: files})
	}
	slices.SortStableFunc(f.Items, func(a, b Item) int { return natural.Compare(a.Path, b.Path) })
	slices.SortFunc(f.Left, func(a, b Left) int {
		return natural.Compare(string(a.Path), string(b.Path))
	})
	if len(f.Items) > 0 {
		return f.Inventory, nil
	}
	all := strings.Join(names, ", ")
	for _, left := range []string{f.Inventory.String(), f.Asides()} {
		if left != "" {
			return f.Inventory, fmt.Errorf(
				"%w: %s holds no film and no picture that can be read; %s", ErrNone, all, left)
		}
	}
	return f.Inventory, fmt.Errorf("%w: %s holds neither films nor pictures", ErrNone, all)
}

// Aside says why nobody wants a folder looked at that is not named itself: a network storage keeps
// thumbnails, deleted files or earlier states in it, or it holds the file .nomedia. It is "" for
// others.
func Aside(dir string) string {
	switch strings.ToLower(filepath.Base(dir)) {
	case "@eadir", "@thumb", ".thumbnails":
		return "folder of a storage's thumbnails"
	case "#recycle", "@recycle", "$recycle.bin", "recycler", "lost+found":
		return "folder of what was deleted"
	case "#snapshot", "@recently-snapshot", "system volume information":
		return "folder of earlier states"
	}
	_, err := os.Lstat(filepath.Join(dir, ".nomedia"))
	if err == nil {
		return "folder with .nomedia"
	}
	return ""
}

// folder lists what is in a folder, unless it is listed already. Named says that the user has named
// it.
func (f *finder) folder(dir string, info fs.FileInfo, named bool) {
	if f.folders[identity(info)] {
		return
	}
	f.folders[identity(info)] = true
	why := Aside(dir)
	if why != "" && !named {
		f.Aside = append(f.Aside, Left{Name(dir), why})
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.Left = append(f.Left, Left{Name(dir), "folder (cannot be opened)"})
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			f.links = append(f.links, path)
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it has gone
		}
		f.entry(path, info)
	}
}

// follow lists what a link leads to.
func (f *finder) follow(link string) {
	info, err := os.Stat(link)
	if err != nil {
		f.Left = append(f.Left, Left{Name(link), "broken link"})
		return
	}
	if info.IsDir() || !f.files[identity(info)] {
		f.entry(link, info)
	}
}

func (f *finder) entry(path string, info fs.FileInfo) {
	if info.IsDir() {
		f.folder(path, info, false)
		return
	}
	if !info.Mode().IsRegular() {
		f.Left = append(f.Left, Left{Name(path), "device or pipe"})
		return
	}
	f.files[identity(info)] = true
	switch kind, why := kindOf(path); kind {
	case film:
		f.Items = append(f.Items, Item{Path: path})
	case picture:
		dir := filepath.Dir(path)
		f.pictures[dir] = append(f.pictures[dir], path)
	case unread:
		f.unread[identity(info)] = true
		f.Left = append(f.Left, Left{Name(path), why})
	}
}

// played drops lists of other files, as of an HLS recording, whose files are all in the inventory.
func (f *finder) played() {
	for again := true; again; {
		before := len(f.Left)
		f.Left = slices.DeleteFunc(f.Left, func(l Left) bool {
			info, err := os.Stat(string(l.Path))
			if err != nil || !slices.Contains(listEndings, ending(string(l.Path))) ||
				!f.covers(string(l.Path)) {
				return false
			}
			delete(f.unread, identity(info))
			return true
		})
		again = len(f.Left) < before // a list may name lists
	}
}

// listed finds the files that a list names (RFC 8216): a line each, or an attribute.
var listed = regexp.MustCompile(`(?m)^([^#\s][^\r\n]*)|URI="([^"]*)"`)

// covers reports whether all files that a list names are in the inventory, and can be read.
func (f *finder) covers(list string) bool {
	const longest = 4 << 20
	r, err := safefile.Open(list)
	if err != nil {
		return false
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, longest+1))
	if err != nil || len(text) > longest || ending(list) == ".mpd" {
		return false
	}
	names := listed.FindAllStringSubmatch(string(text), -1)
	for _, m := range names {
		name, _, _ := strings.Cut(strings.TrimSpace(m[1]+m[2]), "?")
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(list), path)
		}
		info, err := os.Stat(path)
		if err != nil || !f.files[identity(info)] || f.unread[identity(info)] {
			return false
		}
	}
	return len(names) > 0
}

// Pictures returns the paths of the pictures in dir itself, in natural order.
func Pictures(dir string) (all []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if kind, _ := kindOf(path); kind == picture {
			all = append(all, path)
		}
	}
	slices.SortFunc(all, natural.Compare)
	return all, err
}
