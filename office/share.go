// SPDX-License-Identifier: Apache-2.0

package office

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/sighting"
)

const tellEvery = 2 * time.Second // how often an office tells others who is there

// Share takes part in the fleet of [Options].Fleet until the returned function is called: the office exchanges people
// with it, hears and tells who is where, and with [Options].Teach gives lessons. [fleet.Device.Run] must run meanwhile.
func (w *Office) Share(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	p := w.o.Fleet
	var others fleet.Neighbours
	var work sync.WaitGroup
	work.Go(func() { p.Share(ctx, w.exchange) })
	work.Go(func() { others.Hear(ctx, p.Device) })
	work.Go(func() {
		for {
			w.tellRoom(ctx, &others)
			if !backoff.Wait(ctx, tellEvery) {
				return
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// exchange brings the people of the office and of the fleet in line.
func (w *Office) exchange() error {
	p := w.o.Fleet
	return w.Exchange(func(g *gallery.Gallery, forgetting func(string)) (Exchanged, error) {
		r, err := p.Exchange(g, forgetting)
		x := Exchanged{Changed: r.Changed, Forgotten: r.Forgotten, Saved: r.Done, Unmerged: func(merge string) bool {
			m, err := fleet.ParseMerge(merge)
			return err == nil && p.Device.Unmerged(m)
		}}
		for _, n := range r.Renamed {
			x.Renamed = append(x.Renamed, Rename{From: n.From, To: n.To, Merge: n.Merge.String()})
		}
		if err == nil && w.o.Teach {
			err = p.Teach(g)
		}
		return x, err
	})
}

// tellRoom broadcasts who is here, and shows who is elsewhere.
func (w *Office) tellRoom(ctx context.Context, others *fleet.Neighbours) {
	d := w.o.Fleet.Device
	now := w.Now()
	here := fleet.Room{At: time.Now(), Unknown: now.Unknown}
	for _, p := range now.People {
		here.People = append(here.People, fleet.Guest{
			Name: p.Name, Since: p.Since, Last: p.Last, Camera: p.Camera, Trust: string(p.Trust), Unsure: p.Unsure,
		})
	}
	d.Broadcast(ctx, d.SealRoom(here)) // the next broadcast repeats a lost one
	var sites []Site
	for _, r := range others.Rooms(time.Now()) {
		s := Site{Name: r.Device.Name, At: r.At, Silent: r.Silent, Unknown: r.Unknown}
		for _, g := range r.People {
			s.People = append(s.People, Presence{
				Name: g.Name, Since: g.Since, Last: g.Last, Camera: g.Camera,
				Trust: sighting.Trust(g.Trust), Unsure: g.Unsure,
			})
		}
		sites = append(sites, s)
	}
	w.Elsewhere(sites)
}

// tellFleet tells the fleet about a correction, and returns the name of a merge.
func tellFleet(p *fleet.Part, x Said) (merge string, err error) {
	defer p.Spoke()
	if x.Merged != nil {
		m, err := p.Device.SayMerged(p.People, x.Merged.From, x.Merged.To)
		if err == nil {
			delete(p.People, x.Merged.From)
			return m.String(), nil
		}
		if !errors.Is(err, fleet.ErrUnknown) {
			return "", err
		}
		// The fleet does not know both: their labels say it.
	}
	if x.Unmerged != "" {
		m, err := fleet.ParseMerge(x.Unmerged)
		if err == nil {
			err = p.Device.Unmerge(m)
		}
		if errors.Is(err, fleet.ErrUnknown) {
			err = nil // both people were forgotten meanwhile: the next exchange removes them
		}
		return "", err
	}
	c := fleet.Change{Added: x.Added, Removed: x.Removed}
	if x.Renamed != nil {
		c.Renamed = []fleet.Renaming{{From: x.Renamed.From, To: x.Renamed.To}}
	}
	if x.Forgotten != "" {
		c.Forgotten = []string{x.Forgotten}
	}
	if err := p.Say(c); err != nil {
		return "", fmt.Errorf("telling the fleet about a correction: %w", err)
	}
	return "", nil
}
