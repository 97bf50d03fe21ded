// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/fxamacker/cbor/v2"
)

// halfway is the saved state of an interrupted replay.
type halfway struct {
	Point   Point  `cbor:"point"`
	Learner []byte `cbor:"learner"`
	Report  []byte `cbor:"report"`
	Log     int64  `cbor:"log"` // bytes of the events file
}

const (
	saveEvery = 5 * time.Second     // interval between saves
	keepsHalf = 30 * 24 * time.Hour // for which an unfinished replay is kept
)

// unfinished is an incomplete replay. Its state is in the cache, and its events are in a file.
type unfinished struct {
	cache  *store.Cache // nil: it cannot be continued
	key    []byte       // hash of the folder, the recording, the gallery and the settings
	events string       // path
	log    *os.File
	saved  time.Time
}

// begin returns the files of an incomplete replay, and the state of an earlier run with the same recording, gallery and
// settings, or nil.
func (j Job) begin(g *gallery.Gallery) (*unfinished, *halfway, error) {
	failed := func(err error) error { return fmt.Errorf("writing report: %w", err) }
	u := &unfinished{events: filepath.Join(j.Folder, ".events-unfinished"), key: j.key(g)}
	var err error
	if u.log, err = os.OpenFile(u.events, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, nil, failed(err)
	}
	if err := safefile.Lock(u.log, 0); errors.Is(err, safefile.ErrLocked) {
		u.log.Close()
		return nil, nil, fmt.Errorf("writing report: another program writes into %s: %w", j.Folder, err)
	}
	var h *halfway
	if u.key != nil {
		if u.cache, err = openCache(g.Path()); err != nil && j.Warn != nil {
			j.Warn(fmt.Sprintf("if this replay is interrupted, it must begin anew: %v", err))
		} else if err == nil && !j.Anew {
			h = u.earlier()
		}
	}
	end := int64(0)
	if h != nil {
		end = h.Log
	}
	if err := u.log.Truncate(end); err != nil {
		return nil, nil, failed(err)
	}
	if _, err := u.log.Seek(end, 0); err != nil {
		return nil, nil, failed(err)
	}
	return u, h, nil
}

// key returns a hash of everything on which a replay depends, or nil if this is unknown, as for a camera.
func (j Job) key(g *gallery.Gallery) []byte {
	info, err := os.Stat(j.Path)
	if j.Depends == "" || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	path, err := filepath.Abs(j.Path)
	if err != nil {
		return nil
	}
	out, err := filepath.Abs(j.Folder)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %q %x %+v %t %s %s", out, path, info.Size(),
		info.ModTime().UnixNano(), g.Path(), g.Mark(), g.Learner().Settings(), j.Freeze, g.Space().ID, j.Depends))
	return sum[:]
}

// openCache opens the default cache of a gallery, without replays that nobody will finish.
func openCache(gallery string) (*store.Cache, error) {
	path, err := store.CachePath(gallery)
	if err != nil {
		return nil, err
	}
	cache, err := store.OpenCache(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	if err := cache.Expire("replay", time.Now().Add(-keepsHalf)); err != nil {
		cache.Close()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return cache, nil
}

// earlier returns the state of an earlier run, or nil.
func (u *unfinished) earlier() *halfway {
	body, err := u.cache.Get(u.key)
	h := new(halfway)
	if err != nil || body == nil || cbor.Unmarshal(body, h) != nil {
		return nil
	}
	// After a crash of the machine the events file may be shorter than its recorded length.
	if info, err := u.log.Stat(); err != nil || h.Log < 0 || info.Size() < h.Log {
		return nil
	}
	return h
}

// resume restores a learner and a report from an earlier run.
func (h *halfway) resume(g *gallery.Gallery, r *Report) error {
	if err := r.UnmarshalBinary(h.Report); err != nil {
		return err
	}
	return g.Learner().UnmarshalBinary(h.Learner)
}

// save saves the state of a run at intervals.
func (u *unfinished) save(p Point, g *gallery.Gallery, r *Report, flush func() error) error {
	if u.cache == nil || time.Since(u.saved) < saveEvery {
		return nil
	}
	u.saved = time.Now()
	h := halfway{Point: p}
	err := flush()
	if err == nil {
		h.Log, err = u.log.Seek(0, 1)
	}
	if err == nil {
		h.Learner, err = g.Learner().MarshalBinary()
	}
	if err == nil {
		h.Report, err = r.MarshalBinary()
	}
	var body []byte
	if err == nil {
		body, err = cbor.Marshal(h)
	}
	if err == nil {
		err = u.cache.Put(u.key, "replay", body, time.Now())
	}
	if err != nil {
		return fmt.Errorf("keeping the state of the replay: %w", err)
	}
	return nil
}

// finish renames the events file to its final name.
func (u *unfinished) finish(path string) error {
	if err := u.log.Sync(); err != nil {
		return err
	}
	if err := safefile.Rename(u.events, path); err != nil {
		return err
	}
	var err error
	if u.cache != nil {
		err = errors.Join(u.cache.Delete(u.key), u.cache.Close())
	}
	return errors.Join(err, u.log.Close())
}

// abandon ends an incomplete run. Its state stays for a later run.
func (u *unfinished) abandon() {
	if u.cache == nil || u.earlier() == nil {
		os.Remove(u.events)
	}
	if u.cache != nil {
		u.cache.Close()
	}
	u.log.Close()
}
