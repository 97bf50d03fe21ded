// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// Daily copies the gallery at path beside itself, once a day, and keeps the copies of a week: the file's name, a dash and
// the day in UTC, such as faceauth.db-2026-11-25. It has the key of the gallery. Forgetting somebody removes the copies
// before, and the next Daily makes one again. Other programs may use the gallery meanwhile. The error wraps
// [fs.ErrNotExist] or one of the errors above; without room for two copies it is [ErrFull].
func Daily(path string, now time.Time) error {
	db, err := store.Open(path, false)
	if err != nil {
		return fmt.Errorf("copying gallery %s: %w", path, err)
	}
	if err := errors.Join(db.Daily(now), db.Close()); err != nil {
		return fmt.Errorf("copying gallery %s: %w", path, err)
	}
	return nil
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
		t := &Transaction{db: g.db, Observed: next.observed, d: &next, news: g.news}
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
			return fmt.Errorf("saving gallery %s: what was removed is still in the file: %w", g.path, err)
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
