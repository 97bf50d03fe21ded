// SPDX-License-Identifier: Apache-2.0

package face

import (
	"errors"
	"time"
)

// Errors of a source of frames. Package facedet opens sources in this process, and package eye in
// another process. For a file or device that is missing or forbidden the errors wrap fs.ErrNotExist
// or fs.ErrPermission.
var (
	ErrNoCamera = errors.New("no such camera")
	ErrNotVideo = errors.New("neither a video nor an image that can be read")
	ErrNoImages = errors.New("no images in the folder")
	ErrTimeout  = errors.New("the source gave no frame in time")
	ErrScheme   = errors.New("unsupported kind of URL")
	ErrServer   = errors.New("the server gives no video")
	ErrRefused  = errors.New("the server refuses the user name or the password")
)

// Count says how many frames a source has, as far as this is known.
type Count struct {
	Declared int `json:"declared"` // by the container, or the number of files; -1 if unknown
	Read     int `json:"read"`
	// frames that were read and skipped, because newer frames had come
	Dropped int `json:"dropped,omitempty"`
	Damaged int `json:"damaged"` // image files that could not be read and were skipped

	// Partial are image files that end too early; they are in Read, too. What came of them is
	// shown.
	Partial int `json:"partial,omitempty"`

	// Others are further films in the same file, which were not read.
	Others int `json:"others,omitempty"`

	// Length is that of a film, as its container says; 0 if unknown. Last is the time of the last
	// frame that was read, and Gap the longest time between two frames, which began at GapAt.
	Length time.Duration `json:"length,omitempty"`
	Last   time.Duration `json:"last,omitempty"`
	Gap    time.Duration `json:"gap,omitempty"`
	GapAt  time.Duration `json:"gap_at,omitempty"`
}

// Cut reports whether frames at the end of a recording that was read to the end are missing. None
// are if all frames of its index came, or if the last one came at its end: many containers do not
// count frames, and give a number that they guess from the rate. Of a camera, and of a container
// that says too little, nobody knows.
func (c Count) Cut() bool {
	switch {
	case c.Declared >= 0 && c.Read+c.Damaged >= c.Declared:
		return false
	case c.Length == 0:
		return c.Declared >= 0
	}
	const sound = time.Second // by which it is often longer than the pictures
	return c.Length-c.Last > max(2*c.Length/time.Duration(max(1, c.Declared)), c.Gap,
		min(sound, c.Length/20))
}
