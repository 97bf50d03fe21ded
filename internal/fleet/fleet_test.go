// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/fleet/protocol"
	"github.com/faceauth/faceauth/internal/fleet/server"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// values returns all that the server has, as its owner or a thief of its disk reads it.
func (w *world) values() map[string][]byte {
	var b *bucket
	w.wait("the server runs", func() bool {
		b, _ = w.devices[0].member().open(w.t.Context())
		return b != nil
	})
	defer b.nc.Close()
	info := fixture.Must(b.s.Info(w.t.Context(),
		jetstream.WithSubjectFilter(protocol.Values+">")))(w.t)
	all := make(map[string][]byte)
	for subject := range info.State.Subjects {
		name := strings.TrimPrefix(subject, protocol.Values)
		all[name] = fixture.Must(b.get(w.t.Context(), subject, 0))(w.t).Data
	}
	return all
}

// readable counts the values about people that keys open.
func readable(values map[string][]byte, k Keys) string {
	n, all := 0, 0
	for name, data := range values {
		if _, ok := parseID(name); ok {
			all++
			if k.open(name, data, new(Record)) {
				n++
			}
		}
	}
	return fmt.Sprint(n, " of ", all)
}

func (d *device) member() Membership { return fixture.Must(readMembership(d.path))(d.w.t) }

// renewed waits until devices have no key but one of a number.
func (w *world) renewed(number uint32, all ...*device) {
	w.t.Helper()
	for _, d := range all {
		w.wait(fmt.Sprint(d.name, " has key ", number), func() bool {
			k := d.member().Ring.Keys
			return len(k) == 1 && k.now() == number
		})
	}
}

// told waits until a device has printed a text.
func (d *device) told(text string) {
	d.w.t.Helper()
	d.w.wait(d.name+" is told "+text, func() bool {
		return strings.Contains(d.run.out.String(), text)
	})
}

// copied copies the folder of the server, and runs it again with the copy that was made before, if
// one is named.
func (w *world) copied(again string) string {
	to := fmt.Sprint(w.folder, len(w.log))
	w.server.end(true)
	w.copy(w.folder, to)
	w.folder = cmp.Or(again, w.folder)
	w.serve()
	return to
}

// A stolen administrator's device is shut out within a second and reads nothing later, whoever
// gives it the server's values, or puts an old copy of the server back; what it has said stays.
// Others go on, even one that was off. Who has an invitation from before is told.
func TestRevoke(t *testing.T) {
	w := newWorld(t, 9001, 2)
	a, b, stolen := w.devices[0], w.devices[1], w.device("d2", true)
	w.enrolled(stolen, "alice") // only the stolen device has enrolled her
	w.enrolled(a, "bob")
	w.known("alice", a, b)
	w.known("bob", stolen)
	connected := func(is ...bool) {
		t.Helper()
		w.wait(fmt.Sprint(is), func() bool {
			s, err := Stand(a.path)
			var are []bool
			for _, m := range s.Devices {
				are = append(are, m.Online)
			}
			return err == nil && slices.Equal(are, is)
		})
	}
	thief, late := stolen.member(), fixture.Must(Invite(a.path, "late", false))(t)
	connected(true, true, true, false)
	before, copied := w.values(), w.copied("")
	w.is("the thief reads before", readable(before, thief.Ring.Keys), "2 of 2")
	b.stop(true)
	connected(true, false, true, false)
	try(t, w.revoke(a, stolen.name))
	begun := time.Now()
	stolen.told("was revoked")
	took := time.Since(begun)
	begun = time.Now()
	fixture.Must(Stand(a.path))(t)
	trip := time.Since(begun) // longer on a busy machine
	w.is("it was connected for more than a second", took > time.Second+20*trip, false)
	w.enrolled(a, "carol")
	w.enrolled(stolen, "mallory")
	w.renewed(2, a)
	b.start()
	w.known("carol", b)
	w.known("alice", a, b)
	w.renewed(2, b)
	after := w.values()
	w.is("the thief reads", readable(after, thief.Ring.Keys), "0 of 3")
	w.is("members read of the old backup", readable(before, a.member().Ring.Keys), "0 of 2")
	var r renewal // with all that the server has, the thief gets no new key
	try(t, protocol.Decode(after[keysName], &r))
	// two, by the administrators' key and by that before
	w.is("devices with the new key", len(r.For)/entrySize, 4)
	_, has := r.ring(&thief)
	w.is("the thief has it", has, false)
	w.join("late", late).told(errOldKey.Error())
	a.stop(false)
	w.copied(copied)
	// an old copy lets the thief in, until an administrator comes
	connected(true, true, true, false)
	a.start()
	connected(true, true, false)
	w.is("a revoked device is heard", a.knows("mallory"), false)
	// it was found
	try(t, Join(t.Context(), stolen.path, fixture.Must(Invite(a.path, stolen.name, false))(t)))
	stolen.stop(true)
	stolen.start()
	w.known("carol", stolen)
	try(t, w.revoke(a, ""))
	w.renewed(3, a, b, stolen)
	w.enrolled(b, "dora")
	w.known("dora", a)
	// Of two administrators that make a key at once, one is told to try again.
	stale := a.member()
	of := fixture.Must(stale.open(t.Context()))(t)
	defer of.nc.Close()
	fixture.Must(stale.renewed(t.Context(), of, a.path))(t)
	try(t, w.revoke(a, ""))
	w.is("keys that were not read are written over",
		stale.publish(t.Context(), of, map[string]introduction{}), errFaster)
	w.is("a member that is no administrator revokes", w.revoke(b, "d0"), protocol.ErrNoAdmin)
}

// A forgotten person is in no later copy of the server, and in no file of a device; an old copy can
// be read until the key is renewed. From its members alone, a lost server gets all back.
func TestForgotten(t *testing.T) {
	w := newWorld(t, 9002, 2)
	a, b := w.devices[0], w.devices[1]
	w.enrolled(a, "alice-of-the-test")
	w.known("alice-of-the-test", b)
	old, copied := w.values(), w.copied("")
	b.forget("alice-of-the-test")
	w.wait("a forgets", func() bool { text, _ := a.content(); return text == "" })
	w.is("of the old copy can be read", readable(old, a.member().Ring.Keys), "1 of 1")
	a.stop(false)
	a.hand(func(g *gallery.Gallery) error { return g.Save() }) // the learner follows
	for _, d := range w.devices {
		file := string(fixture.Must(os.ReadFile(d.path))(t))
		w.is(d.name+" has the name still", strings.Contains(file, "alice-of-the-test"), false)
	}
	a.start()
	w.enrolled(a, "bob")
	w.known("bob", b)
	// All but the members is lost: the devices give it back, and the keys.
	again, backup := filepath.Join(w.dir, "again"), filepath.Join(w.dir, "backup")
	try(t, errors.Join(server.Copy(filepath.Join(copied, server.Books), backup),
		server.Copy(backup, filepath.Join(again, server.Books))))
	w.is("a server was overwritten", server.Copy(backup, filepath.Join(again, server.Books)) == nil,
		false)
	w.copied(again)
	w.wait("all is back", func() bool {
		all := w.values()
		return readable(all, nil) == "0 of 2" && all[keysName] != nil && w.agreed()
	})
	w.is("she is back", b.knows("alice-of-the-test"), false)
	try(t, w.revoke(a, ""))
	w.renewed(2, a, b)
	for _, d := range w.devices {
		w.is(d.name+" reads of the old copy", readable(old, d.member().Ring.Keys), "0 of 1")
	}
}

// An invitation admits one device, and one that is damaged or was taken back nobody.
func TestInvitation(t *testing.T) {
	w := newWorld(t, 9003, 2)
	w.enrolled(w.devices[0], "carol")
	w.known("carol", w.devices[1]) // it takes part, and so gets new keys
	i := fixture.Must(Invite(w.devices[0].path, "hall", false))(t)
	one, two := w.home("x"), w.home("y")
	fails := func(what string, err error) {
		t.Helper()
		w.is(fmt.Sprint(err), strings.Contains(fmt.Sprint(err), what), true)
	}
	try(t, Join(t.Context(), one.path, i))
	try(t, Join(t.Context(), one.path, i)) // the answer may get lost
	member := w.devices[1].member().String()
	fails("another device", Join(t.Context(), w.devices[1].path, i))
	w.is("its membership is as before", w.devices[1].member().String() == member, true)
	lost := fixture.Must(Invite(w.devices[0].path, "lost", true))(t)
	was := w.devices[0].member().Ring.Admin
	try(t, w.revoke(w.devices[0], "lost"))
	fails("Authorization", Join(t.Context(), two.path, lost))
	w.is("an invitation that was taken back has the administrators' key",
		w.devices[0].member().Ring.Admin == was, false)
	_, err := open(w.devices[1].path, nil)
	fails(safefile.ErrLocked.Error(), err)
	fails(ErrNotMember.Error(), Run(t.Context(), filepath.Join(w.dir, "nobody"), nil))
	text := i.String()
	for n := range len(text) {
		_, err = ParseInvitation(text[:n])
		fails("not a whole invitation", err)
	}
	_, err = ParseInvitation(Membership{Invitation: protocol.Invitation{Name: "short"},
		Ring: ring{Keys: Keys{1: []byte("no key")}}}.String())
	fails("not a whole invitation", err)
	i.Pin[0]++
	fails("another server", Join(t.Context(), two.path, i))
}

// Who knows a member's public key alone is a stranger.
func TestStranger(t *testing.T) {
	w := newWorld(t, 9014, 1)
	m := w.devices[0].member()
	thief := fixture.Must(nkeys.FromSeed([]byte(protocol.NewSeed(nkeys.CreateUser))))(t)
	_, err := nats.Connect(m.URLs[0], nats.Nkey(protocol.Public(m.Seed), thief.Sign),
		nats.Secure(&tls.Config{InsecureSkipVerify: true})) // the server is the right one
	w.is("a stranger", errors.Is(err, nats.ErrAuthorization), true)
	m.Seed = protocol.NewSeed(nkeys.CreateUser)
	_, err = m.dial()
	w.is("nobody", errors.Is(err, nats.ErrAuthorization), true)
}

// What a member that lies may not do, and what the others make of what it may: nothing stays.
func TestLies(t *testing.T) {
	w := newWorld(t, 9004, 3)
	a, liar, c := w.devices[0], w.devices[1], w.devices[2]
	m := liar.member()
	b := fixture.Must(m.open(t.Context()))(t)
	defer b.nc.Close()
	for _, subject := range []string{
		"$JS.API.STREAM.PURGE.KV_people", "$JS.API.STREAM.DELETE.KV_people",
		"$JS.API.STREAM.CREATE.X",
		"$JS.API.STREAM.UPDATE.KV_people", "$JS.API.STREAM.MSG.DELETE.KV_people",
		"$SYS.REQ.SERVER.PING",
		protocol.Asking + protocol.Public(a.member().Seed), protocol.Values + keysName,
		protocol.Values + protocol.Here + protocol.Public(a.member().Seed),
		protocol.Introductions + protocol.Public(a.member().Seed), protocol.Values + membersName,
	} {
		if _, err := b.nc.Request(subject, nil, 300*time.Millisecond); err == nil {
			t.Error(subject, "answers")
		}
	}
	for _, r := range []protocol.Request{{What: "invite", Name: "x", Admin: true},
		{What: "revoke", Name: "first"},
		{What: "revoke", Keys: []string{protocol.Public(a.member().Seed)}}} {
		_, err := m.ask(r)
		w.is(r.What, err, protocol.ErrNoAdmin)
	}
	x := nats.NewMsg(protocol.Values + ID{1}.String())
	x.Header.Set("Nats-Rollup", "all")
	_, err := b.js.PublishMsg(t.Context(), x)
	w.is("a member empties the bucket", err == nil, false)
	// It says that it is an administrator, and gets no more keys than others; it holds no renewal
	// up.
	liar.stop(false)
	try(t, b.put(t.Context(), protocol.Values+ID{7}.String(), []byte("of nobody")))
	for i, lie := range []introduction{{Box: protocol.Public(m.Box), Admin: []byte("yes")},
		{Box: "none"}} {
		lie.Name = "first"
		at := protocol.Introductions + protocol.Public(m.Seed)
		try(t, b.put(t.Context(), at, m.Ring.Keys.seal(at, lie)))
		try(t, w.revoke(a, ""))
		w.renewed(uint32(i+2), a)
		m.renewed(t.Context(), b, liar.path) // it may be left out the second time
		w.is("it became an administrator", m.Ring.AdminBox != "", false)
		w.is("it has a new key", m.Ring.Keys.now() >= 2, true)
	}
	face, keys, other := vector.Bytes(w.vector()), a.member().Ring.Keys, Keys{77: make([]byte, 32)}
	for i, lie := range []struct {
		keys Keys
		rec  Record
	}{
		{other, Record{}},
		{keys, Record{Into: ID{0: 255, 1: 255}}},
		{keys, Record{Name: "x", Named: latest + 1}},
		{keys, Record{Name: "x", Named: latest, Enrolled: 1 << 60}},
		{keys, Record{Name: "x", Named: latest,
			Faces: map[faceKey]Face{"x": {Clock: 9, Space: room.ID, Vector: face}}}},
		// this one counts, until somebody says anything else
		{keys, Record{Name: "late", Named: 1 << 61}},
	} {
		name, id := fmt.Sprint("person", i), ID{}
		w.enrolled(a, name)
		w.wait(name+" is given", a.settled)
		a.query("select s.id from shared s join person p on p.id = s.person where name = ?",
			func(r store.Row) error {
				id = ID(r.ColumnRawBlob(0))
				return nil
			}, name)
		try(t, b.put(t.Context(), protocol.Values+id.String(), lie.keys.seal(id.String(), lie.rec)))
		if lie.rec.Name == "late" {
			name = "late"
		}
		w.known(name, a)
		w.wait(name+" is mended", func() bool {
			value, err := b.get(t.Context(), protocol.Values+id.String(), 0)
			var now Record
			return err == nil && keys.open(id.String(), value.Data, &now) && now.sane(id) &&
				now.Name == name
		})
		a.rename(name, fmt.Sprint("other", i))
		w.known(fmt.Sprint("other", i), a, c)
	}
}

// Two devices enrol people of one name before they know of each other: like faces are one person,
// and others get another name, the same everywhere. Of somebody whom no program that shares people
// has seen, the fleet learns nothing; if they were found to be another person meanwhile, that one
// has their faces.
func TestTwice(t *testing.T) {
	w, s, long := newPeople(t, 2), make(shelf), strings.Repeat("x", 100)
	a, b := w.home("a"), w.home("b")
	alice, one := w.vector(), &group{}
	for _, h := range []*device{a, b} {
		h.enrol("alice", w.said(one, w.near(alice))...)
		h.enrol("tom", w.said(&group{}, w.vector())...)
		h.enrol(long, w.said(&group{}, w.vector())...)
	}
	s.sync(a, b, a)
	w.check(a, b)
	for _, name := range []string{"alice", "tom", "tom (2)", long, long[:90] + " (2)"} {
		w.is(name+" is there", b.knows(name), true)
	}
	w.is("alice is two people", b.knows("alice (2)"), false)
	before := len(s)
	for _, name := range []string{"mallory", "ann"} {
		a.enrol(name, w.said(&group{}, w.vector())...)
	}
	a.forget("mallory")
	a.merge("ann", "tom")
	s.sync(a, b)
	w.check(a, b)
	w.is("people in the fleet", len(s), before)
}

// Who is at one device is known at the others, sealed, until they leave or nothing is heard.
func TestPresence(t *testing.T) {
	w := newWorld(t, 9009, 2)
	a, b := w.devices[0], w.devices[1]
	w.enrolled(a, "alice")
	w.known("alice", b)
	g := fixture.Must(gallery.Open(a.path, room))(t)
	defer g.Close()
	runs := fixture.Must(office.OpenPast(g, "home", office.PastSettings{}))(t)
	seen := func(at time.Time) (text string) {
		b.hand(func(g *gallery.Gallery) error {
			there, err := g.Rows().Elsewhere(at)
			for person, x := range there {
				text += fmt.Sprint(g.Name(person), " ", x.Place, " ", x.Since.Unix())
			}
			return err
		})
		return text
	}
	a.query("insert into present select o.id, p.id, 1700000000123456789, 0, 'door', '', 0, '' from "+
		"office o, person p", nil)
	w.wait("alice is there", func() bool { return seen(time.Now()) == "alice first 1700000000" })
	w.is("much later", seen(time.Now().Add(gallery.Lasting)), "")
	name := protocol.Here + protocol.Public(a.member().Seed)
	w.is("the server reads who is where",
		Keys{1: make([]byte, 32)}.open(name, w.values()[name], new(gallery.There)), false)
	try(t, runs.Close())
	// otherwise it is seen within a minute that the office has ended
	a.query("update office set last = last + 1", nil)
	w.wait("nobody is where no office runs", func() bool { return seen(time.Now()) == "" })
}

// The disk of the server is full, and then the disk of a device: both say so, nothing is lost, and
// all goes on when there is room again. One person with more faces than a value holds keeps nobody
// else back.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, 9010, 2)
	a, b := w.devices[0], w.devices[1]
	w.server.end(false)
	b.stop(false)
	ofServer, ofDevice := fixture.NewDisk(t, 16<<20), fixture.NewDisk(t, 16<<20)
	w.copy(w.folder, ofServer.Dir)
	w.copy(filepath.Dir(b.path), ofDevice.Dir)
	w.folder, b.path = ofServer.Dir, filepath.Join(ofDevice.Dir, "faceauth.db")
	w.serve()
	b.start()
	w.enrolled(a, "alice")
	w.known("alice", b)
	enrol := func(name string) {
		for i := range 40 {
			w.enrolled(a, fmt.Sprint(name, i))
		}
	}
	ofServer.Fill()
	enrol("p")
	w.wait("the server says why", func() bool {
		return strings.Contains(w.server.out.String(), "no space left")
	})
	w.enrolled(b, "bob")
	ofServer.Free()
	w.known("p39", b)
	w.known("bob", a)
	ofDevice.Fill()
	enrol("q")
	b.told("disk is full")
	ofDevice.Free()
	w.known("q39", b)
	w.wait("one state", w.agreed)
	w.check(w.devices...)
	a.write("many", 1, 12000)
	a.told("too many faces")
	a.write("carol", 1, 1)
	w.known("carol 0", b)
}

// Two people who are merged elsewhere keep the events and sightings of both, and what a user said
// of their labels can still be undone. A rejected face that comes before the first labelled one
// waits.
func TestMerged(t *testing.T) {
	w := newPeople(t, 1)
	s := make(shelf)
	a, b := w.home("a"), w.home("b")
	x := w.vector()
	a.enrol("alice", w.said(&group{}, x)...)
	a.enrol("ann", w.said(&group{}, w.near(x), w.near(x))...)
	s.sync(a, b)
	b.said(func(*office.Office) error { return nil }) // its row
	b.query(`insert into event(office, number, kind, person, stranger, camera, trust, at, known,
			sighting, of, told, told_stranger)
		select (select max(id) from office), id, 'arrived', id, 0, 'door', 'confirmed', 1, 1,
			0, 0, id, 0 from person`, nil)
	a.merge("alice", "ann")
	s.sync(a, b)
	w.is("events",
		b.count("select count(*) from event join person on person.id = person where name = 'ann'"),
		2)
	w.is("merged", b.knows("ann") && !b.knows("alice"), true)
	a.said(func(o *office.Office) error { return o.Undo(o.Corrections(0, 1)[0].ID) })
	s.sync(a, b, a)
	w.check(a, b)
	w.is("undone", b.knows("ann") && b.knows("alice"), true)
	// Of one person a device knows a rejected face only.
	rec := Record{Name: "zoe", Named: 1, Faces: map[faceKey]Face{}}
	put := func(not bool, clock uint64, labels int) {
		f := Face{Clock: clock, Not: not, Space: room.ID, Vector: vector.Bytes(w.near(x))}
		rec.Faces[keyOf(room.ID, not, f.Vector)] = f
		s[ID{9}] = kept{id: ID{9}, rec: rec, write: fmt.Sprint("zoe", clock)}
		s.sync(b)
		w.is("labels",
			b.count("select count(*) from label join person on person.id = person where name = "+
				"'zoe'"), labels)
	}
	put(true, 2, 0)
	put(false, 3, 2)
	b.hand(func(g *gallery.Gallery) error { return g.Save() })
	// If one face has two names, the later statement wins on every device.
	rec = Record{Name: "eve", Named: 9, Faces: map[faceKey]Face{
		keyOf(room.ID, false, vector.Bytes(x)): {Clock: 99, Space: room.ID,
			Vector: vector.Bytes(x)}}}
	s[ID{8}] = kept{id: ID{8}, rec: rec, write: "eve"}
	s.sync(b, a, b)
	for _, h := range []*device{a, b} {
		_, where := h.content()
		w.is(h.name, where[keyText(x)], "[eve]")
	}
}

// A line on which what is asked for at once takes longer than the 5 s in which NATS expects an
// answer carries all.
func TestPlainSlowLine(t *testing.T) {
	w := newWorld(t, 9011, 1)
	second := start(t, os.Args[0], "serve", w.folder, w.at, "")
	line := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer line.Close()
	go func() {
		for near, err := line.Accept(); err == nil; near, err = line.Accept() {
			server, _ := net.Dial("tcp", w.at)
			go io.Copy(server, near)
			go func() { // 256 KiB/s
				defer near.Close()
				for _, err := io.CopyN(near, server, 4<<10); err == nil; _,
					err = io.CopyN(near, server, 4<<10) {
					time.Sleep(16 * time.Millisecond)
				}
			}()
		}
	}()
	a := w.devices[0]
	a.write("near", 22, 1000)
	w.wait("given", a.settled)
	i := fixture.Must(Invite(a.path, "far", false))(t)
	i.URLs = []string{"tls://" + line.Addr().String()}
	far := w.join("far", i)
	w.wait("all are known", far.has(22))
	w.is("it was told", far.run.out.String(), "")
	w.wait("a second ends", func() bool {
		return strings.Contains(second.out.String(), safefile.ErrLocked.Error())
	})
	second.end(true)
}

// A record is written only over the value that its writer has read: what a member said who never
// returns is not lost.
func TestSecondWriter(t *testing.T) {
	w := newWorld(t, 9008, 3)
	a, b, c := w.devices[0], w.devices[1], w.devices[2]
	faces := w.enrolled(a, "alice")
	w.known("alice", b, c)
	w.wait("all is told", w.agreed)
	a.stop(false)
	d := fixture.Must(open(a.path, func(string) {}))(t)
	of := fixture.Must(d.m.open(t.Context()))(t)
	defer of.nc.Close()
	a.enrol("alice", w.said(w.fact(faces[0]).group, w.near(faces[0]))...)
	try(t, d.look())
	mine := fixture.Must(d.some(unsent))(t)
	b.enrol("alice", w.said(w.fact(faces[0]).group, w.near(faces[0]))...)
	w.wait("b tells", b.settled)
	b.stop(true) // for ever
	won, lost, err := d.put(t.Context(), of, mine)
	w.is("written over a value that was not read, and not", fmt.Sprint(len(won), len(lost)), "0 1")
	try(t, errors.Join(err, d.written(won), d.close()))
	a.start()
	w.devices = []*device{a, c}
	w.wait("one state", w.agreed)
	w.check(a, c)
}

// Three NATS servers that are there already, those of Debian or of $FLEET_NATS, with the
// configuration of docs/fleet.md: each is killed in turn, and people are shared meanwhile.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	program := cmp.Or(os.Getenv("FLEET_NATS"), "/usr/sbin/nats-server")
	if _, err := os.Stat(program); err != nil {
		t.Skip("no NATS server: apt-get install nats-server")
	}
	page := fixture.Must(os.ReadFile("../../docs/fleet.md"))(t)
	_, configuration, _ := strings.Cut(string(page), "```\n")
	configuration, _, _ = strings.Cut(configuration, "```")
	w := newPeople(t, 9006)
	// Ports of this run: another one may be on this machine.
	at := func(n int) string { return fmt.Sprint("127.0.0.1:", 30000+os.Getpid()%270*10+n) }
	route := func(n int) string { return at(n%3 + 5) }
	node := func(n int) *process {
		text := strings.NewReplacer("server_name: n1", fmt.Sprint("server_name: n", n),
			"0.0.0.0:4222", at(n),
			"0.0.0.0:6222", route(n), "/var/lib/nats", filepath.Join(w.dir, fmt.Sprint("n", n)),
			"n2:6222", route(n+1), "n3:6222", route(n+2), "tls {", "# {", `"..."`,
			`"p"`).Replace(configuration)
		path := filepath.Join(w.dir, fmt.Sprint(n, ".conf"))
		try(t, os.WriteFile(path, []byte(text), 0o600))
		return start(t, program, "-c", path)
	}
	nodes := []*process{node(1), node(2), node(3)}
	t.Cleanup(func() {
		for _, p := range nodes {
			p.end(true)
		}
	})
	for _, user := range []string{"first", "hall"} {
		i := Membership{Invitation: protocol.Invitation{Name: user}}
		if user == "hall" {
			i = fixture.Must(Invite(w.devices[0].path, user, false))(t)
			w.is("addresses with passwords in an invitation", len(i.URLs), 0)
		}
		i.URLs = nil
		for n := range 3 {
			i.URLs = append(i.URLs, fmt.Sprintf("nats://%s:p@%s", user, at(n+1)))
		}
		d := w.home(user)
		w.wait(user+" joins", func() bool {
			ctx, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			return Join(ctx, d.path, i) == nil
		})
		w.devices = append(w.devices, d)
		d.start()
	}
	first, hall := w.devices[0], w.devices[1]
	for n := range nodes {
		nodes[n].end(true)
		w.enrolled(first, fmt.Sprint("alice", n))
		w.enrolled(hall, fmt.Sprint("bob", n))
		w.known(fmt.Sprint("alice", n), hall)
		w.known(fmt.Sprint("bob", n), first)
		nodes[n] = node(n + 1)
		w.wait("the node has what it missed", func() bool {
			b, err := first.member().open(t.Context())
			if err != nil {
				return false
			}
			defer b.nc.Close()
			info, err := b.s.Info(t.Context())
			return err == nil && info.Cluster != nil && len(info.Cluster.Replicas) == 2 &&
				!slices.ContainsFunc(info.Cluster.Replicas, func(p *jetstream.PeerInfo) bool {
					return !p.Current || p.Offline
				})
		})
	}
	try(t, w.revoke(first, "hall"))
	w.renewed(2, first)
	w.renewed(1, hall)
}
