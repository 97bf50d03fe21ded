// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/faceauth/faceauth/internal/vector"
	"github.com/faceauth/faceauth/internal/xdg"
	"github.com/faceauth/faceauth/online"
	"github.com/fxamacker/cbor/v2"
)

// Errors of [Open], [Gallery.Save] and [Gallery.Begin]. Each says what to do.
var (
	ErrNotGallery = store.ErrNotStore
	ErrOld        = store.ErrOld
	ErrVersion    = store.ErrVersion
	ErrDamaged    = store.ErrDamaged
	ErrFull       = store.ErrFull
	ErrSpace      = errors.New("gallery of another feature space")
)

// mostUnsaved is the number of learned faces that a gallery can learn again on top of another program's: 40 MB.
const mostUnsaved = 20000

// mostLoose is the number of labelled faces beyond the snapshot. Each takes milliseconds when a gallery is opened.
const mostLoose = 256

// kept is a labelled or rejected face in the database.
type kept struct {
	row, person int64
	negative    bool
}

// entry is a person in the database.
type entry struct {
	name     string
	enrolled int64 // seconds since 1970
	upright  int64 // [Person].Upright
	same     int64 // the person who has the name now; 0: this person
}

// date fills in what the database knows of a person beside the faces.
func (e entry) date(p *Person) {
	p.Enrolled, p.Upright = time.Unix(e.enrolled, 0).UTC(), int(e.upright)
}

// database is the part of a Gallery that is in the database, as of its last transaction.
type database struct {
	db         *store.DB
	faces      map[int64]kept   // by the learner's number
	people     map[int64]entry  // by the person's number; also those without labelled faces whom records mention
	last       int64            // number of the newest face
	generation int64            // of what was learned; 0: the database has no snapshot
	observed   int64            // the last observation in that snapshot
	loose      int              // faces beyond the snapshot
	learned    [32]byte         // fingerprint of what was learned
	version    int64            // of the database
	given      uint64           // the last number of a face that was given
	reserved   uint64           // the last number of a face that g may give
	fresh      map[string]int64 // people whom a transaction has labelled, by name
	numbered   map[int64]uint64 // numbers of faces that a transaction has labelled, by the learner's number
}

// News lists what other programs have changed. [Gallery.News] returns it.
type News struct {
	Changed   bool         // people, faces or what was learned
	Before    []string     // the people before
	Renamed   [][2]string  // names before and after
	Forgotten []string     // people whom the database no longer has
	Observed  []Renumbered // observations that have new numbers in the learner, because it learned them again
}

// Renumbered is an observation with a new number; 0 if it is not learned any more.
type Renumbered struct{ Was, Is int64 }

// Default returns the default path of the gallery: faceauth/faceauth.db below $XDG_DATA_HOME or ~/.local/share.
func Default() (string, error) {
	dir, err := xdg.Data()
	if err != nil {
		return "", fmt.Errorf("finding the default gallery: %w; name one", err)
	}
	return filepath.Join(dir, "faceauth", "faceauth.db"), nil
}

// Open opens the gallery at path, which must be of the given space. If the space has measured false match rates, they
// replace the rates stored in the gallery ([online.Learner.SetMeasured]). Close it after use.
//
// The error wraps [fs.ErrNotExist], [ErrSpace], or one of the errors above.
func Open(path string, space face.Space) (*Gallery, error) {
	g, err := Read(path)
	if err != nil {
		return nil, err
	}
	if g.Space().ID != space.ID {
		g.Close()
		return nil, fmt.Errorf("opening gallery %s: %w: %s", path, ErrSpace, space.Mismatch(g.Space().ID))
	}
	if space.Stills.Measured() {
		g.learner.SetMeasured(space)
	}
	return g, nil
}

// Read opens the gallery at path, of any space. It has the errors of [Open], except [ErrSpace].
func Read(path string) (*Gallery, error) {
	db, err := store.Open(path, false)
	if err != nil {
		return nil, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	g := &Gallery{learner: new(online.Learner), path: path, database: database{db: db}}
	if err := db.Read(g.load); err != nil {
		g.Close()
		return nil, fmt.Errorf("opening gallery %s: %w", path, err)
	}
	g.record()
	return g, nil
}

// Close closes the database. What was not saved is lost.
func (g *Gallery) Close() error {
	if g.db == nil {
		return nil
	}
	defer func() { g.db = nil }()
	return g.db.Close()
}

// record notes the faces that are learned, so that they can be learned again on top of another program's.
func (g *Gallery) record() {
	g.learner.OnLearned(func(t online.Taught) {
		if g.unsaved = append(g.unsaved, t); len(g.unsaved) > mostUnsaved {
			g.unsaved = slices.Delete(g.unsaved, 0, 1)
		}
	})
}

// attach gives a new gallery the database at path, and makes it if there is none.
func (g *Gallery) attach(path string) error {
	if g.db != nil {
		return nil
	}
	db, err := store.Open(path, true)
	if err != nil {
		return err
	}
	g.path, g.database = path, database{db: db, given: g.given, reserved: g.reserved}
	g.numbers, g.labels = make(map[string]int64), make(map[int64]uint64) // all get numbers of this database
	g.record()
	return nil
}

// At gives a new gallery its path. The file is made by the first [Gallery.Begin] or [Gallery.Save].
func (g *Gallery) At(path string) *Gallery {
	if g.db == nil {
		g.path = path
	}
	return g
}

// Path returns the path of the database, or "".
func (g *Gallery) Path() string { return g.path }

// Mark returns a text that is another one after each change of people, faces, or what was learned, as of the last time
// when g was in line with the database.
func (g *Gallery) Mark() string {
	names := slices.Sorted(maps.Keys(g.numbers))
	return fmt.Sprintf("%d %d %d %q", g.generation, g.last, len(g.faces), names)
}

// Begin waits until no other program writes the database, brings g in line with it, and keeps it for g until
// [Gallery.Save] or [Gallery.End]. What g decides meanwhile holds for all programs. A gallery without a path has
// nothing to begin.
func (g *Gallery) Begin() error {
	if g.path == "" || g.begun {
		return nil
	}
	err := g.attach(g.path)
	if err == nil {
		err = g.db.Begin()
	}
	if err != nil {
		return fmt.Errorf("changing gallery %s: %w", g.path, err)
	}
	g.begun = true
	if err := g.align(); err != nil {
		g.End()
		return fmt.Errorf("changing gallery %s: %w", g.path, err)
	}
	return nil
}

// End ends what Begin has begun, if Save has not done so.
func (g *Gallery) End() {
	if g.begun {
		g.db.Rollback()
		g.begun = false
	}
}

// Change brings g in line with the database, calls do, and saves g, all in one transaction. On error nothing is
// written; g may have changed then.
func (g *Gallery) Change(do func() error) error {
	if err := g.Begin(); err != nil {
		return err
	}
	defer g.End()
	if err := do(); err != nil {
		return err
	}
	if g.path == "" {
		return nil
	}
	return g.Save(g.path)
}

// Update brings g in line with the database if another program has changed it. It costs microseconds if not. Errors
// leave g as it was.
func (g *Gallery) Update() error {
	if g.db == nil || g.begun {
		return nil
	}
	now, err := g.db.Version()
	if err == nil && now != g.version {
		if err = g.db.Read(g.align); err == nil {
			g.version = now
		}
	}
	if err != nil {
		return fmt.Errorf("reading gallery %s: %w", g.path, err)
	}
	return nil
}

// News returns what other programs have changed since the last call, as g took it in.
func (g *Gallery) News() News {
	n := g.news
	g.news = News{}
	return n
}

// Save writes what has changed since g was read or last saved: labels, names, and what was learned. Other programs'
// changes stay: g takes them in first ([Gallery.News]). If one of them has changed what was learned, g takes that, and
// its own unsaved learned faces are learned again on top of it. A gallery that was not read from a file is written into
// the database at path, which Save makes if there is none. On error nothing is written, and the next Save tries again.
func (g *Gallery) Save(path string) error {
	if g.db == nil {
		g.path = path
	}
	return g.keep(true)
}

// keep writes the records, and with all also what g has changed, in one transaction.
func (g *Gallery) keep(all bool) (err error) {
	if err := g.Begin(); err != nil {
		return err
	}
	defer g.End()
	next, gone := g.database, false
	next.people = maps.Clone(next.people)
	if all {
		next, gone, err = g.write()
	}
	if err == nil && g.records != nil {
		t := &Transaction{db: g.db, Observed: next.observed, d: &next}
		err = g.records.Write(t)
		gone = gone || t.Gone
		defer func() { g.records.Written(!g.begun, all) }()
	}
	if err == nil && all {
		err = next.sweep()
	}
	if err == nil && gone {
		err = g.db.Erasing()
	}
	if err == nil {
		err = g.db.Commit()
	}
	if err != nil {
		return fmt.Errorf("saving gallery %s: %w; nothing was written", g.path, err)
	}
	g.begun = false
	if next.generation != g.generation {
		g.unsaved = nil
	}
	g.database = next
	if all {
		maps.Copy(g.numbers, next.fresh)
		maps.Copy(g.labels, next.numbered)
		g.erased = nil
	}
	if gone {
		if err := g.db.Erase(); err != nil {
			return fmt.Errorf("saving gallery %s: what was removed is still in its log: %w", g.path, err)
		}
	}
	return nil
}

// sweep removes people without faces whom nothing mentions.
func (d *database) sweep() error {
	with := make(map[int64]bool)
	for _, k := range d.faces {
		with[k.person] = true
	}
	for id := range d.people {
		if with[id] {
			continue
		}
		said := false
		err := d.db.Query(`with who(id) as (select ?1 union select id from person where same = ?1)
			select 1 where exists (select 1 from face where person in who) or
			exists (select 1 from mention where person in who) or exists (select 1 from event where person in who) or
			exists (select 1 from present where person in who)`, func(store.Row) error {
			said = true
			return nil
		}, id)
		if err == nil && !said {
			err = d.db.Exec("delete from person where id = ?", id)
			maps.DeleteFunc(d.people, func(other int64, e entry) bool { return other == id || e.same == id })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load reads the database into g. On error g is unchanged.
func (g *Gallery) load() error {
	d := database{db: g.db, faces: make(map[int64]kept), people: make(map[int64]entry), given: g.given,
		reserved: g.reserved}
	var snapshot []byte
	rows := make(map[int64]int64) // the learner's numbers, and the rows of these faces
	err := d.db.Query("select generation, faces, snapshot from learned", func(r store.Row) error {
		d.generation, snapshot = r.ColumnInt64(0), slices.Clone(r.ColumnRawBlob(2))
		return cbor.Unmarshal(r.ColumnRawBlob(1), &rows)
	})
	if err != nil {
		return err
	}
	if d.generation == 0 {
		return fmt.Errorf("%w: nothing was written into it yet", fs.ErrNotExist)
	}
	if err := d.readPeople(); err != nil {
		return err
	}
	all, err := d.read(0)
	if err != nil {
		return err
	}
	index, labels := make(map[int64]int), make(map[int64]uint64)
	for i, f := range all {
		index[f.row], d.last = i, f.row
	}
	l := *g.learner
	err = l.UnmarshalLearned(snapshot, func(id int64) []float32 {
		i, there := index[rows[id]]
		if !there {
			return nil
		}
		d.faces[id], labels[id] = all[i].kept, all[i].number
		delete(index, rows[id])
		return all[i].vector
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, row := range slices.Sorted(maps.Keys(index)) {
		s := all[index[row]]
		if err := d.label(&l, d.people[s.person].name, s, labels); err != nil {
			return err
		}
	}
	if d.version, err = d.db.Version(); err != nil {
		return err
	}
	d.observed = l.Counts().Observed
	*g.learner, g.database, g.numbers, g.labels = l, d, make(map[string]int64), labels
	for id, e := range d.people {
		g.numbers[e.name] = id
	}
	g.people = g.dated(g.learner.Names())
	g.learned = g.fingerprint()
	return nil
}

func (d *database) readPeople() error {
	return d.db.Query("select id, name, enrolled, upright, same from person", func(r store.Row) error {
		d.people[r.ColumnInt64(0)] = entry{r.ColumnText(1), r.ColumnInt64(2), r.ColumnInt64(3), r.ColumnInt64(4)}
		return nil
	})
}

// stored is a labelled or rejected face in the database, with all that is there.
type stored struct {
	kept
	number uint64
	vector []float32
}

// read returns the faces after a row.
func (d *database) read(after int64) (all []stored, err error) {
	err = d.db.Query("select id, person, rejected, number, vector from face where id > ? order by id",
		func(r store.Row) error {
			all = append(all, stored{kept{r.ColumnInt64(0), r.ColumnInt64(1), r.ColumnInt64(2) == 1},
				uint64(r.ColumnInt64(3)), vector.Floats(r.ColumnRawBlob(4))})
			return nil
		}, after)
	return all, err
}

// label shows a face of the database to the learner, and notes its number in labels.
func (d *database) label(l *online.Learner, name string, s stored, labels map[int64]uint64) error {
	teach := l.Label
	if s.negative {
		teach = l.Reject
	}
	if err := teach(s.vector, name); err != nil {
		return fmt.Errorf("%w: face %d: %w", ErrDamaged, s.row, err)
	}
	all := l.Labels()
	newest := all[len(all)-1].ID
	d.faces[newest], labels[newest] = s.kept, s.number
	d.loose++
	return nil
}

// dated returns the people of these names with their dates in the database.
func (g *Gallery) dated(names []string) (all []Person) {
	for _, name := range names {
		p := Person{Name: name}
		if e, there := g.database.people[g.numbers[name]]; there {
			e.date(&p)
		}
		all = append(all, p)
	}
	return all
}

// fingerprint is a hash of what a snapshot holds beside labels.
func (g *Gallery) fingerprint() [32]byte {
	l := g.learner
	h := sha256.New()
	c := l.Counts()
	c.Labelled -= int64(len(l.Labels())) // labels that are gone: their numbers are not in the database
	fmt.Fprintf(h, "%+v %+v %v %d %d %v\n", l.Settings(), c, l.Through(), l.Aided(), l.Time().Unix(), l.Graph().Clock())
	for _, s := range l.Sources() {
		fmt.Fprintf(h, "%+v\n", s)
	}
	stored, _ := l.Stored("") // without margins there is no error
	var b []byte
	for _, s := range stored {
		if !s.Labelled {
			b = binary.BigEndian.AppendUint64(b, uint64(s.ID))
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Points))
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(s.Weight))
		}
	}
	h.Write(b)
	return [32]byte(h.Sum(nil))
}

// change lists what g has changed since it was in line with the database.
type change struct {
	gone      []int64         // numbers of faces
	added     []added         // new faces
	forgotten []int64         // numbers of people
	names     map[int64]entry // new names and dates of people, by number
}

// added is a face that is not in the database yet.
type added struct {
	id       int64  // the learner's number
	number   uint64 // 0: it has none yet
	person   int64  // 0: not in the database yet
	entry           // of the person
	negative bool
	vector   []float32
}

// own compares g with the database.
func (g *Gallery) own() (c change) {
	g.settle()
	c.names = make(map[int64]entry)
	here := make(map[int64]bool)
	entries := make(map[string]entry)
	for _, p := range g.people {
		e := entry{name: p.Name, enrolled: p.Enrolled.Unix(), upright: int64(p.Upright)}
		entries[p.Name] = e
		if id := g.numbers[p.Name]; id != 0 {
			here[id] = true
			if e != g.database.people[id] {
				c.names[id] = e
			}
		}
	}
	for id := range g.erased {
		if _, there := g.database.people[id]; there && !here[id] {
			c.forgotten = append(c.forgotten, id)
		}
	}
	labels := make(map[int64]bool)
	for _, l := range g.learner.Labels() {
		k, there := g.faces[l.ID]
		if labels[l.ID] = true; there && k.person == g.numbers[l.Name] && k.negative == l.Negative {
			continue
		}
		if there { // the face has another person now: its row goes, and a new one comes
			c.gone = append(c.gone, k.row)
		}
		c.added = append(c.added, added{l.ID, g.labels[l.ID], g.numbers[l.Name],
			cmp.Or(entries[l.Name], entry{name: l.Name}), l.Negative, g.learner.Vector(l.ID)})
	}
	for id, k := range g.faces {
		if !labels[id] && !slices.Contains(c.forgotten, k.person) {
			c.gone = append(c.gone, k.row)
		}
	}
	slices.Sort(c.gone)
	slices.Sort(c.forgotten)
	return c
}

// tell notes that another program has changed something.
func (g *Gallery) tell() {
	if !g.news.Changed {
		g.news.Changed, g.news.Before = true, g.learner.Names()
	}
}

// align brings g in line with the database, in a transaction.
func (g *Gallery) align() error {
	var generation int64
	err := g.db.Query("select generation from learned", func(r store.Row) error {
		generation = r.ColumnInt64(0)
		return nil
	})
	if err != nil {
		return err
	}
	if generation != g.generation {
		return g.rebase()
	}
	if generation == 0 {
		g.faces, g.database.people = make(map[int64]kept), make(map[int64]entry)
		return g.readPeople()
	}
	return g.additions()
}

// additions takes in the faces that other programs have labelled: each other change has a new generation.
func (g *Gallery) additions() error {
	all, err := g.read(g.last)
	if err != nil || len(all) == 0 {
		return err
	}
	g.tell()
	g.settle()
	before := maps.Clone(g.database.people)
	if err := g.readPeople(); err != nil {
		return err
	}
	names := g.names()
	for id, e := range g.database.people {
		if names[id] == "" && !g.erased[id] {
			g.numbers[e.name], names[id] = id, e.name // also if g has somebody of this name who is not saved yet
		}
	}
	for _, f := range all {
		if name := names[f.person]; name != "" { // otherwise g has forgotten the person, and will save that
			if err := g.database.label(g.learner, name, f, g.labels); err != nil {
				return err
			}
		}
		g.last = f.row
	}
	g.settle()
	for id, e := range g.database.people {
		if before[id] == e {
			continue
		}
		if p := g.person(names[id]); p != nil {
			e.date(p)
		}
	}
	return nil
}

// names returns the present names of people, by number.
func (g *Gallery) names() map[int64]string {
	all := make(map[int64]string)
	for name, id := range g.numbers {
		all[id] = name
	}
	return all
}

// rebase reads what another program has saved, and makes the unsaved changes of g again on top of it: labels, names,
// forgotten people, and then the faces that g has learned.
func (g *Gallery) rebase() error {
	g.tell()
	c, before := g.own(), maps.Clone(g.numbers)
	settings, space, began := g.learner.Settings(), g.Space(), g.generation == 0
	unsaved, people := g.unsaved, g.people
	g.unsaved = nil
	if err := g.load(); err != nil {
		g.unsaved = unsaved
		return err
	}
	if g.Space().ID != space.ID {
		return fmt.Errorf("%w: another program began it with %s", ErrSpace, g.Space().ID)
	}
	if space.Stills.Measured() {
		g.learner.SetMeasured(space)
	}
	if err := g.learner.Configure(settings); err != nil {
		return err
	}
	if err := g.again(c, people); err != nil {
		return err
	}
	if err := g.learnAgain(unsaved); err != nil {
		return err
	}
	names := g.names()
	for was, id := range before {
		switch is := names[id]; {
		case began || is == was || id == 0:
		case is == "":
			if _, there := g.database.people[id]; !there {
				g.news.Forgotten = append(g.news.Forgotten, was)
			}
		default:
			g.news.Renamed = append(g.news.Renamed, [2]string{was, is})
		}
	}
	return nil
}

// again makes the unsaved changes of g once more. A person whom another program has forgotten stays forgotten.
func (g *Gallery) again(c change, people []Person) error {
	l := g.learner
	rows := make(map[int64]int64)
	for id, k := range g.faces {
		rows[k.row] = id
	}
	for _, id := range c.forgotten {
		if e, there := g.database.people[id]; there && l.Knows(e.name) {
			if err := g.Forget(e.name); err != nil {
				return err
			}
		}
	}
	for id, e := range c.names {
		now, there := g.database.people[id]
		if there && now.name != e.name && !l.Knows(e.name) {
			if err := g.Rename(now.name, e.name); err != nil {
				return err
			}
		}
	}
	for _, row := range c.gone {
		if id, there := rows[row]; there && l.Vector(id) != nil {
			if _, err := l.Unlabel(id); err != nil {
				return err
			}
		}
	}
	names := g.names()
	for _, a := range c.added {
		name := a.name
		if a.person != 0 {
			if name = names[a.person]; name == "" {
				continue
			}
		}
		var err error
		if !a.negative {
			err = l.Label(a.vector, name)
		} else if l.Knows(name) {
			err = l.Reject(a.vector, name)
		} else {
			continue
		}
		if err != nil {
			return err
		}
		g.number([]uint64{a.number})
	}
	g.settle()
	for _, p := range people {
		if now := g.person(p.Name); now != nil && now.Enrolled.Before(p.Enrolled) {
			now.Enrolled, now.Upright = p.Enrolled, p.Upright
		}
	}
	return nil
}

// learnAgain observes faces that g has learned and not saved, in their order.
func (g *Gallery) learnAgain(unsaved []online.Taught) error {
	at := g.learner.Time()
	defer func() { g.learner.SetTime(at) }()
	now := make(map[int64]int64) // new numbers of stored faces
	for _, t := range unsaved {
		o := t.Observation
		o.Follows = nil
		for _, id := range t.Follows {
			if is, again := now[id]; again {
				id = is
			}
			o.Follows = append(o.Follows, id)
		}
		if t.Time != 0 {
			g.learner.SetTime(time.Unix(t.Time, 0))
		}
		v, err := g.learner.ObserveFrame([]online.Observation{o})
		if err != nil {
			return err
		}
		r := Renumbered{Was: t.Number}
		if v[0].Learned {
			now[t.Stored], r.Is = v[0].Stored, g.learner.Counts().Observed
		}
		g.news.Observed = append(g.news.Observed, r)
	}
	return nil
}

// write writes what g has changed, and returns what the database then has. Gone means that personal records were
// removed.
func (g *Gallery) write() (next database, gone bool, err error) {
	c := g.own()
	next = g.database
	next.faces, next.people = maps.Clone(g.faces), maps.Clone(g.database.people)
	for _, id := range c.forgotten {
		if err := g.db.Exec("delete from person where id = ?", id); err != nil {
			return next, false, err
		}
		maps.DeleteFunc(next.people, func(other int64, e entry) bool { return other == id || e.same == id })
	}
	for _, row := range c.gone {
		if err := g.db.Exec("delete from face where id = ?", row); err != nil {
			return next, false, err
		}
	}
	renamed, err := next.rename(c.names)
	if err != nil {
		return next, false, err
	}
	next.fresh = make(map[string]int64)
	if err := next.reserve(len(c.added)); err != nil {
		return next, false, err
	}
	next.numbered = make(map[int64]uint64)
	for _, a := range c.added {
		person := cmp.Or(a.person, next.fresh[a.name])
		if person == 0 {
			if person, err = next.person(a.entry); err != nil {
				return next, false, err
			}
			next.fresh[a.name] = person
		}
		if a.number == 0 {
			next.given++
			a.number = next.given
		}
		next.numbered[a.id] = a.number
		if err := g.db.Exec("insert into face(number, person, rejected, vector) values(?, ?, ?, ?)", int64(a.number),
			person, a.negative, vector.Bytes(a.vector)); err != nil {
			return next, false, err
		}
		next.last, next.loose = g.db.Last(), next.loose+1
		next.faces[a.id] = kept{next.last, person, a.negative}
	}
	labels := make(map[int64]bool)
	for _, l := range g.learner.Labels() {
		labels[l.ID] = true
	}
	maps.DeleteFunc(next.faces, func(id int64, _ kept) bool { return !labels[id] })
	maps.DeleteFunc(g.labels, func(id int64, _ uint64) bool { return !labels[id] })
	gone = len(c.forgotten) > 0 || len(c.gone) > 0 || renamed
	next.learned = g.fingerprint()
	if gone || next.learned != g.learned || next.generation == 0 {
		next.generation++
	} else if next.loose <= mostLoose {
		return next, gone, nil
	}
	snapshot, err := g.learner.MarshalLearned()
	if err != nil {
		return next, false, err
	}
	rows := make(map[int64]int64, len(next.faces))
	for id, k := range next.faces {
		rows[id] = k.row
	}
	faces, err := cbor.Marshal(rows)
	if err != nil {
		return next, false, err
	}
	next.loose, next.observed = 0, g.learner.Counts().Observed
	err = g.db.Exec("insert or replace into learned values(1, ?, ?, ?)", next.generation, faces, snapshot)
	return next, gone, err
}

// reserve reserves numbers for n faces, in a transaction.
func (d *database) reserve(n int) error {
	if d.reserved-d.given >= uint64(n) {
		return nil
	}
	return d.db.Query(`insert into number values('face', ?1) on conflict(kind) do update set last = last + ?1
		returning last`, func(r store.Row) error {
		d.reserved = uint64(r.ColumnInt64(0))
		d.given = d.reserved - uint64(n)
		return nil
	}, int64(n))
}

// rename gives people new names and dates, and reports whether a name is another one. Two people may have swapped
// their names. A person without faces who has a new name of another person becomes that person.
func (d *database) rename(names map[int64]entry) (renamed bool, err error) {
	aside := func(id int64) error {
		return d.db.Exec("update person set name = ? where id = ?", fmt.Sprintf("\n%d", id), id)
	}
	for id := range names {
		if err := aside(id); err != nil {
			return false, err
		}
	}
	for id, e := range names {
		for other, o := range d.people {
			if _, also := names[other]; also || o.name != e.name {
				continue
			}
			if err := aside(other); err != nil {
				return false, err
			}
			if err := d.db.Exec("update person set same = ? where id = ? or same = ?", id, other, other); err != nil {
				return false, err
			}
			o.name, o.same = fmt.Sprintf("\n%d", other), id
			d.people[other] = o
		}
		err := d.db.Exec("update person set name = ?, enrolled = ?, upright = ? where id = ?", e.name, e.enrolled,
			e.upright, id)
		if err != nil {
			return false, err
		}
		renamed = renamed || e.name != d.people[id].name
		d.people[id] = e
	}
	return renamed, nil
}

// person returns the number of the person with a name, and makes one if there is none.
func (d *database) person(e entry) (int64, error) {
	for id, known := range d.people {
		if known.name == e.name {
			err := d.db.Exec("update person set enrolled = ?, upright = ? where id = ?", e.enrolled, e.upright, id)
			d.people[id] = e
			return id, err
		}
	}
	err := d.db.Exec("insert into person(name, enrolled, upright) values(?, ?, ?)", e.name, e.enrolled, e.upright)
	if err != nil {
		return 0, err
	}
	id := d.db.Last()
	d.people[id] = e
	return id, nil
}
