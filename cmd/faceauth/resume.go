// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/replay"
	"github.com/fxamacker/cbor/v2"
)

// halfway is the saved state of an interrupted replay.
type halfway struct {
	Key     []byte       `cbor:"key"` // hash of the recording, the gallery and the settings
	Point   replay.Point `cbor:"point"`
	Learner []byte       `cbor:"learner"`
	Report  []byte       `cbor:"report"`
	Log     int64        `cbor:"log"` // bytes of the events file
}

var halfwayKind = safefile.Kind{Magic: "faceauth replay", Version: 1}

// saveEvery is the interval between saves.
const saveEvery = 5 * time.Second

// unfinished holds the files of an incomplete replay.
type unfinished struct {
	state, events string // paths
	key           []byte
	log           *os.File
	saved         time.Time
}

// unfinishedIn returns the files of an incomplete replay in a folder, and the state of an earlier run with the same
// recording, gallery and settings, or nil.
func (o *options) unfinishedIn(source string, v *vision, g *gallery.Gallery,
	how player) (*unfinished, *halfway, error) {
	u := &unfinished{state: filepath.Join(how.out, ".replay"), events: filepath.Join(how.out, ".events-unfinished")}
	if how.each == nil && !how.video { // these must see all frames
		u.key = o.replayKey(source, v, g, how.freeze)
	}
	var err error
	if u.log, err = os.OpenFile(u.events, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, nil, fmt.Errorf("writing report: %w", err)
	}
	if err := safefile.Lock(u.log, 0); errors.Is(err, safefile.ErrLocked) {
		u.log.Close()
		return nil, nil, fmt.Errorf("writing report: another program writes into %s: %w", how.out, err)
	}
	h := u.earlier()
	if how.anew {
		h = nil
	}
	end := int64(0)
	if h != nil {
		end = h.Log
	}
	if err := u.log.Truncate(end); err != nil {
		return nil, nil, fmt.Errorf("writing report: %w", err)
	}
	if _, err := u.log.Seek(end, 0); err != nil {
		return nil, nil, fmt.Errorf("writing report: %w", err)
	}
	return u, h, nil
}

// replayKey returns a hash of everything on which a replay depends, or nil if this is unknown, as for a camera.
func (o *options) replayKey(source string, v *vision, g *gallery.Gallery, freeze bool) []byte {
	info, err := os.Stat(source)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	path, err := filepath.Abs(source)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %x %+v %+v %t %t %s", path, info.Size(), info.ModTime().UnixNano(),
		g.Mark(), g.Learner().Settings(), v.Config.Vision, o.EveryFrame, freeze, v.Space.ID))
	return sum[:]
}

// earlier returns the state of an earlier run, or nil.
func (u *unfinished) earlier() *halfway {
	body, err := safefile.ReadSealed(u.state, halfwayKind)
	if err != nil || u.key == nil {
		return nil
	}
	h := new(halfway)
	if cbor.Unmarshal(body, h) != nil || string(h.Key) != string(u.key) {
		return nil
	}
	// After a crash of the machine the events file may be shorter than its recorded length.
	if info, err := u.log.Stat(); err != nil || h.Log < 0 || info.Size() < h.Log {
		return nil
	}
	return h
}

// resume restores a learner and a report from an earlier run.
func (h *halfway) resume(g *gallery.Gallery, r *replay.Report) error {
	if err := r.UnmarshalBinary(h.Report); err != nil {
		return err
	}
	return g.Learner().UnmarshalBinary(h.Learner)
}

// save saves the state of a run at intervals.
func (u *unfinished) save(p replay.Point, g *gallery.Gallery, r *replay.Report, flush func() error) error {
	if u.key == nil || time.Since(u.saved) < saveEvery {
		return nil
	}
	u.saved = time.Now()
	h := halfway{Key: u.key, Point: p}
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
		err = safefile.WriteSealed(u.state, halfwayKind, body)
	}
	if err != nil {
		return fail(failed, fmt.Errorf("writing %s: %w", u.state, err))
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
	if err := os.Remove(u.state); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return u.log.Close()
}

// abandon ends an incomplete run. Its state stays for a later run.
func (u *unfinished) abandon() {
	if _, err := os.Stat(u.state); u.key == nil || err != nil {
		os.Remove(u.events)
	}
	u.log.Close()
}
