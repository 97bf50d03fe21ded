// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func event(id uint64) presence.Event {
	return presence.Event{
		ID:     id,
		Kind:   presence.Arrived,
		Who:    sighting.Who{Name: "alice"},
		Camera: "door",
		At:     noon.Add(time.Duration(id) * time.Second),
	}
}

// secret is made up for these tests, and signing is how users write it.
const secret = "made up for the tests of webhooks"

var signing = "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))

// receiver is a server that takes events and notes their numbers, unless it is told to fail.
type receiver struct {
	t    *testing.T
	mu   sync.Mutex
	fail func(try int) int // status of a try that fails, or 0
	try  int
	got  []uint64
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Error(err)
	}
	var e presence.Event
	if err := json.Unmarshal(body, &e); err != nil {
		r.t.Error(err)
	}
	id := q.Header.Get("webhook-id")
	if id != fmt.Sprintf("%d-%d", e.ID, e.At.Unix()) ||
		q.Header.Get("Content-Type") != "application/json" ||
		q.Method != http.MethodPost {
		r.t.Errorf("%s %v", q.Method, q.Header)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	io.WriteString(mac, id+"."+q.Header.Get("webhook-timestamp")+"."+string(body))
	if got, want := q.Header.Get("webhook-signature"),
		"v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)); got != want {
		r.t.Errorf("signature %q, want %q", got, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.try++
	if r.fail != nil {
		if code := r.fail(r.try); code > 0 {
			if code/100 == 3 {
				w.Header().Set("Location", "/elsewhere")
			}
			w.WriteHeader(code)
			return
		}
	}
	r.got = append(r.got, e.ID)
}

func (r *receiver) received() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

var plane = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93}

// scene is a camera that shows what a test wants, one frame after the other.
type scene struct {
	office *office.Office
	frames chan face.Frame
	at     time.Duration
}

func (s *scene) Next(ctx context.Context) (face.Frame, error) {
	select {
	case f := <-s.frames:
		return f, nil
	case <-ctx.Done():
		return face.Frame{}, ctx.Err()
	}
}

func (s *scene) Dropped() int { return 0 }
func (s *scene) Close() error { return nil }

// show shows somebody, or nobody, after a time.
func (s *scene) show(after time.Duration, x ...float32) {
	s.at += after
	f := face.Frame{Time: s.at}
	if x != nil {
		f.Samples = []face.Sample{{Box: image.Rect(0, 0, 9, 9), Vector: x}}
	}
	s.frames <- f
}

var scenes sync.Map // by the past of their office

// book returns the past of an office, in which record lets events happen.
func book(t *testing.T, waiting int) *office.Past {
	t.Helper()
	g := fixture.Must(gallery.New(plane, online.Settings{}))(t)
	fixture.Must(g.Enroll("alice", [][]float32{{0, 0}}, noon, gallery.Enrolment{}))(t)
	b := fixture.Must(office.OpenPast(g, "home", office.PastSettings{Waiting: waiting}))(t)
	s := &scene{frames: make(chan face.Frame)}
	w := office.New(b, office.Options{Freeze: true, Now: func() time.Time { return noon },
		Clock: func(f face.Frame) time.Time { return noon.Add(f.Time) }})
	s.office = w
	scenes.Store(b, s)
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		w.Run(ctx, []office.Camera{{Name: "door",
			Open: func(context.Context, func() bool) (office.Stream, error) {
				return s, nil
			}}})
	})
	t.Cleanup(func() { stop(); run.Wait(); b.Close(); g.Close() })
	return b
}

// happens lets events happen until the office has recorded so many.
func happens(t *testing.T, b *office.Past, id uint64, show func(*scene)) {
	t.Helper()
	s, _ := scenes.Load(b)
	for range 100 {
		if all := s.(*scene).office.Events(0, 1, nil); len(all) == 1 && all[0].ID >= id {
			return
		}
		show(s.(*scene))
	}
	t.Fatalf("event %d does not happen", id)
}

// record lets events happen up to those with these numbers: alice comes and goes.
func record(t *testing.T, b *office.Past, ids ...uint64) {
	t.Helper()
	for _, id := range ids {
		happens(t, b, id, func(s *scene) {
			if all := s.office.Events(0, 1, nil); len(all) == 1 && all[0].Kind == presence.Arrived {
				s.show(11 * time.Second)
				return
			}
			s.show(time.Second/5, 0, 0)
		})
	}
}

// deliver delivers a queue until stop is called. A message has a timeout.
func deliver(t *testing.T, b *office.Past, s sink.Sink, timeout time.Duration,
	failed func(error)) (q *office.Queue,
	stop func()) {
	t.Helper()
	q = b.Queue("hook")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sink.Deliver(ctx, q, s, sink.Options{Backoff: time.Millisecond,
			MaxBackoff: 4 * time.Millisecond, Failed: failed, Timeout: timeout})
	}()
	return q, func() {
		cancel()
		<-done
	}
}

// empty waits until a queue is empty: an event may have arrived before the sink knows it.
func empty(t *testing.T, q *office.Queue) {
	t.Helper()
	wait(t, "an empty queue", func() bool { waiting, _, _ := q.Waiting(); return waiting == 0 })
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 30000 { // a minute
		if ok() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal("in vain: " + what)
}

func TestWebhook(t *testing.T) {
	r := &receiver{t: t, fail: func(try int) int {
		return []int{0, 500, 404, 302, 0}[min(try-1, 4)]
	}}
	server := httptest.NewServer(r)
	defer server.Close()
	hook, err := sink.NewWebhook(server.URL+"/take?token=hidden", []byte(signing))
	fixture.Check(t, err)
	b := book(t, 0)
	var mu sync.Mutex
	var said []string
	q, stop := deliver(t, b, hook, time.Minute, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		said = slices.Compact(append(said, fmt.Sprint(err)))
	})
	record(t, b, 1, 2, 3)
	empty(t, q)
	wait(t, "the end of the trouble", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(said) == 5
	})
	stop()
	if got := r.received(); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("received %d", got)
	}
	if want := []string{"<nil>", "the webhook answers 500 Internal Server Error",
		"the webhook answers 404 Not Found",
		"the webhook answers 302 Found", "<nil>"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}

	// While the server is down nothing is lost up to the limit, and the events arrive after it was
	// restarted.
	server.Close()
	record(t, b, 4, 5)
	err = hook.Send(t.Context(), sink.Message{Event: event(4)})
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a server that is down: %v", err)
	}
	record(t, b, 6) // before the sink is there
	again := httptest.NewServer(r)
	defer again.Close()
	hook, err = sink.NewWebhook(again.URL, []byte(strings.TrimPrefix(signing, "whsec_")))
	fixture.Check(t, err)
	q, stop = deliver(t, b, hook, time.Minute, nil)
	record(t, b, 7)
	empty(t, q)
	stop()
	if got := r.received(); !slices.Equal(got[3:], []uint64{4, 5, 6, 7}) {
		t.Errorf("received %d", got)
	}
}

// A server that hangs delays only its own queue, until the timeout, and never a writer of events.
func TestWebhookHangs(t *testing.T) {
	begun, end := make(chan bool, 1), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case begun <- true:
		default:
		}
		<-end
	}))
	defer server.Close()
	defer close(end)
	hook, err := sink.NewWebhook(server.URL, nil)
	fixture.Check(t, err)
	b := book(t, 0)
	failed := make(chan error, 100)
	_, stop := deliver(t, b, hook, time.Second, func(err error) { failed <- err })
	record(t, b, 1)
	<-begun
	record(t, b, 2, 3)
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	stop()
}

func TestNewWebhook(t *testing.T) {
	for _, c := range []struct {
		url, secret string
		want        error
	}{
		{"https://home.local/hook", signing, nil},
		{"https://home.local/hook", "", nil},
		// hexadecimal is base64, too
		{"https://home.local/hook", strings.Repeat("0123456789abcdef", 4), nil},
		{"https://home.local/hook", secret, sink.ErrSecret},
		// without its padding
		{"https://home.local/hook", signing[:len(signing)-1], sink.ErrSecret},
		{"ftp://home.local", "", sink.ErrURL},
		{"home.local", "", sink.ErrURL},
		{"http://", "", sink.ErrURL},
		{"http://h\x00", "", sink.ErrURL},
		{"http://home.local", "c2hvcnQ=", sink.ErrSecret},
		{"http://home.local", "whsec_%", sink.ErrSecret},
	} {
		if _, err := sink.NewWebhook(c.url, []byte(c.secret)); !errors.Is(err, c.want) {
			t.Errorf("%s %q: %v", c.url, c.secret, err)
		}
	}
}

// Receivers with the official library of Standard Webhooks (Go, 0.0.1) take the secret as users
// write it here, with whsec_ and without, and accept what is signed.
func TestStandardWebhooks(t *testing.T) {
	for _, text := range []string{signing, strings.TrimPrefix(signing, "whsec_"),
		strings.Repeat("0123456789abcdef", 4)} {
		receiver := fixture.Must(standardwebhooks.NewWebhook(text))(t)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := fixture.Must(io.ReadAll(r.Body))(t)
			err := receiver.Verify(body, r.Header)
			if err != nil {
				http.Error(w, "refused", http.StatusForbidden)
			}
		}))
		hook := fixture.Must(sink.NewWebhook(server.URL, []byte(text)))(t)
		err := hook.Send(t.Context(), sink.Message{Event: event(1)})
		if err != nil {
			t.Errorf("a secret of %d characters: %v", len(text), err)
		}
		server.Close()
	}
}

// witness is a sink that keeps what it gets, and has one picture of a person after the other.
type witness struct {
	mu    sync.Mutex
	got   []sink.Message
	shots []album.Face // the next ones; the last one stays
}

func (a *witness) Send(_ context.Context, m sink.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, m)
	return nil
}

func (a *witness) shot(presence.Event) album.Face {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.shots[0]
	a.shots = a.shots[min(1, len(a.shots)-1):]
	return s
}

func (a *witness) messages() []sink.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

// The event of an unknown person has the best picture, once, and a second time if there is a
// clearer one later. A sink that may have no faces gets the event once, with the number of the
// sighting.
func TestBetterPicture(t *testing.T) {
	shown := func(number uint64, jpeg string, clear float64) album.Face {
		return album.Face{ID: number, JPEG: []byte(jpeg), Sharp: math.Expm1(clear)}
	}
	poor := shown(1, "poor", 3)
	alike := shown(2, "alike", 3.1)
	clear := shown(3, "clear", 5)
	gone := album.Face{}
	for _, c := range []struct {
		name  string
		shots []album.Face
		faces bool
		want  string
	}{
		{"better", []album.Face{poor, clear}, true, "1:poor 1-better:clear 2:"},
		{"alike", []album.Face{poor, alike}, true, "1:poor 2:"},
		{"the same", []album.Face{poor, poor}, true, "1:poor 2:"},
		{"named meanwhile", []album.Face{poor, gone}, true, "1:poor 2:"},
		{"none at first", []album.Face{gone, clear}, true, "1: 1-better:clear 2:"},
		{"no faces", []album.Face{poor, clear}, false, "1: 2:"},
	} {
		b := book(t, 10)
		a := &witness{shots: c.shots}
		q := b.Queue("hook")
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			sink.Deliver(ctx, q, a, sink.Options{Shot: a.shot, Faces: c.faces,
				Link:   "http://office/#inbox",
				Better: time.Millisecond})
		})
		happens(t, b, 1, func(s *scene) { s.show(time.Second/5, 0, 2) })
		wait(t, c.name, func() bool { return len(a.messages()) >= strings.Count(c.want, ":")-1 })
		time.Sleep(10 * time.Millisecond) // nothing more may come, however long one waits
		record(t, b, 2)
		empty(t, q)
		cancel()
		done.Wait()
		var got []string
		for _, m := range a.messages() {
			got = append(got, strings.Replace(sink.Name(m), fmt.Sprint("-", m.At.Unix()), "", 1)+
				":"+string(m.Picture))
			if unknown := m.Kind == presence.Unknown; unknown != (m.Link != "") || m.Sighting == 0 {
				t.Errorf("%s: %+v", c.name, m)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

// Ntfy gets who, where and when, the link and the picture.
func TestNtfy(t *testing.T) {
	var got []string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := fixture.Must(io.ReadAll(r.Body))(t)
		q := r.URL.Query()
		got = append(got, strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Authorization"),
			q.Get("title"), q.Get("message"), q.Get("click"), q.Get("filename"), string(body)},
			"|"))
		w.WriteHeader(status)
	}))
	defer server.Close()
	n := fixture.Must(sink.NewNtfy(server.URL+"/home", "tk_made_up"))(t)
	clock := noon.Local().Format("15:04")
	at := presence.Event{Kind: presence.Unknown, Camera: "door", Zone: "till", At: noon}
	known := presence.Event{Kind: presence.Arrived, Who: sighting.Who{Name: "Zoë"}, Camera: "door",
		At: noon}
	for _, m := range []sink.Message{{Event: known}, {Event: at, Link: "http://x/#inbox/stranger-1",
		Picture: []byte("jpeg")}, {Event: at, Better: true}} {
		fixture.Check(t, n.Send(t.Context(), m))
	}
	want := []string{"POST|/home|Bearer tk_made_up|Zoë has arrived||||door, " + clock,
		"POST|/home|Bearer tk_made_up|Somebody unknown is there|door, till, " + clock +
			"|http://x/#inbox/stranger-1|face.jpg|jpeg"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	status = http.StatusTooManyRequests
	err := n.Send(t.Context(), sink.Message{Event: known})
	if err == nil || err.Error() != "ntfy answers 429 Too Many Requests" {
		t.Error(err)
	}
	for _, bad := range []string{"", "ntfy.sh/x", "https://ntfy.sh", "https://ntfy.sh/x?a=b"} {
		if _, err := sink.NewNtfy(bad, ""); !errors.Is(err, sink.ErrURL) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
