// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
)

// small is a fleet with two devices, one person, and its log.
type small struct {
	admin, a, b *author
	alice       ledger.ID
	log         [][]byte
}

func newSmall(t testing.TB) *small {
	s := &small{admin: newAdmin(t)}
	s.a, s.b = newAuthor(t, s.admin.fleet, newUser(t)), newAuthor(t, s.admin.fleet, newUser(t))
	s.log = [][]byte{s.admin.admit(s.a.id, ledger.Scope{All: true}), s.admin.admit(s.b.id, ledger.Scope{All: true})}
	s.alice = ledger.NewID()
	s.apply(t, s.a.own, s.log...)
	for _, x := range []struct {
		kind    ledger.Kind
		content any
	}{{ledger.Name, ledger.Naming{Name: "alice"}}, {ledger.Label, vector(1, 2)}} {
		data := s.a.write(ledger.Entry{Kind: x.kind, Person: s.alice}, x.content)
		s.apply(t, s.a.own, data)
		s.log = append(s.log, data)
	}
	s.apply(t, s.b.own, s.log...)
	return s
}

func vector(x ...float32) ledger.Faces {
	return ledger.Faces{Space: space, Faces: []ledger.Face{{Vector: x, Taken: time.Unix(5, 0).UTC(), Quality: .5}}}
}

func (s *small) apply(t testing.TB, l *ledger.Ledger, log ...[]byte) {
	t.Helper()
	for i, data := range log {
		if o, err := l.Apply(l.Seq()+1, data); err != nil || !o.Accepted {
			t.Fatalf("entry %d: %v, %v", i, o.Reason, err)
		}
	}
}

// refuses applies an entry to a copy of the ledger and checks why the entry does not count.
func (s *small) refuses(t *testing.T, what string, data []byte, want error) {
	t.Helper()
	l := s.a.own.With()
	before := l.Hash()
	o, err := l.Apply(l.Seq()+1, data)
	if err != nil || o.Accepted || !errors.Is(o.Reason, want) {
		t.Errorf("%s: %v, %v", what, o.Reason, err)
	}
	if l.Hash() != before {
		t.Errorf("%s: the state has changed", what)
	}
	if l.Seq() != s.a.own.Seq()+1 {
		t.Errorf("%s: the place is %d", what, l.Seq())
	}
}

func TestRefused(t *testing.T) {
	s := newSmall(t)
	sign := func(a *author, e ledger.Entry) []byte {
		t.Helper()
		if err := e.Sign(a.fleet, a.key); err != nil {
			t.Fatal(err)
		}
		return e.Encode()
	}
	stranger := newAuthor(t, s.admin.fleet, newUser(t))
	other := newAdmin(t)
	foreign := newAuthor(t, other.fleet, s.b.key)
	named := ledger.Entry{Kind: ledger.Name, Person: s.alice}
	s.refuses(t, "a stranger", stranger.write(named, ledger.Naming{Name: "x"}), ledger.ErrStranger)
	s.refuses(t, "another fleet's entry", foreign.write(named, ledger.Naming{Name: "x"}), ledger.ErrSignature)
	s.refuses(t, "another fleet's admin", other.admit(stranger.id, ledger.Scope{All: true}), ledger.ErrStranger)
	s.refuses(t, "a replay", s.log[3], ledger.ErrRepeated)
	s.refuses(t, "garbage", []byte("garbage"), ledger.ErrFormat)
	s.refuses(t, "nothing", nil, ledger.ErrFormat)
	s.refuses(t, "too much", make([]byte, ledger.MaxEntry+1), ledger.ErrTooLarge)
	nobody := ledger.NewID()
	s.refuses(t, "a merge of nobody", s.b.write(ledger.Entry{Kind: ledger.Merge, Person: s.alice, Other: nobody}, nil),
		ledger.ErrNobody)
	s.refuses(t, "a denial of nobody", s.b.write(ledger.Entry{Kind: ledger.Deny, Person: nobody}, vector(1, 2)),
		ledger.ErrNobody)
	s.refuses(t, "undoing nothing",
		s.b.write(ledger.Entry{Kind: ledger.Undo, Person: s.alice}, ledger.Ref{Device: s.a.id, N: 99}),
		ledger.ErrNoEntry)
	s.refuses(t, "withdrawing a stranger's lessons",
		s.b.write(ledger.Entry{Kind: ledger.Withdraw}, ledger.Withdrawal{Device: stranger.id}), ledger.ErrNobody)
	s.refuses(t, "revoking a stranger",
		s.admin.write(ledger.Entry{Kind: ledger.Revoke}, ledger.Revocation{Device: stranger.id}), ledger.ErrNobody)
	// A device may not admit, and the admin key may not label.
	e := ledger.Entry{Kind: ledger.Admit, N: 100, Time: s.a.clock}
	e.Put(ledger.Admission{Device: stranger.id, Scope: ledger.Scope{All: true}})
	s.refuses(t, "an admission by a device", sign(s.b, e), ledger.ErrFormat)
	e = ledger.Entry{Kind: ledger.Undo, Person: s.alice, N: 101, Time: s.a.clock, Body: []byte("no CBOR")}
	s.refuses(t, "a content that is none", sign(s.b, e), ledger.ErrContent)
	for i := range s.log[3] {
		data := bytes.Clone(s.log[3])
		data[i] ^= 1
		l, err := ledger.New(s.admin.fleet)
		if err != nil {
			t.Fatal(err)
		}
		s.apply(t, l, s.log[:3]...)
		if o, _ := l.Apply(4, data); o.Accepted {
			t.Fatalf("with byte %d altered, an entry counts", i)
		}
	}
}

// An entry of a newer version by the admin key stops the ledger before it. The same entry by a member is skipped.
func TestFuture(t *testing.T) {
	s := newSmall(t)
	e := ledger.Entry{Version: ledger.Version + 1, Kind: ledger.Name, N: 9, Time: s.a.clock}
	if err := e.Sign(s.admin.fleet, s.b.key); err != nil {
		t.Fatal(err)
	}
	s.refuses(t, "a newer version of a member", e.Encode(), ledger.ErrFuture)
	if err := e.Sign(s.admin.fleet, s.admin.key); err != nil {
		t.Fatal(err)
	}
	before := s.a.own.Seq()
	if _, err := s.a.own.Apply(before+1, e.Encode()); !errors.Is(err, ledger.ErrFuture) || s.a.own.Seq() != before {
		t.Errorf("a newer version: %v", err)
	}
	data := e.Encode()
	data[len(data)-1] ^= 1
	s.refuses(t, "a newer version with a wrong signature", data, ledger.ErrSignature)
}

// A sealed content opens only with its key, for its entry and its fleet.
func TestSeal(t *testing.T) {
	s := newSmall(t)
	e, err := ledger.Parse(s.log[3])
	if err != nil {
		t.Fatal(err)
	}
	key, _ := s.a.ring.Key(s.alice, e.Key)
	c, err := e.Open(s.admin.fleet, key)
	if err != nil || c.(ledger.Faces).Faces[0].Vector[1] != 2 ||
		!c.(ledger.Faces).Faces[0].Taken.Equal(time.Unix(5, 0)) {
		t.Fatalf("it opens as %v, %v", c, err)
	}
	if bytes.Contains(s.log[2], []byte("alice")) {
		t.Error("the name can be read")
	}
	for what, change := range map[string]func(*ledger.Entry){
		"another counter": func(e *ledger.Entry) { e.N++ },
		"another time":    func(e *ledger.Entry) { e.Time = e.Time.Add(time.Hour) },
		"another kind":    func(e *ledger.Entry) { e.Kind = ledger.Deny },
		"another device":  func(e *ledger.Entry) { e.Device = s.b.id },
		"another content": func(e *ledger.Entry) { e.Body = bytes.Clone(e.Body); e.Body[30] ^= 1 },
		"no content":      func(e *ledger.Entry) { e.Body = nil },
	} {
		moved := e
		change(&moved)
		if _, err := moved.Open(s.admin.fleet, key); !errors.Is(err, ledger.ErrUnsealed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := e.Open(newAdmin(t).fleet, key); !errors.Is(err, ledger.ErrUnsealed) {
		t.Errorf("another fleet: %v", err)
	}
	if _, err := e.Open(s.admin.fleet, ledger.NewKey()); !errors.Is(err, ledger.ErrUnsealed) {
		t.Errorf("another key: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Contains(text, fmt.Sprint(key[0])+" ") {
		t.Errorf("a key is printed: %s", text)
	}
}

// A malformed content is skipped, although its author has sealed it correctly.
func TestBadContent(t *testing.T) {
	s := newSmall(t)
	for what, c := range map[string]any{
		"no number":            vector(float32(math.NaN()), 1),
		"no end":               vector(float32(math.Inf(1)), 1),
		"no vector":            vector(),
		"no space":             ledger.Faces{Faces: vector(1).Faces},
		"vectors of two sizes": ledger.Faces{Space: space, Faces: append(vector(1).Faces, vector(1, 2).Faces...)},
		"no name":              ledger.Naming{},
		"a long name":          ledger.Naming{Name: strings.Repeat("x", 1000)},
		"no UTF-8":             ledger.Naming{Name: "\xff"},
		"no faces":             ledger.Lesson{Space: space, Centroids: []ledger.Centroid{{Vector: []float32{1}}}},
		"a bad radius": ledger.Lesson{Space: space,
			Centroids: []ledger.Centroid{{Vector: []float32{1}, Multiplicity: 1, Radius: -1}}},
		"a source that is no device": ledger.Lesson{Space: space, Through: []string{"door"}},
		"a place that is no number":  ledger.Lesson{Space: space, Through: []string{s.b.id + "@x"}},
		"a place with zeros":         ledger.Lesson{Space: space, Through: []string{s.b.id + "@07"}},
		"a source twice":             ledger.Lesson{Space: space, Through: []string{s.b.id, s.b.id}},
		"too many sources":           ledger.Lesson{Space: space, Through: make([]string, 257)},
		"a bad link":                 ledger.Lesson{Space: space, Links: [][2]int{{2, 1}}},
	} {
		kind := ledger.Label
		switch c.(type) {
		case ledger.Naming:
			kind = ledger.Name
		case ledger.Lesson:
			kind = ledger.Lessons
		}
		data := s.a.write(ledger.Entry{Kind: kind, Person: s.alice}, c)
		e, err := ledger.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := s.a.ring.Key(s.alice, e.Key)
		if _, err := e.Open(s.admin.fleet, key); !errors.Is(err, ledger.ErrContent) {
			t.Errorf("%s: %v", what, err)
		}
		s.apply(t, s.a.own, data)
		if p, _ := s.a.own.Person(s.alice, s.a.ring); p.Name != "alice" || len(p.Faces) != 1 || len(p.Lessons) != 0 ||
			p.Sealed != 0 {
			t.Errorf("%s: the person is %+v", what, p)
		}
	}
}

// The parts of a lesson are put together. A new first part replaces all earlier parts. A withdrawal takes away all
// lessons of a device.
func TestLessons(t *testing.T) {
	s := newSmall(t)
	teach := func(part uint64, links [][2]int, values ...float32) {
		c := ledger.Lesson{Space: space, Links: links}
		for _, v := range values {
			c.Centroids = append(c.Centroids, ledger.Centroid{Vector: []float32{v}, Multiplicity: 1})
		}
		s.apply(t, s.a.own, s.a.write(ledger.Entry{Kind: ledger.Lessons, Person: s.alice, Part: part}, c))
	}
	check := func(want string) {
		t.Helper()
		p, _ := s.a.own.Person(s.alice, s.a.ring)
		got := ""
		for _, x := range p.Lessons {
			for _, c := range x.Centroids {
				got += fmt.Sprint(c.Vector, " ")
			}
			got += fmt.Sprint(x.Links)
		}
		if got != want {
			t.Errorf("the lessons are %s, and not %s", got, want)
		}
	}
	teach(0, [][2]int{{0, 1}, {0, 2}}, 1, 2)
	check("[1] [2] [[0 1]]")
	teach(1, [][2]int{{1, 2}}, 3)
	check("[1] [2] [3] [[0 1] [0 2] [1 2]]")
	teach(1, nil, 4)
	check("[1] [2] [4] [[0 1] [0 2]]")
	teach(0, nil, 5)
	check("[5] []")
	s.apply(t, s.a.own, s.b.write(ledger.Entry{Kind: ledger.Withdraw}, ledger.Withdrawal{Device: s.a.id, Mute: true}))
	check("")
	s.refuses(t, "a lesson of somebody whose lessons are withdrawn",
		s.a.write(ledger.Entry{Kind: ledger.Lessons, Person: s.alice}, ledger.Lesson{Space: space}), ledger.ErrMuted)
	s.apply(t, s.a.own, s.b.write(ledger.Entry{Kind: ledger.Withdraw}, ledger.Withdrawal{Device: s.a.id}))
	teach(0, nil, 6)
	check("[6] []")
}

// A lesson that was learned through lessons which were withdrawn since does not count, whenever its entry comes; and
// its device can give such lessons again once it has heard of the withdrawal.
func TestLearnedThrough(t *testing.T) {
	s := newSmall(t)
	teach := func(part uint64, through ...string) {
		slices.Sort(through)
		c := ledger.Lesson{Space: space, Through: through,
			Centroids: []ledger.Centroid{{Vector: []float32{float32(part)}, Multiplicity: 1}}}
		s.apply(t, s.a.own, s.a.write(ledger.Entry{Kind: ledger.Lessons, Person: s.alice, Part: part}, c))
	}
	check := func(want ...int) {
		t.Helper()
		p, _ := s.a.own.Person(s.alice, s.a.ring)
		var got []int
		for _, x := range p.Lessons {
			got = append(got, len(x.Centroids))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the lessons have %v centroids, and not %v", got, want)
		}
	}
	before := s.a.own.Source(s.b.id)
	teach(0)
	teach(1)
	teach(2, before)
	teach(3, before)
	teach(4, s.a.id, before)
	check(2, 2, 1)
	if s.a.own.Outdated(before) || !s.a.own.Outdated(before+"@1") || !s.a.own.Outdated("door") {
		t.Error("the source is outdated before the withdrawal, or another one is not")
	}
	s.apply(t, s.a.own, s.b.write(ledger.Entry{Kind: ledger.Withdraw}, ledger.Withdrawal{Device: s.b.id}))
	check(2)
	teach(2, before) // its author has not heard of it
	check(2)
	teach(2, s.a.own.Source(s.b.id))
	check(2, 1)
}

// Keys reach only members that may have them, and only keys that match their numbers are taken. Nobody else can open
// the answer.
func TestKeyRequests(t *testing.T) {
	s := newSmall(t)
	wants := s.b.own.Wants(s.b.id, s.b.ring)
	if len(wants) != 1 || wants[0].Author != s.a.id || wants[0].Person != s.alice {
		t.Fatalf("it wants %v", wants)
	}
	ask := func(who *author, wants []ledger.Want) *ledger.KeyRequest {
		t.Helper()
		q, err := ledger.NewKeyRequest(s.admin.fleet, who.key, wants)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := ask(s.b, wants)
	answer, _, err := s.a.own.AnswerKeys(q.Bytes(), s.a.ring, s.a.key)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := ask(s.b, wants).Open(answer, s.b.ring); n != 0 || !errors.Is(err, ledger.ErrKeyRequest) {
		t.Errorf("the answer to another request: %d, %v", n, err)
	}
	for i := range answer {
		bad := bytes.Clone(answer)
		bad[i] ^= 1
		ring := ledger.NewRing()
		if n, err := q.Open(bad, ring); n != 0 || err == nil {
			t.Fatalf("with byte %d altered: %d, %v", i, n, err)
		}
	}
	if n, err := q.Open(answer, s.b.ring); n != 1 || err != nil {
		t.Fatalf("%d keys came: %v", n, err)
	}
	if p := s.b.own.People(s.b.ring); len(p) != 1 || p[0].Shown != "alice" || p[0].Sealed != 0 {
		t.Errorf("it knows %+v", p)
	}
	stranger := newAuthor(t, s.admin.fleet, newUser(t))
	if _, _, err := s.a.own.AnswerKeys(ask(stranger, wants).Bytes(), s.a.ring, s.a.key); !errors.Is(err,
		ledger.ErrStranger) {
		t.Errorf("a stranger asks: %v", err)
	}
	s.apply(t, s.a.own, s.admin.write(ledger.Entry{Kind: ledger.Revoke}, ledger.Revocation{Device: s.b.id}))
	if _, _, err := s.a.own.AnswerKeys(q.Bytes(), s.a.ring, s.a.key); !errors.Is(err, ledger.ErrRevoked) {
		t.Errorf("a revoked device asks: %v", err)
	}
	if _, ok := s.a.own.WriteKey(s.alice, s.a.ring); ok {
		t.Error("a key that a revoked device has is used again")
	}
	if _, err := ledger.NewKeyRequest(s.admin.fleet, s.a.key, make([]ledger.Want, ledger.MaxWants+1)); err == nil {
		t.Error("too many keys are asked for")
	}
	for _, bad := range [][]byte{nil, []byte("x"), answer, q.Bytes()[1:]} {
		if _, _, err := s.a.own.AnswerKeys(bad, s.a.ring, s.a.key); !errors.Is(err, ledger.ErrKeyRequest) {
			t.Errorf("a request that is none: %v", err)
		}
	}
}

// A snapshot is refused if any bit is flipped, if it is cut off anywhere, or if it belongs to another fleet.
func TestSnapshotDamage(t *testing.T) {
	s := newSmall(t)
	s.apply(t, s.a.own, s.b.write(ledger.Entry{Kind: ledger.Undo, Person: s.alice}, ledger.Ref{Device: s.a.id, N: 2}))
	var b bytes.Buffer
	if err := s.a.own.Snapshot(&b, s.a.key); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Restore(s.admin.fleet, bytes.NewReader(b.Bytes()))
	if err != nil || l.Hash() != s.a.own.Hash() || l.Last(s.a.id) != 2 || l.Seq() != 5 {
		t.Fatalf("restoring: %v", err)
	}
	if _, err := ledger.RestoreOwn(s.admin.fleet, s.a.id, bytes.NewReader(b.Bytes())); err != nil {
		t.Fatalf("restoring its own: %v", err)
	}
	for i := range b.Len() {
		data := bytes.Clone(b.Bytes())
		data[i] ^= 1 << (i % 8)
		for _, own := range []string{"", s.a.id} {
			if _, err := ledger.RestoreOwn(s.admin.fleet, own, bytes.NewReader(data)); !errors.Is(err,
				ledger.ErrSnapshot) &&
				!errors.Is(err, ledger.ErrFuture) {
				t.Fatalf("with byte %d altered: %v", i, err)
			}
		}
		if _, err := ledger.Restore(s.admin.fleet, bytes.NewReader(b.Bytes()[:i])); !errors.Is(err,
			ledger.ErrSnapshot) {
			t.Fatalf("cut off after %d bytes: %v", i, err)
		}
	}
	if _, err := ledger.Restore(newAdmin(t).fleet, bytes.NewReader(b.Bytes())); !errors.Is(err, ledger.ErrSnapshot) ||
		!strings.Contains(err.Error(), s.admin.fleet) {
		t.Errorf("another fleet's: %v", err)
	}
	if _, err := ledger.Restore(s.admin.fleet, bytes.NewReader(append(b.Bytes(), 0))); !errors.Is(err,
		ledger.ErrSnapshot) {
		t.Errorf("with something after its end: %v", err)
	}
	stranger := newAuthor(t, s.admin.fleet, newUser(t))
	b.Reset()
	if err := s.a.own.Snapshot(&b, stranger.key); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Restore(s.admin.fleet, &b); !errors.Is(err, ledger.ErrSnapshot) {
		t.Errorf("made by a stranger: %v", err)
	}
}

func TestRing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	r, err := ledger.OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	alice, bob := ledger.NewID(), ledger.NewID()
	k := ledger.NewKey()
	id := r.Add(alice, k)
	r.Add(alice, ledger.NewKey())
	r.Add(bob, ledger.NewKey())
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if !r.Destroy(bob) || r.Destroy(bob) {
		t.Error("destroying twice")
	}
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = ledger.OpenRing(path); err != nil || r.Len() != 1 || r.Has(bob) {
		t.Fatalf("opened again it has keys of %d people: %v", r.Len(), err)
	}
	if got, ok := r.Key(alice, id); !ok || got != k {
		t.Error("the key is another one")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v", info.Mode())
	}
	// One more key is one more line, and nothing else is written.
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r.AddOwn(bob, ledger.NewKey())
	if err := errors.Join(r.Save(), r.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(data, before) || len(data) == len(before) {
		t.Fatalf("the file was written anew: %v", err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ledger.OpenRing(path)
		if i < len(before)-1 {
			if !errors.Is(err, ledger.ErrRing) {
				t.Fatalf("with byte %d altered: %v", i, err)
			}
			continue
		}
		// It looks like a line that was being written when the machine failed.
		if err != nil || r.Has(bob) {
			t.Fatalf("with byte %d of the last line altered: %v", i, err)
		}
		if _, ok := r.Key(alice, id); !ok && i >= len(before) {
			t.Fatalf("with byte %d of the last line altered, a key of another line is gone", i)
		}
		r.Close()
	}
}

// Destroyed keys are no longer in the file, neither as text nor as bytes.
func TestDestroyed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	r, err := ledger.OpenRing(path)
	if err != nil {
		t.Fatal(err)
	}
	var ids []ledger.ID
	var keys []ledger.Key
	for range 300 {
		ids, keys = append(ids, ledger.NewID()), append(keys, ledger.NewKey())
		r.AddOwn(ids[len(ids)-1], keys[len(keys)-1])
		if err := r.Save(); err != nil {
			t.Fatal(err)
		}
	}
	has := func(i int) bool {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := base64.StdEncoding.EncodeToString(append(ids[i][:], keys[i][:]...)) // 48 bytes need no padding
		return bytes.Contains(data, []byte(text))
	}
	if !has(7) || !has(8) {
		t.Fatal("the keys are not in the file as this test looks for them")
	}
	r.Destroy(ids[7])
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if has(7) || !has(8) {
		t.Error("the key that was destroyed is in the file, or another is not")
	}
	r.Close()
}

// The file of an older program is read, and then rewritten in this program's format.
func TestOldRing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	type entry struct {
		_      struct{} `cbor:",toarray"`
		Person []byte
		Keys   [][]byte
	}
	alice, k := ledger.NewID(), ledger.NewKey()
	body, err := cbor.Marshal([]entry{{Person: alice[:], Keys: [][]byte{k[:]}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := safefile.WriteSealed(path, safefile.Kind{Magic: "faceauth fleet keys", Version: 1}, body); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := ledger.OpenRing(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := r.Key(alice, k.ID(alice)); !ok || got != k || r.Len() != 1 {
			t.Fatal("the key is another one, or gone")
		}
		r.Close()
	}
	if all, err := filepath.Glob(path + "*"); err != nil || len(all) != 1 {
		t.Errorf("there are %q", all)
	}
}

func FuzzParse(f *testing.F) {
	s := newSmall(f)
	for _, data := range s.log {
		f.Add(data)
	}
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ledger.Parse(data)
		if err != nil {
			return
		}
		if !bytes.Equal(e.Encode(), data) {
			t.Fatal("it is encoded in another way")
		}
		if e.Kind.Sealed() {
			e.Open(s.admin.fleet, ledger.NewKey())
		} else {
			e.Content()
		}
		l := s.a.own.With()
		if o, _ := l.Apply(l.Seq()+1, data); o.Accepted {
			t.Fatal("an entry that nobody signed counts, or one counts twice")
		}
	})
}

func FuzzRestore(f *testing.F) {
	s := newSmall(f)
	var b bytes.Buffer
	if err := s.a.own.Snapshot(&b, s.a.key); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:100])
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ledger.Restore(s.admin.fleet, bytes.NewReader(data))
		if err == nil && l.Hash() != s.a.own.Hash() {
			t.Fatal("a snapshot that nobody signed is restored")
		}
		ledger.RestoreOwn(s.admin.fleet, s.a.id, bytes.NewReader(data))
		s.a.own.AnswerKeys(data, s.a.ring, s.a.key)
	})
}

func ExampleLedger() {
	var t testing.T
	admin := newAdmin(&t)
	device := newAuthor(&t, admin.fleet, newUser(&t))
	l, _ := ledger.New(admin.fleet)
	alice := ledger.NewID()
	l.Apply(1, admin.admit(device.id, ledger.Scope{All: true}))
	l.Apply(2, device.write(ledger.Entry{Kind: ledger.Name, Person: alice}, ledger.Naming{Name: "alice"}))
	l.Apply(3, device.write(ledger.Entry{Kind: ledger.Label, Person: alice}, vector(1, 2)))
	for _, p := range l.People(device.ring) {
		fmt.Println(p.Shown, len(p.Faces))
	}
	o, _ := l.Apply(4, device.write(ledger.Entry{Kind: ledger.Forget, Person: alice}, ledger.Forgetting{}))
	fmt.Println(len(o.Forgotten), len(l.People(device.ring)))
	// Output:
	// alice 1
	// 1 0
}

// Only the admin key begins a day of forgetting, 24 hours after the last one, if somebody was forgotten. A snapshot
// has the same allowances.
func TestAllow(t *testing.T) {
	s := newSmall(t)
	forget := func(people int) []byte {
		also := make([]ledger.ID, people-1)
		for i := range also {
			also[i] = ledger.NewID()
		}
		return s.b.write(ledger.Entry{Kind: ledger.Forget, Person: ledger.NewID()}, ledger.Forgetting{Also: also})
	}
	begun := s.admin.clock
	if s.a.own.DayOver(begun.Add(48 * time.Hour)) {
		t.Error("a day is over, and nobody was forgotten")
	}
	s.refuses(t, "too many at once", forget(ledger.DailyForgets+1), ledger.ErrForgets)
	s.apply(t, s.a.own, forget(ledger.DailyForgets))
	s.refuses(t, "one more", forget(1), ledger.ErrForgets)
	for _, c := range []struct {
		after time.Duration
		over  bool
	}{{-time.Hour, false}, {23 * time.Hour, false}, {25 * time.Hour, true}} {
		if over := s.a.own.DayOver(begun.Add(c.after)); over != c.over {
			t.Errorf("after %v: a day is over: %v", c.after, over)
		}
	}
	s.refuses(t, "a device allows", s.b.write(ledger.Entry{Kind: ledger.Allow}, ledger.Allowance{}), ledger.ErrFormat)
	stranger := newAuthor(t, s.admin.fleet, newUser(t)).id
	s.refuses(t, "for nobody", s.admin.write(ledger.Entry{Kind: ledger.Allow}, ledger.Allowance{Device: stranger}),
		ledger.ErrNobody)
	s.apply(t, s.a.own, s.admin.write(ledger.Entry{Kind: ledger.Allow}, ledger.Allowance{Device: s.a.id}))
	s.refuses(t, "another is allowed", forget(1), ledger.ErrForgets)
	s.apply(t, s.a.own, s.admin.write(ledger.Entry{Kind: ledger.Allow}, ledger.Allowance{Device: s.b.id}),
		forget(ledger.DailyForgets-1))
	var b bytes.Buffer
	if err := s.a.own.Snapshot(&b, s.a.key); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Restore(s.admin.fleet, &b)
	if err != nil || l.Hash() != s.a.own.Hash() || !l.MayForget(s.b.id, 1) || l.MayForget(s.b.id, 2) {
		t.Errorf("a snapshot: %v", err)
	}
	s.apply(t, s.a.own, forget(1), s.admin.write(ledger.Entry{Kind: ledger.Allow}, ledger.Allowance{}), forget(1))
}
