// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/sighting"
	"github.com/spf13/cobra"
)

const (
	tellEvery  = 2 * time.Second  // how often an office tells others who is there
	silentFrom = 10 * time.Second // without a message for so long, the people at a site are unknown
	leftFrom   = 24 * time.Hour   // after this a silent site is not shown
)

// neighbour is another office.
type neighbour struct {
	room  fleet.Room
	heard time.Time // by the clock of this machine
}

// sites holds the other offices of a fleet, by the number of their device.
type sites struct {
	mu  sync.Mutex
	all map[string]neighbour
}

// take keeps the message of another office, unless it is older than the last one: messages can be sent twice.
func (s *sites) take(r fleet.Room, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.all[r.Device.ID]; known && !r.At.After(last.room.At) && now.Sub(last.heard) < silentFrom {
		return
	}
	s.all[r.Device.ID] = neighbour{r, now}
}

// offices returns the sites for the page of an office.
func (s *sites) offices(now time.Time) (all []office.Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, x := range s.all {
		age := now.Sub(x.heard)
		if age > leftFrom {
			delete(s.all, id)
			continue
		}
		o := office.Site{Name: x.room.Device.Name, At: x.room.At, Silent: age > silentFrom, Unknown: x.room.Unknown}
		for _, g := range x.room.People {
			o.People = append(o.People, presence.Person{
				Name: x.room.Names[g.Person], Since: g.Since, Last: g.Last, Camera: g.Camera,
				Trust: sighting.Trust(g.Trust), Unsure: g.Unsure,
			})
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b office.Site) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// attend connects an office with a fleet until ctx ends: it exchanges people, and tells who is where. With teach it
// also gives lessons.
func (m *member) attend(ctx context.Context, c *cobra.Command, w *office.Office, teach bool,
	failed func(error)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	others := &sites{all: make(map[string]neighbour)}
	var work sync.WaitGroup
	work.Go(func() { m.share(ctx, c, func() error { return m.office(c, w, teach) }) })
	work.Go(func() { m.hear(ctx, others) })
	work.Go(func() { m.tell(ctx, w, others) })
	work.Go(func() { m.mind(ctx, c, failed) })
	return func() {
		cancel()
		work.Wait()
	}
}

// said tells the fleet about a correction on the page, and returns the name of a merge. The caller holds the office's
// lock.
func (m *member) said(x office.Said) (merge string, err error) {
	defer func() {
		select {
		case m.spoken <- struct{}{}:
		default:
		}
	}()
	if x.Merged != nil {
		by, err := m.device.SayMerged(m.people, x.Merged.From, x.Merged.To)
		if err == nil {
			delete(m.people, x.Merged.From)
			return mergeName(by), nil
		}
		if !errors.Is(err, fleet.ErrUnknown) {
			return "", err
		}
		// The fleet does not know both: their labels say it.
	}
	if x.Unmerged != "" {
		by, known := mergeOf(x.Unmerged)
		if !known {
			return "", fmt.Errorf("%q is not the name of a merge in the fleet", x.Unmerged)
		}
		if err := m.device.Unmerge(by); !errors.Is(err, ledger.ErrNoEntry) {
			return "", err
		}
		return "", nil // both people were forgotten meanwhile: the next exchange removes them
	}
	var c fleet.Change
	if x.Renamed != nil {
		c.Renamed = []fleet.Renaming{{From: x.Renamed.From, To: x.Renamed.To}}
	}
	if x.Forgotten != "" {
		c.Forgotten = []string{x.Forgotten}
	}
	for _, l := range x.Added {
		c.Added = append(c.Added, fleet.Label(l))
	}
	for _, l := range x.Removed {
		c.Removed = append(c.Removed, fleet.Label(l))
	}
	return "", m.say(c)
}

// mergeName returns the name of a merge in the journals of the offices; "" for none.
func mergeName(by ledger.Ref) string {
	if by == (ledger.Ref{}) {
		return ""
	}
	return by.Device + "/" + strconv.FormatUint(by.N, 10)
}

// mergeOf returns the merge with this name. Ok is false if the name is not a merge.
func mergeOf(name string) (ledger.Ref, bool) {
	device, n, _ := strings.Cut(name, "/")
	number, err := strconv.ParseUint(n, 10, 64)
	return ledger.Ref{Device: device, N: number}, err == nil
}

// unmerged reports whether a merge was undone in the fleet.
func (m *member) unmerged(merge string) bool {
	by, known := mergeOf(merge)
	return known && m.device.Unmerged(by)
}

// office exchanges the people of an office and of the fleet. With teach it also gives lessons.
func (m *member) office(c *cobra.Command, w *office.Office, teach bool) error {
	return w.Exchange(func(g *gallery.Gallery, forgetting func(string)) (office.Exchanged, error) {
		r, err := m.exchange(c, g, forgetting)
		x := office.Exchanged{Changed: r.Changed, Forgotten: r.Forgotten, Saved: r.Done, Unmerged: m.unmerged}
		for _, n := range r.Renamed {
			x.Renamed = append(x.Renamed, office.Rename{From: n.From, To: n.To, Merge: mergeName(n.Merge)})
		}
		if err == nil && teach {
			err = m.teach(g)
		}
		return x, err
	})
}

// hear receives the messages of other offices.
func (m *member) hear(ctx context.Context, others *sites) {
	pause := backoff.Pause{First: 250 * time.Millisecond, Longest: 10 * time.Second}
	for ctx.Err() == nil {
		m.conn.Listen(ctx, func(data []byte) { // the next round listens again after an error
			pause.Reset()
			if r, err := m.device.OpenRoom(data); err == nil { // otherwise this device knows none of the people in it
				others.take(r, time.Now())
			}
		})
		pause.Wait(ctx)
	}
}

// tell broadcasts who is here, and shows who is elsewhere.
func (m *member) tell(ctx context.Context, w *office.Office, others *sites) {
	for {
		now := w.Now()
		here := fleet.Here{At: time.Now(), People: make(map[string]ledger.Guest), Unknown: now.Unknown}
		for _, p := range now.People {
			here.People[p.Name] = ledger.Guest{
				Since: p.Since, Last: p.Last, Camera: p.Camera, Trust: string(p.Trust), Unsure: p.Unsure,
			}
		}
		if data, err := m.device.SealRoom(here); err == nil {
			m.conn.Broadcast(ctx, data) // the next broadcast repeats a lost one
		}
		w.Elsewhere(others.offices(time.Now()))
		if !backoff.Wait(ctx, tellEvery) {
			return
		}
	}
}

// elsewhere returns the other sites where each person is.
func elsewhere(now office.Now) map[string][]string {
	if len(now.Sites) == 0 {
		return nil
	}
	all := make(map[string][]string)
	for _, s := range now.Sites {
		for _, p := range s.People {
			if !s.Silent {
				all[p.Name] = append(all[p.Name], s.Name)
			}
		}
	}
	return all
}
