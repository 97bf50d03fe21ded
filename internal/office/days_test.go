// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"context"
	"image"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// set returns a time as time.Now has it after somebody has set the clock: the clock on the wall
// jumps, and the steady one goes on.
func set(t time.Time, by time.Duration) time.Time {
	clock := (*struct {
		wall   uint64 // from bit 30 on, seconds
		steady int64
	})(unsafe.Pointer(&t))
	clock.wall += uint64(int64(by/time.Second)) << 30
	return t
}

// led is a camera that gets its frames from a test, which waits until each was looked at.
type led struct {
	stream
	ready, frames chan face.Frame
}

func (l *led) Next(ctx context.Context) (f face.Frame, err error) {
	select {
	case l.ready <- f:
	case <-ctx.Done():
		return f, ctx.Err()
	}
	select {
	case f = <-l.frames:
		return f, nil
	case <-ctx.Done():
		return f, ctx.Err()
	}
}

// A week with an entrance and a desk, in which daylight saving ends: the program is killed or
// restarted each day, and somebody sets the clock forward and back while it runs. Each person
// arrives and leaves by turns; nothing is told before it was known; while nobody sets the clock
// back, times of a person do not go back; and no visit ends before it begins. In short it ends with
// the night in which daylight saving does.
func TestPlainDays(t *testing.T) {
	days := 7
	if testing.Short() {
		days = 3
	}
	rnd := rand.New(rand.NewPCG(3, 3))
	span := func(most time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(most))) }
	berlin, err := time.LoadLocation("Europe/Berlin")
	nothing(t, err)
	begun := time.Now()
	steady, jump := time.Duration(0), time.Date(2026, 10, 22, 6, 0, 0, 0, berlin).Sub(begun)
	var now atomic.Pointer[time.Time]
	tell := func() {
		at := set(begun.Add(steady), jump).In(berlin)
		now.Store(&at)
	}
	tell()
	backs := 0
	here := make(map[int64]bool)
	type stamp struct {
		at    time.Time
		backs int
	}
	last := make(map[int64]stamp)
	told := make(map[presence.EventKind]int)
	o := office.Options{
		Presence: presence.Settings{Away: time.Minute, HomeFor: 2 * time.Hour}, Freeze: true,
		Event: func(e presence.Event) {
			told[e.Kind]++
			if e.At.Round(0).After(e.Known.Round(0)) {
				t.Errorf("known before it happened: %+v", e)
			}
			if e.Kind == presence.Unknown {
				return
			}
			if here[e.Person] == (e.Kind == presence.Arrived) {
				t.Errorf("here: %t, and now %+v", here[e.Person], e)
			}
			if was := last[e.Person]; was.backs == backs && e.At.Round(0).Before(was.at.Round(0)) {
				t.Errorf("at %v, and then %+v", was.at, e)
			}
			here[e.Person], last[e.Person] = e.Kind != presence.Left, stamp{e.At, backs}
		},
	}
	dir := filepath.Join(t.TempDir(), "a")
	for day := range days {
		h := enter(t, dir, o)
		h.o.Event, h.o.Now = o.Event, func() time.Time { return *now.Load() }
		h.o.Clock = func(face.Frame) time.Time { return *now.Load() }
		w := office.New(h.past, h.o)
		cameras := []*led{{ready: make(chan face.Frame), frames: make(chan face.Frame)},
			{ready: make(chan face.Frame), frames: make(chan face.Frame)}}
		var all []office.Camera
		for i, door := range []presence.Door{presence.Entrance, ""} {
			all = append(all, office.Camera{Name: []string{"door", "desk"}[i], Door: door,
				Stills: true, Open: func(context.Context, func() bool) (office.Stream,
					error) {
					return cameras[i], nil
				}})
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx, all) }()
		for _, c := range cameras {
			<-c.ready
		}
		// Who is in view of each camera, until when, and the numbers of their tracks.
		who, until, track, tracks := [2]string{}, [2]time.Duration{}, [2]int{}, 0
		for stop := steady + 24*time.Hour; steady < stop; {
			if steady += 20 * time.Second; who[0]+who[1] != "" {
				steady -= 19 * time.Second
			}
			if rnd.IntN(1500) == 0 {
				by := span(6*time.Hour) - 3*time.Hour
				jump += by
				if by < 0 {
					backs++
				}
			}
			tell()
			for i, c := range cameras {
				if until[i] < steady {
					who[i], until[i] = "", steady+span(2*time.Hour)
					if x := string("abs"[rnd.IntN(3)]); rnd.IntN(2) == 0 && who[1-i] != x {
						who[i], until[i] = x, steady+5*time.Second+span(30*time.Second)
						tracks++
						track[i] = tracks
					}
				}
				f := face.Frame{Size: image.Pt(640, 480), Time: steady}
				if who[i] != "" {
					f.Samples = []face.Sample{{Box: image.Rect(0, 0, 9, 9),
						Vector: looks[who[i][0]], Track: track[i]}}
				}
				c.frames <- f
				<-c.ready
			}
		}
		if day%2 == 0 {
			dir = copied(t, h.dir) // a kill
		}
		end()
		nothing(t, <-ended)
		for _, v := range w.Visits(office.Wanted{}) {
			if v.Last.Round(0).Before(v.First.Round(0)) {
				t.Errorf("%+v", v)
			}
		}
		n := 0
		for _, there := range here {
			if there {
				n++
			}
		}
		for _, p := range w.Now().People {
			if !here[p.Person] || len(w.Now().People) != n {
				t.Errorf("%v are here, and %+v", here, p)
			}
		}
		h.leave()
	}
	if least := 20 * days / 7; told[presence.Arrived] < least || told[presence.Saw] < least ||
		told[presence.Left] < least || backs < least/2 {
		t.Errorf("it proves little: %v, and %d times the clock was set back", told, backs)
	}
}
