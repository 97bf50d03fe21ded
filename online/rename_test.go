// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/faceauth/faceauth/online"
)

func TestRename(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0, .1)
	shown(t, l, "bob", 5)
	rejected(t, l, "alice", .8)
	for x := float32(.1); x > -2; x -= .1 {
		if v, err := l.Observe([]float32{x, 0}); err != nil || v.Label != "alice" {
			t.Fatalf("%g: %+v, %v", x, v, err)
		}
	}
	before, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		want     error
	}{{"carol", "anna", online.ErrUnknown}, {"alice", "bob", online.ErrTaken}, {"alice", "alice",
		online.ErrTaken}, {"alice", " anna", online.ErrName}} {
		if err := l.Rename(c.from, c.to); !errors.Is(err, c.want) {
			t.Errorf("%q to %q: %v", c.from, c.to, err)
		}
	}
	if now, err := l.MarshalBinary(); err != nil || !bytes.Equal(now, before) {
		t.Error("a refused name changed the learner")
	}
	if err := l.Rename("alice", "anna"); err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float32]string{0: "anna", -1.9: "anna", .8: "", 5: "bob"} {
		if v := judged(t, l, x); v.Label != want {
			t.Errorf("%g: %+v, want %q", x, v, want)
		}
	}
	if got := fmt.Sprint(l.Names()); got != "[anna bob]" {
		t.Error(got)
	}
	if now, err := l.MarshalBinary(); err != nil || bytes.Contains(now, []byte("alice")) {
		t.Errorf("the old name is in the snapshot: %v", err)
	}
	if err := l.Rename("anna", "alice"); err != nil {
		t.Fatal(err)
	}
	if now, err := l.MarshalBinary(); err != nil || !bytes.Equal(now, before) {
		t.Error("renamed back, it is another learner")
	}
}

// With a label go the faces that were learned through it, and no others. With the last label goes the person.
func TestRetract(t *testing.T) {
	l := fresh(t)
	shown(t, l, "alice", 0, 3)
	shown(t, l, "bob", 9)
	for i := range 10 {
		for _, from := range []float32{0, 3, 9} {
			if v, err := l.Observe([]float32{from, .1 * float32(i+1)}); err != nil || !v.Learned {
				t.Fatalf("%+v, %v", v, err)
			}
		}
	}
	at := func(x, y float32) string {
		t.Helper()
		v, err := l.Judge([]float32{x, y})
		if err != nil {
			t.Fatal(err)
		}
		return v.Label
	}
	var id int64
	for _, label := range l.Labels() {
		if x := l.Vector(label.ID); x[0] == 3 {
			id = label.ID
		}
	}
	if n := l.Retract(id, 9999); n != 10 {
		t.Errorf("%d faces went", n)
	}
	if a, b, c := at(0, 1), at(3, 1), at(9, 1); a != "alice" || b != "" || c != "bob" || l.Vector(id) != nil {
		t.Errorf("%q, %q, %q", a, b, c)
	}
	if n := l.Retract(l.Labels()[0].ID); n != 10 || at(0, 1) != "" || fmt.Sprint(l.Names()) != "[bob]" {
		t.Errorf("%d faces went, %q is left", n, l.Names())
	}
	if n := l.Retract(); n != 0 || at(9, 1) != "bob" {
		t.Errorf("%d", n)
	}
}
