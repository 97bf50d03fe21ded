// SPDX-License-Identifier: Apache-2.0

package office

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/sighting"
)

// frame processes a frame of a camera, which has dropped so many.
func (w *Office) frame(v *view, f face.Frame, dropped int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.JPEG != nil || !v.camera.Stills { // a still is a crop, and its size is not the camera's
		v.picture, v.pictured, v.Size = f.JPEG, w.o.Clock(f), [2]int{f.Size.X, f.Size.Y}
	}
	w.report(v, true, "")
	v.Frames++
	v.Dropped = dropped
	w.heed()
	at := w.o.Clock(f)
	if v.begun.IsZero() {
		v.begun = at
	}
	ids := v.people.Track(at.Sub(v.begun), f.Samples)
	sightings := make([]*sighted, len(ids))
	for i, id := range ids {
		sightings[i] = w.sighting(v, id, at)
		sightings[i].at(f.Samples[i].Box)
	}
	w.roll(f, sightings)
	people, err := w.judge(v, f, at, ids, sightings)
	if err != nil {
		return err
	}
	if room := w.gallery.Learner().Room(); room.Changed(w.learnable) {
		w.learnable = room
		call(w.o.Room, room)
	}
	w.end(v, v.people.Live())
	var told []presence.Seen
	open := make(map[uint64]bool) // of each face, whether it cannot be told yet whose it is
	v.Seen = v.Seen[:0:0]         // a caller may still use the old slice
	for i, p := range people {
		b, s := p.Belief, sightings[i]
		if p.Verdict != nil {
			s.reason = cmp.Or(s.reason, string(p.Verdict.Reason))
		}
		person := b.Person
		s.believed = person
		if person != 0 && !s.said && (person != s.Person || b.Trust == sighting.Confirmed) {
			s.Person, s.Trust = person, b.Trust
		}
		s.double = b.Double != 0
		w.group(v, s, b)
		// A track without a clear picture is not reported: it may be a distant face, or no face.
		pictured := len(s.album.Faces) > 0
		s.judged = s.judged || b.Person != 0 || s.double || pictured && s.unknown()
		x := presence.Seen{
			Sighting: s.ID, Box: corners(f.Samples[i].Box), Share: b.Share,
			Who: sighting.Who{Name: w.gallery.Name(person), Person: person, Trust: b.Trust,
				Near: near(w.gallery.Space(), p.Verdict)},
			Group: s.Group, Ignored: w.unknown.Ignored(s.Group), Reason: s.reason,
			Unknown: s.unknown(), Zone: v.zone(f.Samples[i].Box, f.Size),
		}
		v.Seen = append(v.Seen, x)
		// A mirror image of somebody in view is nobody else.
		if !x.Ignored && !s.double && (pictured || person != 0) {
			told = append(told, x)
			if person != 0 || x.Unknown {
				v.Last = &LastFace{sighting.Who{Name: x.Name, Person: person}, x.Group,
					at.Truncate(time.Minute)}
			}
		}
		if surely(f.Samples[i]) {
			// Clear as often as a name needs, and without a name, a face leaves nobody in doubt.
			decided := person != 0 || x.Unknown || x.Ignored || s.double || s.good >= leastClear
			open[s.ID] = !decided
		}
	}
	w.tell(w.room.See(v.camera.Name, at, told, open))
	if w.o.Frame != nil {
		w.o.Frame(v.camera.Name, at, v.Seen)
	}
	return nil
}

// zone returns the name of the zone in which the centre of a box lies, or "".
func (v *view) zone(box image.Rectangle, size image.Point) string {
	for _, z := range v.Zones {
		if z.Area.Has(box, size) {
			return z.Name
		}
	}
	return ""
}

// surely reports whether the detector is sure that it has found a face. A score of 0 means that it
// gave none.
func surely(x face.Sample) bool { return x.Score == 0 || x.Score >= models.Sure }

// judge lets the learner see the faces of a frame, and collects the results.
func (w *Office) judge(v *view, f face.Frame, at time.Time, tracks []int,
	all []*sighted) ([]sighting.Seen, error) {
	var sources []int64
	for i, x := range f.Samples {
		s := all[i]
		s.reason, sources = string(x.Reason), append(sources, int64(s.ID))
		sure := surely(x)
		if !sure {
			s.reason = cmp.Or(s.reason, "perhaps not a face")
		}
		good := x.Vector != nil && x.Reason == "" && sure
		s.count(good, x.Reason)
		if good {
			s.look(w.gallery.Space(), x, at)
			s.album.Add(w.gallery.Space(), album.Face{
				ID: w.gallery.Rows().Next("face"), Vector: x.Vector, JPEG: x.JPEG,
				Sharp: album.Sharp(x.Quality), Camera: v.camera.Name, At: at,
			}, mostFaces, w.gallery.Space().ImpostorRadius/4)
		}
	}
	w.gallery.Learner().SetTime(at)
	return v.people.Judge(at.Sub(v.begun), f.Samples, tracks, func(i int) bool {
		// After a wrong recognition the sighting teaches nothing until a user names the person.
		return f.Samples[i].Reason != "" || w.o.Freeze || all[i].said && all[i].Person == 0
	}, sources...)
}

// group puts a sighting of an unknown person into a group of unknown faces, and removes it from
// there after recognition, or if it shows somebody in view a second time.
func (w *Office) group(v *view, s *sighted, b sighting.Belief) {
	if s.said && s.Person != 0 {
		return
	}
	if b.Person != 0 && !s.said || s.double {
		if s.began { // the group has only this sighting
			w.unknown.remove(func(p *Stranger) bool { return p.ID == s.Group })
		}
		s.ungroup()
		return
	}
	faces := s.album.Faces
	if s.Group == 0 && s.unknown() && len(faces) > 0 && !w.past.off {
		w.rejoin(v, s)
		if s.Group == 0 && s.unknown() {
			s.Group, s.began, s.grouped = w.gallery.Rows().Next("stranger"), true, 0
			w.unknown.Begin(s.Group, s.Last)
		}
	}
	p := w.unknown.Get(s.Group)
	if p == nil { // it was removed for newer ones, or forgotten
		s.ungroup()
		return
	}
	for _, f := range faces {
		if f.ID > s.grouped {
			s.grouped = f.ID
			w.unknown.Add(p, f)
		}
	}
}

// rejoin finds the group of a sighting. If it began where somebody was lost a moment before, one
// face near theirs is enough, and otherwise it waits for more looks: after two people have crossed,
// one of them is seen from another side.
func (w *Office) rejoin(v *view, s *sighted) {
	faces := s.album.Faces
	s.Group = w.unknown.Find(faces)
	s.doubtful = false
	if s.Group != 0 {
		return
	}
	inView := func(group uint64) (there bool) {
		w.live(func(o *sighted, at *view) {
			there = there || o.Group == group && (at != v || !o.Last.Before(s.Last))
		})
		return there
	}
	best := w.unknown.near
	for _, o := range append(slices.Collect(maps.Values(v.sightings)), v.lost...) {
		p := w.unknown.Get(o.Group)
		if p == nil || o.Last.After(s.First) || s.First.Sub(o.Last) > w.o.Presence.Away ||
			!beside(o.box, s.begun) || inView(o.Group) {
			continue
		}
		s.doubtful = true
		for _, f := range faces {
			if d := p.Distance(w.gallery.Space(), f.Vector); d < best {
				best, s.Group = d, o.Group
			}
		}
	}
	s.doubtful = s.doubtful && s.Group == 0
}

// beside reports whether two boxes are of one size, and no further apart than somebody goes behind
// somebody else.
func beside(a, b image.Rectangle) bool {
	wide, narrow := max(a.Dx(), b.Dx()), min(a.Dx(), b.Dx())
	d := a.Min.Add(a.Max).Sub(b.Min.Add(b.Max)).Div(2)
	return narrow > 0 && wide <= 2*narrow && max(d.X, -d.X, d.Y, -d.Y) <= 2*wide
}

// needed reports whether the picture of a camera is needed: a user looks at it, or it belongs to a
// clip.
func (w *Office) needed(v *view) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := w.o.Now().Sub(v.wanted) < 5*time.Second
	for _, s := range v.sightings {
		wanted = wanted || w.past.s.Clips > 0 && s.film.wants(s.Last)
	}
	return wanted
}

// roll adds the picture of a frame to the clips of the people in it. The lock must be held.
func (w *Office) roll(f face.Frame, all []*sighted) {
	if w.past.s.Clips == 0 || f.JPEG == nil {
		return
	}
	for _, s := range all {
		if !s.film.wants(s.Last) {
			continue
		}
		s.film.pictures, s.film.due = append(s.film.pictures, f.JPEG),
			s.Last.Add(time.Second/clipRate)
		for _, o := range all {
			if o != s && !slices.Contains(s.film.with, o) {
				s.film.with = append(s.film.with, o)
			}
		}
	}
}

// sighting returns the sighting of a track in view.
func (w *Office) sighting(v *view, track int, at time.Time) *sighted {
	s := v.sightings[track]
	if s == nil {
		s = &sighted{track: track, Sighting: Sighting{ID: w.gallery.Rows().Next("sighting"),
			Camera: v.camera.Name, First: at}}
		v.sightings[track] = s
	}
	s.First, s.Last, w.seen = presence.Earlier(s.First, at), at, true
	return s
}

// end ends the sightings of a camera whose tracks are not live.
func (w *Office) end(v *view, live []int) {
	for _, track := range slices.Sorted(maps.Keys(v.sightings)) {
		s := v.sightings[track]
		if slices.Contains(live, track) {
			continue
		}
		delete(v.sightings, track)
		s.done = true
		if s.Group != 0 {
			v.lost = slices.DeleteFunc(append(v.lost, s), func(o *sighted) bool {
				return s.Last.Sub(o.Last) > w.o.Presence.Away
			})
		}
		if !s.judged {
			w.unjudged(v, s)
		}
		if w.keeps(s) || s.written {
			w.ended = append(w.ended, s)
		}
	}
}

// unjudged counts and tells of people who were too far away, and of those who did not show their
// faces.
func (w *Office) unjudged(v *view, s *sighted) {
	switch others := s.faces - s.small; {
	case others == 0 && s.small >= leastClear:
		v.Far, v.farDay = v.farOn(s.Last)+1, s.Last.Format(time.DateOnly)
	case others >= leastClear && s.Last.Sub(s.First) >= leastTime:
		w.faceless(v, s.First)
	}
}

// faceless tells that somebody was there whose face could not be used.
func (w *Office) faceless(v *view, since time.Time) {
	if w.o.Faceless {
		w.tell([]presence.Event{w.room.Faceless(v.camera.Name, since)})
	}
}

// watch reads a camera until ctx or the camera ends. After a failure it waits and opens the camera
// again. An error ends the run.
func (w *Office) watch(ctx context.Context, v *view) error {
	pause := backoff.Pause{First: w.o.Backoff, Longest: time.Minute}
	for {
		begun := v.Frames
		err, broken := w.read(ctx, v)
		if broken != nil {
			return broken
		}
		if v.camera.Hide != nil {
			err = v.camera.Hide(err)
		}
		switch {
		case ctx.Err() != nil, v.camera.Ends && errors.Is(err, io.EOF):
			w.blank(v, ctx.Err() == nil)
			return nil
		case v.camera.Ends:
			return fmt.Errorf("%s: %w", v.camera.Name, err)
		case errors.Is(err, io.EOF):
			err = errors.New("it has ended")
		}
		if v.Frames > begun {
			pause.Reset()
		}
		w.mu.Lock()
		w.report(v, false, err.Error())
		w.mu.Unlock()
		pause.Wait(ctx)
	}
}

// report records the state of a camera, and calls Health if it has changed. The lock must be held.
func (w *Office) report(v *view, up bool, why string) {
	h := &v.Health
	if !up {
		v.Seen, v.picture = nil, nil
		w.room.Down(v.camera.Name)
	}
	if !h.Since.IsZero() && h.Up == up && h.Error == why {
		return
	}
	h.Up, h.Error, h.Since = up, why, w.o.Now()
	h.Slow, v.trial = false, trial{frames: v.Frames, dropped: v.Dropped}
	call(w.o.Health, *h)
}

// trial decides whether a camera is slow.
type trial struct {
	took            time.Duration
	frames, dropped int // when it began
}

const (
	leastTrial = 10 * time.Second // the shortest trial
	// enough is the number of frames per second that a camera without a limit needs: three in a
	// second and a half tell of somebody unknown.
	enough = 2
)

// slow goes on for a time, and reports whether fewer than half of the frames were processed that
// were asked for. ok reports whether the trial is over; then a new one begins.
func (t *trial) slow(took time.Duration, h Health) (slow, ok bool) {
	t.took += took
	seconds := t.took.Seconds()
	if t.took < leastTrial || h.Asked > 0 && h.Asked*seconds < 4 {
		return false, false
	}
	done := float64(h.Frames - t.frames)
	due := h.Asked * seconds
	if h.Asked == 0 {
		due = min(done+float64(h.Dropped-t.dropped), 2*enough*seconds)
	}
	*t = trial{frames: h.Frames, dropped: h.Dropped}
	return done == 0 || done < due/2, true
}

// measure measures the rates of the cameras since the last call, and tells which are slow. The lock
// must be held.
func (w *Office) measure(took time.Duration) {
	for _, v := range w.views {
		v.Rate, v.counted = float64(v.Frames-v.counted)/took.Seconds(), v.Frames
		// Stills come when somebody moves, and of a recording that skips nothing all is looked at.
		if !v.Up || v.camera.Stills || v.camera.Ends && v.Dropped == 0 {
			continue
		}
		slow, ok := v.trial.slow(took, v.Health)
		if ok && slow != v.Slow {
			v.Slow = slow
			call(w.o.Health, v.Health)
		}
	}
}

// blank records that a camera shows nothing any more, and that nobody waits for it if it has ended.
func (w *Office) blank(v *view, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.Seen, v.picture, v.Up, v.Slow = nil, nil, false, false
	w.end(v, nil)
	if ended {
		w.room.End(v.camera.Name)
	}
}

// read opens a camera and processes its frames until it has failed, or the learner is broken.
func (w *Office) read(ctx context.Context, v *view) (failed, broken error) {
	s, err := v.camera.Open(ctx, func() bool { return w.needed(v) })
	if err != nil {
		return err, nil
	}
	defer s.Close()
	before := v.Dropped
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err, nil
		}
		if err := w.frame(v, f, before+s.Dropped()); err != nil {
			return nil, err
		}
		v.people.Ask(s)
		// the last still would look as if it were live
		if e, ok := s.(interface{ Empty() bool }); ok && e.Empty() {
			w.mu.Lock()
			v.picture = nil
			w.mu.Unlock()
		}
		if f, ok := s.(interface{ Faceless() []time.Time }); ok {
			w.mu.Lock()
			for _, since := range f.Faceless() {
				w.faceless(v, since)
			}
			w.mu.Unlock()
		}
	}
}
