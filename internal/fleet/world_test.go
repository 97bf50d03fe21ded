// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/online"
)

var (
	seeds = flag.Int("seeds", 0, "random worlds (0: a few)")
	seed0 = flag.Uint64("seed", 1, "the first one")
	steps = flag.Int("steps", 60, "steps of each")
)

// room is a space in which strangers are far apart, and small enough that the learner takes no
// time.
var room = face.Space{ID: "room", Dim: 16, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3, Reach: .6,
	GenuineRadius: .5, ImpostorRadius: .55}

var try = fixture.Check

// world is what users have said, a server and some devices, which are processes of their own if
// they run.
type world struct {
	t       testing.TB
	r       *rand.Rand
	dir     string
	names   int
	faces   map[string]*fact // by the number of the face
	log     []string
	at      string // address of the server
	monitor string // and of its counters
	folder  string
	server  *process
	devices []*device
	copies  []string // of the server
}

// fact is what the model knows of a face.
type fact struct {
	group *group
	gone  string // who has taken it back or forgotten it
	again bool   // an undo has said it again, beside whatever others said
}

// group is the people who were found to be one.
type group struct {
	parent *group
	forgot bool
}

func (g *group) root() *group {
	for g.parent != nil {
		g = g.parent
	}
	return g
}

func newPeople(t testing.TB, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(),
		faces: make(map[string]*fact)}
	t.Cleanup(func() {
		w.server.end(true)
		for _, d := range w.devices {
			d.run.end(true)
		}
	})
	return w
}

func (w *world) say(s string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(s, args...))
}

func (w *world) fail(s string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(s, args...), strings.Join(w.log, "\n"))
}

func (w *world) is(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (w *world) vector() []float32 { return w.spread(make([]float32, room.Dim), 1) }

func (w *world) near(x []float32) []float32 { return w.spread(x, .06) }

func (w *world) spread(x []float32, by float64) []float32 {
	v, sum := slices.Clone(x), 0.
	for i := range v {
		v[i] += float32(w.r.NormFloat64() * by)
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func keyText(x []float32) string { return string(keyOf(room.ID, false, vector.Bytes(x))) }

// device is a gallery that users change.
type device struct {
	w      *world
	name   string
	path   string
	copies []string
	open   *gallery.Gallery // in the transaction of an edit
	run    *process
}

func (w *world) home(name string) *device {
	h := &device{w: w, name: name, path: filepath.Join(w.dir, name, "faceauth.db")}
	try(w.t, fixture.Must(gallery.Create(h.path, room, online.Settings{}))(w.t).Close())
	return h
}

// hand changes a gallery as another program does, beside the one that takes part.
func (h *device) hand(do func(g *gallery.Gallery) error) {
	h.w.t.Helper()
	g := h.open
	if g == nil {
		g = fixture.Must(gallery.Open(h.path, room))(h.w.t)
		defer func() { try(h.w.t, g.Close()) }()
	}
	if err := do(g); err != nil {
		h.w.fail("%s: %v", h.name, err)
	}
}

// said has an office make a correction.
func (h *device) said(do func(w *office.Office) error) {
	h.w.t.Helper()
	h.hand(func(g *gallery.Gallery) error {
		past, err := office.OpenPast(g, "home", office.PastSettings{})
		if err != nil {
			return err
		}
		return errors.Join(do(office.New(past, office.Options{})), past.Close())
	})
}

// rows changes or reads the rows of a gallery.
func (h *device) rows(do func(t *gallery.Tx, g *gallery.Gallery) error) {
	h.w.t.Helper()
	h.hand(func(g *gallery.Gallery) error {
		return g.Rows().Change(func(t *gallery.Tx) error { return do(t, g) })
	})
}

func (h *device) labels(name string) (all [][]float32) {
	h.rows(func(t *gallery.Tx, g *gallery.Gallery) error {
		for r := range t.Rows(`select vector from label where person = ? and valid and not rejected
			order by vector`, g.Number(name)) {
			all = append(all, vector.Floats(r.ColumnRawBlob(0)))
		}
		return t.Err()
	})
	return all
}

// remove takes a face back.
func (h *device) remove(face []float32) {
	h.w.say("%s removes %x", h.name, keyText(face)[:4])
	h.w.fact(face).gone = h.name
	h.rows(func(t *gallery.Tx, _ *gallery.Gallery) error {
		rows, _ := t.Ints("select id from label where vector = ? and valid and not rejected",
			vector.Bytes(face))
		return t.Drop(rows...)
	})
}

func (w *world) fact(v []float32) *fact {
	f := w.faces[keyText(v)]
	if f == nil {
		w.fail("a face that nobody has enrolled")
	}
	return f
}

func (w *world) said(g *group, faces ...[]float32) [][]float32 {
	for _, f := range faces {
		w.faces[keyText(f)] = &fact{group: g}
	}
	return faces
}

// edit does something at random in a gallery, in one transaction: others change it meanwhile.
func (h *device) edit() {
	h.rows(func(_ *gallery.Tx, g *gallery.Gallery) error {
		h.open = g
		h.change()
		h.open = nil
		return nil
	})
}

func (h *device) change() {
	w := h.w
	var names []string
	h.hand(func(g *gallery.Gallery) error {
		names = g.Names()
		return nil
	})
	kind := w.r.IntN(14)
	if len(names) < 2 || kind < 3 && len(names) < 12 {
		w.names++
		name := fmt.Sprint("p", w.names)
		if w.r.IntN(6) == 0 {
			name = fmt.Sprint("same", w.r.IntN(2)) // others may have this name
		}
		if !slices.Contains(names, name) {
			w.enrolled(h, name)
		}
		return
	}
	name := names[w.r.IntN(len(names))]
	faces := h.labels(name)
	one := faces[w.r.IntN(len(faces))]
	switch kind {
	case 0, 1, 2, 3, 4:
		h.enrol(name, w.said(w.fact(one).group, w.near(one))...)
	case 5, 6:
		if len(faces) == 1 {
			w.fact(one).group.root().forgot = true
		}
		h.remove(one)
	case 7:
		h.rename(name, fmt.Sprint("n", len(w.log)))
	case 8:
		w.say("%s says-a-name %s", h.name, name)
		h.said(func(o *office.Office) error {
			_, err := o.Rename(name, fmt.Sprint("o", len(w.log)))
			return err
		})
	case 9:
		w.say("%s rejects a face of %s", h.name, name)
		h.rows(func(t *gallery.Tx, g *gallery.Gallery) error {
			return t.Label(g.Number(name), true, [][]float32{w.near(one)}, nil)
		})
	case 10:
		h.forget(name)
	case 11, 12:
		into := names[w.r.IntN(len(names))]
		if into != name {
			h.merge(name, into)
		}
	default:
		h.said(func(o *office.Office) error {
			for _, c := range o.Corrections(0, 5) {
				if !c.CanUndo {
					continue
				}
				w.say("%s undoes %s %s was %s", h.name, c.Kind, c.Name, c.Was)
				if err := o.Undo(c.ID); err != nil {
					return err
				}
				return h.open.Rows().Look(func(t *gallery.Tx) error {
					for r := range t.Rows(
						`select vector from label join person on person.id = person
						where name in (?, ?) and valid and not rejected`, c.Was, c.Name) {
						w.fact(vector.Floats(r.ColumnRawBlob(0))).again = true
					}
					return t.Err()
				})
			}
			return nil
		})
	}
}

func (h *device) enrol(name string, faces ...[]float32) {
	h.w.say("%s enrols %s %x", h.name, name, keyText(faces[0])[:4])
	h.hand(func(g *gallery.Gallery) error {
		_, err := g.Enroll(name, faces, time.Unix(1700000000, 0),
			gallery.Enrolment{Add: true, Force: true})
		return err
	})
}

func (h *device) rename(name, to string) {
	h.w.say("%s renames %s to %s", h.name, name, to)
	h.hand(func(g *gallery.Gallery) error { return g.Rename(name, to) })
}

func (h *device) forget(name string) {
	h.w.say("%s forgets %s", h.name, name)
	for _, f := range h.labels(name) {
		fact := h.w.fact(f)
		fact.gone, fact.group.root().forgot = h.name, true
	}
	h.hand(func(g *gallery.Gallery) error { return g.Forget(name) })
}

func (h *device) merge(name, into string) {
	w := h.w
	w.say("%s merges %s into %s", h.name, name, into)
	all := append(h.labels(into), h.labels(name)...)
	root := w.fact(all[0]).group.root()
	for _, f := range all {
		if r := w.fact(f).group.root(); r != root {
			r.parent, root.forgot = root, root.forgot || r.forgot
		}
	}
	h.said(func(o *office.Office) error {
		_, err := o.Rename(name, into)
		return err
	})
}

// content returns who is in a gallery, and under which names each face is.
func (h *device) content() (text string, where map[string][]string) {
	where = make(map[string][]string)
	all := make(map[string][]string)
	h.query(`select name, rejected, vector from label join person on person.id = person
		where valid`,
		func(r store.Row) error {
			key := string(keyOf(room.ID, r.ColumnBool(1), r.ColumnRawBlob(2)))
			all[r.ColumnText(0)] = append(all[r.ColumnText(0)], fmt.Sprintf("%x", key[:4]))
			where[key] = append(where[key], r.ColumnText(0))
			return nil
		})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		slices.Sort(all[name])
		text += fmt.Sprintln(name, all[name])
	}
	return text, where
}

func (h *device) query(sql string, each func(store.Row) error, args ...any) {
	h.w.t.Helper()
	db := fixture.Must(store.Open(h.path, store.Schema{}, false))(h.w.t)
	try(h.w.t, errors.Join(db.Query(sql, each, args...), db.Close()))
}

func (h *device) count(sql string, args ...any) (n int64) {
	h.w.t.Helper()
	h.query(sql, func(r store.Row) error { n = r.ColumnInt64(0); return nil }, args...)
	return n
}

func (h *device) local() *local {
	rows, space, err := gallery.OpenRows(h.path)
	try(h.w.t, err)
	return &local{rows: rows, space: space}
}

// check compares the galleries with each other and with what users have said.
func (w *world) check(all ...*device) {
	w.t.Helper()
	text, where := all[0].content()
	for _, h := range all[1:] {
		other, _ := h.content()
		w.is(h.name+" and "+all[0].name, other, text)
	}
	for key, f := range w.faces {
		at := where[key]
		switch {
		case f.gone != "" && len(at) > 0 && !f.again:
			w.t.Errorf("%x is back at %v, and was gone at %s", key[:4], at, f.gone)
		case len(at) > 1:
			w.t.Errorf("%x belongs to %v", key[:4], at)
		case len(at) == 0 && f.gone == "" && !f.group.root().forgot:
			w.t.Errorf("%x is lost", key[:4])
		}
	}
	for _, h := range all {
		h.hand(func(g *gallery.Gallery) error { // the learner has followed
			rows := h.count("select count(*) from label where valid")
			w.is(h.name+": labels of the learner", len(g.Learner().Labels()), rows)
			return g.Save()
		})
		w.is(h.name+": labels that were removed, and are there",
			h.count("select count(*) from dropped"), 0)
	}
	if w.t.Failed() {
		w.t.Logf("%s\n%s", strings.Join(w.log, "\n"), text)
	}
}

// copy makes a folder as another one is, as a backup of the whole disk does.
func (w *world) copy(folder, to string) {
	os.RemoveAll(to) // what is mounted there stays, empty
	try(w.t, os.CopyFS(to, os.DirFS(folder)))
	for _, secret := range []string{"server.json", "faceauth.db-fleet"} {
		os.Chmod(filepath.Join(to, secret), 0o600)
	}
}
