// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// Of two copies of a device's words the later word counts, in whichever order they come.
func TestJoinWords(t *testing.T) {
	said := func(clock uint64, name string, state faceState, off bool) words {
		return words{
			Name:  &naming{Clock: clock, Name: name},
			Faces: []faceWord{{ID: []byte("f"), Clock: clock, State: state}},
			Same:  []sameWord{{Into: []byte("p"), Clock: clock, Off: off}},
		}
	}
	for _, order := range [][2]uint64{{1, 2}, {2, 1}} {
		both := map[uint64]words{1: said(1, "old", retracted, true), 2: said(2, "new", allowed, false)}
		w := both[order[0]]
		w.join(both[order[1]])
		if len(w.Faces) != 1 || len(w.Same) != 1 || w.Name.Name != "new" || w.Faces[0].State != allowed ||
			w.Same[0].Off {
			t.Errorf("%v: %+v, %+v", order, w.Name, w)
		}
	}
}

// Words with a wrong part are refused whole.
func TestWrongWords(t *testing.T) {
	id := make([]byte, len(FaceID{}))
	for what, w := range map[string]words{
		"an empty space": {Spaces: []string{""}},
		"no space":       {Faces: []faceWord{{ID: id, Vector: make([]byte, 8)}}},
		"no vector":      {Spaces: []string{"plane"}, Faces: []faceWord{{ID: id}}},
		"a short number": {Faces: []faceWord{{ID: id[1:], State: retracted}}},
		"an unused name": {Name: &naming{Name: "\n"}},
	} {
		if _, err := openWords(encode(w)); !errors.Is(err, errValue) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An address counts until the admin gives a later one; an old record put back changes nothing.
func TestMoved(t *testing.T) {
	a, err := NewAdminKey(filepath.Join(t.TempDir(), "admin"))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMembers(a.Fleet())
	for _, x := range []struct {
		url  string
		at   int64
		news bool
	}{{"tls://one:1", 5, true}, {"tls://two:1", 9, true}, {"tls://one:1", 5, false}, {"tls://three:1", 9, false}} {
		r, err := a.Move(x.url, time.UnixMilli(x.at))
		if err != nil {
			t.Fatal(err)
		}
		if _, news, err := m.Add(r); err != nil || news != x.news {
			t.Errorf("%s at %d: news %t, %v", x.url, x.at, news, err)
		}
	}
	if m.url != "tls://two:1" {
		t.Error(m.url)
	}
}
