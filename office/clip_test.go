// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/office"
)

// filmed is a camera that plays a script. It makes a picture of each frame for which the office wants one.
type filmed struct {
	stream
	wanted func() bool
	made   int
	first  []byte
}

func (f *filmed) Next(ctx context.Context) (face.Frame, error) {
	x, err := f.stream.Next(ctx)
	if err == nil && f.wanted() {
		f.made++
		var b bytes.Buffer
		img := image.NewGray(image.Rect(0, 0, 32, 24))
		for i := range img.Pix {
			img.Pix[i] = uint8(8 * f.made)
		}
		if err := jpeg.Encode(&b, img, nil); err != nil {
			return x, err
		}
		x.JPEG = b.Bytes()
		if f.first == nil {
			f.first = x.JPEG
		}
	}
	return x, err
}

// enterWithClips is enter with room for so many bytes of clips.
func enterWithClips(t *testing.T, dir string, bytes int64) *home {
	t.Helper()
	return enterWith(t, dir, office.Options{}, office.PastSettings{Clips: bytes})
}

// films runs an office with a camera that makes pictures, and returns the number of pictures that it made.
func (h *home) films(script string) (w *office.Office, made int) {
	h.t.Helper()
	w = office.New(h.g, h.o)
	return w, h.filmsWith(w, script, nil)
}

// filmsWith is films with something that is done before some frames, with the first picture.
func (h *home) filmsWith(w *office.Office, script string, do map[int]func([]byte)) (made int) {
	h.t.Helper()
	s := &filmed{stream: stream{frames: frames(script), end: io.EOF, do: make(map[int]func())}}
	for at, f := range do {
		s.do[at] = func() { f(s.first) }
	}
	nothing(h.t, w.Run(h.t.Context(), []office.Camera{{Name: "door", Ends: true,
		Open: func(_ context.Context, wanted func() bool) (office.Stream, error) {
			s.wanted = wanted
			return s, nil
		}}}))
	return s.made
}

// pictures returns the number of pictures in the clip of a sighting, and reads each of them.
func pictures(t *testing.T, w *office.Office, sighting uint64) (n int) {
	t.Helper()
	for ; ; n++ {
		picture := w.ClipPicture(sighting, uint64(n))
		if picture == nil {
			return n
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(picture)); err != nil || c.Width != 32 || c.Height != 24 {
			t.Fatalf("picture %d: %v", n, err)
		}
	}
}

// The first eight seconds of a sighting are kept as a film if clips are wanted, and otherwise nothing is kept.
func TestClip(t *testing.T) {
	dir := t.TempDir()
	h := enterWithClips(t, dir, 0)
	if w, made := h.films(n(60, "a") + n(60, "-")); made > 0 || pictures(t, w, 1) > 0 || w.Sightings()[0].Clip > 0 {
		t.Errorf("%d pictures where no clips are wanted", made)
	}
	h.leave()
	h = enterWithClips(t, dir, 1<<20)
	w, made := h.films(n(20, "-") + n(100, "a") + n(60, "-") + n(10, "b") + n(60, "-"))
	s := w.Sightings()
	if len(s) < 2 || s[0].Clip == 0 || s[1].Clip != 16 || pictures(t, w, s[1].ID) != 16 ||
		pictures(t, w, s[0].ID) > 5 {
		t.Errorf("%+v", s)
	}
	if made > 25 {
		t.Errorf("%d pictures were made for two clips", made)
	}
	if pictures(t, w, 99) > 0 {
		t.Error("a clip of nobody")
	}
	id := s[1].ID
	h.leave()
	h = enterWithClips(t, dir, 1<<20)
	if w = office.New(h.g, h.o); pictures(t, w, id) != 16 {
		t.Error("after a restart the clip has gone")
	}
	// A run without clips removes the clips of earlier runs.
	h.leave()
	enterWithClips(t, dir, 0).leave()
	h = enterWithClips(t, dir, 1<<20)
	if n := pictures(t, office.New(h.g, h.o), id); n > 0 {
		t.Errorf("%d pictures are still there", n)
	}
}

// A forgotten person is removed from all clips, also from clips of other people. If strangers are not kept, no clip
// that shows a stranger is kept.
func TestClipForgotten(t *testing.T) {
	h := enterWithClips(t, t.TempDir(), 1<<20)
	w, _ := h.films(n(30, "a") + n(60, "-") + n(30, "ab") + n(60, "-") + n(30, "a") + n(60, "-"))
	clips := func() (all string) {
		for _, s := range w.Sightings() {
			if s.Clip > 0 && pictures(t, w, s.ID) == s.Clip {
				all += s.Name + " "
			}
		}
		return all
	}
	if got := clips(); strings.Count(got, "alice") != 3 || strings.Count(got, "bob") != 1 {
		t.Fatalf("clips of %s", got)
	}
	nothing(t, w.Forget("bob"))
	if got := clips(); got != "alice alice " {
		t.Errorf("after bob was forgotten there are clips of %s", got)
	}
	nothing(t, w.Forget("alice"))
	if clips() != "" {
		t.Errorf("after all were forgotten there are clips of %s", clips())
	}

	h = enterWithClips(t, t.TempDir(), 1<<20)
	nothing(t, office.New(h.g, h.o).KeepUnknown(false))
	w, _ = h.films(n(30, "as") + n(60, "-") + n(30, "a") + n(60, "-") + n(30, "s") + n(60, "-"))
	if got := clips(); got != "alice " {
		t.Errorf("without strangers there are clips of %s", got)
	}
}

// Who is forgotten while others are in view is in no picture of their films from before.
func TestForgottenWhileFilmed(t *testing.T) {
	h := enterWithClips(t, t.TempDir(), 1<<20)
	w := office.New(h.g, h.o)
	var before []byte
	h.filmsWith(w, n(60, "ab")+n(60, "-"), map[int]func([]byte){15: func(first []byte) {
		before = first
		nothing(t, w.Forget("bob"))
	}})
	all := w.Sightings()
	i := slices.IndexFunc(all, func(s office.Sighting) bool { return s.Name == "alice" })
	if i < 0 || before == nil {
		t.Fatalf("%+v", all)
	}
	for n := range uint64(all[i].Clip) {
		if bytes.Equal(w.ClipPicture(all[i].ID, n), before) {
			t.Errorf("picture %d of %d shows bob", n, all[i].Clip)
		}
	}
}
