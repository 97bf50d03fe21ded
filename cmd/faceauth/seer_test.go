// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image/jpeg"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/internal/tape"
)

// Programs ask an office who is in a picture. Nothing of it is stored or learned, and a picture
// that attacks the decoder gets a sentence.
func TestPlainRecognise(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	r := s.office("door="+s.silent(), "--page", "127.0.0.1:0", "--learn")
	type found struct {
		Size  [2]int
		Faces []struct {
			Name       string
			Person     int64
			Near       bool
			Distance   float64
			Confidence float64
			Reason     string
			Size       int
		}
	}
	ask := func(kind string, body []byte) (int, string, found) {
		t.Helper()
		a := fixture.Must(http.Post(r.page()+"/api/recognise", kind, bytes.NewReader(body)))(t)
		defer a.Body.Close()
		b := fixture.Must(io.ReadAll(a.Body))(t)
		var f found
		if a.StatusCode == http.StatusOK {
			if err := json.Unmarshal(b, &f); err != nil {
				t.Fatalf("%s: %v", b, err)
			}
		}
		return a.StatusCode, string(b), f
	}
	var before, after any
	known := r.get("/api/people", &before)
	alice, asPNG := jpegs(t, s.recording("alice"))[0], tape.PNG(tape.Moving("alice", .5, 4))
	for kind, picture := range map[string][]byte{"image/jpeg": alice, "image/png": asPNG} {
		code, text, f := ask(kind, picture)
		if code != 200 || len(f.Faces) != 1 || f.Faces[0].Name != "alice" ||
			f.Faces[0].Person != 1 ||
			!f.Faces[0].Near || !(f.Faces[0].Distance > 0) && kind == "image/png" ||
			f.Faces[0].Size < 40 {
			t.Errorf("%s: %d %s", kind, code, text)
		}
	}
	if code, text, f := ask("image/jpeg", jpegs(t, s.recording("bob"))[0]); code != 200 ||
		len(f.Faces) != 1 ||
		f.Faces[0].Name != "" || f.Faces[0].Reason == "" {
		t.Errorf("a stranger: %d %s", code, text)
	}
	const unread = "the picture cannot be used: "
	for name, c := range map[string]struct {
		kind string
		body []byte
		code int
		want string
	}{
		"no picture": {"image/jpeg", []byte("garbage"), 422, "it is no JPEG"},
		"empty":      {"image/png", nil, 422, "it is no JPEG"},
		"a bomb":     {"image/png", bomb(60000, 60000), 422, unread},
		"another end": {"text/plain", alice, 415,
			"send a picture, with the header Content-Type: image/jpeg"},
		"too large": {"image/jpeg", append(alice[:len(alice):len(alice)], make([]byte, 17<<20)...),
			413, "16 MiB"},
	} {
		begun := time.Now()
		code, text, _ := ask(c.kind, c.body)
		if code != c.code || !strings.Contains(text, c.want) ||
			strings.Contains(text, "faceauth-picture") {
			t.Errorf("%s: %d %s after %v", name, code, text, time.Since(begun))
		}
	}
	if code, text, f := ask("image/jpeg", alice); code != 200 || len(f.Faces) != 1 ||
		f.Faces[0].Name != "alice" {
		t.Errorf("after the attacks: %d %s", code, text)
	}
	if now := r.get("/api/people", &after); now != known {
		t.Errorf("%s, before %s", now, known)
	}
	r.uploads("bob", map[string][]byte{"bob.jpg": jpegs(t, s.recording("bob"))[0],
		"alice.jpg": alice,
		"bomb.png":  bomb(60000, 60000), "text.jpg": []byte("garbage")}, map[string]string{
		"bob.jpg": "", "alice.jpg": "it looks like alice", "bomb.png": unread,
		"text.jpg": "it is no JPEG, PNG"})
	if code, text, f := ask("image/jpeg", jpegs(t, s.recording("bob"))[0]); len(f.Faces) != 1 ||
		f.Faces[0].Name != "bob" || !f.Faces[0].Near {
		t.Errorf("after the enrolment: %d %s", code, text)
	}
	folders, _ := os.ReadDir(s.run)
	for _, f := range folders {
		if left, _ := os.ReadDir(s.run + "/" + f.Name()); len(left) > 0 {
			t.Errorf("%s is left", left[0].Name())
		}
	}
	r.stop()
	if left, _ := os.ReadDir(s.run); len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
}

// A webhook that may have faces gets the picture of a stranger, which the page recognises as
// nobody, with a link.
func TestPlainStrangersPicture(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	got := make(chan sink.Message, 9)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m sink.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		got <- m
	}))
	defer hook.Close()
	// With --fast a busy machine passes over no frame.
	r := s.office("door="+s.recording("bob"), "--page", "127.0.0.1:0", "--page-url",
		"https://home.example/office/",
		"--fast", "--stay", "--webhook", hook.URL, "--webhook-faces")
	select {
	case m := <-got:
		if m.Kind != presence.Unknown || m.Sighting == 0 || m.Face == 0 || m.Better ||
			m.Link != fmt.Sprintf("https://home.example/office/#inbox/stranger-%d", m.Group) {
			t.Errorf("%+v", m)
		}
		a := fixture.Must(http.Post(r.page()+"/api/recognise", "image/jpeg",
			bytes.NewReader(m.Picture)))(t)
		defer a.Body.Close()
		if picture, err := jpeg.DecodeConfig(bytes.NewReader(m.Picture)); err != nil ||
			picture.Width < 40 ||
			a.StatusCode != http.StatusOK {
			t.Errorf("%+v, %v, %s", picture, err, a.Status)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody unknown came")
	}
	r.stop()
}

// bomb is a PNG that declares a size.
func bomb(width, height uint32) []byte {
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	head = append(binary.BigEndian.AppendUint32(head, height), 8, 2, 0, 0, 0)
	b := binary.BigEndian.AppendUint32([]byte("\x89PNG\r\n\x1a\n"), uint32(len(head)-4))
	return binary.BigEndian.AppendUint32(append(b, head...), crc32.ChecksumIEEE(head))
}

// uploads sends pictures for the enrolment of a person, and wants the word about each of them.
func (r *running) uploads(name string, pictures map[string][]byte, want map[string]string) {
	r.t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for file, picture := range pictures {
		f, err := m.CreateFormFile("picture", file)
		if err == nil {
			_, err = f.Write(picture)
		}
		fixture.Check(r.t, err)
	}
	m.Close()
	a := fixture.Must(http.Post(r.page()+"/api/people?name="+name, m.FormDataContentType(),
		&b))(r.t)
	defer a.Body.Close()
	var got struct {
		Pictures []struct {
			File, Wrong string
			Enrolled    bool
		}
	}
	if err := json.NewDecoder(a.Body).Decode(&got); err != nil || a.StatusCode != http.StatusOK ||
		len(got.Pictures) != len(want) {
		r.t.Fatalf("%s %v %+v", a.Status, err, got)
	}
	for _, p := range got.Pictures {
		if p.Enrolled != (want[p.File] == "") || !strings.Contains(p.Wrong, want[p.File]) {
			r.t.Errorf("%+v, want %q", p, want[p.File])
		}
	}
}
