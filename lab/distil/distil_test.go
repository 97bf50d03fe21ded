// SPDX-License-Identifier: Apache-2.0

package distil_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/distil"
	"github.com/faceauth/faceauth/online"
)

// plane is a simple space in which a person can be drawn as a spot.
var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .3, Gamma: 1e-3}

func Example() {
	l, err := online.New(plane, online.Settings{})
	if err != nil {
		panic(err)
	}
	if err := l.Label([]float32{0, 0}, "alice"); err != nil {
		panic(err)
	}
	for i := range 20 { // a head that turns
		if _, err := l.Observe([]float32{float32(i) / 10, 0}); err != nil {
			panic(err)
		}
	}
	v, err := distil.New(l, "alice", distil.Settings{})
	if err != nil {
		panic(err)
	}
	turned, err := v.Accepts([]float32{1.8, .1})
	if err != nil {
		panic(err)
	}
	stranger, err := v.Accepts([]float32{1, 3})
	if err != nil {
		panic(err)
	}
	fmt.Println(turned, stranger)
	// Output: true false
}

// learner returns a learner that knows alice around (0,0) and, if others is set, bob around (5,0). Both have moved two
// to the right.
func learner(t *testing.T, others bool) *online.Learner {
	t.Helper()
	l, err := online.New(plane, online.Settings{K: 60})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	people := map[string]float32{"alice": 0}
	if others {
		people["bob"] = 5
	}
	for _, name := range []string{"alice", "bob"} {
		at, ok := people[name]
		if !ok {
			continue
		}
		for range 3 {
			if err := l.Label([]float32{at + .1*r.Float32(), .1 * r.Float32()}, name); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			if _, err := l.Observe([]float32{at + float32(i)/50, .2 * r.Float32()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func TestVerifier(t *testing.T) {
	for _, others := range []bool{false, true} {
		l := learner(t, others)
		before, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		v, err := distil.New(l, "alice", distil.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		after, err := l.MarshalBinary()
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("the learner changed: %v", err)
		}
		if v.Name() != "alice" || v.Space() != plane || v.Support() == 0 || v.Support() > l.Graph().Len() {
			t.Errorf("%s, %v, %d support vectors of %d", v.Name(), v.Space(), v.Support(), l.Graph().Len())
		}
		for _, c := range []struct {
			x    []float32
			want bool
		}{{[]float32{0, 0}, true}, {[]float32{1, .1}, true}, {[]float32{2, .1}, true}, {[]float32{1, 4}, false},
			{[]float32{-4, 0}, false}, {[]float32{6, 0}, false}, {[]float32{1e6, 1e6}, false}} {
			if got, err := v.Accepts(c.x); err != nil || got != c.want {
				t.Errorf("others %v: face %v accepted %v, error %v", others, c.x, got, err)
			}
		}
		if f, err := v.Value([]float32{6, 0}); others && (err != nil || f >= 0) {
			t.Errorf("bob's face has the value %g, error %v", f, err)
		}
		// A verifier that is read from its file has exactly the same values.
		path := filepath.Join(t.TempDir(), "alice.face")
		n, err := v.Save(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() != int64(n) || info.Mode().Perm() != 0o600 {
			t.Errorf("file %v, error %v", info, err)
		}
		again, err := distil.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			x := []float32{10*rand.Float32() - 2, 4 * rand.Float32()}
			a, _ := v.Value(x)
			b, _ := again.Value(x)
			if a != b || again.Threshold() != v.Threshold() {
				t.Fatalf("value %g after loading, %g before", b, a)
			}
		}
	}
}

// Rejected faces are on the other side of the boundary.
func TestRejected(t *testing.T) {
	l := learner(t, false)
	if err := l.Reject([]float32{2.3, .1}, "alice"); err != nil {
		t.Fatal(err)
	}
	v, err := distil.New(l, "alice", distil.Settings{Width: .1})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := v.Accepts([]float32{2.3, .1}); ok || err != nil {
		t.Errorf("rejected face accepted %v, error %v", ok, err)
	}
}

func TestErrors(t *testing.T) {
	l := learner(t, true)
	if _, err := distil.New(l, "carol", distil.Settings{}); !errors.Is(err, online.ErrUnknown) {
		t.Error(err)
	}
	for _, s := range []distil.Settings{{Width: -1}, {Width: math.NaN()}, {Gamma: -1}, {Epsilon: 2},
		{Threshold: math.Inf(1)}, {Threshold: -1}} {
		if _, err := distil.New(l, "alice", s); !errors.Is(err, distil.ErrSettings) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	v, err := distil.New(l, "alice", distil.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][]float32{nil, {1}, {float32(math.NaN()), 0}} {
		if _, err := v.Accepts(x); err == nil {
			t.Errorf("%v was judged without an error", x)
		}
	}
	if _, err := distil.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A change anywhere in the file is an error.
func TestDamaged(t *testing.T) {
	v, err := distil.New(learner(t, true), "alice", distil.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := v.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if _, err := distil.Parse(bad); !errors.Is(err, distil.ErrDamaged) && !errors.Is(err, distil.ErrVersion) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if _, err := distil.Parse(data[:i]); !errors.Is(err, distil.ErrDamaged) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

// FuzzParse reads random bodies with the right checksum.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0xa0})
	f.Add([]byte("\xa6dnameealiceespace\xa4bidaxcdim\x01escale\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00dunit\xf4ewidth\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00gsupport\x44\x00\x00\x80\x3fgweights\x81\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00ithreshold\xfb\x3f\xe0\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := distil.Parse(distil.Seal(body))
		if err != nil {
			return
		}
		if _, err := v.Accepts(make([]float32, v.Space().Dim)); err != nil && !v.Space().Unit {
			t.Error(err)
		}
	})
}
