// SPDX-License-Identifier: Apache-2.0

package office

import (
	"bytes"
	"encoding/binary"
	"image/jpeg"
	"slices"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/gallery"
	"github.com/fxamacker/cbor/v2"
)

// Size of a clip.
const (
	clipPictures = 16 // greatest number of pictures
	clipRate     = 2  // pictures per second
)

// film collects the clip of a sighting.
type film struct {
	pictures [][]byte // JPEG, of one size
	due      time.Time
	with     []*sighted // who else is in it
}

// films reports whether the clip of a person in view needs a picture now. The lock must be held.
func (w *memory) films(v *view) bool {
	if w.past.s.Clips == 0 {
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
func (w *cameras) roll(f face.Frame, all []*sighted) {
	if w.past.s.Clips == 0 || f.JPEG == nil {
		return
	}
	for _, s := range all {
		if len(s.film.pictures) == clipPictures || s.Last.Before(s.film.due) {
			continue
		}
		s.film.pictures, s.film.due = append(s.film.pictures, f.JPEG), s.Last.Add(time.Second/clipRate)
		for _, o := range all {
			if o != s && !slices.Contains(s.film.with, o) {
				s.film.with = append(s.film.with, o)
			}
		}
	}
}

// put writes the film of a sighting.
func (f *film) put(t *gallery.Tx, sighting uint64) error {
	body, err := cbor.Marshal(f.pictures)
	if err == nil {
		err = t.Exec("insert or replace into film(sighting, pictures, size, body) values(?, ?, ?, ?)", int64(sighting),
			int64(len(f.pictures)), int64(len(body)), body)
	}
	for _, other := range f.with {
		t.Exec("insert or replace into film_with values(?, ?)", int64(sighting), int64(other.ID))
	}
	return err
}

// Clip returns the beginning of a sighting as a film with two pictures per second: AVI with motion JPEG. It returns nil
// if there is no clip; clips are stored only if [PastSettings] says so.
func (w *pictures) Clip(sighting uint64) []byte { return avi(w.film(sighting)) }

// ClipPicture returns a picture of a clip, counted from 0, as JPEG, or nil.
func (w *pictures) ClipPicture(sighting, n uint64) []byte {
	if pictures := w.film(sighting); n < uint64(len(pictures)) {
		return pictures[n]
	}
	return nil
}

// film returns the pictures of a clip.
func (w *memory) film(sighting uint64) (pictures [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh(func(s *sighted) {
		if s.ID == sighting {
			pictures = slices.Clone(s.film.pictures)
		}
	})
	if pictures != nil {
		return pictures
	}
	w.note(w.past.look(func(t *gallery.Tx) error {
		body, err := t.Blob("select body from film join sighting on sighting.id = film.sighting where office = ? and id = ?",
			w.past.id, int64(sighting))
		if err != nil || body == nil {
			return err
		}
		return cbor.Unmarshal(body, &pictures)
	}))
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
