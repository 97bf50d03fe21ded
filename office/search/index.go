// SPDX-License-Identifier: Apache-2.0

package search

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Index stores the results of scans, so that each recording is scanned once. Its files hold faces; only their owner can
// read them.
type Index struct {
	Dir      string     // existing folder of the files; "" stores nothing
	Space    face.Space // of the vectors
	FPS      float64    // scanned frames per second; 0 for all
	Detector string     // name of the detector
	Spare    bool       // detect faces only after movement, or from time to time
}

// saveEvery is the pause between two saves of the result so far.
const saveEvery = 5 * time.Second

// ErrIndex is wrapped if a result cannot be written to the folder.
var ErrIndex = errors.New("the index cannot be written")

// Recording returns the result for the recording at path. It comes from the index if the file has the same size and
// time as before, and otherwise from scan; then it is stored. Damaged is called if a file of the index cannot be read;
// that file is made again. Scan gets the result of an interrupted scan, and a function that stores the result so far;
// see [ScanOn]. The error wraps [ErrIndex], or is that of scan or of package fs.
func (x Index) Recording(
	path string,
	damaged func(error),
	scan func(from Part, keep func(Part) error) ([]Sighting, error),
) (Recording, error) {
	r := Recording{Space: x.Space.ID, FPS: x.FPS}
	info, err := os.Stat(path)
	if err != nil {
		return r, fmt.Errorf("opening source: %w", err)
	}
	r.Size, r.Modified = info.Size(), info.ModTime().UnixNano()
	if r.Path, err = filepath.Abs(path); err != nil {
		return r, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%g\x00%s", r.Path, r.Space, r.FPS, x.Detector))
	if x.Spare {
		sum = sha256.Sum256(append(sum[:], "spare"...))
	}
	kept := filepath.Join(x.Dir, hex.EncodeToString(sum[:16]))
	var from Part
	var saved time.Time // time of the last saved part
	if x.Dir != "" {
		old, err := Load(kept, x.Space)
		if err == nil && old.Path == r.Path && old.Size == r.Size && old.Modified == r.Modified {
			old.Path = path
			return old, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && damaged != nil {
			damaged(err)
		}
		// A part that cannot be used is ignored: the scan starts at the beginning.
		part, err := Load(kept+".part", x.Space)
		if err == nil && part.Path == r.Path && part.Size == r.Size && part.Modified == r.Modified && part.Part != nil {
			from = *part.Part
		}
	}
	if r.Sightings, err = scan(from, func(p Part) error {
		if x.Dir == "" || time.Since(saved) < saveEvery {
			return nil
		}
		saved = time.Now()
		so := r
		so.Part = &p
		if err := so.Save(kept + ".part"); err != nil {
			return fmt.Errorf("%w: %w", ErrIndex, err)
		}
		return nil
	}); err != nil {
		return r, err
	}
	if x.Dir != "" {
		if err := r.Save(kept); err != nil {
			return r, fmt.Errorf("%w: %w", ErrIndex, err)
		}
		os.Remove(kept + ".part")
	}
	r.Path = path
	return r, nil
}

// Forget removes from the index the recordings in which somebody looks like one of the faces, because the person is to
// be forgotten. The next search looks through them again. It returns their number. A folder that is not there has no
// recordings.
func (x Index) Forget(faces [][]float32) (recordings int, err error) {
	files, err := os.ReadDir(x.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, f := range files {
		path := filepath.Join(x.Dir, f.Name())
		r, err := Load(path, x.Space)
		if errors.Is(err, ErrVersion) || err == nil && !r.has(faces, x.Space) {
			continue // of another feature space, which has no such faces
		}
		if err := os.Remove(path); err != nil { // also a damaged one: nobody knows what is in it
			return recordings, fmt.Errorf("%w: %w", ErrIndex, err)
		}
		recordings++
	}
	return recordings, err
}

// has reports whether a face of the recording is nearer to one of the faces than to most other people.
func (r Recording) has(faces [][]float32, space face.Space) bool {
	all := r.Sightings
	if r.Part != nil {
		all = append(all, r.Part.Sightings...)
	}
	for _, s := range all {
		for _, x := range faces {
			if s.Album.Distance(space, x) < space.ImpostorRadius {
				return true
			}
		}
	}
	return false
}
