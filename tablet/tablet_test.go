// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
)

// desk is an authenticator with an artificial camera and clock.
type desk struct {
	*tablet.Authenticator
	film  stage.Camera
	path  string
	key   profile.Key
	store *profile.Store
	o     tablet.Options

	mu    sync.Mutex
	ahead time.Duration // how far the clock is ahead of the true time
	log   bytes.Buffer
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Add(d.ahead)
}

func (d *desk) pass(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead += t
}

// bubble runs a test with a clock of its own, which moves only while every goroutine waits. A slow
// disk or a busy machine therefore takes no time.
func bubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

func newDesk(t *testing.T, o tablet.Options) *desk {
	t.Helper()
	d := &desk{path: filepath.Join(t.TempDir(), "profiles"), key: profile.NewKey([32]byte{})}
	if o.Policy.Deadline == 0 {
		o.Policy.Deadline = 5 * time.Second
	}
	o.Now, o.Log = d.now, slog.New(slog.NewTextHandler(&d.log, nil))
	d.o = o
	d.open(t)
	t.Cleanup(func() {
		d.store.Close()
		if now, most := d.film.Uses(); now != 0 || most > 1 {
			t.Errorf("%d cameras left open, %d at once", now, most)
		}
	})
	return d
}

// open opens the store.
func (d *desk) open(t *testing.T) {
	t.Helper()
	var err error
	if d.store, err = profile.Open(d.path, d.key, stage.Space); err != nil {
		t.Fatal(err)
	}
	if d.Authenticator, err = tablet.New(d.store, stage.Space, d.film.Open, d.o); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) enrol(t *testing.T, user string, who []float32) {
	t.Helper()
	d.film.Play(stage.Show{Frames: stage.Enrolling(who)})
	r, err := d.Enroll(t.Context(), user, "", false, func(tablet.Result) {})
	if err != nil || r.Word != tablet.Enrolled {
		t.Fatalf("enrolling %s: %+v, %v\n%s", user, r, err, d.log.String())
	}
}

// verify returns the words of a login, without repetitions.
func (d *desk) verify(t *testing.T, user string, frames []face.Frame,
	end error) (tablet.Word, []tablet.Word) {
	t.Helper()
	d.film.Play(stage.Show{Frames: frames, End: end})
	var words []tablet.Word
	r, err := d.Verify(t.Context(), tablet.Attempt{User: user},
		func(r tablet.Result) { words = append(words, r.Word) })
	if err != nil {
		t.Fatalf("verifying %s: %v", user, err)
	}
	return r.Word, words
}

// ready returns a desk where alice is enrolled and has given her password.
func ready(t *testing.T, o tablet.Options) *desk {
	d := newDesk(t, o)
	d.enrol(t, "alice", stage.Alice)
	fixture.Check(t, d.Password("alice", 0, ""))
	return d
}

// lively gives each frame a liveness score, and returns the frames.
func lively(who []float32, n int, scores ...float32) []face.Frame {
	var all []face.Frame
	for i := range n {
		s := stage.Sample(who)
		if len(scores) > 0 {
			s.Liveness = &scores[i%len(scores)]
		}
		all = append(all, face.Frame{Samples: []face.Sample{s}})
	}
	return all
}

// With the gate on, a picture of the user is not let in, and neither is a face without a score.
// Both count as a failure, and nothing is learned from them. A picture cannot be enrolled either.
func TestLiveness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		frames []face.Frame
		want   tablet.Word
		learns bool
	}{
		{"the user", lively(stage.At(stage.Alice, .1), 9, .9), tablet.Match, true},
		{"a picture", lively(stage.At(stage.Alice, .1), 9, .1), "taken-for-picture", false},
		{"nothing scored", lively(stage.At(stage.Alice, .1), 9), "taken-for-picture", false},
		{"two frames", lively(stage.At(stage.Alice, .1), 2, .9), "too-few-pictures", true},
		{"a live stranger", lively(stage.Bob, 9, .9), tablet.NoMatch, false},
		{"a live stranger before a picture",
			slices.Concat(lively(stage.Bob, 2, 1), lively(stage.Alice, 3, 0)),
			"taken-for-picture", false},
	} {
		t.Run(c.name, bubble(func(t *testing.T) {
			d := newDesk(t, tablet.Options{Policy: tablet.Policy{MinLiveness: .5}})
			film := stage.Enrolling(stage.Alice)
			enrol := func() tablet.Word {
				d.film.Play(stage.Show{Frames: film})
				r := fixture.Must(d.Enroll(t.Context(), "alice", "", false,
					func(tablet.Result) {}))(t)
				return r.Word
			}
			if got := enrol(); got != "timed-out" { // no face had a score
				t.Errorf("a picture is enrolled: %q", got)
			}
			alive := float32(.9)
			for i := range film {
				film[i].Samples[0].Liveness = &alive
			}
			if got := enrol(); got != tablet.Enrolled {
				t.Fatalf("a live face is not enrolled: %q", got)
			}
			fixture.Check(t, d.Password("alice", 0, ""))
			w, words := d.verify(t, "alice", c.frames, nil)
			if w != c.want || w == "taken-for-picture" && !slices.Contains(words, "not-live") {
				t.Errorf("%q, want %q", words, c.want)
			}
			if _, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"},
				func(tablet.Result) {}); (err != nil) != (w != tablet.Match) {
				t.Errorf("after %q: %v", w, err)
			}
			fixture.Check(t, d.Password("alice", 0, ""))
			if st, err := d.Status("alice"); err != nil || (st.Learned > 0) != c.learns {
				t.Errorf("%v learned, %v", st.Learned, err)
			}
		}))
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	two := []face.Frame{{Samples: []face.Sample{stage.Sample(stage.Alice),
		stage.Sample(stage.Bob)}}}
	dark := stage.Sample(stage.Alice)
	dark.Reason = face.TooDark
	none := stage.Sample(nil)
	none.Reason = face.NoVector
	for _, c := range []struct {
		name   string
		frames []face.Frame
		end    error
		want   tablet.Word
		counts bool
	}{
		{"the user", stage.Seen(stage.At(stage.Alice, .1), 9), nil, tablet.Match, false},
		{"two frames", stage.Seen(stage.At(stage.Alice, .1), 2), nil, "too-few-pictures", true},
		{"somebody else", stage.Seen(stage.Bob, 9), nil, tablet.NoMatch, true},
		{"nobody", nil, nil, "no-face", false},
		{"two faces", two, nil, "poor-picture", false},
		{"too dark", []face.Frame{{Samples: []face.Sample{dark}}}, nil, "poor-picture", false},
		{"no vector", []face.Frame{{Samples: []face.Sample{none}}}, nil, "poor-picture", false},
		{"a camera that ends", nil, io.EOF, tablet.Failed, false},
		{"a camera that is pulled out", stage.Seen(stage.Bob, 1), errors.New("gone"), tablet.Failed,
			true},
	} {
		t.Run(c.name, bubble(func(t *testing.T) {
			d := ready(t, tablet.Options{})
			w, words := d.verify(t, "alice", c.frames, c.end)
			if w != c.want || words[0] != "looking" || words[len(words)-1] != w {
				t.Errorf("%q, want %q (%q)", w, c.want, words)
			}
			s, err := d.Status("alice")
			if err != nil || (s.Refusal == tablet.Wait) != c.counts {
				t.Errorf("refusal %q, %v", s.Refusal, err)
			}
		}))
	}
}

// A user who may not try is told so before the camera is opened.
func TestVerifyRefused(t *testing.T) { bubble(testVerifyRefused)(t) }

func testVerifyRefused(t *testing.T) {
	d := newDesk(t, tablet.Options{})
	refused := func(user string) error {
		t.Helper()
		d.film.Play(stage.Show{Fail: errors.New("it was opened")})
		r, err := d.Verify(t.Context(), tablet.Attempt{User: user}, func(tablet.Result) {
			t.Error("it began")
		})
		if r != (tablet.Result{}) {
			t.Errorf("result %+v", r)
		}
		return err
	}
	if err := refused("alice"); !errors.Is(err, profile.ErrUnknown) {
		t.Error(err)
	}
	d.enrol(t, "alice", stage.Alice)
	var r *tablet.Refused
	if err := refused("alice"); !errors.As(err, &r) || r.Why != "the password has not been used for too long" {
		t.Error(err)
	}
	fixture.Check(t, d.Password("alice", 0, ""))
	d.pass(49 * time.Hour)
	if err := refused("alice"); !errors.As(err, &r) || r.Why != "the password has not been used for too long" ||
		err.Error() != "the password has not been used for too long: use your password" {
		t.Error(err)
	}
	fixture.Check(t, d.Password("alice", 0, ""))
	for i := range 5 {
		if w, _ := d.verify(t, "alice", stage.Seen(stage.Bob, 5), nil); w != tablet.NoMatch {
			t.Fatal(w)
		}
		if i < 4 {
			if err := refused("alice"); !errors.As(err, &r) || r.Why != tablet.Wait ||
				r.Wait > 8*time.Second {
				t.Error(err)
			}
		}
		d.pass(time.Minute)
	}
	if err := refused("alice"); !errors.As(err, &r) || r.Why != "too many failures" {
		t.Error(err)
	}
	if err := d.Password("bob", 0, ""); !errors.Is(err, profile.ErrUnknown) {
		t.Error(err)
	}
	fixture.Check(t, d.Password("alice", 0, ""))
}

// A fault ends a session. A camera that hangs makes nobody wait.
func TestVerifyFaults(t *testing.T) { bubble(testVerifyFaults)(t) }

func testVerifyFaults(t *testing.T) {
	d := ready(t, tablet.Options{})
	d.film.Play(stage.Show{Fail: errors.New("no such device")})
	if r, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"},
		func(tablet.Result) {}); err != nil ||
		r.Word != "no-camera" {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.film.Play(stage.Show{})
	if r, err := d.Verify(ctx, tablet.Attempt{User: "alice"}, func(tablet.Result) {}); err != nil ||
		r.Word != tablet.Failed {
		t.Errorf("%+v, %v", r, err)
	}
	d.film.Play(stage.Show{Pace: time.Hour})
	var told tablet.Result
	begun := time.Now()
	alice := tablet.Attempt{User: "alice"}
	if r, err := d.Verify(t.Context(), alice, func(r tablet.Result) { told = r }); err != nil ||
		r.Word != tablet.Failed || told != r || time.Since(begun) > 2500*time.Millisecond {
		t.Errorf("%+v, %+v, %v after %v", r, told, err, time.Since(begun))
	}
	if w, _ := d.verify(t, "alice", stage.Seen(stage.Alice, 5), nil); w != tablet.Match {
		t.Error(w)
	}
	// On a machine that looks at two pictures within the deadline, nobody is called somebody else.
	d.film.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9), Pace: 2 * time.Second})
	if r, err := d.Verify(t.Context(), alice, func(tablet.Result) {}); err != nil ||
		r.Word != "too-few-pictures" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Nobody is let in by what was seen before the device slept.
func TestSlept(t *testing.T) {
	for slept, want := range map[time.Duration]tablet.Word{0: tablet.Match,
		time.Second: tablet.Failed} {
		t.Run(slept.String(), bubble(func(t *testing.T) {
			begun, asleep := time.Now(), time.Duration(0)
			d := ready(t, tablet.Options{Boot: func() (string, time.Duration) {
				return "a", time.Since(begun) + asleep
			}})
			d.film.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
			r, err := d.Verify(t.Context(),
				tablet.Attempt{User: "alice", Still: func() error { return nil }},
				func(tablet.Result) { asleep = slept })
			if err != nil || r.Word != want {
				t.Errorf("%+v, %v, want %q", r, err, want)
			}
		}))
	}
}

// If the store cannot write the result of a login, nobody is let in.
func TestVerifyWithoutStore(t *testing.T) {
	// it is closed before the first face is judged, and after the second
	for _, frames := range []time.Duration{0, 2} {
		t.Run(fmt.Sprint(int(frames)), bubble(func(t *testing.T) {
			d := ready(t, tablet.Options{})
			d.film.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9),
				Pace: 100 * time.Millisecond})
			time.AfterFunc(frames*100*time.Millisecond+50*time.Millisecond, func() {
				d.store.Close()
			})
			r, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"}, func(r tablet.Result) {
				if r.Word == tablet.Match {
					t.Error("a match was told")
				}
			})
			if err != nil || r.Word != tablet.Failed {
				t.Errorf("%+v, %v", r, err)
			}
			d.open(t)
		}))
	}
}

// An attempt is on disk while the login lasts.
func TestAttemptOutlivesCrash(t *testing.T) { bubble(testAttemptOutlivesCrash)(t) }

func testAttemptOutlivesCrash(t *testing.T) {
	d := ready(t, tablet.Options{Policy: tablet.Policy{Deadline: 2 * time.Second}})
	ctx, cancel := context.WithCancel(t.Context())
	d.film.Play(stage.Show{Frames: stage.Seen(stage.Bob, 1)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Verify(ctx, tablet.Attempt{User: "alice"}, func(tablet.Result) {})
	}()
	for range 200 { // as another process would find it
		if s, _ := d.Status("alice"); s.Refusal == tablet.Wait {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if s, err := d.Status("alice"); err != nil || s.Refusal != tablet.Wait {
		t.Errorf("in the middle of the attempt: %+v, %v", s, err)
	}
	cancel()
	<-done
	if s, err := d.Status("alice"); err != nil || s.Refusal != tablet.Wait {
		t.Errorf("after it was broken off: %+v, %v", s, err)
	}
}

// No learned face lets in a person who is far from the enrolled faces.
func TestAnchor(t *testing.T) { bubble(testAnchor)(t) }

func testAnchor(t *testing.T) {
	d := ready(t, tablet.Options{})
	for tenths := 1; tenths < 15; tenths++ { // up to the anchor, 1.075 times .93
		want := tablet.Match
		if tenths > 9 {
			want = tablet.NoMatch
		}
		if w, _ := d.verify(t, "alice", stage.Seen(stage.At(stage.Alice, -float32(tenths)/10), 30),
			nil); w != want {
			t.Errorf("%d tenths away: %q, want %q", tenths, w, want)
		}
		d.pass(time.Minute)
		d.Password("alice", 0, "")
	}
}

func TestLearning(t *testing.T) {
	t.Parallel()
	learned := func(d *desk) int {
		t.Helper()
		s := fixture.Must(d.Status("alice"))(t)
		return s.Learned
	}
	near, far := stage.At(stage.Alice, -.3), stage.At(stage.Alice,
		-.75) // a match at this distance is not sure enough to be learned

	t.Run("earned by a match", bubble(func(t *testing.T) {
		d := ready(t, tablet.Options{})
		d.verify(t, "alice", stage.Seen(near, 5), nil)
		if n := learned(d); n != 3 {
			t.Errorf("learned %d faces, want 3", n)
		}
	}))
	t.Run("not by a match alone", bubble(func(t *testing.T) {
		d := ready(t, tablet.Options{})
		if w, _ := d.verify(t, "alice", stage.Seen(far, 5), nil); w != tablet.Match {
			t.Fatal(w)
		}
		if n := learned(d); n != 0 {
			t.Errorf("learned %d faces", n)
		}
		fixture.Check(t, d.Password("alice", 0, ""))
		if n := learned(d); n != 3 {
			t.Errorf("after the password: %d faces, want 3", n)
		}
		if err := d.Password("alice", 0, ""); err != nil || learned(d) != 3 {
			t.Errorf("after the next: %d faces, %v", learned(d), err)
		}
	}))
	t.Run("too late for the password", bubble(func(t *testing.T) {
		d := ready(t, tablet.Options{})
		d.verify(t, "alice", stage.Seen(far, 5), nil)
		d.pass(2 * time.Minute)
		if err := d.Password("alice", 0, ""); err != nil || learned(d) != 0 {
			t.Errorf("learned %d faces, %v", learned(d), err)
		}
	}))
	t.Run("undone", bubble(func(t *testing.T) {
		d := ready(t, tablet.Options{})
		d.verify(t, "alice", stage.Seen(near, 5), nil)
		d.pass(time.Hour)
		d.verify(t, "alice", stage.Seen(stage.At(stage.Alice, -.35), 5), nil)
		if n, err := d.Undo("alice", d.now().Add(-time.Minute)); err != nil || n != 3 ||
			learned(d) != 3 {
			t.Errorf("undone %d, %v; left %d", n, err, learned(d))
		}
	}))
	t.Run("drift", bubble(func(t *testing.T) {
		d := ready(t, tablet.Options{Learner: online.Settings{DriftDistance: .3}})
		for step := float32(.1); step < .9; step += .05 {
			d.verify(t, "alice", stage.Seen(stage.At(stage.Alice, -step), 5), nil)
			d.pass(time.Minute)
		}
		s, err := d.Status("alice")
		if err != nil || !s.Drifted ||
			!strings.Contains(d.log.String(), "drift: learning has stopped") {
			t.Fatalf("%+v, %v\n%s", s, err, d.log.String())
		}
		before := s.Learned
		if d.verify(t, "alice", stage.Seen(near, 5), nil); learned(d) != before {
			t.Errorf("learned after the alarm: %d, before %d", learned(d), before)
		}
		if n, err := d.Undo("alice", d.now().Add(-24*time.Hour)); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		if s, _ := d.Status("alice"); s.Drifted {
			t.Error("the alarm stays")
		}
	}))
}

func TestEnroll(t *testing.T) { bubble(testEnroll)(t) }

func testEnroll(t *testing.T) {
	d := ready(t, tablet.Options{})
	var words []tablet.Word
	enrol := func(user string, frames []face.Frame, end error) tablet.Word {
		t.Helper()
		words = nil
		d.film.Play(stage.Show{Frames: frames, End: end})
		r := fixture.Must(d.Enroll(t.Context(), user, "", false, func(r tablet.Result) {
			words = append(words, r.Word)
		}))(t)
		if words[len(words)-1] != r.Word {
			t.Errorf("told %q, and returned %q", words, r.Word)
		}
		return r.Word
	}
	if w := enrol("bob", stage.Enrolling(stage.Bob), nil); w != tablet.Enrolled {
		t.Error(w)
	}
	want := []tablet.Word{
		tablet.Straight,
		tablet.TurnLeft,
		tablet.TurnLeft,
		tablet.TurnRight,
		"tilt",
		tablet.Enrolled,
	}
	if !slices.Equal(slices.Compact(words), slices.Compact(want)) {
		t.Errorf("words %q", words)
	}
	if w := enrol("carol", stage.Enrolling(stage.Alice), nil); w != "already-another-user" {
		t.Errorf("a face that is another's: %q", w)
	}
	if w := enrol("carol", stage.Enrolling(stage.Carol)[:5], nil); w != "timed-out" {
		t.Error(w)
	}
	if w := enrol("carol", stage.Enrolling(stage.Carol)[:5], io.EOF); w != tablet.Failed {
		t.Error(w)
	}
	if users, err := d.store.Users(); err != nil || !slices.Equal(users, []string{"alice", "bob"}) {
		t.Errorf("users %q, %v", users, err)
	}
	// Alice enrols again: her limits stay, and the learned faces go.
	d.verify(t, "alice", stage.Seen(stage.Alice, 5), nil)
	if w := enrol("alice", stage.Enrolling(stage.Alice), nil); w != tablet.Enrolled {
		t.Error(w)
	}
	if s, err := d.Status("alice"); err != nil || s.Learned != 0 || s.Labelled != 4 ||
		s.Refusal != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := d.Enroll(t.Context(), " ", "", false, func(tablet.Result) {}); !errors.Is(err,
		face.ErrName) {
		t.Error(err)
	}
	fixture.Check(t, d.Forget("alice"))
	if err := d.Forget("alice"); !errors.Is(err, profile.ErrUnknown) {
		t.Error(err)
	}
	if b, err := os.ReadFile(d.path); err != nil || len(b) == 0 {
		t.Error(err)
	}
}

// Another look of a user is added to the enrolled one, twice at most, and the faces of nobody else.
func TestAddLook(t *testing.T) { bubble(testAddLook)(t) }

func testAddLook(t *testing.T) {
	d := ready(t, tablet.Options{})
	glasses, beard := []float32{0, 0, .95, 0}, []float32{0, 0, 1.9, 0}
	add := func(who []float32) tablet.Word {
		t.Helper()
		d.film.Play(stage.Show{Frames: stage.Enrolling(who)})
		r := fixture.Must(d.Enroll(t.Context(), "alice", "", true, func(tablet.Result) {}))(t)
		return r.Word
	}
	in := func(who []float32, want tablet.Word) {
		t.Helper()
		if w, _ := d.verify(t, "alice", stage.Seen(who, 5), nil); w != want {
			t.Errorf("a login by %v: %q, want %q", who, w, want)
		}
		fixture.Check(t, d.Password("alice", 0, ""))
	}
	in(glasses, tablet.NoMatch)
	for _, far := range [][]float32{stage.Bob, beard} {
		if w := add(far); w != "timed-out" {
			t.Errorf("the look %v: %q", far, w)
		}
	}
	if w := add(glasses); w != tablet.Enrolled {
		t.Error(w)
	}
	in(glasses, tablet.Match)
	in(stage.Alice, tablet.Match)
	if w := add(beard); w != tablet.Enrolled { // near the look with glasses
		t.Error(w)
	}
	if s, err := d.Status("alice"); err != nil || s.Labelled != 12 || s.Refusal != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := d.Enroll(t.Context(), "alice", "", true, func(tablet.Result) {}); !errors.Is(err,
		tablet.ErrLooks) {
		t.Errorf("a fourth look: %v", err)
	}
	if _, err := d.Enroll(t.Context(), "bob", "", true, func(tablet.Result) {}); !errors.Is(err,
		profile.ErrUnknown) {
		t.Errorf("without a profile: %v", err)
	}
	events, err := d.History("alice")
	enrolled := slices.DeleteFunc(events, func(e tablet.Event) bool {
		return e.Result != string(tablet.Enrolled)
	})
	if err != nil || len(enrolled) != 3 {
		t.Errorf("%d enrolments in the history, %v", len(enrolled), err)
	}
	d.enrol(t, "alice", stage.Alice)
	in(glasses, tablet.NoMatch)
}

// A profile does not belong to another user who gets the same name later.
func TestNameGivenAgain(t *testing.T) { bubble(testNameGivenAgain)(t) }

func testNameGivenAgain(t *testing.T) {
	var uid uint32 = 1000
	var gone error
	d := ready(t, tablet.Options{UID: func(string) (uint32, error) { return uid, gone }})
	if w, _ := d.verify(t, "alice", stage.Seen(stage.Alice, 5), nil); w != tablet.Match {
		t.Fatal(w)
	}
	gone = errors.New("no such user")
	if _, err := d.Status("alice"); !errors.Is(err, gone) {
		t.Errorf("the user has left: %v", err)
	}
	uid, gone = 1001, nil
	if _, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"},
		func(tablet.Result) { t.Error("it began") }); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("the name was given to somebody else: %v", err)
	}
	d.enrol(t, "alice", stage.Bob)
	if s, err := d.Status("alice"); err != nil || s.Learned != 0 ||
		s.Refusal != "the password has not been used for too long" {
		t.Errorf("enrolled anew: %+v, %v", s, err)
	}
	uid = 1002
	if err := d.Forget("alice"); err != nil {
		t.Errorf("forgetting what is nobody's: %v", err)
	}
}

// A profile belongs to the system's account. An enrolment by root binds it. If another program
// enrolled it, the account has another password, or somebody else got the name and the number, a
// face lets in nobody until the password is given within a minute after it was seen.
func TestAccount(t *testing.T) { bubble(testAccount)(t) }

func testAccount(t *testing.T) {
	d := newDesk(t, tablet.Options{})
	d.enrol(t, "alice", stage.Alice)
	password := func(mark string) {
		t.Helper()
		fixture.Check(t, d.Password("alice", 0, mark))
	}
	seen := func(want tablet.Word) {
		t.Helper()
		d.pass(10 * time.Second) // the wait after a failure
		if word, _ := d.verify(t, "alice", stage.Seen(stage.Alice, 9), nil); word != want {
			t.Errorf("%q, want %q", word, want)
		}
	}
	// the password alone binds no face
	for _, mark := range []string{"removed before a login", "first"} {
		d.pass(2 * time.Minute)
		password(mark)
		seen("give-password")
	}
	password("first") // by any program of root
	seen(tablet.Match)
	for range 3 { // the next account's user logs in with the password, and the old face stays out
		password("second")
		if s, err := d.Status("alice"); err != nil || !strings.Contains(string(s.Refusal), "another one") {
			t.Errorf("%+v, %v", s, err)
		}
		d.pass(2 * time.Minute)
	}
	seen("give-password")
	d.pass(2 * time.Minute)
	password("second") // too late after the face
	seen("give-password")
	var r *tablet.Refused
	if _, err := d.Verify(t.Context(), tablet.Attempt{User: "alice", Asker: 5},
		func(tablet.Result) {}); !errors.As(err, &r) {
		t.Errorf("another user: %v", err)
	}
	password("") // nobody knows of which account
	seen("give-password")
	password("second")
	seen(tablet.Match)
	d.pass(10 * time.Second)
	d.film.Play(stage.Show{Frames: stage.Seen(stage.Alice, 9)})
	third := tablet.Attempt{User: "alice", Mark: "third"} // without a word of a password
	if r, err := d.Verify(t.Context(), third, func(tablet.Result) {}); err != nil ||
		r.Word != "give-password" {
		t.Errorf("%+v, %v", r, err)
	}
	d.store.Close()
	d.open(t)
	d.pass(time.Hour)
	seen("give-password")
	d.enrol(t, "alice", stage.Alice) // anew, by no program of root
	seen("give-password")
	d.film.Play(stage.Show{Frames: stage.Enrolling(stage.Alice)})
	if r, err := d.Enroll(t.Context(), "alice", "third", false,
		func(tablet.Result) {}); err != nil ||
		r.Word != tablet.Enrolled {
		t.Fatal(r, err)
	}
	d.pass(time.Hour)
	seen(tablet.Match)
}

// The history names what a login wrote down anyway: attempts and passwords, also of others, and not
// more than 64.
func TestHistory(t *testing.T) { bubble(testHistory)(t) }

func testHistory(t *testing.T) {
	d := ready(t, tablet.Options{})
	try := func(who []float32, a tablet.Attempt) {
		t.Helper()
		d.pass(10 * time.Second)
		d.film.Play(stage.Show{Frames: stage.Seen(who, 9)})
		fixture.Must(d.Verify(t.Context(), a, func(tablet.Result) {}))(t)
	}
	try(stage.Alice, tablet.Attempt{User: "alice", Service: "login"})
	try(stage.Bob, tablet.Attempt{User: "alice", Service: "su", Asker: 5})
	d.pass(10 * time.Second)
	d.verify(t, "alice", make([]face.Frame, 9), nil) // no attempt
	said := func() (all []string) {
		t.Helper()
		events := fixture.Must(d.History("alice"))(t)
		for i, e := range events {
			all = append(all, fmt.Sprint(e.Result, " ", e.Service, " ", e.Asker))
			if i > 0 && e.At.Before(events[i-1].At) {
				t.Errorf("event %d is older than the one before", i)
			}
		}
		return all
	}
	want := []string{"enrolled  0", "password  0", "match login 0", "no-match su 5"}
	if got := said(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for range 64 {
		fixture.Check(t, d.Password("alice", 0, ""))
	}
	if n := len(said()); n != 64 {
		t.Errorf("%d events", n)
	}
	if _, err := d.History("bob"); !errors.Is(err, profile.ErrUnknown) {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	flat := stage.Space
	flat.ImpostorRadius = 0
	if _, err := tablet.New(nil, flat, nil, tablet.Options{}); err == nil ||
		!strings.Contains(err.Error(), "cannot tell people apart") {
		t.Error(err)
	}
	if _, err := tablet.New(nil, stage.Space, nil,
		tablet.Options{Policy: tablet.Policy{Deadline: -1}}); !errors.Is(err,
		tablet.ErrPolicy) {
		t.Error(err)
	}
	if _, err := tablet.New(nil, stage.Space, nil,
		tablet.Options{Learner: online.Settings{Sigma: -1}}); !errors.Is(err,
		online.ErrSettings) {
		t.Error(err)
	}
}

// While a prompt waits, the camera looks and nothing counts: whoever types the password leaves no
// attempt, and whoever asks gets a match of just now at once, and no older one.
func TestAsked(t *testing.T) { bubble(testAsked)(t) }

func testAsked(t *testing.T) {
	d := ready(t, tablet.Options{Policy: tablet.Policy{Failures: 2}})
	// look lets a prompt wait for a time, and then asks, or goes away.
	look := func(frames []face.Frame, waits time.Duration, asks bool, why tablet.Challenge) (
		words []tablet.Word) {
		t.Helper()
		d.film.Play(stage.Show{Frames: frames, Pace: 100 * time.Millisecond})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		asked := make(chan struct{})
		var told, early atomic.Int32
		time.AfterFunc(waits, func() {
			early.Store(told.Load())
			if asks {
				close(asked)
			} else {
				leave()
			}
		})
		r, err := d.Verify(ctx, tablet.Attempt{User: "alice", Asked: asked, Challenge: why},
			func(r tablet.Result) {
				told.Add(1)
				words = append(words, r.Word)
			})
		if err != nil || r.Word != words[len(words)-1] {
			t.Fatal(r, err)
		}
		if n := early.Load(); n > 1 || words[0] != "looking" {
			t.Errorf("told before somebody asked: %q", words[:n])
		}
		return words
	}
	last := func(words []tablet.Word) tablet.Word { return words[len(words)-1] }
	unchanged := func(when string) {
		t.Helper()
		events, err := d.History("alice")
		if err != nil || len(events) != 2 {
			t.Errorf("%s: %v, %v", when, events, err)
		}
		if s, err := d.Status("alice"); err != nil || s.Refusal != "" {
			t.Errorf("%s: %+v, %v", when, s, err)
		}
	}
	for range 4 { // more than may fail
		look(stage.Seen(stage.Alice, 50), time.Second, false, "")
		look(stage.Seen(stage.Bob, 50), time.Second, false, "")
	}
	unchanged("passwords were typed")
	if w := look(stage.Seen(stage.Alice, 500), time.Minute, true, ""); last(w) != tablet.Unasked ||
		len(w) != 2 {
		t.Errorf("a prompt that waits for long: %q", w)
	}
	unchanged("nobody asked")
	if w := look(stage.Seen(stage.Alice, 500), time.Second, true, ""); last(w) != tablet.Match ||
		len(w) != 2 {
		t.Errorf("asked after a second: %q", w)
	}
	// Alice went away three seconds ago, and bob sits there.
	gone := append(stage.Seen(stage.Alice, 5), stage.Seen(stage.Bob, 500)...)
	if w := look(gone, 3*time.Second, true, ""); last(w) != tablet.NoMatch {
		t.Errorf("an old match: %q", w)
	}
	d.pass(time.Minute)
	if w := look(stage.Seen(stage.Alice, 500), time.Second, true, tablet.Turn); !slices.Contains(w,
		tablet.TurnLeft) &&
		!slices.Contains(w, tablet.TurnRight) || last(w) == tablet.Match {
		t.Errorf("a challenge: %q", w)
	}
	if s, err := d.Status("alice"); err != nil || s.Refusal != "too many failures" {
		t.Errorf("after two that were asked for: %+v, %v", s, err)
	}
}

// An attempt that is still under way when its user gives the password is not charged afterwards.
// Whoever asks later begins another one, and so does another asker.
func TestPasswordMeanwhile(t *testing.T) {
	t.Parallel()
	const own, other = 1000, 5
	for _, c := range []struct {
		name    string
		asker   uint32
		asks    time.Duration // 0: at once
		given   uint32
		charged bool
	}{
		{"the user", 0, 0, 0, false},
		{"a program of the user's own manager", own, 0, 0, false},
		{"somebody else, and the user's password", other, 0, 0, true},
		{"the user, and somebody else's password", 0, 0, other, true},
		{"asked after the password", 0, 2 * time.Second, 0, true},
	} {
		t.Run(c.name, bubble(func(t *testing.T) {
			uid := func(string) (uint32, error) { return own, nil }
			d := ready(t, tablet.Options{UID: uid, Policy: tablet.Policy{Failures: 1}})
			d.film.Play(stage.Show{Frames: stage.Seen(stage.Bob, 20),
				Pace: 1500 * time.Millisecond})
			try := tablet.Attempt{User: "alice", Asker: c.asker}
			if c.asks > 0 {
				asked := make(chan struct{})
				try.Asked = asked
				time.AfterFunc(c.asks, func() { close(asked) })
			}
			time.AfterFunc(time.Second, func() { d.Password("alice", c.given, "") })
			if r, err := d.Verify(t.Context(), try, func(tablet.Result) {}); err != nil ||
				r.Word != tablet.NoMatch {
				t.Errorf("%+v, %v", r, err)
			}
			_, err := d.Verify(t.Context(), tablet.Attempt{User: "alice", Asker: c.asker},
				func(tablet.Result) {})
			if r := new(tablet.Refused); errors.As(err, &r) != c.charged {
				t.Errorf("the next attempt: %v", err)
			}
		}))
	}
}
