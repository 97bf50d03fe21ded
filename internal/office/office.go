// SPDX-License-Identifier: Apache-2.0

// Package office watches rooms with several cameras: it recognises the people in view, reports
// events, and takes corrections from users.
//
// [New] makes an [Office] for the people of a gallery. [Office.Run] reads all cameras at once until
// its context ends, and reports events and the health of the cameras. Meanwhile [Office.Now] tells
// who is where, [Office.Visits] who was there when, and [Office.Name], [Office.Correct] and similar
// methods take corrections. A [Past] keeps what happened, also over restarts. Package sink sends
// events to other programs, and page shows everything in a browser.
//
// # Rows
//
// What cameras have seen and what users have said are rows in the database of the gallery, and a
// person is a number there. A correction is a transaction on these rows: memory follows what is
// committed. Who somebody is, to which group a face belongs and which labels are valid is what the
// statements of users say that are not undone ([gallery.Tx.Say]).
//
// # How it decides
//
// A face is followed from frame to frame, by its place and its looks. A person in view has a name
// when three frames were judged and three fifths of them agree; of stills, which come seconds
// apart, two. Two people in one view never have the same name: a face that would get the name of
// somebody in view, as in a mirror or a video call, is nobody else, and no unknown person is made
// of it.
//
// A name is confirmed when two different looks of the sighting lie near enrolled faces. A still
// before the camera, or a camera that is stuck, is one look, also when the light falls by half, or
// the picture is turned, zoomed or panned: the points of its face do not move against each other.
// In less light, in small or noisy pictures, and if a picture is bent, this does not hold; what
// opens doors needs a login's liveness. Only a confirmed person arrives. Who is here already stays
// with a confirmed or a learned name. If only learned faces support a name, a user is asked; a yes
// enrols these faces ([Office.Confirm]). If a face suddenly looks different, as when somebody else
// has sat down in the same place, the sighting is not confirmed until a face looks as before, or is
// near an enrolled one.
//
// The office learns only good pictures, near known faces, from confirmed sightings that nobody has
// corrected. A face whose eyes or mouth seem covered is not learned: two people with sunglasses, or
// with masks, are mistaken for each other more often than the promised rate says. Faces that are
// too small or too poor in all pictures of a sighting are counted, and neither announced nor kept.
//
// Somebody unknown is announced after three clear, different looks over a second and a half, at any
// rate of frames, and kept as a group of at most 24 faces: the first four, and others that differ
// from each other. Who begins where somebody unknown was lost a moment before, behind somebody
// else, is the same person if one face comes near, and is otherwise looked at twice as long.
//
// [Office.Name], [Office.Correct], [Office.Undo] and [Office.Forget] say what becomes of what was
// learned. Package presence says who is here while cameras are down, and after a restart.
//
// # Caveats
//
// An Office keeps pictures of faces in memory, and in the database of the gallery.
package office

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
	"golang.org/x/sync/errgroup"
)

// Office is a set of rooms with people. It is safe for concurrent use. [New] makes one.
type Office struct {
	o Options
	// guards all below, and the order of events; it is that of past, whose queues live on
	mu *sync.Mutex

	// The parts know nothing of each other, and none takes the lock.
	gallery *gallery.Gallery // people, and all rows
	past    *Past            // events
	unknown *groups          // people without a name
	room    *presence.Room   // who is here
	views   []*view          // cameras, with the sightings in view
	known   *register        // people as the rows have them; nil if they may have changed

	seen    bool       // somebody was seen, which is not written yet
	ended   []*sighted // sightings that are not written since they ended
	writing []*sighted // sightings of the present transaction
	turn    uint64     // of the gallery, as far as the office has taken it in
	kept    int64      // number of learned faces at the last save of the gallery
	unsaved int        // minutes since then
	litter  bool       // faces or people may be left that nothing mentions
	again   bool       // writing may be tried again after a failure
	// how often another program's write was in the way since the last success
	refused int
	fault   error            // the last error of writing; nil: all is written
	removed bool             // bytes of what was removed must be overwritten
	left    error            // why they could not be overwritten
	stated  int64            // the statement of the present transaction, or 0
	amended []presence.Event // of the present transaction, not reported yet
	lost    int              // sightings that were never written, for lack of memory
	disk    Disk             // as Options.Disk was told

	learnable online.Room // as Options.Room was told

	erasing sync.Mutex // one after the other overwrites what was removed, without mu
}

// New returns an office that continues p, for the people in its gallery. Nobody else may use the
// gallery meanwhile.
func New(p *Past, o Options) *Office {
	o = o.defaults()
	w := &Office{
		o: o, mu: &p.mu, gallery: p.g, past: p,
		unknown: newGroups(p.g.Space(), p.s.Retention),
		room:    presence.New(o.Presence, p.state),
		kept:    p.g.Learner().Counts().Learned,
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.g.Prompt(func() { w.removed = true })
	w.note(p.g.Update())
	w.note(w.reload())
	w.follow()
	return w
}

// Run watches cameras until ctx ends or all cameras have ended. Call it once. When all cameras have
// ended, it reports that all people have left, unless one is a [presence.Entrance]. The error comes
// from the learner or from a camera with Ends, or tells that data could not be written until the
// end. A failure to write in between does not end Run: see [Disk].
func (w *Office) Run(ctx context.Context, cameras []Camera) error {
	w.mu.Lock()
	for _, c := range cameras {
		watcher := sighting.NewWatcher
		if c.Stills {
			watcher = sighting.NewStillsWatcher
		}
		w.views = append(w.views, &view{View: View{Health: Health{Camera: c.Name, Asked: c.Rate},
			Door: c.Door, Zones: c.Zones}, camera: c,
			sightings: make(map[int]*sighted), people: watcher(w.gallery.Learner())})
		w.room.Watch(c.Name, c.Door)
	}
	w.keep(false)
	w.mu.Unlock()
	all, running := errgroup.WithContext(ctx)
	for _, v := range w.views {
		all.Go(func() error { return w.watch(running, v) })
	}
	ended := make(chan error, 1)
	go func() { ended <- all.Wait() }()
	tick := time.NewTicker(time.Second)
	last := time.Now() // frames a second are those of this machine's clock
	defer tick.Stop()
	var beside sync.WaitGroup
	defer beside.Wait()
	for n := 1; ; n++ {
		select {
		case err := <-ended:
			return w.finish(ctx, err)
		case <-tick.C:
		}
		w.mu.Lock()
		w.tell(w.room.Tick(w.o.Now())) // without frames, only the clock tells that people have left
		if n%beatEvery == 0 {
			w.measure(time.Since(last))
			last = time.Now()
			w.beat()
		}
		if n%60 == 0 {
			w.minute()
			if w.removed || w.left != nil {
				beside.Go(w.overwrite)
			}
		}
		w.mu.Unlock()
	}
}

// beatEvery is the number of seconds after which news are written, if the program is killed. Last
// sightings are written once a minute: after a crash, times are wrong by at most this.
const beatEvery = 2

// finish reports the last events and saves, after a run that an error has ended, or none.
func (w *Office) finish(ctx context.Context, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && err == nil {
		w.tell(w.room.Empty())
	}
	w.gallery.Prompt(nil) // the last try waits
	defer w.gallery.Prompt(func() { w.removed = true })
	w.again = true
	w.minute()
	w.left = cmp.Or(w.gallery.Unerased(), w.left)
	if err == nil && w.fault != nil {
		return fmt.Errorf(
			"the latest events, corrections and faces could not be saved and are lost: %w", w.fault)
	}
	return err
}
