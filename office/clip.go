// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"encoding/binary"
	"image/jpeg"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/fxamacker/cbor/v2"
)

// Size of a clip.
const (
	clipPictures = 16 // greatest number of pictures
	clipRate     = 2  // pictures per second
)

// clip says how many pictures a clip has, and who else is in them.
type clip struct {
	Pictures int      `json:"pictures"`
	With     []uint64 `json:"with,omitempty"` // sightings
}

// film collects the clip of a sighting that has not ended.
type film struct {
	pictures [][]byte // JPEG, of one size
	due      time.Time
	with     map[uint64]*visit
}

// Mapped implements head.
func (c clip) Mapped(func(string, bool) string, int64) (clip, bool) { return c, false }

// openClips opens the clips. If clips are off, it removes those of earlier runs, because nobody would expire them.
func (p *Past) openClips(s Limits) error {
	clips, err := openRecords[clip](p.journal, "clip", s)
	if err == nil && s.Bytes <= 0 {
		clips.Delete(clips.Before(0)...)
	} else {
		p.clips = clips
	}
	return err
}

// films reports whether the clip of a person in view needs a picture now. The lock must be held.
func (w *Office) films(v *view) bool {
	if w.o.Past.clips == nil {
		return false
	}
	for _, s := range v.sightings {
		if len(s.film.pictures) < clipPictures && !s.Last.Before(s.film.due) {
			return true
		}
	}
	return false
}

// roll adds the picture of a frame to the clips of the people in it. The lock must be held.
func (w *Office) roll(f face.Frame, visits []*visit) {
	if w.o.Past.clips == nil || f.JPEG == nil {
		return
	}
	for _, s := range visits {
		if len(s.film.pictures) == clipPictures || s.Last.Before(s.film.due) {
			continue
		}
		s.film.pictures, s.film.due = append(s.film.pictures, f.JPEG), s.Last.Add(time.Second/clipRate)
		for _, o := range visits {
			if o != s {
				if s.film.with == nil {
					s.film.with = make(map[uint64]*visit)
				}
				s.film.with[o.id] = o
			}
		}
	}
}

// keepClip stores the clip of an ended and stored sighting. All other people in the clip must be stored, too: their
// sightings lead to the clip when one of them is forgotten.
func (w *Office) keepClip(s *visit) {
	pictures, c := s.film.pictures, clip{Pictures: len(s.film.pictures)}
	with := s.film.with
	s.film = film{}
	if w.o.Past.clips == nil || len(pictures) == 0 {
		return
	}
	for id, o := range with {
		if len(o.album.Faces) == 0 || o.Known == "" && !w.unknown.Keeps() || w.unknown.Ignored(o.Group) {
			return
		}
		c.With = append(c.With, id)
	}
	slices.Sort(c.With)
	body, err := encoding.Marshal(pictures)
	if err == nil { // pictures have no value that cannot be encoded
		w.o.Past.clips.Put(s.id, s.Last, c, body)
	}
}

// unclip removes the clips that show a person whose sighting is no longer stored.
func (w *Office) unclip() {
	clips := w.o.Past.clips
	if clips == nil {
		return
	}
	kept := make(map[uint64]bool)
	w.live(func(s *visit, _ *view) { kept[s.id] = len(s.album.Faces) > 0 })
	for _, id := range w.o.Past.seen.Before(0) {
		kept[id] = true
	}
	var gone []uint64
	for _, id := range clips.Before(0) {
		r, _ := clips.Get(id)
		if !kept[id] || slices.ContainsFunc(r.Head.With, func(other uint64) bool { return !kept[other] }) {
			gone = append(gone, id)
		}
	}
	clips.Delete(gone...)
}

// Clip returns the beginning of a sighting as a film with two pictures per second: AVI with motion JPEG. It returns nil
// if there is no clip; clips are stored only if [PastSettings] says so.
func (w *Office) Clip(sighting uint64) []byte { return avi(w.film(sighting)) }

// ClipPicture returns a picture of a clip, counted from 0, as JPEG, or nil.
func (w *Office) ClipPicture(sighting, n uint64) []byte {
	if pictures := w.film(sighting); n < uint64(len(pictures)) {
		return pictures[n]
	}
	return nil
}

// film returns the pictures of a clip.
func (w *Office) film(sighting uint64) (pictures [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live(func(s *visit, _ *view) {
		if s.id == sighting {
			pictures = slices.Clone(s.film.pictures)
		}
	})
	if clips := w.o.Past.clips; clips != nil && pictures == nil {
		if body, err := clips.Body(sighting); err != nil || cbor.Unmarshal(body, &pictures) != nil {
			return nil
		}
	}
	return pictures
}

// avi returns pictures of one size as a film, or nil without pictures.
func avi(pictures [][]byte) []byte {
	if len(pictures) == 0 {
		return nil
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(pictures[0]))
	if err != nil {
		return nil
	}
	width, height, n := uint32(c.Width), uint32(c.Height), uint32(len(pictures))
	largest := 0
	for _, p := range pictures {
		largest = max(largest, len(p))
	}
	chunk := func(name string, body []byte) []byte {
		b := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body)))
		if b = append(b, body...); len(body)%2 == 1 {
			b = append(b, 0)
		}
		return b
	}
	list := func(name, kind string, bodies ...[]byte) []byte {
		return chunk(name, append([]byte(kind), bytes.Join(bodies, nil)...))
	}
	numbers := func(all ...uint32) (b []byte) {
		for _, x := range all {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	const hasIndex, keyFrame = 0x10, 0x10
	fourCC := binary.LittleEndian.Uint32([]byte("MJPG"))
	header := numbers(1e6/clipRate, uint32(clipRate*largest), 0, hasIndex, n, 0, 1, uint32(largest), width, height, 0,
		0, 0, 0)
	stream := append(
		[]byte("vidsMJPG"),
		numbers(0, 0, 0, 1, clipRate, 0, n, uint32(largest), 1<<32-1, 0, 0, width|height<<16)...)
	format := numbers(40, width, height, 1|24<<16, fourCC, 3*width*height, 0, 0, 0, 0)
	var film, index []byte
	for _, p := range pictures {
		index = append(index, append([]byte("00dc"), numbers(keyFrame, uint32(4+len(film)), uint32(len(p)))...)...)
		film = append(film, chunk("00dc", p)...)
	}
	return list("RIFF", "AVI ",
		list("LIST", "hdrl", chunk("avih", header), list("LIST", "strl", chunk("strh", stream), chunk("strf", format))),
		list("LIST", "movi", film), chunk("idx1", index))
}
