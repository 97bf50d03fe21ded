// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/faceauth/faceauth/internal/store"
)

// Update brings g in line with the database. It costs microseconds if no other program has changed
// people or labels. After an error g may have taken in some of it, and the next call reads
// everything.
func (g *Gallery) Update() error {
	if g.tx != nil {
		return nil
	}
	return g.look((*Tx).align)
}

// Save writes what was learned since g was read or last saved. Other programs' changes stay: if one
// of them has changed what was learned, g takes that, and its own unsaved learned faces are learned
// again on top of it. On error nothing is written, and the next Save tries again.
func (g *Gallery) Save() error { return g.change(func(*Tx) error { return nil }) }

// Change brings g in line with the database, calls do, lets the learner follow the rows, and
// commits: other programs see all of it or nothing. What was learned until then is saved, too. On
// error nothing has changed; the error comes from do or from the database. Within do, other
// changes of g are part of the same transaction. If something was removed, [Gallery.Unerased] says
// afterwards whether its bytes are gone, too.
func (g *Gallery) Change(do func() error) error {
	return g.change(func(t *Tx) error {
		t.Learner() // do may change it
		return do()
	})
}

func (g *Gallery) change(do func(t *Tx) error) error { return g.transact(true, false, do) }

// look calls do, which sees one state of the database of g.
func (g *Gallery) look(do func(t *Tx) error) error {
	return explained("reading", g.path, g.db.Read(func() error { return do(&Tx{g: g}) }))
}

func (g *Gallery) transact(learned, lazily bool, do func(t *Tx) error) error {
	if g.tx != nil {
		return do(g.tx)
	}
	write := g.db.Write
	if lazily {
		write = g.db.WriteLazily
	}
	t, committed := &Tx{g: g}, false
	defer func() { // also if do panics
		g.tx = nil
		if !committed && t.ahead && g.look((*Tx).again) != nil {
			g.saved.generation = -1 // the next transaction tries once more
		}
	}()
	var reserved map[string]numbers
	var said error // by do: other errors come from the database
	err := write(func() error {
		if learned {
			if err := t.align(); err != nil {
				return err
			}
		}
		g.tx = t
		said = cmp.Or(do(t), t.failed)
		if said != nil {
			return said
		}
		if !learned && t.changed { // other programs' learners follow
			t.Exec("insert into meta values('rows', 1) on conflict(key) do update set value = " +
				"value + 1")
		}
		if learned && t.Follow() == nil {
			t.failed = t.save()
		}
		reserved = t.reserve()
		if t.failed == nil && t.gone {
			t.failed = g.db.Erasing()
		}
		return t.failed
	})
	committed = err == nil
	if !committed {
		return cmp.Or(said, explained("changing", g.path, err))
	}
	maps.Copy(g.given, reserved)
	if learned {
		g.unsaved = nil
	}
	switch {
	case !t.gone || g.bare:
	case g.removed != nil && !g.db.Alone():
		g.removed()
	default:
		g.unerased = explained("what was removed is still in", g.path, g.db.Erase())
	}
	return nil
}

// Unerased returns why bytes of what the last change removed are still in the file, in its log or
// in a daily copy, or nil. Each program that opens the gallery overwrites them.
func (g *Gallery) Unerased() error { return g.unerased }

// Prompt is for programs that must not wait: while another program writes, a change of g fails at
// once with [ErrBusy], and nothing has changed. A change that has removed something calls removed,
// and its bytes stay until the caller calls [Erase], which may take a minute in a large gallery,
// and g goes on meanwhile. Nil ends this.
func (g *Gallery) Prompt(removed func()) {
	g.removed = removed
	g.db.Prompt(removed != nil)
}

// Erase overwrites what is left of removed people in the gallery at path. It has a connection of
// its own.
func Erase(path string) error {
	return explained("what was removed is still in", path, store.Erase(path))
}

// Follow lets the learner follow the rows as they are now.
func (t *Tx) Follow() error {
	t.anew = t.anew || t.changed
	if t.failed != nil {
		return t.failed
	}
	t.ahead = true
	t.follow(t.changed)
	t.changed = false
	return t.failed
}

func explained(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s gallery %s: %w", what, path, err)
}
