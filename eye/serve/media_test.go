// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// start starts an eye as the program does: this program is an eye if its first argument says so.
func start(t testing.TB) *eye.Eye {
	t.Helper()
	e := fixture.Must(eye.Start(t.Context(), config(t)))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

func config(t testing.TB) eye.Config {
	return eye.Config{
		Space:  models.Default(models.Embedding).Space(),
		Vision: eye.Vision{Features: "embedding", Detector: "network", Models: fixture.Models(t)},
	}
}

// here reads a recording in this process, as the eye does in its process.
func here(t testing.TB, path string, o pipeline.Options, most int) (all []face.Frame) {
	t.Helper()
	d, e, err := Open(config(t).Vision)
	fixture.Check(t, err)
	defer d.Close()
	defer e.Close()
	src := fixture.Must(facedet.Open(t.Context(), path, facedet.Options{}))(t)
	defer src.Close()
	p := pipeline.New(src, d, e, o)
	for len(all) < most {
		f, err := p.Next(t.Context())
		if err != nil {
			break
		}
		all = append(all, f)
	}
	return all
}

// An eye gives the same frames as the pipeline in this process, to the bit.
func TestSame(t *testing.T) {
	for _, recording := range []string{"faces/fast_videos/clm_multi_face.avi",
		"faces/vidtimit_rot/p0",
		"faces/fast_videos/clm_default.wmv"} {
		path := fixture.Recordings(t, recording)
		const most = 10
		want := here(t, path,
			pipeline.Options{Gate: preprocess.LearnGate, Picture: 112, Frame: func() bool {
				return true
			}, Width: 640}, most)
		if len(want) != most {
			t.Fatalf("%d frames", len(want))
		}
		e := start(t)
		s := fixture.Must(e.Open(t.Context(), path, eye.Options{Gate: eye.Learn, Picture: 112,
			Frame: func() bool { return true }}))(t)
		if r := e.Report(); !r.Seccomp || r.Landlock == 0 || !strings.Contains(r.Runs, " ") {
			t.Errorf("the sandbox, and what runs the networks, is %+v", r)
		}
		faces := 0
		for i, w := range want {
			f := fixture.Must(s.Next(t.Context()))(t)
			if fmt.Sprintf("%+v", plain(f)) != fmt.Sprintf("%+v", plain(w)) {
				t.Errorf("%s, frame %d differs", recording, i)
			}
			for j := range f.Samples {
				if !slices.Equal(f.Samples[j].Vector, w.Samples[j].Vector) ||
					!slices.Equal(f.Samples[j].Landmarks, w.Samples[j].Landmarks) ||
					!bytes.Equal(f.Samples[j].JPEG, w.Samples[j].JPEG) {
					t.Errorf("%s, frame %d, face %d differs", recording, i, j)
				}
				faces++
			}
			if !bytes.Equal(f.JPEG, w.JPEG) {
				t.Errorf("%s, frame %d: another picture", recording, i)
			}
		}
		if s.Count().Read != most || faces < most {
			t.Errorf("%s: %+v, %d faces", recording, s.Count(), faces)
		}
		e.Close()
	}
}

// plain returns a frame without the parts that are compared separately.
func plain(f face.Frame) face.Frame {
	f.JPEG, f.Samples = nil, slices.Clone(f.Samples)
	for i := range f.Samples {
		f.Samples[i].Vector, f.Samples[i].JPEG, f.Samples[i].Landmarks = nil, nil, nil
	}
	return f
}

// One eye opens several sources, one after the other, only in its roots. An error of one source
// does not change the eye.
func TestSources(t *testing.T) {
	e := start(t)
	roots := fixture.Recordings(t, "faces/att")
	for _, name := range []string{"s1", "s2", "none", "s3"} {
		s, err := e.Open(t.Context(), filepath.Join(roots, name),
			eye.Options{Gate: eye.Enrol, Roots: []string{roots},
				FPS: 5})
		if name == "none" {
			if !errors.Is(err, os.ErrNotExist) || errors.Is(err, eye.ErrBroken) {
				t.Errorf("a folder that is not there: %v", err)
			}
			continue
		}
		fixture.Check(t, err)
		frames := 0
		for {
			_, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			fixture.Check(t, err)
			frames++
		}
		// Ten photographs: the eye leaves none out, whatever the rate.
		if n := s.Count(); frames != 10 || n.Read != 10 || n.Declared != 10 {
			t.Errorf("%s: %d frames, %+v", name, frames, n)
		}
	}
	if _, err := e.Open(t.Context(), fixture.Recordings(t, "faces/umist/s01"),
		eye.Options{Gate: eye.Learn}); !errors.Is(err, os.ErrPermission) ||
		errors.Is(err, eye.ErrBroken) {
		t.Errorf("a folder that is not among the roots: %v", err)
	}
}

// Missing networks are reported before any source is opened.
func TestNoNetworks(t *testing.T) {
	c := config(t)
	c.Vision.Models = t.TempDir()
	e, err := eye.Start(t.Context(), c)
	fixture.Check(t, err)
	defer e.Close()
	_, err = e.Open(t.Context(), "nothing", eye.Options{Gate: eye.Learn})
	if !errors.Is(err, eye.ErrVision) || !errors.Is(err, models.ErrMissing) {
		t.Error(err)
	}
}

// Damaged media are errors of their source, or frames that keep the rules. None of 300 mutations of
// real recordings and pictures hangs or ends the program or the eye.
func TestMutatedMedia(t *testing.T) {
	if testing.Short() {
		t.Skip("300 files are decoded")
	}
	videos := fixture.Recordings(t, "faces/fast_videos")
	stills := fixture.Recordings(t, "faces/att/s1")
	var seeds []string
	for _, dir := range []string{videos, stills, fixture.Recordings(t, "faces/vidtimit_rot/p0")} {
		names := fixture.Must(os.ReadDir(dir))(t)
		for i, n := range names {
			if i < 16 && (dir == videos || i < 4) {
				seeds = append(seeds, filepath.Join(dir, n.Name()))
			}
		}
	}
	random := rand.New(rand.NewPCG(16, 0)) // any fixed seed
	dir := t.TempDir()
	e := start(t)
	frames, failed, broken := 0, 0, 0
	longest := time.Duration(0)
	for i := range 300 {
		seed := seeds[i%len(seeds)]
		b := fixture.Must(os.ReadFile(seed))(t)
		path := filepath.Join(dir, fmt.Sprintf("%03d%s", i, filepath.Ext(seed)))
		fixture.Check(t, os.WriteFile(path, mutated(random, b), 0o600))
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s, err := e.Open(ctx, path, eye.Options{Gate: eye.Learn, Picture: 112, FPS: 1,
			Roots:   []string{dir},
			Timeout: 5 * time.Second})
		for n := 0; err == nil && n < 5; n++ {
			if _, err = s.Next(ctx); err == nil {
				frames++
			}
		}
		cancel()
		switch {
		case errors.Is(err, eye.ErrBroken):
			t.Logf("%s, of %s: %v", filepath.Base(path), filepath.Base(seed), err)
			broken++
			e.Close()
			e = start(t)
		case err != nil && !errors.Is(err, io.EOF):
			failed++
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s, of %s, hangs", filepath.Base(path), filepath.Base(seed))
		}
		longest = max(longest, time.Since(begun))
		os.Remove(path)
	}
	t.Logf("300 files: %d frames, %d errors, %d eyes broken, the longest took %v", frames, failed,
		broken, longest)
	if broken > 0 {
		t.Error("a decoder, or what is done with its frames, has a fault")
	}
	if frames < 200 || failed < 20 {
		t.Error("the mutations are too weak, or too strong, to try anything")
	}
}

// mutated returns the bytes of a file with damage: wrong bits and runs, and parts that are missing
// or doubled.
func mutated(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	near := func() int { // half of the damage is in the head, where lengths and counts are
		if r.IntN(2) == 0 {
			return r.IntN(min(len(b), 512))
		}
		return r.IntN(len(b))
	}
	for range 1 + r.IntN(20) {
		if len(b) < 16 {
			break
		}
		at := near()
		n := min(1+r.IntN(64), len(b)-at)
		switch r.IntN(6) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			for i := range n {
				b[at+i] = byte(r.Uint32())
			}
		case 2:
			copy(b[at:], bytes.Repeat([]byte{0xff}, min(n, 8)))
		case 3:
			copy(b[at:], make([]byte, min(n, 8)))
		case 4:
			b = slices.Delete(b, at, at+n)
		case 5:
			b = slices.Insert(b, at, bytes.Clone(b[at:at+n])...)
		}
	}
	if r.IntN(10) == 0 {
		b = b[:r.IntN(len(b))]
	}
	return b
}

// A network camera is reached by its address and by its name, and its server receives this name. It
// is reached again after it broke off, and after a first name was wrong.
func TestNetworkCamera(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/vidtimit_rot/p2"),
		"*"))
	if err != nil || len(pictures) < 3 {
		t.Fatal(err)
	}
	var mu sync.Mutex
	hosts := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hosts[r.Host]++
		mu.Unlock()
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=x")
		for range 20 {
			for _, p := range pictures[:3] {
				b, err := os.ReadFile(p)
				if err != nil {
					t.Error(err)
				}
				if _, err := fmt.Fprintf(w,
					"--x\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", len(b),
					b); err != nil {
					return
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost"} {
		e := start(t)
		if host == "localhost" {
			_, err := e.Open(t.Context(), "http://no-such-name.invalid:"+port+"/s",
				eye.Options{Gate: eye.Learn, Timeout: time.Minute})
			if err == nil || !strings.Contains(err.Error(),
				"the name no-such-name.invalid cannot be found") ||
				errors.Is(err, eye.ErrBroken) {
				t.Errorf("a name that there is not: %v", err)
			}
		}
		for range 2 {
			s := fixture.Must(e.Open(t.Context(), "http://"+host+":"+port+"/stream",
				eye.Options{Gate: eye.Learn, Live: true}))(t)
			if f, err := s.Next(t.Context()); err != nil || len(f.Samples) != 1 {
				t.Errorf("%s: %d faces, %v", host, len(f.Samples), err)
			}
		}
		mu.Lock()
		if hosts[host+":"+port] < 2 {
			t.Errorf("the server was told %v, and not %s", hosts, host)
		}
		mu.Unlock()
		e.Close()
	}
}

// sha256Digest reports whether a header of a request answers a challenge with the nonce abc for me
// and hush.
func sha256Digest(header, method, uri string) bool {
	hash := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	want := hash(hash("me:cam:hush") + ":abc:" + hash(method+":"+uri))
	return strings.Contains(header, `response="`+want+`"`)
}

// A camera that offers Digest with MD5 and then with SHA-256, which FFmpeg does not answer, is used
// all the same, and one that refuses the password says what it offers.
func TestLogin(t *testing.T) {
	const md5Offer, shaOffer = `Digest realm="cam", nonce="abc"`,
		`Digest realm="cam", nonce="abc", algorithm=SHA-256`
	var picture bytes.Buffer
	fixture.Check(t, jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, 160, 120)), nil))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sha256Digest(r.Header.Get("Authorization"), r.Method, r.RequestURI) {
			w.Header()["Www-Authenticate"] = []string{md5Offer, shaOffer}
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for r.Context().Err() == nil {
			fmt.Fprintf(w,
				"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n",
				picture.Len(),
				picture.Bytes())
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}))
	t.Cleanup(web.Close) // after the eye's end
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	serve := func(c net.Conn) {
		defer c.Close()
		r := textproto.NewReader(bufio.NewReader(c))
		for {
			line, err := r.ReadLine()
			header, headerErr := r.ReadMIMEHeader()
			if err != nil || headerErr != nil {
				return
			}
			words := strings.Fields(line)
			status, more := "401 Unauthorized", "WWW-Authenticate: "+md5Offer+
				"\r\nWWW-Authenticate: "+shaOffer+"\r\n\r\n"
			if sha256Digest(header.Get("Authorization"), words[0], words[1]) {
				status, more = "200 OK",
					"Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n\r\n"
				const sdp = "v=0\r\nm=audio 0 RTP/AVP 0\r\n"
				if words[0] == "DESCRIBE" {
					more = fmt.Sprintf(
						"Content-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s", len(sdp),
						sdp)
				}
			}
			fmt.Fprintf(c, "RTSP/1.0 %s\r\nCSeq: %s\r\n%s", status, header.Get("CSeq"), more)
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	e := fixture.Must(eye.Start(t.Context(), config(t)))(t)
	t.Cleanup(func() { e.Close() })
	host := strings.TrimPrefix(web.URL, "http://")
	for name, want := range map[string]string{
		"rtsp://me:wrong@" + l.Addr().String() + "/1": "refuses the user name or the password",
		"rtsp://me:hush@" + l.Addr().String() + "/1":  "the stream at this path has none",
		"http://me:wrong@" + host + "/1":              "refuses the user name or the password",
	} {
		_, err := e.Open(t.Context(), name, eye.Options{Gate: eye.Learn, Timeout: time.Minute})
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	s := fixture.Must(e.Open(t.Context(), "http://me:hush@"+host+"/1",
		eye.Options{Gate: eye.Learn, Timeout: time.Minute}))(t)
	for range 3 {
		fixture.Must(s.Next(t.Context()))(t)
	}
}
