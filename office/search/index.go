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

// Index keeps what was found in recordings, so that each is looked through once. Its files hold faces, and are
// readable by their owner alone.
type Index struct {
	Dir      string     // folder of the files, which must be there; "" keeps nothing
	Space    face.Space // of the vectors
	FPS      float64    // frames a second of a recording that are looked at; 0 for all
	Detector string     // what finds the faces
	Spare    bool       // faces are looked for only where something moved, or now and then
}

// saveEvery is how often what was found so far is written.
const saveEvery = 5 * time.Second

// ErrIndex is wrapped where a folder cannot keep what was found.
var ErrIndex = errors.New("the index cannot be written")

// Recording returns what is in the recording at path: from the index where the file has the size and time that it had
// then, and otherwise from scan, whose result is kept. Damaged is told why a file of the index cannot be read; it is
// made anew. Scan is given what an interrupted one has found, and a function that keeps what it has found so far; see
// [ScanOn]. The error wraps [ErrIndex], or is that of scan or of package fs.
func (x Index) Recording(path string, damaged func(error), scan func(from Part, keep func(Part) error) ([]Sighting, error)) (Recording, error) {
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
	var saved time.Time // when a part was
	if x.Dir != "" {
		old, err := Load(kept, x.Space)
		if err == nil && old.Path == r.Path && old.Size == r.Size && old.Modified == r.Modified {
			old.Path = path
			return old, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && damaged != nil {
			damaged(err)
		}
		// What is wrong with a part is of no interest: the recording is looked through from its beginning then.
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
