// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

const (
	bodyAt = 16 + 4 + 8 // magic, version and length
	most   = 16 << 20   // bytes that a small file may make the process allocate
)

// small returns the bytes of a gallery with two people, a rejected face and learned faces.
func small(t *testing.T) []byte {
	t.Helper()
	g, err := gallery.New(space, online.Settings{K: 2, HalfLife: 50, Journal: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"al", "bo"} {
		if _, err := g.Enroll(name, person(i, 1), noon, gallery.Enrolment{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Learner().Reject(person(2, 1)[0], "al"); err != nil {
		t.Fatal(err)
	}
	for _, x := range person(0, 5) {
		if _, err := g.Learner().Observe(x); err != nil {
			t.Fatal(err)
		}
	}
	return read(t, save(t, g))
}

// resealed returns the file with another body, and the right length and checksum.
func resealed(whole, body []byte) []byte {
	out := bytes.Clone(whole[:bodyAt])
	binary.BigEndian.PutUint64(out[bodyAt-8:], uint64(len(body)))
	out = append(out, body...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Every bit of a gallery is flipped, and the checksum corrected. Each result is an error that says so, or a gallery
// that can be saved and opened. The file does not change in either case.
func TestEveryBitFlipped(t *testing.T) {
	whole, path := small(t), filepath.Join(memory(t), "gallery")
	body := whole[bodyAt : len(whole)-sha256.Size]
	opened := 0
	for i := range 8 * len(body) {
		bad := bytes.Clone(body)
		bad[i/8] ^= 1 << (i % 8)
		file := resealed(whole, bad)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		var g *gallery.Gallery
		var err error
		if n := allocated(func() { g, err = gallery.Read(path) }); n > most {
			t.Fatalf("bit %d: %d bytes were allocated for a file of %d; %v", i, n, len(file), err)
		}
		if !bytes.Equal(read(t, path), file) {
			t.Fatalf("bit %d: reading changed the file", i)
		}
		if err != nil {
			if !errors.Is(err, gallery.ErrDamaged) {
				t.Fatalf("bit %d: %v", i, err)
			}
			continue
		}
		opened++
		if i%7 > 0 { // a save is slow
			continue
		}
		g.Learner().Observe(person(1, 1)[0])
		g.Audit(true)
		g.People()
		if err := g.Save(path); err != nil {
			t.Fatalf("bit %d: %v", i, err)
		}
		if _, err := gallery.Read(path); err != nil {
			t.Fatalf("bit %d: what was saved cannot be opened: %v", i, err)
		}
	}
	t.Logf("%d of %d flips were opened", opened, 8*len(body))
}

// A gallery is cut off at any place, or claims to be longer than it is.
func TestCutOff(t *testing.T) {
	whole := small(t)
	path := filepath.Join(memory(t), "gallery")
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := gallery.ErrDamaged
		if n < 16 {
			want = gallery.ErrNotGallery
		}
		if _, err := gallery.Read(path); !errors.Is(err, want) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(whole), err)
		}
		// The content is cut off, but its length and checksum are right.
		if n >= bodyAt && n < len(whole)-sha256.Size {
			if err := os.WriteFile(path, resealed(whole, whole[bodyAt:n]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := gallery.Read(path); !errors.Is(err, gallery.ErrDamaged) {
				t.Fatalf("the first %d of %d bytes, sealed: %v", n, len(whole), err)
			}
		}
	}
	// Files of 3 GiB that are nearly all a hole.
	for name, head := range map[string][]byte{
		"zeros":           nil,
		"a gallery":       whole,
		"another version": append([]byte("faceauth gallery"), 0, 0, 0, 9),
	} {
		if err := os.WriteFile(path, head, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 3<<30); err != nil {
			t.Skip("no sparse files here: ", err)
		}
		var err error
		if n := allocated(func() { _, err = gallery.Read(path) }); n > 1<<20 || err == nil {
			t.Errorf("%s: %d bytes were allocated, %v", name, n, err)
		}
	}
}

// Invalid settings and spaces, in a file with the right checksum.
func TestWrongSettings(t *testing.T) {
	whole := small(t)
	path := filepath.Join(memory(t), "gallery")
	for _, c := range []struct {
		in, key string
		value   any
	}{
		{"settings", "k", 0}, {"settings", "k", -1}, {"settings", "k", 1 << 40}, {"settings", "k", 1 << 62},
		{"settings", "sigma", 0.}, {"settings", "sigma", -1.}, {"settings", "sigma", math.NaN()},
		{"settings", "sigma", math.Inf(1)},
		{"settings", "gamma", 0.}, {"settings", "gamma", -1.}, {"settings", "gamma", math.NaN()},
		{"settings", "gamma", math.Inf(1)},
		{"settings", "reach", 0.}, {"settings", "reach", -2.}, {"settings", "reach", math.NaN()},
		{"settings", "epsilon", 0.}, {"settings", "epsilon", 1.}, {"settings", "epsilon", math.NaN()},
		{"settings", "multiplier", 0.}, {"settings", "multiplier", 1.}, {"settings", "multiplier", math.Inf(1)},
		{"settings", "accept", -1.}, {"settings", "accept", 1.1}, {"settings", "accept", math.NaN()},
		{"settings", "learn", -1.}, {"settings", "learn", 1.1}, {"settings", "learn", math.NaN()},
		{"settings", "max_hops", -1}, {"settings", "journal", 0}, {"settings", "journal", -2},
		{"settings", "journal", 1 << 30},
		{"settings", "half_life", -1}, {"settings", "normalized", true}, // with a half-life
		{"settings", "learn_cap", -1}, {"settings", "learn_window", 0}, {"settings", "learn_window", -1},
		{"settings", "drift_distance", 0.}, {"settings", "drift_distance", -2.},
		{"settings", "drift_distance", math.NaN()},
		{"settings", "drift_constancy", 0.}, {"settings", "drift_constancy", 2.}, {"settings", "freeze", 3},
		{"space", "dim", 0}, {"space", "dim", -8}, {"space", "dim", 9}, {"space", "dim", 1 << 30},
		{"space", "scale", 0.}, {"space", "scale", -1.}, {"space", "scale", math.NaN()},
		{"space", "scale", math.Inf(1)},
	} {
		var outer map[string]any
		if err := cbor.Unmarshal(whole[bodyAt:len(whole)-sha256.Size], &outer); err != nil {
			t.Fatal(err)
		}
		var snapshot map[string]any
		if err := cbor.Unmarshal(outer["learner"].([]byte), &snapshot); err != nil {
			t.Fatal(err)
		}
		inner := snapshot[c.in].(map[any]any)
		name := c.key
		if _, there := inner[name]; !there { // the space has the names of Go
			name = map[string]string{"dim": "Dim", "scale": "Scale"}[c.key]
		}
		if _, there := inner[name]; !there {
			t.Fatalf("there is no %s in %v", c.key, inner)
		}
		inner[name] = c.value
		var err error
		if outer["learner"], err = cbor.Marshal(snapshot); err != nil {
			t.Fatal(err)
		}
		body, err := cbor.Marshal(outer)
		if err != nil {
			t.Fatal(err)
		}
		file := resealed(whole, body)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		n := allocated(func() { _, err = gallery.Read(path) })
		if !errors.Is(err, gallery.ErrDamaged) || !errors.Is(err, online.ErrDamaged) || n > 1<<20 {
			t.Errorf("%s %s of %v: %d bytes, %v", c.in, c.key, c.value, n, err)
		}
		if !bytes.Equal(read(t, path), file) {
			t.Errorf("%s of %v: reading changed the file", c.key, c.value)
		}
	}
}

// The people of the file are not the people of the learner.
func TestWrongPeople(t *testing.T) {
	whole := small(t)
	path := filepath.Join(memory(t), "gallery")
	for name, change := range map[string]func(people []any) []any{
		"none":    func([]any) []any { return nil },
		"one":     func(p []any) []any { return p[:1] },
		"twice":   func(p []any) []any { return []any{p[0], p[0]} },
		"swapped": func(p []any) []any { return []any{p[1], p[0]} },
		"more":    func(p []any) []any { return append(p, p[0]) },
	} {
		var outer map[string]any
		if err := cbor.Unmarshal(whole[bodyAt:len(whole)-sha256.Size], &outer); err != nil {
			t.Fatal(err)
		}
		outer["people"] = change(outer["people"].([]any))
		body, err := cbor.Marshal(outer)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, resealed(whole, body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := gallery.Read(path); !errors.Is(err, gallery.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
