// SPDX-License-Identifier: Apache-2.0

package gallery_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/quantized"
	"github.com/fxamacker/cbor/v2"
)

// grow gives the one person of a gallery n labels of one face: in the rows, and in what was
// learned. To label so many one after the other would take an hour.
func grow(t *testing.T, path string, n int) {
	t.Helper()
	decoding := fixture.Must(cbor.DecOptions{MaxArrayElements: 1 << 24}.DecMode())(t)
	g := open(t, path)
	defer g.Close()
	fixture.Check(t, g.Rows().Write(true, func(tx *gallery.Tx) error {
		tx.Exec(`with recursive n(i) as (select max(id) + 1 from label union all select i + 1
			from n where i < ?)
			insert into label(id, number, person, rejected, vector)
			select i, i + 1000, person, 0, vector from n, label where label.id = 1`, int64(n))
		snapshot := fixture.Must(tx.Blob("select snapshot from learned"))(t)
		var all map[string]cbor.RawMessage
		fixture.Check(t, decoding.Unmarshal(snapshot, &all))
		var graph quantized.State
		fixture.Check(t, decoding.Unmarshal(all["graph"], &graph))
		labels := make(map[int64]int64)
		vertices := graph.Vertices[:1]
		for i := range n {
			v := vertices[0]
			v.Origin.ID = int64(i + 1)
			labels[v.Origin.ID] = v.Origin.ID
			vertices = append(vertices, v)
		}
		graph.Vertices, graph.LastID = vertices[1:], int64(n)
		encoding := fixture.Must(cbor.CoreDetEncOptions().EncMode())(t)
		all["graph"] = fixture.Must(encoding.Marshal(graph))(t)
		return tx.Exec("update learned set faces = ?, snapshot = ?",
			fixture.Must(encoding.Marshal(labels))(t), fixture.Must(encoding.Marshal(all))(t))
	}))
}

// A gallery with more labels than cbor's default limit of elements, 2^17, opens again, with a
// learner and without.
func TestManyLabels(t *testing.T) {
	g := newGallery(t)
	fixture.Must(g.Enroll("alice", person(0, 1), noon, gallery.Enrolment{}))(t)
	fixture.Check(t, g.Rename("alice", "ann")) // saves what was learned
	path := save(t, g)
	fixture.Check(t, g.Close())
	for _, n := range []int{1 << 17, 1<<17 + 1} {
		grow(t, path, n)
		back := open(t, path)
		if all := back.People(); len(all) != 1 || all[0].Faces != n ||
			len(back.Learner().Labels()) != n {
			t.Errorf("of %d labels there are %d", n, len(back.Learner().Labels()))
		}
		fixture.Check(t, back.Close())
		rows, _, err := gallery.OpenRows(path)
		fixture.Check(t, err)
		fixture.Check(t, rows.Close())
	}
}

// A change whose bytes cannot be overwritten is no error: it is done, and what is left to do is
// said.
func TestUnerased(t *testing.T) {
	path := stored(t, "alice", "bob")
	g := open(t, path)
	// What looks like a daily copy cannot be removed.
	stuck := path + "-2026-11-20"
	fixture.Check(t, os.MkdirAll(filepath.Join(stuck, "full"), 0o700))
	fixture.Check(t, g.Forget("bob"))
	want(t, g, "alice 4")
	if err := g.Unerased(); err == nil ||
		!strings.Contains(err.Error(), "what was removed is still in") {
		t.Errorf("it says %v", err)
	}
	if h := fixture.Must(store.Inspect(path, store.Schema{}, nil))(t); !h.Waiting {
		t.Error("doctor does not know")
	}
	want(t, open(t, path), "alice 4")
	fixture.Check(t, os.RemoveAll(stuck))
	fixture.Check(t, gallery.Erase(path))
	if h := fixture.Must(store.Inspect(path, store.Schema{}, nil))(t); h.Waiting {
		t.Error("it is still to be done")
	}
	// A prompt gallery leaves it to its program, and other programs' writes do not hold it up.
	removed := 0
	g.Prompt(func() { removed++ })
	fixture.Check(t, g.Forget("alice"))
	if h := fixture.Must(store.Inspect(path, store.Schema{}, nil))(t); removed != 1 || !h.Waiting {
		t.Errorf("%d changes have removed something", removed)
	}
	fixture.Check(t, gallery.Erase(path))
	other := fixture.Must(store.Open(path, store.Schema{}, false))(t)
	fixture.Check(t, other.Write(func() error {
		if err := g.Save(); !errors.Is(err, gallery.ErrBusy) {
			t.Errorf("error %v", err)
		}
		return nil
	}))
	fixture.Check(t, errors.Join(g.Save(), other.Close()))
}
