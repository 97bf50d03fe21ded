// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/online"
)

// Create makes a gallery where there is none, and never another one's.
func TestCreate(t *testing.T) {
	g := newGallery(t, "alice")
	path := g.Path()
	if _, err := gallery.Create(path, space, online.Settings{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if _, err := gallery.Create(path, field, online.Settings{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("of another space: error %v", err)
	}
	want(t, open(t, path), "alice 4")
	if _, err := gallery.Create(filepath.Join(t.TempDir(), "g"), space,
		online.Settings{K: -1}); !errors.Is(err,
		online.ErrSettings) {
		t.Errorf("error %v", err)
	}
	memory, err := gallery.New(space, online.Settings{})
	if err != nil || memory.Path() != "" {
		t.Fatal(err)
	}
	enrol(t, memory, "alice", 0)
	if err := errors.Join(memory.Save(), memory.Update(), memory.Close()); err != nil {
		t.Error(err)
	}
}

// After Close nothing changes a gallery, and whatever would have to says so.
func TestClosed(t *testing.T) {
	g := newGallery(t, "alice")
	path := g.Path()
	fixture.Check(t, errors.Join(g.Close(), g.Close()))
	before := read(t, path)
	_, enrolled := g.Enroll("bob", person(1, 4), noon, gallery.Enrolment{})
	_, removed := g.Remove(1)
	for what, err := range map[string]error{
		"Save": g.Save(), "Update": g.Update(), "Enroll": enrolled,
		"Rename": g.Rename("alice", "anne"), "Forget": g.Forget("alice"), "Remove": removed,
		"Change":  g.Change(func() error { return nil }),
		"Look":    g.Rows().Look(func(*gallery.Tx) error { return nil }),
		"Write":   g.Rows().Write(false, func(*gallery.Tx) error { return nil }),
		"Confirm": g.Confirm("alice", nil, noon),
	} {
		if !errors.Is(err, gallery.ErrClosed) && (what != "Confirm" || err != nil) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if string(read(t, path)) != string(before) {
		t.Error("the file has changed")
	}
	want(t, g, "alice 4") // it still judges
	if v, err := g.Learner().Judge(person(0, 9)[8]); err != nil || g.Name(v.Person) != "alice" {
		t.Errorf("%+v, %v", v, err)
	}
	want(t, open(t, path), "alice 4")
}

// The zero value is a closed gallery of nobody. No call of it panics.
func TestZero(t *testing.T) {
	kind := reflect.TypeFor[*gallery.Gallery]()
	for i := range kind.NumMethod() {
		m := kind.Method(i)
		t.Run(m.Name, func(t *testing.T) {
			in := []reflect.Value{reflect.ValueOf(new(gallery.Gallery))}
			for j := 1; j < m.Type.NumIn() && !(m.Type.IsVariadic() && j == m.Type.NumIn()-1); j++ {
				in = append(in, reflect.Zero(m.Type.In(j)))
			}
			m.Func.Call(in)
		})
	}
	// One that was never opened is closed.
	var zero gallery.Gallery
	rows := zero.Rows()
	_, number := rows.Int("select 1")
	_, here := rows.Here("hall", noon)
	_, elsewhere := rows.Elsewhere(noon)
	for i, err := range []error{zero.Save(), zero.Change(func() error { return nil }), number, here,
		elsewhere,
		rows.Look(func(*gallery.Tx) error { return nil })} {
		if !errors.Is(err, gallery.ErrClosed) {
			t.Errorf("call %d: error %v", i, err)
		}
	}
	rows.Reserve()
	if rows.Next("face") == 0 || rows.Turn() != 0 || rows.LabelOf(1) != 0 || rows.Path() != "" ||
		rows.Close() != nil {
		t.Error("a gallery that was never opened has something")
	}
}

// A gallery that is closed within its own change says so, and nothing has changed.
func TestClosedWithin(t *testing.T) {
	path := stored(t, "alice")
	for what, change := range map[string]func(r *gallery.Rows, do func(*gallery.Tx) error) error{
		"Change": (*gallery.Rows).Change,
		"Look":   (*gallery.Rows).Look,
		"Write": func(r *gallery.Rows, do func(*gallery.Tx) error) error {
			return r.Write(true,
				do)
		},
	} {
		g := open(t, path)
		err := change(g.Rows(), func(tx *gallery.Tx) error {
			tx.Exec("delete from label")
			tx.Erase()
			return errors.Join(g.Close(), tx.Exec("select 1"))
		})
		if !errors.Is(err, gallery.ErrClosed) {
			t.Errorf("%s: error %v", what, err)
		}
		want(t, open(t, path), "alice 4")
	}
}

// After a panic within a change, which a server may have caught, nothing has changed, and other
// programs may write.
func TestPanicWithin(t *testing.T) {
	path := stored(t, "alice")
	g, other := open(t, path), open(t, path)
	func() {
		defer func() { recover() }()
		g.Change(func() error {
			enrol(t, g, "bob", 1)
			panic("a mistake")
		})
	}()
	want(t, g, "alice 4")
	enrol(t, other, "carol", 2)
	enrol(t, g, "dora", 3)
	want(t, g, "alice 4", "carol 4", "dora 4")
	want(t, open(t, path), "alice 4", "carol 4", "dora 4")
}

// A change that fails when it is to be kept has changed nothing, neither in memory nor in the file,
// and works later.
func TestErrorChangesNothing(t *testing.T) {
	path := stored(t, "alice", "bob")
	g := open(t, path)
	learned := fixture.Must(g.Learner().Observe(person(0, 5)[4]))(t)
	if !learned.Learned {
		t.Fatalf("%+v", learned)
	}
	other := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	defer other.Close()
	fixture.Check(t, other.Exec(`create trigger full before insert on learned begin
		select raise(abort, 'no room'); end`))
	enroll := func(name string, i int) error {
		_, err := g.Enroll(name, person(i, 4), noon, gallery.Enrolment{Add: true, Force: true})
		return err
	}
	changes := map[string]func() error{
		"Save":   g.Save,
		"Enroll": func() error { return enroll("carol", 2) },
		"add":    func() error { return enroll("alice", 3) },
		"Forget": func() error { return g.Forget("alice") },
		"Rename": func() error { return g.Rename("alice", "anne") },
		"Remove": func() error { _, err := g.Remove(g.Learner().Labels()[0].ID); return err },
		"Reject": func() error { return g.Reject(person(1, 1)[0], "alice") },
		"Change": func() error {
			return g.Change(func() error {
				return errors.Join(enroll("carol", 2), g.Forget("bob"))
			})
		},
		"undo": func() error {
			return g.Change(func() error {
				_, err := g.Learner().Undo(0)
				return err
			})
		},
	}
	for what, change := range changes {
		if err := change(); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%s: error %v", what, err)
		}
		want(t, g, "alice 4", "bob 4")
		want(t, open(t, path), "alice 4", "bob 4")
		v := fixture.Must(g.Learner().Judge(person(0, 5)[4]))(t)
		if n := g.Learner().Graph().Learned(); g.Name(v.Person) != "alice" || n != 1 ||
			len(g.Learner().Labels()) != 8 {
			t.Errorf("%s: %+v, and %d learned faces", what, v, n)
		}
	}
	fixture.Check(t, errors.Join(other.Exec("drop trigger full"), changes["Change"](),
		changes["Rename"]()))
	want(t, open(t, path), "anne 4", "carol 4")
}

// Times that no calendar has do not keep the people from being written as JSON.
func TestTimes(t *testing.T) {
	g := newGallery(t, "alice")
	for _, when := range []time.Time{{}, time.Unix(math.MinInt64, 0), time.Unix(1<<40, 0),
		time.Unix(math.MaxInt64, 0)} {
		fixture.Must(g.Enroll("alice", person(0, 1), when, gallery.Enrolment{Add: true}))(t)
		if _, err := json.Marshal(g.People()); err != nil {
			t.Error(err)
		}
	}
}

// A caller may use one buffer for all faces: those that were not saved when another program changed
// what was learned are learned again as they were.
func TestOneBuffer(t *testing.T) {
	path := stored(t, "alice", "bob")
	one, two := open(t, path), open(t, path)
	var buffer []float32
	for _, x := range person(0, 24)[4:] {
		buffer = append(buffer[:0], x...)
		fixture.Must(one.Learner().Observe(buffer))(t)
		clear(buffer)
	}
	n := one.Learner().Counts().Learned
	fixture.Must(two.Learner().Observe(person(1, 5)[4]))(t)
	fixture.Check(t, errors.Join(two.Save(), one.Save()))
	if is := open(t, path).Learner().Counts().Learned; n == 0 || is != n+1 {
		t.Errorf("%d faces are learned, want %d", is, n+1)
	}
}

// A running program takes in the faces that others have enrolled at the price of labelling them:
// not at the square of it.
func TestUpdateCost(t *testing.T) {
	wide := face.Space{ID: "wide", Dim: 128, Scale: 1, Unit: true, Sigma: .2, Gamma: 1e-3,
		Reach: .86}
	const people, batch = 600, 60 // batches, because a snapshot would be read instead
	draw := drawn(wide.Dim)
	best := math.Inf(1)
	for range 3 {
		path := filepath.Join(t.TempDir(), "gallery")
		other := fixture.Must(gallery.Create(path, wide, online.Settings{}))(t)
		defer other.Close()
		running := fixture.Must(gallery.Open(path, wide))(t)
		defer running.Close()
		alone := fixture.Must(online.New(wide, online.Settings{}))(t)
		var update, label time.Duration
		for begin := 0; begin < people; begin += batch {
			fixture.Check(t, other.Rows().Change(func(tx *gallery.Tx) error {
				for i := range batch {
					name, faces := fmt.Sprint("person ", begin+i), draw()
					start := time.Now()
					for _, x := range faces {
						if err := alone.Label(x, online.Person(begin+i+1)); err != nil {
							return err
						}
					}
					label += time.Since(start)
					id, err := tx.Person(name)
					if err != nil {
						return err
					}
					if err := tx.Label(id, false, faces, nil); err != nil {
						return err
					}
				}
				return nil
			}))
			start := time.Now()
			fixture.Check(t, running.Update())
			update += time.Since(start)
		}
		if n := len(running.People()); n != people {
			t.Fatalf("%d people", n)
		}
		t.Logf("%v, and %v to label the faces", update, label)
		best = min(best, update.Seconds()/label.Seconds())
	}
	if best > 4 {
		t.Errorf("it takes %.1f times as long as labelling", best)
	}
}
