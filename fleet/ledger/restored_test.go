// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"testing"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// A log that was put back takes its lost entries again: entries of the admin key if they still have an effect, entries
// of devices in their order.
func TestRestored(t *testing.T) {
	s := newSmall(t)
	restore := func(r ledger.Restoration, n uint64) []byte {
		t.Helper()
		e := ledger.Entry{Kind: ledger.Restored, N: n, Time: s.a.clock}
		e.Put(r)
		if err := e.Sign(s.admin.fleet, s.admin.key); err != nil {
			t.Fatal(err)
		}
		return e.Encode()
	}
	late := newAuthor(t, s.admin.fleet, newUser(t))
	lost := [][]byte{s.admin.admit(late.id, ledger.Scope{All: true})}
	revoke := s.admin.write(ledger.Entry{Kind: ledger.Revoke}, ledger.Revocation{Device: late.id})
	first := ledger.Restoration{Epoch: 7, At: s.a.own.Seq()}
	s.refuses(t, "another counter", restore(first, 7), ledger.ErrContent)
	s.refuses(t, "another log",
		restore(ledger.Restoration{Epoch: 7, Before: 3}, ledger.Restoration{Epoch: 7}.Counter()), ledger.ErrContent)
	word := restore(first, first.Counter())
	if r, err := ledger.ParseRestoration(s.admin.fleet, word); err != nil || r != first {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range [][]byte{nil, word[:20], lost[0], s.log[3]} {
		if r, err := ledger.ParseRestoration(s.admin.fleet, bad); err == nil {
			t.Errorf("%x is read as %+v", bad, r)
		}
	}
	if _, err := ledger.ParseRestoration(newAdmin(t).fleet, word); err == nil {
		t.Error("the word of another admin key counts")
	}
	s.apply(t, s.a.own, word)
	s.refuses(t, "the same again", word, ledger.ErrRepeated)
	older := ledger.Restoration{Epoch: 6}
	s.refuses(t, "an older log", restore(older, older.Counter()), ledger.ErrRepeated)
	// The service writes entries with new counters before it gets the lost entries.
	next := newAuthor(t, s.admin.fleet, newUser(t))
	e := ledger.Entry{Kind: ledger.Admit, N: first.Counter() + 1, Time: s.a.clock}
	e.Put(ledger.Admission{Device: next.id, Name: "next", Scope: ledger.Scope{All: true}})
	if err := e.Sign(s.admin.fleet, s.admin.key); err != nil {
		t.Fatal(err)
	}
	s.apply(t, s.a.own, e.Encode())
	s.refuses(t, "a revocation of somebody unknown", revoke, ledger.ErrNobody)
	s.apply(t, s.a.own, lost...)
	s.refuses(t, "the same admission again", lost[0], ledger.ErrRepeated)
	s.apply(t, s.a.own, revoke)
	s.refuses(t, "an admission after the revocation", lost[0], ledger.ErrRepeated)
	s.refuses(t, "the same revocation again", revoke, ledger.ErrRepeated)
	said, err := s.a.own.Restoration()
	if err != nil {
		t.Fatal(err)
	}
	if s.a.own.Epoch() != 7 || s.a.own.Last(s.admin.fleet) != first.Counter()+1 || !bytes.Equal(said, word) {
		t.Errorf("log %d, counter %x", s.a.own.Epoch(), s.a.own.Last(s.admin.fleet))
	}
	var b bytes.Buffer
	if err := s.a.own.Snapshot(&b, s.a.key); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Restore(s.admin.fleet, &b)
	if err != nil || l.Hash() != s.a.own.Hash() || l.Epoch() != 7 {
		t.Fatalf("a snapshot of it: %v", err)
	}
	// Its entries can be given to an empty log in their order, and are already spent where they are known.
	empty, err := ledger.New(s.admin.fleet)
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	err = l.EachEntry(func(_ uint64, data []byte) error {
		entries++
		empty.Give(data)
		e, err := ledger.Parse(data)
		if err != nil || !l.Spent(e) {
			t.Errorf("%s is not spent: %v", &e, err)
		}
		return nil
	})
	if err != nil || entries < 6 || len(empty.Devices()) != len(l.Devices()) || !empty.Known(s.alice) {
		t.Errorf("%d entries, %d devices, %v", entries, len(empty.Devices()), err)
	}
	gone := s.b.write(ledger.Entry{Kind: ledger.Forget, Person: s.alice}, ledger.Forgetting{})
	s.apply(t, s.a.own, gone)
	label := s.b.write(ledger.Entry{Kind: ledger.Label, Person: s.alice}, vector(7, 7))
	if e, err := ledger.Parse(label); err != nil || !s.a.own.Spent(e) {
		t.Errorf("a label of somebody who is forgotten is not spent: %v", err)
	}
}
