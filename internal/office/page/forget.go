// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/online"
)

// regret is the time in which a user can take back that somebody is to be forgotten: what is erased
// cannot come back.
var regret = 30 * time.Second

// again is the pause before a forgetting that failed is tried again, as on a full disk.
const again = 10 * time.Second

// doomed is somebody who will be forgotten: a person or a group of unknown faces, by number.
type doomed struct {
	id     uint64
	person int64
	group  uint64
	timer  *time.Timer
}

// dooms are those who will be forgotten, and whom the page shows no more.
type dooms struct {
	office *office.Office

	work sync.WaitGroup // forgettings that are not done

	mu    sync.Mutex
	last  uint64
	all   []*doomed
	ended bool
}

// add forgets somebody when the time for regret is over, and returns a number for keep.
func (d *dooms) add(person int64, group uint64) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	x := &doomed{id: d.last, person: person, group: group}
	d.all = append(d.all, x)
	d.work.Add(1)
	x.timer = time.AfterFunc(regret, func() { d.carry(x) })
	return x.id
}

// keep forgets somebody not after all. The error says that it is too late.
func (d *dooms) keep(id uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.all, func(x *doomed) bool { return x.id == id })
	if i < 0 || !d.all[i].timer.Stop() {
		return office.ErrFinal
	}
	d.work.Done()
	d.all = slices.Delete(d.all, i, i+1)
	return nil
}

// carry forgets somebody now. If it fails, it is tried again.
func (d *dooms) carry(x *doomed) {
	err := d.forget(x)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && !d.ended {
		x.timer.Reset(again)
		return
	}
	d.all = slices.DeleteFunc(d.all, func(y *doomed) bool { return y == x })
	d.work.Done()
}

func (d *dooms) forget(x *doomed) (err error) {
	if x.group != 0 {
		_, err = d.office.ForgetGroup(x.group)
	}
	for _, p := range d.office.Now().Known {
		if p.ID == x.person {
			_, err = d.office.Forget(p.Name)
		}
	}
	if errors.Is(err, online.ErrUnknown) || errors.Is(err, office.ErrNoGroup) {
		return nil // they were forgotten, named or merged meanwhile
	}
	return err
}

// finish forgets everybody at once: the office ends. The error says that somebody could not be
// forgotten.
func (d *dooms) finish() (err error) {
	d.mu.Lock()
	all := slices.Clone(d.all)
	d.ended = true
	d.mu.Unlock()
	for _, x := range all {
		if x.timer.Stop() {
			err = errors.Join(err, d.forget(x))
			d.work.Done()
		}
	}
	d.work.Wait()
	if err != nil {
		return fmt.Errorf("somebody is not forgotten; forget them again: %w", err)
	}
	return nil
}

// has reports whether a person or a group will be forgotten.
func (d *dooms) has(person int64, group uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.all, func(x *doomed) bool {
		return person != 0 && x.person == person || group != 0 && x.group == group
	})
}

// people returns the known people who will not be forgotten.
func (p *Page) people() []office.KnownPerson {
	return slices.DeleteFunc(p.office.Now().Known, func(k office.KnownPerson) bool {
		return p.dooms.has(k.ID, 0)
	})
}

// strangers returns the groups of unknown faces that will not be forgotten.
func (p *Page) strangers() []office.Stranger {
	return slices.DeleteFunc(p.office.Strangers(), func(g office.Stranger) bool {
		return p.dooms.has(0, g.ID)
	})
}
