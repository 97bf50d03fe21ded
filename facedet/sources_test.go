// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
)

func picture(t testing.TB, shade uint8, w, h int) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = shade
	}
	var b bytes.Buffer
	fixture.Check(t, png.Encode(&b, m))
	return b.Bytes()
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	fixture.Check(t, os.WriteFile(path, data, 0o600))
	return path
}

// shade returns the grey value of a frame of one colour.
func shade(t testing.TB, f *facedet.Frame) uint8 {
	t.Helper()
	g := f.Image.Gray()
	defer g.Close()
	return g.Bytes()[0]
}

// video writes a recording of n frames at 10 a second that grow brighter.
func video(t testing.TB, path string, n int) string {
	t.Helper()
	rec := cv.NewVideoWriter(path, "MJPG", 10)
	for i := range n {
		img := fixture.Must(cv.NewImage(image.Pt(64, 48),
			color.RGBA{uint8(10 * i), uint8(10 * i), uint8(10 * i), 255}))(t)
		fixture.Check(t, rec.Write(img))
		img.Close()
	}
	fixture.Check(t, rec.Close())
	return path
}

// drain reads a source to its end, and returns the times of the frames.
func drain(t testing.TB, s facedet.Source) ([]time.Duration, error) {
	t.Helper()
	var times []time.Duration
	for {
		f, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return times, nil
		}
		if err != nil {
			return times, err
		}
		times = append(times, f.Time)
		f.Close()
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for name, s := range map[string]uint8{"10.png": 100, "2.png": 20, "1.PNG": 10, "b.png": 200} {
		write(t, dir, name, picture(t, s, 8, 8))
	}
	write(t, dir, "3.png", []byte("no picture"))
	write(t, dir, ".hidden.png", picture(t, 1, 8, 8))
	write(t, dir, "notes.txt", []byte("notes"))
	s := fixture.Must(facedet.Open(context.Background(), dir, facedet.Options{}))(t)
	defer s.Close()
	var got []string
	for {
		f, err := s.Next(context.Background())
		if err == io.EOF {
			break
		}
		fixture.Check(t, err)
		got = append(got, fmt.Sprint(f.Index, f.Time, shade(t, f)))
		f.Close()
	}
	if want := "0 0s 10|1 40ms 20|3 120ms 100|4 160ms 200"; strings.Join(got, "|") != want {
		t.Errorf("frames %s, want %s", strings.Join(got, "|"), want)
	}
	if c := s.Count(); c != (face.Count{Declared: 5, Read: 4, Damaged: 1}) {
		t.Errorf("count %+v", c)
	}
}

// A photograph that ends too early is given as far as it came, and counted.
func TestFolderCutOff(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, 64, 48))
	for i := range m.Pix {
		m.Pix[i] = uint8(i * i)
	}
	fixture.Check(t, jpeg.Encode(&b, m, nil))
	write(t, dir, "1.jpg", b.Bytes())
	write(t, dir, "2.jpg", b.Bytes()[:b.Len()*2/3])
	s := fixture.Must(facedet.Open(t.Context(), dir, facedet.Options{}))(t)
	defer s.Close()
	for _, want := range []bool{true, false} {
		f := fixture.Must(s.Next(t.Context()))(t)
		if f.Image.Whole() != want {
			t.Errorf("%s: whole is %t", f.File, !want)
		}
		f.Close()
	}
	if c := s.Count(); c != (face.Count{Declared: 2, Read: 2, Partial: 1}) {
		t.Errorf("count %+v", c)
	}
}

func TestVideo(t *testing.T) {
	path := video(t, filepath.Join(t.TempDir(), "a:b.avi"), 12)
	s := fixture.Must(facedet.Open(context.Background(), path, facedet.Options{}))(t)
	defer s.Close()
	times := fixture.Must(drain(t, s))(t)
	for i, at := range times {
		if want := time.Duration(i) * 100 * time.Millisecond; at != want {
			t.Errorf("frame %d at %v, want %v", i, at, want)
		}
	}
	if c := s.Count(); c.Declared != 12 || c.Read != 12 || c.Cut() ||
		c.Length != 1200*time.Millisecond {
		t.Errorf("count %+v, want 12 declared and read", c)
	}
	s.Close()
	if _, err := s.Next(context.Background()); err != io.EOF {
		t.Errorf("after Close: %v", err)
	}
}

// Frames of another shape are stretched, so that no side becomes shorter.
func TestStretched(t *testing.T) {
	path := video(t, filepath.Join(t.TempDir(), "a.avi"), 2)
	size := func(shape image.Point) image.Point {
		s := fixture.Must(facedet.Open(t.Context(), path, facedet.Options{}))(t)
		defer s.Close()
		if shape != (image.Point{}) {
			s = facedet.Stretched(s, shape)
		}
		f := fixture.Must(s.Next(t.Context()))(t)
		defer f.Close()
		return f.Image.Size()
	}
	own := size(image.Point{})
	for shape, want := range map[image.Point]image.Point{
		own.Mul(3):                    own,
		image.Pt(100*own.X, 98*own.Y): own, // sides rounded by an encoder
		image.Pt(2*own.X, own.Y):      image.Pt(2*own.X, own.Y),
		image.Pt(own.X, 2*own.Y):      image.Pt(own.X, 2*own.Y),
	} {
		if got := size(shape); got != want {
			t.Errorf("%v in the shape of %v: %v, want %v", own, shape, got, want)
		}
	}
}

// A recording cut in half gives its remaining frames, and the number of frames that it declared.
func TestVideoCutOff(t *testing.T) {
	dir := t.TempDir()
	whole := fixture.Must(os.ReadFile(video(t, filepath.Join(dir, "whole.avi"), 40)))(t)
	s := fixture.Must(facedet.Open(context.Background(), write(t, dir, "half.avi",
		whole[:len(whole)/2]),
		facedet.Options{}))(t)
	defer s.Close()
	times := fixture.Must(drain(t, s))(t)
	if c := s.Count(); c.Read != len(times) || c.Read < 5 || c.Declared <= c.Read {
		t.Errorf("count %+v with %d frames", c, len(times))
	}
}

func TestImageUnderAnotherName(t *testing.T) {
	path := write(t, t.TempDir(), "face.dat", picture(t, 77, 30, 20))
	s := fixture.Must(facedet.Open(context.Background(), path, facedet.Options{}))(t)
	defer s.Close()
	f := fixture.Must(s.Next(context.Background()))(t)
	defer f.Close()
	if f.Image.Size() != image.Pt(30, 20) || shade(t, f) != 77 {
		t.Errorf("another picture: %v", f.Image.Size())
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	secret := write(t, dir, "secret.avi", []byte("x"))
	fixture.Check(t, os.Chmod(secret, 0))
	empty := filepath.Join(dir, "empty")
	fixture.Check(t, os.Mkdir(empty, 0o700))
	for _, c := range []struct {
		name, source string
		err          error
		text         string
	}{
		{"missing", filepath.Join(dir, "nothing.avi"), fs.ErrNotExist, "opening source"},
		{"empty name", "", fs.ErrNotExist, "opening source"},
		{"forbidden", secret, fs.ErrPermission, "opening source"},
		{"no video", write(t, dir, "v.avi", bytes.Repeat([]byte("no video"), 99)), face.ErrNotVideo,
			"v.avi"},
		{"no image", write(t, dir, "i.png", []byte("no image")), face.ErrNotVideo, "i.png"},
		{"nothing in it", write(t, dir, "z.mp4", nil), face.ErrNotVideo, "z.mp4"},
		{"folder without images", empty, face.ErrNoImages, "no images in the folder"},
		{"device", "/dev/zero", face.ErrNotVideo, "/dev/zero"},
		{"no camera", "97", face.ErrNoCamera, "/dev/video97"},
		{"no camera device", "/dev/video97", face.ErrNoCamera, "this machine has none"},
		{"another protocol", "file:///etc/passwd", face.ErrScheme, "use http"},
		{"FFmpeg's protocols", "concat://a|b", face.ErrScheme, "use http"},
		{"a password", "ftp://me:hush@cam/", face.ErrScheme, "ftp://cam/: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == fs.ErrPermission && os.Geteuid() == 0 {
				t.Skip("root may read everything; the command line's tests drop to another user")
			}
			s, err := facedet.Open(context.Background(), c.source,
				facedet.Options{Timeout: time.Minute})
			if err == nil {
				s.Close()
				t.Fatal("it opened")
			}
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q, want %v with %q", err, c.err, c.text)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}

// stream serves n frames as motion JPEG, and then calls then.
func stream(t *testing.T, n int, then func(context.Context)) *httptest.Server {
	t.Helper()
	stop, cancel := context.WithCancel(context.Background())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for i := range n {
			var b bytes.Buffer
			m := image.NewGray(image.Rect(0, 0, 64, 48))
			for p := range m.Pix {
				m.Pix[p] = uint8(10 * i)
			}
			if err := jpeg.Encode(&b, m, nil); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w,
				"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", b.Len(),
				b.Bytes())
			w.(http.Flusher).Flush()
		}
		then(stop)
	}))
	t.Cleanup(func() {
		cancel()
		s.Close()
	})
	return s
}

func TestURL(t *testing.T) {
	s := stream(t, 20, func(context.Context) {})
	src := fixture.Must(facedet.Open(context.Background(), s.URL+"/cam",
		facedet.Options{Timeout: time.Minute}))(t)
	defer src.Close()
	times := fixture.Must(drain(t, src))(t)
	if c := src.Count(); len(times) < 18 || c.Declared != -1 || c.Read != len(times) {
		t.Errorf("%d frames of 20, count %+v", len(times), c)
	}
	for i := 1; i < len(times); i++ {
		if times[i] < times[i-1] {
			t.Fatalf("frame %d at %v, after %v", i, times[i], times[i-1])
		}
	}
}

// A film of which the server knows the length is a recording, although its container has none: its
// times do not depend on this machine.
func TestURLLength(t *testing.T) {
	var film bytes.Buffer
	for i := range 8 {
		m := image.NewGray(image.Rect(0, 0, 64, 48))
		m.Pix[i] = 255
		fixture.Check(t, jpeg.Encode(&film, m, nil))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(film.Len()))
		w.Write(film.Bytes())
	}))
	defer s.Close()
	src := fixture.Must(facedet.Open(t.Context(), s.URL+"/a.mjpeg",
		facedet.Options{Timeout: time.Minute}))(t)
	defer src.Close()
	times, err := drain(t, src)
	if err != nil || len(times) != 8 {
		t.Fatalf("%d frames, %v", len(times), err)
	}
	for i, at := range times {
		if want := time.Duration(i) * 40 * time.Millisecond; at != want {
			t.Errorf("frame %d at %v, want %v", i, at, want)
		}
	}
}

func TestURLStalls(t *testing.T) {
	s := stream(t, 20, func(stop context.Context) { <-stop.Done() })
	src, err := facedet.Source(nil), face.ErrTimeout
	for timeout := 3 * time.Second; errors.Is(err, face.ErrTimeout) && timeout < 5*time.Minute; {
		src, err = facedet.Open(context.Background(), s.URL, facedet.Options{Timeout: timeout})
		timeout *= 3 // a busy machine opens it slowly
	}
	fixture.Check(t, err)
	defer src.Close()
	_, err = drain(t, src)
	if src.Count().Read == 0 {
		t.Errorf("no frame before the stall")
	}
	// FFmpeg may notice first; then the stream has ended.
	if err != nil && !errors.Is(err, face.ErrTimeout) {
		t.Errorf("error %v", err)
	}
}

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

func TestURLNeverAnswers(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, scheme := range []string{"http", "rtsp"} {
		name := scheme + "://me:hush@" + silent(t) + "/cam"
		_, err := facedet.Open(context.Background(), name,
			facedet.Options{Timeout: 500 * time.Millisecond})
		if err == nil {
			t.Fatalf("%s opened", scheme)
		}
		if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "//me") ||
			!strings.Contains(err.Error(), scheme+"://127.0.0.1:") {
			t.Errorf("error %q", err)
		}
	}
	// The abandoned goroutines end when FFmpeg's own limit is reached.
	for range 2400 {
		if runtime.NumGoroutine() <= before+2 { // the listeners
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
}

func TestURLCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := facedet.Open(ctx, "http://"+silent(t), facedet.Options{Timeout: time.Minute})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}

	src := fixture.Must(facedet.Open(context.Background(), video(t, filepath.Join(t.TempDir(),
		"v.avi"), 9),
		facedet.Options{}))(t)
	defer src.Close()
	if _, err := src.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := src.Next(context.Background()); err != io.EOF {
		t.Errorf("after it was cancelled: %v", err)
	}
}
