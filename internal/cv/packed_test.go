// SPDX-License-Identifier: Apache-2.0

package cv_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
)

// scene is a picture with soft shapes and some noise.
func scene(t testing.TB, size image.Point, seed uint64) *cv.Image {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 5))
	pix := make([]byte, 3*size.X*size.Y)
	for i := range pix {
		x, y, c := i/3%size.X, i/3/size.X, i%3
		pix[i] = uint8(120 + 50*math.Sin(float64(x)/23+float64(c)) + 40*math.Cos(float64(y)/17) +
			6*rnd.Float64())
	}
	return fixture.Must(cv.FromBGR(size, pix))(t)
}

func jpegOf(t testing.TB, size image.Point, seed uint64) []byte {
	t.Helper()
	img := scene(t, size, seed)
	defer img.Close()
	return fixture.Must(img.JPEG(90))(t)
}

func bgr(t testing.TB, m *cv.Image) []byte {
	t.Helper()
	return fixture.Must(m.BGR())(t)
}

// A packed JPEG has the pixels of the decoded one. Its size and its thumbnail need no pixels, and
// the thumbnail is close to the mean over the area.
func TestFromJPEG(t *testing.T) {
	for _, size := range []image.Point{{1280, 720}, {640, 480}, {641, 479}, {512, 384},
		{1920, 1080}, {200, 150},
		{9, 7}} {
		data := jpegOf(t, size, 1)
		m := fixture.Must(cv.FromJPEG(data))(t)
		defer m.Close()
		whole := fixture.Must(cv.DecodeImage(data))(t)
		defer whole.Close()
		long := max(size.X, size.Y, 160)
		small := image.Pt(max(1, size.X*160/long), max(1, size.Y*160/long))
		got, err := m.Thumbnail(small)
		if err != nil || !cv.Packed(m) || m.Size() != size {
			t.Fatalf("%v: thumbnail: %v; %v, decoded %t", size, err, m.Size(), !cv.Packed(m))
		}
		grey := whole.Gray()
		defer grey.Close()
		mean := fixture.Must(grey.Resize(small))(t)
		defer mean.Close()
		for i, want := range mean.Bytes() {
			// the DCT's low frequencies are no exact mean
			if d := math.Abs(float64(got[i]) - float64(want)); d > 8 {
				t.Fatalf("%v: value %d of the thumbnail is %d, want %d", size, i, got[i], want)
			}
		}
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				if !bytes.Equal(bgr(t, m), bgr(t, whole)) {
					t.Errorf("%v: other pixels than when it is decoded at once", size)
				}
			})
		}
		readers.Wait()
		if again, err := m.Thumbnail(small); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%v: another thumbnail after it was decoded (%v)", size, err)
		}
		m.Close()
		if _, err := m.BGR(); !errors.Is(err, cv.ErrClosed) || m.Size() != (image.Point{}) {
			t.Errorf("BGR after Close: error %v, size %v", err, m.Size())
		}
		if _, err := m.Thumbnail(small); !errors.Is(err, cv.ErrClosed) {
			t.Errorf("Thumbnail after Close: error %v", err)
		}
	}
	for _, data := range [][]byte{nil, {0xff}, []byte("RIFF"),
		jpegOf(t, image.Pt(64, 48), 1)[:20]} {
		if m, err := cv.FromJPEG(data); !errors.Is(err, cv.ErrNotImage) || m != nil {
			t.Errorf("%d bytes: error %v", len(data), err)
		}
	}
}

// A JPEG that is damaged after its header has pixels and a thumbnail all the same.
func FuzzFromJPEG(f *testing.F) {
	data := jpegOf(f, image.Pt(64, 48), 1)
	f.Add(data)
	for _, n := range []int{len(data) / 2, len(data) - 1, 620, 630} {
		f.Add(data[:n])
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		broken := bytes.Clone(data)
		for range 1 + seed%8 {
			broken[rnd.IntN(len(broken))] = uint8(rnd.Uint32())
		}
		f.Add(broken)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := cv.FromJPEG(data)
		if err != nil {
			return
		}
		defer m.Close()
		size := m.Size()
		if size.X*size.Y > 1<<20 {
			return
		}
		small := image.Pt((size.X+7)/8, (size.Y+7)/8)
		if got, err := m.Thumbnail(small); err != nil || len(got) != small.X*small.Y {
			t.Errorf("thumbnail: %d values, %v", len(got), err)
		}
		if pix := bgr(t, m); len(pix) != 3*size.X*size.Y {
			t.Errorf("%d bytes for %v pixels", len(pix), size)
		}
	})
}

// shoot writes n frames of a scene, and closes the film.
func shoot(t testing.TB, w *cv.VideoWriter, size image.Point, n int) {
	t.Helper()
	for i := range n {
		img := scene(t, size, uint64(i))
		fixture.Check(t, w.Write(img))
		img.Close()
	}
	fixture.Check(t, w.Close())
}

// avi writes a motion JPEG of n frames, and returns the bytes of the file.
func avi(t testing.TB, path string, n int) []byte {
	t.Helper()
	size := image.Pt(160, 120)
	shoot(t, cv.NewVideoWriter(path, "MJPG", 12.5), size, n)
	return fixture.Must(os.ReadFile(path))(t)
}

// pictures returns the places of the chunks with a picture.
func pictures(data []byte) (starts []int) {
	for at := bytes.Index(data, []byte("movi")) + 4; string(data[at:at+4]) == "00dc"; {
		starts = append(starts, at)
		size := int(binary.LittleEndian.Uint32(data[at+4:]))
		at += 8 + size + size%2
	}
	return starts
}

// shown is a frame of a capture.
type shown struct {
	at     time.Duration
	packed bool
	pix    []byte
}

func frames(t testing.TB, name string) (all []shown) {
	t.Helper()
	c := fixture.Must(cv.OpenFilm(name, "", "", time.Minute))(t)
	defer c.Close()
	for {
		m, at, err := c.Read()
		fixture.Check(t, err)
		if m == nil {
			return all
		}
		s := shown{at: at, packed: cv.Packed(m)}
		s.pix = bgr(t, m)
		all = append(all, s)
		m.Close()
	}
}

// The frames of motion JPEG stay packed, and have their times; also where a file says that a
// picture stays, is cut off, or has a damaged frame.
func TestMotionJPEG(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.avi")
	data := avi(t, path, 12)
	starts := pictures(data)
	stays := append(bytes.Clone(data[:starts[5]]), "00dc\x00\x00\x00\x0000dc\x00\x00\x00\x00"...)
	stays = append(stays, data[starts[5]:starts[11]]...)
	damaged := bytes.Clone(data)
	clear(damaged[starts[3]+8 : starts[4]])
	half := bytes.Clone(data)
	clear(half[(starts[3]+starts[4])/2 : starts[4]])
	for name, c := range map[string]struct {
		data []byte
		want []int // when they are shown, in frames
	}{
		"whole":           {data, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		"cut off":         {data[:(starts[7]+starts[8])/2], []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"a picture stays": {stays, []int{0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12}},
		"damaged":         {damaged, []int{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11}},
		"half damaged":    {half, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	} {
		fixture.Check(t, os.WriteFile(path, c.data, 0o600))
		got := frames(t, path)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d frames, want %d", name, len(got), len(c.want))
			continue
		}
		for i, g := range got {
			n := c.want[i]
			if !g.packed || (g.at-time.Duration(n)*80*time.Millisecond).Abs() > time.Microsecond {
				t.Errorf("%s: frame %d: packed %t, at %v", name, i, g.packed, g.at)
			}
			if name == "whole" && !bytes.Equal(g.pix, decoded(t, data[starts[n]+8:])) {
				t.Errorf("frame %d has other pixels", n)
			}
		}
	}
}

// Frames that FFmpeg alone can decode are left to it.
func TestMotionJPEGByFFmpeg(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.avi")
	data := avi(t, path, 3)
	limited := bytes.Clone(data)
	for _, at := range pictures(data) { // in place of the first segment
		copy(limited[at+8+2:], "\xff\xfe\x00\x10CS=ITU601\x00\x00\x00\x00\x00")
	}
	fixture.Check(t, os.WriteFile(path, limited, 0o600))
	if got := frames(t, path); len(got) == 0 || got[0].packed {
		t.Errorf("%d frames of limited colours, or JPEGs", len(got))
	}
}

// A stream of JPEGs stays packed, and goes on after what is no JPEG.
func TestMotionJPEGStream(t *testing.T) {
	size := image.Pt(320, 240)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for i := range 20 {
			data := jpegOf(t, size, uint64(i))
			if i == 10 || i == 11 {
				clear(data)
			}
			fmt.Fprintf(w,
				"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n",
				len(data), data)
		}
	}))
	defer s.Close()
	got := frames(t, s.URL)
	if len(got) < 17 || len(got) > 18 { // FFmpeg may lose the last one
		t.Errorf("%d frames of 18", len(got))
	}
	for i, g := range got {
		if n := i + 2*(i/10); !g.packed ||
			!bytes.Equal(g.pix, decoded(t, jpegOf(t, size, uint64(n)))) {
			t.Errorf("frame %d: packed %t, or other pixels", i, g.packed)
		}
	}
}

// Cameras send motion JPEG in parts of many shapes. All of them give every frame but the last,
// whose end FFmpeg's demuxer of JPEGs in a row does not see (FFmpeg 5.1 and 7.1).
func TestPartsOfMotionJPEG(t *testing.T) {
	size := image.Pt(160, 120)
	const frame, jpegs = "--frame\r\n", "Content-Type: image/jpeg"
	for name, c := range map[string]struct{ boundary, before, after string }{
		"as it should be": {"frame", frame + jpegs + "\r\nContent-Length: %d\r\n\r\n", "\r\n"},
		"image/jpg": {"frame", frame +
			"Content-Type: image/jpg\r\nContent-Length: %d\r\n\r\n", "\r\n"},
		"a parameter": {"frame", frame + jpegs + "; charset=binary\r\nContent-Length: %d\r\n\r\n",
			"\r\n"},
		"no type":      {"frame", frame + "Content-Length: %d\r\n\r\n", "\r\n"},
		"no length":    {"frame", frame + jpegs + "\r\n\r\n", "\r\n"},
		"line feeds":   {"frame", "--frame\n" + jpegs + "\n\n", "\n"},
		"no dashes":    {"frame", "frame\r\n" + jpegs + "\r\nContent-Length: %d\r\n\r\n", "\r\n"},
		"dashes twice": {"--frame", frame + jpegs + "\r\nContent-Length: %d\r\n\r\n", "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 12
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary="+c.boundary)
				for i := range n {
					data := jpegOf(t, size, uint64(i))
					head := strings.ReplaceAll(c.before, "%d", strconv.Itoa(len(data)))
					fmt.Fprintf(w, "%s%s%s", head, data, c.after)
				}
			}))
			defer s.Close()
			got := frames(t, s.URL)
			if len(got) < n-1 || len(got) > n {
				t.Errorf("%d frames of %d", len(got), n)
			}
			for i, g := range got {
				if !bytes.Equal(g.pix, decoded(t, jpegOf(t, size, uint64(i)))) {
					t.Errorf("frame %d has other pixels", i)
				}
			}
		})
	}
}

// What is no stream is no motion JPEG either, and says so.
func TestNoMotionJPEG(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html>log in</html>")
	}))
	defer s.Close()
	if f, err := cv.OpenFilm(s.URL, "", "", time.Minute); !errors.Is(err, face.ErrServer) {
		f.Close()
		t.Errorf("error %v", err)
	}
}

func decoded(t testing.TB, data []byte) []byte {
	t.Helper()
	m := fixture.Must(cv.DecodeImage(data))(t)
	defer m.Close()
	return bgr(t, m)
}

// film writes a video of n frames to path, and returns the error of writing or closing it.
func film(t *testing.T, path string, n int) error {
	t.Helper()
	w := cv.NewVideoWriter(path, "MJPG", 10)
	for i := range n {
		img := fixture.Must(cv.NewImage(image.Pt(320, 240), color.RGBA{uint8(i), 50, 90, 255}))(t)
		for j := range 20 { // so that the compressed pictures are not tiny
			img.DrawBox(image.Rect(9*j, 7*j, 9*j+100, 7*j+80), strings.Repeat("faces ", j%5),
				color.RGBA{uint8(11 * j), uint8(255 - 7*j), uint8(i), 255})
		}
		if err := w.Write(img); err != nil {
			img.Close()
			w.Close()
			return err
		}
		img.Close()
	}
	return w.Close()
}

func TestCountFrames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.avi")
	fixture.Check(t, film(t, path, 20))
	whole := fixture.Must(os.ReadFile(path))(t)
	last := 21
	for _, size := range []int{len(whole), len(whole) * 3 / 4, len(whole) / 2, 100, 8, 3, 0} {
		fixture.Check(t, os.WriteFile(path, whole[:size], 0o600))
		n, err := cv.CountFrames(path)
		if err != nil || n > last || size == len(whole) && n != 20 || size <= len(whole)/2 &&
			n > 12 ||
			size <= 100 && n != 0 {
			t.Errorf("%d of %d bytes: %d frames, %v", size, len(whole), n, err)
		}
		last = n
	}
	// A length that points back, or beyond the end of the file, ends the count.
	for _, text := range []string{
		"RIFF\x00\x00\x00\x00AVI LIST\x00\x00\x00\x00movi00dc\xff\xff\xff\xff",
		"junk\xff\xff\xff\xff", "RIFFRIFFRIFFRIFFRIFF"} {
		fixture.Check(t, os.WriteFile(path, []byte(text), 0o600))
		if n, err := cv.CountFrames(path); n != 0 || err != nil {
			t.Errorf("%q: %d frames, %v", text, n, err)
		}
	}
}

// A full disk is an error, although no library reports it.
func TestFullDisk(t *testing.T) {
	// this process has its own mount namespace, see below
	if dir := os.Getenv("FACEAUTH_TEST_FULL"); dir != "" {
		err := film(t, filepath.Join(dir, "a.avi"), 60)
		if !errors.Is(err, cv.ErrCutOff) ||
			!strings.Contains(err.Error(), "of 60 frames; is the disk full?") {
			t.Errorf("error %v", err)
		}
		return
	}
	fixture.MountNamespace(t)
	dir := t.TempDir()
	cmd := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=300k none "$1" && exec "$2" -test.run '^TestFullDisk$' -test.v`,
		"sh", dir, os.Args[0])
	cmd.Env = append(os.Environ(), "FACEAUTH_TEST_FULL="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An error for lack of memory must not be taken for a damaged file.
func TestClassify(t *testing.T) {
	for text, want := range map[string]bool{
		"std::bad_alloc": true,
		"OpenCV(4.6.0) ... error: (-4:Insufficient memory) Failed to allocate 9 bytes": true,
		"OpenCV(4.6.0) error: (-215:Assertion failed)":                                 false,
	} {
		if err := cv.Classify(text); errors.Is(err, cv.ErrMemory) != want ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// written returns the raw H.264 of frames of a size, without a container.
func written(t *testing.T, size image.Point, n int) (film []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.avi")
	w := cv.NewVideoWriter(path, "H264", 25)
	for i := range n {
		img := fixture.Must(cv.NewImage(size, color.RGBA{90, 120, uint8(20 * (i % 10)), 255}))(t)
		for j := range 12 {
			at := image.Pt((37*j+9*i)%size.X, (53*j+5*i)%size.Y)
			img.DrawBox(image.Rectangle{at, at.Add(image.Pt(40, 30))}, "",
				color.RGBA{uint8(20 * j), 60, 200, 255})
		}
		err := w.Write(img)
		img.Close()
		if err != nil {
			fixture.Missing(t, "no H.264 can be written (%v); install a build of FFmpeg with x264",
				err)
		}
	}
	fixture.Check(t, w.Close())
	data := fixture.Must(os.ReadFile(path))(t)
	for _, at := range pictures(data) {
		film = append(film, data[at+8:at+8+int(binary.LittleEndian.Uint32(data[at+4:]))]...)
	}
	return film
}

// units returns the units of a raw H.264 whose types are not among those named, and the rest.
func units(film []byte, types ...byte) (kept, left []byte) {
	start := []byte{0, 0, 1}
	for _, u := range bytes.Split(film, start)[1:] {
		to := &kept
		if slices.Contains(types, u[0]&31) {
			to = &left
		}
		*to = append(append(*to, start...), u...)
	}
	return kept, left
}

// A relay hands on a camera that has come back with another resolution, and not its new parameter
// sets: FFmpeg (5.1 and 7.1) decodes it at the old size without an error. After two seconds of
// damaged frames the stream ends with an error, so that it is opened anew; one damaged moment does
// not end it.
func TestSpoiltStream(t *testing.T) {
	const sequence, parameters, picture = 7, 8, 1
	before, after := written(t, image.Pt(320, 240), 100), written(t, image.Pt(640, 480), 150)
	bare, _ := units(after, sequence, parameters)
	hole := before[:len(before)/2]
	_, lost := units(hole, picture)
	for name, c := range map[string]struct {
		film []byte
		end  bool
	}{
		"another resolution": {append(bytes.Clone(before), bare...), true},
		"a damaged moment": {slices.Concat(before[:len(before)/2], lost[:len(lost)/8], before,
			before), false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // without a length
			w.Write(c.film)
		}))
		video := fixture.Must(cv.OpenFilm(server.URL+"/a.h264", "", "", time.Minute))(t)
		whole, damaged := 0, 0
		var err error
		for {
			var m *cv.Image
			m, _, err = video.Read()
			if m == nil {
				break
			}
			if m.Whole() {
				whole++
			} else {
				damaged++
			}
			m.Close()
		}
		if c.end != errors.Is(err, face.ErrServer) || whole < 90 || c.end &&
			(damaged < 40 || damaged > 90) {
			t.Errorf("%s: %d whole and %d damaged frames, error %v", name, whole, damaged, err)
		}
		fixture.Check(t, video.Close())
		server.Close()
	}
}
