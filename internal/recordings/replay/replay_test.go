// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/recordings/replay"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
)

var line = face.Space{ID: "line", Dim: 1, Scale: 1, Sigma: .2, Gamma: 1e-3}

// frames is an artificial stream.
type frames []face.Frame

func (s *frames) Next(ctx context.Context) (face.Frame, error) {
	if err := ctx.Err(); err != nil {
		return face.Frame{}, err
	}
	if len(*s) == 0 {
		return face.Frame{}, io.EOF
	}
	f := (*s)[0]
	*s = (*s)[1:]
	return f, nil
}

func sample(track int, x float32) face.Sample {
	return face.Sample{Track: track, Box: image.Rect(10, 20, 50, 70), Space: "line",
		Vector: []float32{x}}
}

func frame(i int, samples ...face.Sample) face.Frame {
	return face.Frame{Index: i, Time: time.Duration(i) * 40 * time.Millisecond, Samples: samples}
}

// called returns the names of people for a replay: the first is person 1.
func called(names ...string) func(online.Person) string {
	return func(p online.Person) string { return names[p-1] }
}

func learner(t testing.TB, people int) *online.Learner {
	t.Helper()
	l := fixture.Must(online.New(line, online.Settings{K: 50}))(t)
	for i := range people {
		fixture.Check(t, l.Label([]float32{float32(10 * i)}, online.Person(i+1)))
	}
	return l
}

// run replays a stream and returns the log.
func run(t testing.TB, l *online.Learner, r *replay.Report, freeze bool, s ...face.Frame) string {
	t.Helper()
	return runAs(t, called("a", "b"), l, r, freeze, s...)
}

func runAs(t testing.TB, names func(online.Person) string, l *online.Learner, r *replay.Report,
	freeze bool,
	s ...face.Frame) string {
	t.Helper()
	var b bytes.Buffer
	log := json.NewEncoder(&b)
	stream := frames(s)
	for f, err := range replay.Judge(context.Background(), &stream, l,
		replay.Options{Freeze: freeze, Names: names}) {
		fixture.Check(t, err)
		r.Add(f)
		for _, e := range f.Events {
			fixture.Check(t, log.Encode(e))
		}
	}
	return b.String()
}

func ExampleJudge() {
	l, err := online.New(line, online.Settings{})
	if err != nil {
		panic(err)
	}
	l.Label([]float32{0}, 1)
	stream := &frames{frame(0, sample(1, .1)), frame(1, sample(1, .2), sample(2, 9)), frame(2)}
	r := replay.NewReport(line)
	for f, err := range replay.Judge(context.Background(), stream, l,
		replay.Options{Names: called("alice")}) {
		if err != nil {
			panic(err)
		}
		r.Add(f)
	}
	r.Summary().WriteText(os.Stdout)
	// Output:
	// 3 frames, 0:00.1, 3 faces
	//   alice     2 faces   0:00.0 to 0:00.0   not confirmed   distance 0.15
	//   unknown   1 face    0:00.0 to 0:00.0   not near anybody known: 1
}

// A line of the log has every documented field of a face. The same stream gives the same bytes.
func TestLog(t *testing.T) {
	poor := sample(4, .1)
	poor.Reason = face.Blurred
	none := face.Sample{Track: 5, Box: image.Rect(0, 0, 9, 9), Space: "line", Reason: face.NoVector}
	s := []face.Frame{
		frame(0, sample(1, .1)),
		frame(3, sample(1, .1), sample(2, .2), sample(3, 70)),
		frame(4, poor, none),
		frame(5, sample(1, .3)),
	}
	want := `{"frame":0,"time":0,"track":1,"box":[10,20,40,50],"label":"a","trust":"likely","distance":0.1,"confidence":X,"reason":"","learned":false,"poor":false}
{"frame":3,"time":0.12,"track":1,"box":[10,20,40,50],"label":"a","trust":"likely","distance":0.1,"confidence":X,"reason":"","learned":true,"poor":false}
{"frame":3,"time":0.12,"track":2,"box":[10,20,40,50],"label":"","confidence":X,"reason":"another face in this frame is a better match","learned":false,"poor":false}
{"frame":3,"time":0.12,"track":3,"box":[10,20,40,50],"label":"","confidence":X,"reason":"not near anybody known","learned":false,"poor":false}
{"frame":4,"time":0.16,"track":1,"box":[10,20,40,50],"label":"a","name":"a","trust":"confirmed","name_trust":"confirmed","since":0,"distance":0.1,"confidence":X,"reason":"blurred","learned":false,"poor":true}
{"frame":4,"time":0.16,"track":4,"box":[0,0,9,9],"label":"","confidence":X,"reason":"no vector could be made of it","learned":false,"poor":true}
{"frame":5,"time":0.2,"track":1,"box":[10,20,40,50],"label":"a","name":"a","trust":"confirmed","name_trust":"confirmed","distance":0.3,"confidence":X,"reason":"","learned":true,"poor":false}
`
	r := replay.NewReport(line)
	got := run(t, learner(t, 2), r, false, s...)
	var masked strings.Builder
	for _, l := range strings.SplitAfter(got, "\n") {
		if before, after, ok := strings.Cut(l, `"confidence":`); ok {
			l = before + `"confidence":X` + after[strings.IndexByte(after, ','):]
		}
		masked.WriteString(l)
	}
	if masked.String() != want {
		t.Errorf("log\n%swant\n%s", masked.String(), want)
	}
	if again := run(t, learner(t, 2), replay.NewReport(line), false, s...); again != got {
		t.Errorf("a second time it is\n%s", again)
	}
	sum := r.Summary()
	if sum.Frames != 4 || sum.Faces != 7 || sum.Unknown.Faces != 3 || sum.People[0].Faces != 4 ||
		sum.People[0].Learned != 2 ||
		sum.People[0].Confirmed != 2 {
		t.Errorf("summary %+v", sum)
	}
	if sum.Refused["blurred"] != 1 || sum.Refused["no vector could be made of it"] != 1 ||
		sum.Reasons["not near anybody known"] != 1 {
		t.Errorf("reasons %v and %v", sum.Reasons, sum.Refused)
	}
}

// Strangers who were last seen at the same time are always counted in the same order, so that a
// report always shows the same pictures of them.
func TestStrangersAtOnce(t *testing.T) {
	shown := func() string {
		r := replay.NewReport(line)
		var f face.Frame
		for i := range 40 {
			x := sample(1+i, 70+float32(i))
			x.JPEG = []byte(fmt.Sprint("picture ", i))
			f.Samples = append(f.Samples, x)
		}
		run(t, learner(t, 1), r, false, f)
		return page(t, r, replay.Meta{Source: "crowd.avi"})
	}
	first := shown()
	for range 20 {
		if shown() != first {
			t.Fatal("the same recording gave another page")
		}
	}
}

func TestFreeze(t *testing.T) {
	l := learner(t, 1)
	before := fixture.Must(l.MarshalBinary())(t)
	if got := run(t, l, replay.NewReport(line), true,
		frame(0, sample(1, .1))); strings.Contains(got, `"learned":true`) {
		t.Error(got)
	}
	if l.Graph().Len() != 1 {
		t.Errorf("it learned: %d vertices, before %d bytes", l.Graph().Len(), len(before))
	}
}

func TestJudgeErrors(t *testing.T) {
	other := sample(1, 0)
	other.Space = "another"
	for name, c := range map[string]struct {
		s    frames
		ctx  context.Context
		want string
	}{
		"another space": {frames{frame(7, other)}, context.Background(),
			"frame 7: the face is of the space another"},
		"another length": {frames{frame(7, face.Sample{Space: "line", Vector: []float32{1, 2}})},
			context.Background(), "2 values, want 1"},
		"cancelled": {frames{frame(0)}, cancelled(), "canceled"},
	} {
		var last error
		for _, err := range replay.Judge(c.ctx, &c.s, learner(t, 1), replay.Options{}) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), c.want) {
			t.Errorf("%s: error %v", name, last)
		}
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func page(t testing.TB, r *replay.Report, m replay.Meta) string {
	t.Helper()
	var b bytes.Buffer
	fixture.Check(t, r.WriteHTML(&b, m))
	return b.String()
}

// Names, sources and warnings stay plain text, whatever characters they have, and the page loads
// nothing.
func TestPageEscapes(t *testing.T) {
	evil := `<script>alert(1)</script>"'&`
	r := replay.NewReport(line)
	f := sample(1, 0)
	f.JPEG = []byte{0xff, 0xd8, 0xff}
	runAs(t, called(evil), learner(t, 1), r, false, frame(0, f), frame(1, sample(1, .1)),
		frame(2, sample(1, .1)))
	p := page(t, r, replay.Meta{Source: evil, Path: "/f/" + evil,
		Count: face.Count{Declared: 9, Read: 3, Damaged: 1,
			Length: 9 * time.Second, Last: 3 * time.Second},
		Settings: []replay.Setting{{Name: evil, Value: evil}}, Warnings: []string{evil}})
	if strings.Contains(p, "<script") || strings.Contains(p, "ZgotmplZ") {
		t.Error("a name became markup")
	}
	for _, outside := range []string{"http:", "https:", "src=\"/", "url(", "<link", "@import"} {
		if strings.Contains(p, outside) {
			t.Errorf("the page holds %q", outside)
		}
	}
	for _, want := range []string{
		"default-src &#39;none&#39;", "data:image/jpeg;base64,/9j/",
		"It ends at 0:03.0 of 0:09.0: it is cut off.", "#t=0", "<details>",
		"1 file could not be read", "&lt;script&gt;alert(1)&lt;/script&gt;",
	} {
		if !strings.Contains(p, want) &&
			!strings.Contains(p, strings.ReplaceAll(want, "&#39;", "'")) {
			t.Errorf("the page has no %q", want)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	p := page(t, replay.NewReport(line), replay.Meta{Source: "empty.avi"})
	if !strings.Contains(p, "No face was found.") || strings.Contains(p, "NaN") {
		t.Error(p)
	}
}

// A recording of a week takes no more memory than a recording of an hour.
func TestReportBounded(t *testing.T) {
	l := learner(t, 2)
	size := func(hours int) int {
		r := replay.NewReport(line)
		rnd := rand.New(rand.NewPCG(5, 6))
		var s frames
		for i := range 3000 {
			f := sample(1, float32(10*rnd.IntN(3)))
			f.JPEG = make([]byte, 500)
			s = append(s, face.Frame{Index: i,
				Time:    time.Duration(i) * time.Duration(hours) * time.Hour / 3000,
				Samples: []face.Sample{f}})
		}
		run(t, l, r, false, s...)
		sum := 0
		for _, p := range r.Summary().People {
			sum += p.Faces
		}
		if u := r.Summary().Unknown.Faces; sum+u != 3000 {
			t.Errorf("%d faces of 3000", sum+u)
		}
		p := page(t, r, replay.Meta{Source: "long.avi"})
		if n := strings.Count(p, "<img"); n > 3*8 {
			t.Errorf("%d pictures", n)
		}
		return len(p)
	}
	hour, week := size(1), size(24*7)
	if float64(week) > 1.5*float64(hour) {
		t.Errorf("the page of a week has %d bytes, of an hour %d", week, hour)
	}
}

// If there is no room for a face, it is still recognised. The log and the report say that it was
// not learned, and why.
func TestNoRoom(t *testing.T) {
	l := fixture.Must(online.New(line, online.Settings{K: 1}))(t)
	for i := range 3 {
		fixture.Check(t, l.Label([]float32{float32(10 * i)}, online.Person(i+1)))
	}
	var all []replay.Event
	r := replay.NewReport(line)
	var s frames
	for person := range 3 {
		for i := range 3 { // two faces confirm the person, and the third is learned
			s = append(s, frame(100*person+i, sample(1, float32(10*person)+.1)))
		}
	}
	for f, err := range replay.Judge(t.Context(), &s, l,
		replay.Options{Names: called("alice", "bob", "carol")}) {
		fixture.Check(t, err)
		r.Add(f)
		all = append(all, f.Events...)
	}
	for i, want := range []replay.Event{
		{Label: "alice", Learned: true}, {Label: "bob", Learned: true},
		{Label: "carol", NoRoom: true, Reason: "no room for another centroid"},
	} {
		if e := all[3*i+2]; e.Label != want.Label || e.Learned != want.Learned ||
			e.NoRoom != want.NoRoom ||
			e.Reason != want.Reason {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	var text, page bytes.Buffer
	fixture.Check(t, errors.Join(r.Summary().WriteText(&text), r.WriteHTML(&page, replay.Meta{})))
	if !regexp.MustCompile(`not learned +2 faces +no room +use a larger k`).MatchString(
		text.String()) ||
		!strings.Contains(page.String(), "no room for another centroid: 2. Use a larger k.") {
		t.Errorf("%s", text.String())
	}
}

// A folder gets the page and the events, and one that is not completed keeps the older ones as they
// were.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	var s frames
	for i := range 400 {
		f := face.Frame{Index: i, Time: time.Duration(i) * time.Second}
		if i%150 < 5 { // alice, bob and alice
			f.Samples = []face.Sample{sample(1+i/150, float32(i/150%2*10)+float32(i%150)/50)}
		}
		s = append(s, f)
	}
	write := func(s frames) *replay.Folder {
		w := fixture.Must(replay.Create(dir, "film.avi", line))(t)
		for f, err := range replay.Judge(t.Context(), &s, learner(t, 2), replay.Options{}) {
			fixture.Check(t, err)
			fixture.Check(t, w.Add(f))
		}
		return w
	}
	w := write(s)
	r := fixture.Must(w.Commit(replay.Meta{}))(t)
	w.Abort()
	if s := r.Summary; s.Faces != 15 || len(s.People) != 2 || r.Source != "film.avi" {
		t.Errorf("%+v", r)
	}
	files := func() (all string) {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("%v, %v", entries, err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil || len(b) < 100 {
				t.Errorf("%s: %d bytes, %v", e.Name(), len(b), err)
			}
			all += string(b)
		}
		return all
	}
	before := files()
	write(s[:300]).Abort()
	if files() != before {
		t.Error("a replay that broke off changed the files")
	}
}

// A photograph continues nothing: the same face in ten of them is named each time, and confirmed in
// none.
func TestPhotographs(t *testing.T) {
	l := fixture.Must(online.New(line, online.Settings{K: 50}))(t)
	fixture.Check(t, l.Label([]float32{0}, 1))
	for _, still := range []bool{true, false} {
		var s frames
		for i := range 10 {
			s = append(s, face.Frame{Index: i, Time: time.Duration(i) * 40 * time.Millisecond,
				Still: still, File: "x.jpg", Samples: []face.Sample{sample(1, float32(i)/100)}})
		}
		tracks, confirmed := map[int]bool{}, 0
		how := replay.Options{Freeze: true, Names: called("alice")}
		for f, err := range replay.Judge(t.Context(), &s, l, how) {
			fixture.Check(t, err)
			e := f.Events[0]
			if e.Label != "alice" || (e.File == "x.jpg") != still {
				t.Errorf("%+v", e)
			}
			if tracks[e.Track] = true; e.Trust == sighting.Confirmed {
				confirmed++
			}
		}
		if still && (confirmed > 0 || len(tracks) != 10) || !still && len(tracks) != 1 {
			t.Errorf("still %t: %d confirmed, %d tracks", still, confirmed, len(tracks))
		}
	}
}

// A mirror image of somebody in view is nobody unknown, from its first face on, and a stranger
// beside them is.
func TestMirror(t *testing.T) {
	var s []face.Frame
	for i := range 10 {
		mirror, stranger := sample(2, .3), sample(3, 50)
		mirror.Box, stranger.Box = image.Rect(110, 20, 150, 70), image.Rect(210, 20, 250, 70)
		s = append(s, frame(i, sample(1, .1+.01*float32(i%2)), mirror, stranger))
	}
	r := replay.NewReport(line)
	log := run(t, learner(t, 2), r, false, s...)
	sum := r.Summary()
	if sum.Doubles != 10 || sum.Unknown.Faces != 10 || len(sum.People) != 1 ||
		sum.People[0].Faces != 10 {
		t.Errorf("%+v\n%s", sum, log)
	}
	if n := strings.Count(log, `"double":"a"`); n != 8 { // a name needs three faces
		t.Errorf("%d events are of a double\n%s", n, log)
	}
	var text, page bytes.Buffer
	fixture.Check(t, sum.WriteText(&text))
	fixture.Check(t, r.WriteHTML(&page, replay.Meta{}))
	if !strings.Contains(text.String(), "again     10 faces") ||
		!strings.Contains(page.String(), "second time") {
		t.Error(text.String())
	}
}

// The report tells faces of a turned head from others: the person in view is confirmed, and these
// faces are not.
func TestAlongWithConfirmed(t *testing.T) {
	s := []face.Frame{frame(0, sample(1, .1)), frame(1, sample(1, .3)), frame(2, sample(1, .5)),
		frame(3, sample(1, 1.2)), frame(4, sample(1, 1.9)), frame(5, sample(1, 2.6))}
	space := line
	space.Stills = face.Impostors{People: 100, Pairs: 10000,
		Distances: [5]float64{1.2, 1.1, 1, .9, .8}}
	l := fixture.Must(online.New(space, online.Settings{}))(t)
	fixture.Check(t, l.Label([]float32{0}, 1))
	r := replay.NewReport(space)
	log := runAs(t, called("a"), l, r, false, s...)
	p := r.Summary().People[0]
	if p.Faces != 6 || p.Confirmed+p.Along != 4 || p.Along == 0 || p.Confirmed == 0 {
		t.Errorf("%+v\n%s", p, log)
	}
}
