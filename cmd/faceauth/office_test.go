// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/chromedp"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/tape"
)

// site is an office whose cameras see people who are made up.
type site struct {
	t         *testing.T
	dir, demo string
	run       string // folder for files of the present session
	eye       string // in the environment: which eye the commands use
}

func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel() // these tests mostly wait for their recordings
	return &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: films(t)}
}

func (s *site) recording(name string) string { return filepath.Join(s.demo, name+".avi") }

func (s *site) command(args ...string) *exec.Cmd {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "faceauth",
		append(args, "--gallery", filepath.Join(s.dir, "gallery"), "--models", fixture.Models(s.t))...)
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.run, s.eye)
	return c
}

func (s *site) enrol(name string) {
	s.t.Helper()
	if out, err := s.command("enroll", s.recording(name), "--name", name).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// running is a running office.
type running struct {
	t        *testing.T
	c        *exec.Cmd
	out, log *fixture.Log
	once     sync.Once
}

func (s *site) office(args ...string) *running {
	s.t.Helper()
	return s.officeAs("state", args...)
}

// officeAs is [site.office] with a given name of the office.
func (s *site) officeAs(state string, args ...string) *running {
	s.t.Helper()
	r := &running{t: s.t, out: new(fixture.Log), log: new(fixture.Log)}
	r.c = s.command(append([]string{"office", "--state", state}, args...)...)
	r.c.Stdout, r.c.Stderr = r.out, r.log
	if err := r.c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		r.stop()
		if s.t.Failed() {
			s.t.Logf("office said\n%s\n%s", r.out, r.log)
		}
	})
	return r
}

// stop ends the office as a service manager does.
func (r *running) stop() {
	r.once.Do(func() {
		r.c.Process.Signal(os.Interrupt)
		r.c.Wait()
	})
}

// until waits, a minute at most, until a text is in the output or in the messages.
func (r *running) until(what string) {
	r.t.Helper()
	waits(r.t, what, func() bool { return strings.Contains(r.out.String()+r.log.String(), what) })
}

// longest is the time after which nothing is waited for any more, even on a busy machine.
const longest = 2 * time.Minute

// waits waits until something is so.
func waits(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// page returns the address of the page.
func (r *running) page() string {
	r.t.Helper()
	r.until("the page is at ")
	return strings.TrimSuffix(regexp.MustCompile(`https?://\S+`).FindString(r.log.String()), "/")
}

// jpegs returns the frames of a film.
func jpegs(t *testing.T, path string) (pictures [][]byte) {
	t.Helper()
	f := fixture.Must(tape.Read(path))(t)
	for _, shot := range f.Frames {
		pictures = append(pictures, tape.JPEG(shot...))
	}
	return pictures
}

// pace is the time that a camera of the tests takes for a frame: slow, as several tests watch at once.
const pace = 100 * time.Millisecond

// ipCamera serves a recording as motion JPEG, again and again. A function chooses what happens at each visit, by its
// number.
func ipCamera(t *testing.T, recording string, visit func(n int) (frames int, hang bool)) *httptest.Server {
	t.Helper()
	pictures := jpegs(t, recording)
	ctx, cancel := context.WithCancel(context.Background())
	var visits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "hidden" {
			w.Header().Set("WWW-Authenticate", `Basic realm="camera"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		n, hang := visit(int(visits.Add(1)) - 1)
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		for i := range n {
			b := pictures[i%len(pictures)]
			fmt.Fprintf(w, "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n", len(b), b)
			w.(http.Flusher).Flush()
			select {
			case <-time.After(pace):
			case <-ctx.Done():
				return
			}
		}
		if hang {
			<-ctx.Done()
		}
	}))
	t.Cleanup(func() {
		cancel()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// camera returns the URL of a camera that shows a recording for ever, so that a slow machine misses nothing.
func (s *site) camera(name string) string {
	s.t.Helper()
	server := ipCamera(s.t, s.recording(name), func(int) (int, bool) { return 1 << 20, false })
	return strings.Replace(server.URL, "http://", "http://me:hidden@", 1) + "/stream"
}

// A network camera ends, refuses and hangs, and comes back each time. Its password is in no output.
func TestOfficeCamera(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	camera := ipCamera(t, s.recording("alice"), func(n int) (int, bool) {
		switch n {
		case 0:
			return 60, false // the camera ends, after it was opened
		case 1, 2:
			return 0, false // nothing, also when the program asks for the reason
		case 3:
			return 60, true // the camera hangs
		}
		return 1 << 20, false
	})
	r := s.office("door="+strings.Replace(camera.URL, "http://", "http://me:hidden@", 1)+"/stream", "--timeout", "3s",
		"--away", "60s")
	r.until("door  alice has arrived")
	r.until("it has ended; it is tried again")
	r.until("none after ")
	waits(t, "the camera comes back", func() bool {
		return strings.Count(r.log.String(), "door: camera connected") >= 3
	})
	r.stop()
	if n := strings.Count(r.out.String(), "arrived"); n != 1 || strings.Contains(r.out.String(), "left") {
		t.Errorf("%s", r.out)
	}
	if strings.Contains(r.out.String()+r.log.String(), "hidden") {
		t.Error("the camera's password was said")
	}
}

// A webhook gets all events, also those from the time when it was not there.
func TestOfficeWebhook(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	var mu sync.Mutex
	up := false
	got := make(map[string]int)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !up {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var e struct{ Kind, Name string }
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		got[e.Kind+" "+e.Name]++
	}))
	defer hook.Close()
	play := func() {
		t.Helper()
		r := s.office("door="+s.recording("alice"), "--fast", "--webhook", hook.URL)
		fixture.Check(t, r.c.Wait())
		r.once.Do(func() {})
	}
	play()
	mu.Lock()
	up = true
	mu.Unlock()
	play()
	mu.Lock()
	defer mu.Unlock()
	if got["arrived alice"] != 2 || got["left alice"] != 2 {
		t.Errorf("%v", got)
	}
}

// browser returns a headless Chromium with the size of a screen or a phone.
func browser(t *testing.T, width, height int) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		fixture.Missing(t, "there is no browser; install the Debian package chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(time.Minute), chromedp.WindowSize(width, height))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	// Events that this chromedp does not know are no errors of the page.
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(format string, args ...any) {
		if !strings.Contains(format, "unhandled") {
			t.Logf(format, args...)
		}
	}))
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// script runs JavaScript in a browser and returns its value.
func script(t *testing.T, b context.Context, js string) string {
	t.Helper()
	out, err := evaluated(b, js)
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return out
}

func evaluated(b context.Context, js string) (out string, err error) {
	err = chromedp.Run(b, chromedp.Evaluate("String("+js+")", &out))
	return out, err
}

// awaits waits until a JavaScript expression is true.
func awaits(t *testing.T, b context.Context, js string) {
	t.Helper()
	// While a page is loading it has no elements, and one that makes room for another answers with an error.
	tried := "(() => { try { return " + js + " } catch { return false } })()"
	for end := time.Now().Add(longest); ; time.Sleep(50 * time.Millisecond) {
		out, err := evaluated(b, tried)
		if out == "true" {
			return
		}
		if gone := (*cdproto.Error)(nil); err != nil && !errors.As(err, &gone) {
			t.Fatalf("%s: %v", js, err)
		}
		if time.Now().After(end) {
			picture(t, b, "failed")
			t.Fatalf("in vain: %s\n%s", js, script(t, b, "document.body.innerText"))
		}
	}
}

// picture saves a screenshot in $FACEAUTH_PICTURES, if that is set, with the faces blurred.
func picture(t *testing.T, b context.Context, name string) {
	t.Helper()
	dir := os.Getenv("FACEAUTH_PICTURES")
	if dir == "" {
		return
	}
	script(t, b,
		"document.styleSheets[0].insertRule('img{filter:blur(9px)}', document.styleSheets[0].cssRules.length)")
	var png []byte
	fixture.Check(t, chromedp.Run(b, chromedp.FullScreenshot(&png, 100)))
	fixture.Check(t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// press presses keys, as a user without a mouse does.
func press(t *testing.T, b context.Context, keys string) {
	t.Helper()
	fixture.Check(t, chromedp.Run(b, chromedp.KeyEvent(keys)))
}

// Tests the whole story in a browser: a stranger appears, is named, is recognised in the next recording, and is
// corrected.
func TestSystemOfficePage(t *testing.T) {
	s := newSite(t)
	s.enrol("bob")
	b := browser(t, 1100, 900)
	has := func(selector, text string) string {
		return fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text)
	}
	loaded := "[...document.images].every(i => i.hidden || i.complete && i.naturalWidth > 0)"

	view := func(anchor string) { script(t, b, fmt.Sprintf("location.hash = %q", anchor)) }

	r := s.office("hall="+s.camera("alice"), "--page", "127.0.0.1:0")
	fixture.Check(t, chromedp.Run(b, chromedp.Navigate(r.page()+"/")))
	awaits(t, b, has(".box b", "unknown"))
	view("#inbox")
	awaits(t, b, "document.querySelectorAll('#question .best img').length >= 3")
	awaits(t, b, loaded)
	picture(t, b, "stranger")
	// With the keyboard alone: the field, the name, Enter.
	script(t, b, "document.querySelector('#question input[type=text]').focus()")
	press(t, b, "alice\r")
	awaits(t, b, has("#toasts", "Named alice."))
	awaits(t, b, has("#question", "No question is open."))
	view("#people")
	awaits(t, b, has("#people-list li", "alice"))
	r.stop()

	r = s.office("hall="+s.camera("alice"), "--page", "127.0.0.1:0")
	fixture.Check(t, chromedp.Run(b, chromedp.Navigate(r.page()+"/#now")))
	awaits(t, b, has("#now-title", "alice is here"))
	awaits(t, b, has(".box.known b", "alice"))
	awaits(t, b, has("#sightings li", "alice"))
	awaits(t, b, loaded)
	picture(t, b, "recognised")
	view("#timeline")
	awaits(t, b, has(".events li", "arrived"))
	awaits(t, b, "document.querySelectorAll('.bars svg[role=img]').length > 0")

	view("#now")
	awaits(t, b, has("#sightings li", "alice"))
	script(t, b,
		"[...document.querySelectorAll('#sightings li')].find(e => e.innerText.includes('alice')).firstElementChild.click()")
	awaits(t, b, has("#sheet h2", "alice"))
	script(t, b,
		"[...document.querySelectorAll('#sheet button')].find(b => b.innerText === 'It is somebody else').click()")
	awaits(t, b, has("#toasts", "That was not alice, and will not be again."))
	r.until("that was not alice")
	view("#timeline")
	awaits(t, b, has(".events li", "was not there: a mistake"))
	view("#now")
	// The camera shows the same again and again. She was there when the office restarted, so she did not arrive again.
	awaits(t, b, has(".box b", "unknown"))
	time.Sleep(5 * time.Second)
	if _, since, _ := strings.Cut(r.out.String(), "that was not alice"); strings.Contains(since,
		"alice has arrived") {
		t.Error("she is given the name again")
	}
	picture(t, b, "corrected")
	page := r.page()
	r.stop()
	awaits(t, b, has("#trouble", "The office does not answer"))

	// The page loads nothing from other sites.
	own := "performance.getEntriesByType('resource').every(e => e.name.startsWith('" + page + "'))"
	if got := script(t, b, own); got != "true" {
		t.Error("it asks somebody else")
	}
}
