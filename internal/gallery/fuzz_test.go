// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/reference"
	"github.com/faceauth/faceauth/online"
)

// FuzzOperations reads its input as a program of operations on a gallery and its learner. After
// each operation it compares everything that can be observed with a slow model that keeps
// everything.
func FuzzOperations(f *testing.F) {
	f.Add(program(0)) // TestRandomPrograms runs many
	dir := memory(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		if testing.Short() && crc32.ChecksumIEEE(p)%3 > 0 {
			t.Skip("without -short all are run")
		}
		if len(p) <= 600 {
			run(t, dir, p)
		}
	})
}

// TestRandomPrograms runs random programs as FuzzOperations does.
func TestRandomPrograms(t *testing.T) {
	programs := uint64(2000)
	if testing.Short() {
		programs = 120
	}
	begin, dir := time.Now(), memory(t)
	total := &tally{seen: make(map[string]int)}
	for seed := range programs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { total.add(run(t, dir, program(seed))) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d steps in %v: %v", total.steps, time.Since(begin), total.seen)
	// A comparison stops early if rounding could have decided either way. This must be rare.
	if total.delicate*50 > int(programs) {
		t.Errorf("%d of %d programs came to a decision within rounding", total.delicate, programs)
	}
	for _, what := range []string{
		"learned", "no room", "tie", "rejected", "unsure", "better face", "outlier", "no path",
		"repartition", "full",
		"undone",
		"unlearned", "configured", "configuration refused", "conflict", "resembles", "mixed",
		"mismatch", "exists",
		"anchored", "named from afar", "linked", "recalled", "confirmed", "renamed", "retracted",
		"forgotten", "unlabelled", "drift", "many rejected",
		"contracted", "rival", "name kept",
	} {
		if total.seen[what] < max(1, int(programs)/250) {
			t.Errorf("the programs saw %q %d times: they test too little", what, total.seen[what])
		}
	}
}

// memory returns a folder in memory if the system has one, because a save waits for the disk.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "faceauth-test")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// tally counts the results of programs, to show that the programs test something.
type tally struct {
	steps, delicate int
	seen            map[string]int
}

func (a *tally) add(b *tally) {
	a.steps += b.steps
	a.delicate += b.delicate
	for what, n := range b.seen {
		a.seen[what] += n
	}
}

// program returns a random program. Most of its operations show faces to be learned.
func program(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 14))
	p := make([]byte, 60+r.IntN(200))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// machine runs one program.
type machine struct {
	*tally
	t       *testing.T
	program []byte
	trace   []string
	path    string
	g       *gallery.Gallery // is saved and opened again
	twin    *gallery.Gallery // is never saved
	slow    *reference.Gallery
	corner  byte // the place of most faces
	second  int64
}

var names = []string{"alice", "bob", "carol", "dora"}

// dimensions of the feature spaces: for each of them other code computes the sums of products.
var dimensions = []int{2, 5, 70}

// run runs a program, with the file of its gallery in a folder.
func run(t *testing.T, dir string, p []byte) *tally {
	m := &machine{tally: &tally{seen: make(map[string]int)}, t: t, program: p,
		path: filepath.Join(dir, "gallery")}
	defer func() { m.g.Close() }()
	if err := os.Remove(m.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	head := m.next()
	space := face.Space{
		ID: "fuzz", Dim: dimensions[int(head)%3], Scale: []float64{1, .5}[head/3%2],
		Sigma: .2, Gamma: 1e-3, Reach: .3, ImpostorRadius: .25, GenuineRadius: .5,
	}
	s := online.Settings{
		K: 1 + int(m.next()%8), Sigma: .2, Gamma: 1e-3, Reach: .3,
		Link: .45, DriftDistance: .2, Strangers: 1e-3,
	}
	if head/72%2 == 0 { // impostors were measured in this space
		space.Stills = face.Impostors{People: 100, Pairs: 10000, Distances: [5]float64{.5, .4, .35}}
		if head/36%2 == 0 {
			space.Streams = face.Impostors{People: 100, Pairs: 10000, Distances: [5]float64{.4, .3}}
		}
	}
	var err, errTwin error
	m.g, err = gallery.Create(m.path, space, s)
	m.twin, errTwin = gallery.New(space, s)
	if err != nil || errTwin != nil {
		t.Fatal(err, errTwin)
	}
	m.slow = &reference.Gallery{Learner: reference.NewLearner(space, s),
		Enrolled: make(map[string]time.Time), Numbers: make(map[string]online.Person)}
	defer func() {
		if t.Failed() {
			t.Logf("the program, in %d dimensions with %+v:\n%s", space.Dim, s,
				strings.Join(m.trace, "\n"))
		}
	}()
	for len(m.program) > 0 && !t.Failed() {
		m.steps++
		m.step()
		if m.slow.Learner.Graph.Delicate {
			m.delicate++
			return m.tally
		}
		m.compare()
		if m.slow.Learner.Graph.Delicate {
			m.delicate++
			return m.tally
		}
	}
	return m.tally
}

// next returns the next byte of the program, and 0 after its end.
func (m *machine) next() byte {
	if len(m.program) == 0 {
		return 0
	}
	b := m.program[0]
	m.program = m.program[1:]
	return b
}

func pick[T any](m *machine, of ...T) T { return of[int(m.next())%len(of)] }

// vector returns the next face. It lies in one of 256 cells, at one of four places with irregular
// coordinates, so that no two distances are equal by chance, and many faces are equal.
func (m *machine) vector() []float32 {
	b, place := m.next(), m.next()
	if place%32 != 0 { // near the others
		b = m.corner&0xcc | b&0x33
	} else {
		m.corner = b
	}
	return m.at(b, place>>6)
}

func (m *machine) at(cell, place byte) []float32 {
	r := rand.New(rand.NewPCG(uint64(cell), uint64(place)))
	const spacing, jitter = .11, .06
	x, y := spacing*float64(cell&15)+jitter*r.Float64(), spacing*float64(cell>>4)+jitter*r.Float64()
	dim := m.slow.Learner.Space.Dim
	v := make([]float32, dim)
	// A rotation of the plane in every second pair of values: distances are those of the plane.
	pairs := 0
	for i := 0; i+1 < dim; i += 4 {
		pairs++
	}
	scale := 1 / math.Sqrt(float64(pairs)) / m.slow.Learner.Space.Scale
	for i := 0; i+1 < dim; i += 4 {
		sin, cos := math.Sincos(float64(i))
		v[i], v[i+1] = float32(scale*(cos*x-sin*y)), float32(scale*(sin*x+cos*y))
	}
	return v
}

func (m *machine) vectors(n int) (all [][]float32) {
	for range n {
		all = append(all, m.vector())
	}
	return all
}

// id returns the number of a stored face or, rarely, a number that no face has.
func (m *machine) id(labelled bool) int64 {
	b := int(m.next())
	if b > 250 {
		return int64(b) - 252 // -1 to 3
	}
	var ids []int64
	for _, v := range m.slow.Learner.Graph.Vertices {
		if !labelled || v.Class >= 0 {
			ids = append(ids, v.ID)
		}
	}
	if len(ids) == 0 {
		return 1
	}
	return ids[b%len(ids)]
}

// both runs an operation on the gallery and on its twin, which must agree, and compares the result
// with the model's result.
func (m *machine) both(name string, want any, wantErr error,
	do func(g *gallery.Gallery) (any, error)) {
	m.t.Helper()
	m.trace = append(m.trace, fmt.Sprintf("%d: %s", m.steps, name))
	value, err := do(m.g)
	value2, err2 := do(m.twin)
	if fmt.Sprint(value) != fmt.Sprint(value2) || fmt.Sprint(err) != fmt.Sprint(err2) {
		m.t.Fatalf("%s: %+v, %v, and before it was saved and opened again %+v, %v", name, value,
			err, value2, err2)
	}
	m.check(name, value, err, want, wantErr)
}

// look compares an operation that changes nothing with the model. The twin is the same to the last
// bit here, and is not called.
func (m *machine) look(name string, want any, wantErr error,
	do func(g *gallery.Gallery) (any, error)) {
	m.t.Helper()
	value, err := do(m.g)
	m.check(name, value, err, want, wantErr)
}

func (m *machine) check(name string, value any, err error, want any, wantErr error) {
	m.t.Helper()
	if m.slow.Learner.Graph.Delicate {
		return
	}
	if !errors.Is(err, wantErr) || wantErr == nil && err != nil {
		m.t.Fatalf("%s: error %v, want %v", name, err, wantErr)
	}
	if err == nil && !equal(reflect.ValueOf(value), reflect.ValueOf(want)) {
		m.t.Fatalf("%s: %+v, want %+v", name, value, want)
	}
}

// equal is reflect.DeepEqual, but numbers may differ by rounding. The accuracy is the accuracy that
// the learner promises for its values.
func equal(a, b reflect.Value) bool {
	if a.Kind() == reflect.Interface {
		return equal(a.Elem(), b.Elem())
	}
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Float64:
		x, y := a.Float(), b.Float()
		return x == y || math.Abs(x-y) <= 1e-8
	case reflect.Slice:
		if x, ok := a.Interface().([]float32); ok {
			return slices.Equal(x, b.Interface().([]float32))
		}
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[time.Time]() {
			return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
		}
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Invalid:
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func (m *machine) note(what string, is bool) {
	if is {
		m.seen[what]++
	}
}

func (m *machine) noteVerdict(v online.Verdict) {
	m.note("learned", v.Learned)
	m.note("no room", v.NoRoom)
	m.note("tie", v.Reason == online.Tie)
	m.note("rejected", v.Reason == online.Rejected)
	m.note("unsure", v.Reason == online.Unsure)
	m.note("better face", v.Reason == online.BetterFace)
	m.note("outlier", v.Reason == online.Outlier)
	m.note("no path", v.Reason == online.NoPath)
	m.note("anchored", v.Anchored)
	m.note("named from afar", v.Person != 0 && v.Distance > .3)
}

// unknown returns the sentinel error of an unknown number or name.
func unknown(ok bool) error {
	if ok {
		return nil
	}
	return online.ErrUnknown
}

func (m *machine) step() {
	s := m.slow
	l := s.Learner
	r := l.Graph.R
	switch op := m.next() % 64; op {
	default: // faces to be learned
		for range 1 + op%3 {
			x := m.vector()
			want := l.Observe(x)
			m.noteVerdict(want)
			m.both(fmt.Sprintf("Observe %v", x[:2]), want, nil,
				func(g *gallery.Gallery) (any, error) {
					return g.Learner().Observe(x)
				})
		}
	case 0, 1:
		x, name := m.vector(), pick(m, names...)
		m.second++
		now := time.Unix(m.second, 0)
		how := gallery.Enrolment{Add: true, Force: true}
		want, _ := s.Enroll(name, [][]float32{x}, now, how)
		m.both(fmt.Sprintf("Label %v %s", x[:2], name), want, nil,
			func(g *gallery.Gallery) (any, error) {
				return g.Enroll(name, [][]float32{x}, now, how)
			})
	case 2, 3, 4, 5, 6:
		name, faces := pick(m, names...), m.vectors(1+int(m.next()%3))
		b := m.next()
		how := gallery.Enrolment{Add: b&3 > 0, Force: b&4 > 0}
		if b > 250 {
			faces = nil
		}
		m.second += int64(b)
		now := time.Unix(m.second, 0)
		want, err := s.Enroll(name, faces, now, how)
		m.note("resembles", want != "")
		m.note("mixed", err == gallery.ErrMixed)
		m.note("mismatch", err == gallery.ErrMismatch)
		m.note("exists", err == gallery.ErrExists)
		what := fmt.Sprintf("Enroll %s %d faces %+v", name, len(faces), how)
		m.both(what, want, err, func(g *gallery.Gallery) (any, error) {
			return g.Enroll(name, faces, now, how)
		})
	case 7, 8:
		name, x := pick(m, names...), m.vector()
		known, n := s.Knows(name), byte(1)
		if op == 8 && m.corner%8 == 0 {
			n = 18
		}
		for place := range n {
			if place > 0 {
				x = m.at(m.corner^place, place)
			}
			if known {
				l.Reject(x, s.Number(name))
			}
			m.note("many rejected", len(l.Labelled(s.Number(name), true)) > 16)
			m.both(fmt.Sprintf("Reject %v %s", x[:2], name), nil, unknown(known),
				func(g *gallery.Gallery) (any, error) {
					return nil, g.Reject(x, name)
				})
		}
	case 9, 10, 11, 12:
		var frame []online.Observation
		for range 1 + m.next()%4 {
			o := online.Observation{Vector: m.vector()}
			b := m.next()
			o.Hold, o.Frontal, o.Source = b%8 == 0, b/8%2 == 1, int64(b%5)
			if b/16%2 == 1 {
				o.Picture = []byte{b}
			}
			if b := m.next(); b%2 == 0 {
				for range b / 2 % 3 {
					o.Follows = append(o.Follows, m.id(false))
				}
			}
			if b := m.next(); b%8 == 0 {
				o.As = s.Number(names[int(b/8)%len(names)])
			}
			frame = append(frame, o)
		}
		want := l.ObserveFrame(frame)
		for _, v := range want {
			m.noteVerdict(v)
		}
		m.note("contracted", l.Graph.Contracted > 0)
		m.note("linked",
			slices.ContainsFunc(l.Graph.Vertices, func(v *reference.Vertex) bool {
				return len(v.Linked) > 0
			}))
		m.both(fmt.Sprintf("ObserveFrame %d", len(frame)), want, nil,
			func(g *gallery.Gallery) (any, error) {
				return g.Learner().ObserveFrame(frame)
			})
		if b := m.next(); b%4 == 0 && !l.Graph.Delicate {
			o, number := frame[int(b/4)%len(frame)], l.Counts.Observed-int64(b/64)%l.Counts.Observed
			v := l.Recall(o, number)
			m.note("recalled", v.Learned)
			m.both(fmt.Sprintf("Recall %d", number), v, nil, func(g *gallery.Gallery) (any, error) {
				return g.Learner().Recall(o, number)
			})
		}
	case 15, 16:
		since := l.Counts.Observed - int64(m.next()%32)
		m.undo(fmt.Sprintf("Undo %d", since), func() (int, bool) { return l.Undo(since) },
			func(g *gallery.Gallery) (int, error) { return g.Learner().Undo(since) })
	case 17:
		since := m.second - int64(m.next())
		m.undo(fmt.Sprintf("UndoSince %d", since), func() (int, bool) {
			return l.UndoSince(since, m.second)
		},
			func(g *gallery.Gallery) (int, error) {
				return g.Learner().UndoSince(time.Unix(since, 0), time.Unix(m.second, 0))
			})
	case 18, 19, 20:
		for range 1 + m.next()%2 {
			source := int64(m.next() % 5)
			want := l.Unlearn(source)
			m.note("unlearned", want > 0)
			m.both(fmt.Sprintf("Unlearn %d", source), want, nil,
				func(g *gallery.Gallery) (any, error) {
					return g.Learner().Unlearn(source), nil
				})
		}
	case 21, 22:
		m.retract(m.id(true))
	case 23, 24:
		id := m.id(false)
		if slices.ContainsFunc(l.Labels(), func(x online.Label) bool { return x.ID == id }) {
			break
		}
		want, ok := l.Remove(id)
		m.both(fmt.Sprintf("Remove %d", id), want, unknown(ok),
			func(g *gallery.Gallery) (any, error) {
				return g.Learner().Remove(id)
			})
	case 25, 26:
		name := pick(m, names...)
		known := s.Knows(name)
		if known {
			l.Retract(l.LabelsOf(s.Number(name))...)
		}
		m.note("forgotten", known)
		m.both("Forget "+name, nil, unknown(known), func(g *gallery.Gallery) (any, error) {
			return nil, g.Forget(name)
		})
	case 27, 28, 29, 30, 31, 32:
		m.configure()
	case 33, 34, 35, 36:
		m.trace = append(m.trace, fmt.Sprintf("%d: Save, Read", m.steps))
		before := m.snapshot(m.g)
		fixture.Check(m.t, m.g.Save())
		g := fixture.Must(gallery.Open(m.path, l.Space))(m.t)
		m.g.Close()
		if m.g = g; !bytes.Equal(before, m.snapshot(g)) {
			m.t.Fatal("the gallery that was opened again is another one")
		}
	case 37:
		m.second += int64(m.next())
		at := time.Unix(m.second, 0)
		if l.Time = m.second; m.next()%4 == 0 {
			at, l.Time = time.Time{}, 0
		}
		m.both(fmt.Sprintf("SetTime %v", at), nil, nil, func(g *gallery.Gallery) (any, error) {
			g.Learner().SetTime(at)
			return nil, nil
		})
	case 39:
		name, faces := pick(m, names...), m.vectors(1+int(m.next()%3))
		want, like := s.Resembles(name, faces)
		m.both("Resembles "+name, []any{want, like}, nil, func(g *gallery.Gallery) (any, error) {
			other, own, err := g.Resembles(name, faces)
			return []any{other, own}, err
		})
	case 41:
		m.refuse()
	case 42, 43, 63:
		name := pick(m, names...)
		known := s.Knows(name)
		var want []gallery.Offered
		if known {
			want = s.Unconfirmed(name)
		}
		m.look("Unconfirmed "+name, want, unknown(known), func(g *gallery.Gallery) (any, error) {
			return g.Unconfirmed(name)
		})
		if l.Graph.Delicate || op == 42 {
			break
		}
		m.second += int64(m.next())
		now, ids := time.Unix(m.second, 0), []int64(nil)
		if known {
			for _, f := range want {
				ids = append(ids, f.ID)
			}
			s.Confirm(name, want, now)
		}
		m.note("confirmed", len(ids) > 0)
		m.both("Confirm "+name, nil, unknown(known),
			func(g *gallery.Gallery) (any, error) { return nil, g.Confirm(name, ids, now) })
	case 45:
		from, to := pick(m, names...), pick(m, names...)
		known, taken := s.Knows(from), s.Knows(to)
		var err error
		switch {
		case !known:
			err = online.ErrUnknown
		case taken:
			err = gallery.ErrExists
		default:
			s.Rename(from, to)
		}
		m.note("renamed", err == nil)
		m.both(fmt.Sprintf("Rename %s %s", from, to), nil, err,
			func(g *gallery.Gallery) (any, error) {
				return nil, g.Rename(from, to)
			})
	case 46, 47:
		m.retract(m.id(true), m.id(m.next()%4 > 0))
	case 51, 52, 53: // a confirmed person
		for range 1 + m.next()%4 {
			o := online.Observation{Vector: m.vector(), Follows: []int64{m.id(false)}}
			o.As = l.Judge(o.Vector).Person
			if l.Graph.Delicate {
				break
			}
			want := l.ObserveFrame([]online.Observation{o})
			m.both(fmt.Sprintf("ObserveFrame %v as %d", o.Vector[:2], o.As), want, nil,
				func(g *gallery.Gallery) (any, error) {
					return g.Learner().ObserveFrame([]online.Observation{o})
				})
		}
	case 44:
		space := l.Space
		space.Stills, space.Streams = face.Impostors{}, face.Impostors{}
		if b := m.next(); b%4 > 0 {
			shift := .1 * float64(b%4-1)
			space.Stills = face.Impostors{People: 100, Pairs: 10000,
				Distances: [5]float64{.5 - shift, .4 - shift, .35 - shift}}
		}
		var err error
		if !l.SetMeasured(space.Stills, space.Streams) {
			err = online.ErrSettings
		}
		m.both("SetMeasured", nil, err, func(g *gallery.Gallery) (any, error) {
			return nil, g.Learner().SetMeasured(space)
		})
	}
	m.note("repartition", l.Graph.R > r)
	m.note("full", l.Full())
}

// retract takes back labels. Who has no faces any more is forgotten.
func (m *machine) retract(ids ...int64) {
	l := m.slow.Learner
	m.note("unlabelled", slices.ContainsFunc(l.Labels(), func(x online.Label) bool {
		return x.ID == ids[0]
	}))
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	m.note("retracted", l.Retract(ids...) > 0)
	m.both(fmt.Sprintf("Retract %v", ids), nil, nil, func(g *gallery.Gallery) (any, error) {
		return nil, g.Retract(ids...)
	})
}

func (m *machine) undo(what string, slow func() (int, bool),
	fast func(g *gallery.Gallery) (int, error)) {
	n, ok := slow()
	err := online.ErrJournal
	if ok {
		err = nil
	}
	m.note("undone", n > 0)
	m.note("undo refused", !ok)
	m.both(what, n, err, func(g *gallery.Gallery) (any, error) { return fast(g) })
}

// configure changes one to three settings.
func (m *machine) configure() {
	l := m.slow.Learner
	s := l.Settings
	bad := false
	for range 1 + m.next()%3 {
		switch m.next() % 14 {
		case 0, 1, 2:
			s.K = 1 + int(m.next()%8)
		case 3:
			s.Sigma = pick(m, .1, .15, .2, .3)
		case 4:
			s.Gamma = pick(m, 1e-4, 1e-3, 1e-2, .1)
		case 5:
			s.Reach = pick(m, .15, .2, .3, .5, online.Off)
		case 6, 7:
			s.Link = pick(m, .2, .45, .7, online.Off)
		case 8:
			s.Accept = pick(m, 0, .3, .7)
		case 9:
			s.Learn = pick(m, 0, .5, .9)
		case 10, 11:
			s.Freeze = m.next()%4 == 0
		case 12:
			if m.next()%2 == 0 {
				s.DriftDistance = pick(m, .05, .2, online.Off)
			} else {
				s.Strangers = pick(m, 1e-2, 1e-3, 1e-5)
			}
		case 13:
			bad = bad || m.next()%2 == 0
			if bad {
				pick(m, func() { s.K = -1 }, func() { s.K = 1 << 40 }, func() {
					s.Gamma = math.NaN()
				},
					func() { s.Sigma = -1 }, func() { s.Learn = 2 }, func() {
						s.Reach = math.NaN()
					})()
			}
		}
		if bad {
			break
		}
	}
	var err error
	if bad || !l.Configure(s) {
		err = online.ErrSettings
	}
	m.note("configured", err == nil)
	m.note("configuration refused", err != nil && !bad)
	m.both(fmt.Sprintf("Configure %+v", s), nil, err, func(g *gallery.Gallery) (any, error) {
		return nil, g.Learner().Configure(s)
	})
}

// refuse runs an operation that must be refused, and must change nothing.
func (m *machine) refuse() {
	good := m.at(17, 0)
	x := slices.Clone(good)
	if pick(m, true, false) {
		x = x[:m.next()%2]
	} else {
		x[int(m.next())%len(x)] = float32(pick(m, math.NaN(), math.Inf(1), math.Inf(-1)))
	}
	before := m.snapshot(m.g)
	for what, do := range map[string]func(*gallery.Gallery) error{
		"Label":   func(g *gallery.Gallery) error { return g.Learner().Label(x, 1) },
		"Observe": func(g *gallery.Gallery) error { _, err := g.Learner().Observe(x); return err },
		"Judge":   func(g *gallery.Gallery) error { _, err := g.Learner().Judge(x); return err },
		"Nearest": func(g *gallery.Gallery) error {
			_, err := g.Learner().Nearest(x, 1)
			return err
		},
		"Reject": func(g *gallery.Gallery) error { return g.Learner().Reject(x, 1) },
		"Resembles": func(g *gallery.Gallery) error {
			_, _, err := g.Resembles("alice", [][]float32{good, x})
			return err
		},
		"Enroll": func(g *gallery.Gallery) error {
			_, err := g.Enroll("eve", [][]float32{good, x}, time.Time{}, gallery.Enrolment{})
			return err
		},
		"ObserveFrame": func(g *gallery.Gallery) error {
			_, err := g.Learner().ObserveFrame([]online.Observation{{Vector: good}, {Vector: x}})
			return err
		},
	} {
		if err := do(m.g); !errors.Is(err, face.ErrVector) {
			m.t.Fatalf("%s of a bad face: %v", what, err)
		}
	}
	name := pick(m, "", " a", "a\n", "\xff", strings.Repeat("a", 101))
	for what, do := range map[string]func(*gallery.Gallery) error{
		"Enroll": func(g *gallery.Gallery) error {
			_, err := g.Enroll(name, [][]float32{good}, time.Time{}, gallery.Enrolment{})
			return err
		},
	} {
		if err := do(m.g); !errors.Is(err, face.ErrName) {
			m.t.Fatalf("%s of a bad name: %v", what, err)
		}
	}
	for what, do := range map[string]func(*gallery.Gallery) error{
		"Reject":         func(g *gallery.Gallery) error { return g.Learner().Reject(good, 1000) },
		"Forget":         func(g *gallery.Gallery) error { return g.Learner().Forget(1000) },
		"Gallery.Forget": func(g *gallery.Gallery) error { return g.Forget("nobody") },
		"person 0":       func(g *gallery.Gallery) error { return g.Learner().Label(good, 0) },
		"Drift": func(g *gallery.Gallery) error {
			_, err := g.Learner().Drift(1000)
			return err
		},
	} {
		if err := do(m.g); !errors.Is(err, online.ErrUnknown) {
			m.t.Fatalf("%s of nobody: %v", what, err)
		}
	}
	if err := m.g.Learner().UnmarshalBinary(before[:len(before)-1]); !errors.Is(err,
		online.ErrDamaged) {
		m.t.Fatal(err)
	}
	if !bytes.Equal(before, m.snapshot(m.g)) {
		m.t.Fatal("what was refused changed the gallery")
	}
}

func (m *machine) snapshot(g *gallery.Gallery) []byte {
	return fixture.Must(g.Learner().MarshalBinary())(m.t)
}

// compare compares everything that can be observed with the model.
func (m *machine) compare() {
	l, slow := m.g.Learner(), m.slow.Learner
	before := m.snapshot(m.g)
	if !bytes.Equal(before, m.snapshot(m.twin)) {
		m.t.Fatal("a gallery that was saved and opened again goes on in another way")
	}
	x := m.at(byte(m.steps*37)&0x33|m.corner&0xcc, byte(m.steps)%4)
	person := m.slow.Number(names[m.steps%len(names)])
	m.look("Judge", slow.Judge(x), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Judge(x)
	})
	m.promise(x)
	m.look("Nearest", slow.Nearest(x, person), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Nearest(x, person)
	})
	m.look("Known", slow.Known(), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().People(), nil
	})
	m.look("Knows", slow.Knows(person), nil,
		func(g *gallery.Gallery) (any, error) { return g.Learner().Knows(person), nil })
	m.look("Labels", slow.Labels(), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Labels(), nil
	})
	m.look("Counts", slow.Counts, nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Counts(), nil
	})
	m.look("Settings", slow.Settings, nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Settings(), nil
	})
	m.look("People", m.slow.People(), nil, func(g *gallery.Gallery) (any, error) {
		return g.People(), nil
	})
	m.look("Full", slow.Full(), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Room().Full, nil
	})
	m.look("Conflicts", slow.Conflicts(.3), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Conflicts(.3), nil
	})
	m.note("conflict", len(slow.Conflicts(.3)) > 0)
	m.look("Stored", slow.Stored(), nil, func(g *gallery.Gallery) (any, error) {
		return g.Learner().Stored(), nil
	})
	if person != 0 {
		want := slow.Drift(person)
		m.note("drift", want.Alarm)
		m.look("Drift", want, nil, func(g *gallery.Gallery) (any, error) {
			return g.Learner().Drift(person)
		})
	}
	warnings := 0
	if slow.Full() || slow.Graph.R > .8*slow.Graph.Config.EdgeRadius() {
		warnings++
	}
	if slow.Graph.Config.EdgeRadius() > slow.Space.ImpostorRadius {
		warnings++
	}
	if slow.Space.Warning() != "" {
		warnings++
	}
	if w := l.Warnings(); len(w) != warnings {
		m.t.Fatalf("warnings are %q", w)
	}
	m.vertices()
	if !bytes.Equal(before, m.snapshot(m.g)) {
		m.t.Fatal("looking changed the gallery")
	}
}

// promise checks that learning has not taken away a name that the enrolled faces alone give. A
// denial may, a value below the accept threshold may, and a learned face may give the name of
// another person.
func (m *machine) promise(x []float32) {
	l := m.g.Learner()
	s := l.Settings()
	s.Freeze = true
	frozen, err := online.New(l.Space(), s)
	fixture.Check(m.t, err)
	for _, negative := range []bool{false, true} {
		for _, label := range l.Labels() {
			add := frozen.Label
			if negative {
				add = frozen.Reject
			}
			if label.Negative == negative {
				fixture.Check(m.t, add(l.Vector(label.ID), label.Person))
			}
		}
	}
	want := fixture.Must(frozen.Judge(x))(m.t)
	got := fixture.Must(l.Judge(x))(m.t)
	if want.Person != 0 && got.Person == 0 && got.Reason != online.Rejected &&
		got.Reason != online.Unsure {
		m.t.Fatalf("%v is %+v, and the enrolled faces alone give %+v", x[:2], got, want)
	}
	m.note("rival", want.Person != 0 && got.Person != 0 && got.Person != want.Person)
	m.note("name kept", want.Person != 0 && l.Graph().Learned() > 0)
}

// vertices compares the vertices with the model's vertices.
func (m *machine) vertices() {
	g, slow := m.g.Learner().Graph(), m.slow.Learner.Graph
	if slow.Delicate {
		return
	}
	state := g.State()
	if g.Len() != len(slow.Vertices) || g.Learned() != slow.Learned() ||
		g.Learned() > slow.Config.K+1 ||
		state.Classes != slow.Classes {
		m.t.Fatalf("%d vertices, %d learned, of %d classes; want %d, %d, of %d", g.Len(),
			g.Learned(), state.Classes, len(slow.Vertices), slow.Learned(), slow.Classes)
	}
	if math.Abs(g.R()-slow.R) > 1e-8*slow.R {
		m.t.Fatalf("R is %g, want %g", g.R(), slow.R)
	}
	for i, v := range slow.Vertices {
		o, own := g.Origin(i), v.Points[0]
		if o.ID != v.ID || o.Hops != v.Hops || o.Via != v.Via || o.Moment != own.When {
			m.t.Fatalf("vertex %d comes from %+v, want %+v, via %d", i, o, v, v.Via)
		}
		if !slices.Equal(g.Point(i), v.X) || g.Multiplicity(i) != v.Sum() {
			m.t.Fatalf("vertex %d stands for %g points, want %g", i, g.Multiplicity(i), v.Sum())
		}
		var source []int
		for c := range slow.Classes {
			if v.Source[c] {
				source = append(source, c)
			}
		}
		if !slices.Equal(g.Source(i), source) {
			m.t.Fatalf("vertex %d was learned through %v, want %v", i, g.Source(i), source)
		}
		for _, p := range v.Points {
			if d := slow.Distance(p.X, v.X); d > state.Spread*(1+1e-8) {
				m.t.Fatalf("a point is %g from vertex %d, and the bound is %g", d, i, state.Spread)
			}
		}
	}
}
