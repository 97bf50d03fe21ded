// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/vector"
	"golang.org/x/sys/unix"
)

// written returns how many bytes this process has handed to the system for files until now. It does
// not open by package os, which notes each file in a log of the test, and writes the log.
func written(t testing.TB) int64 {
	t.Helper()
	f := fixture.Must(unix.Open("/proc/self/io", unix.O_RDONLY|unix.O_CLOEXEC, 0))(t)
	defer unix.Close(f)
	text := make([]byte, 1024)
	n := fixture.Must(unix.Read(f, text))(t)
	_, rest, _ := strings.Cut(string(text[:n]), "wchar: ")
	line, _, _ := strings.Cut(rest, "\n")
	return fixture.Must(strconv.ParseInt(line, 10, 64))(t)
}

// crowd fills an office with people, sightings and their faces, each of so many bytes.
func crowd(t testing.TB, g *gallery.Gallery, people, sightings, faces, jpeg int) {
	t.Helper()
	fixture.Must(office.OpenPast(g, "office", office.PastSettings{}))(t).Close()
	nothing(t, g.Rows().Write(true, func(tx *gallery.Tx) error {
		tx.Exec(`with recursive n(i) as (select 3 union all select i + 1 from n where i < ?)
			insert into person(id, name, enrolled) select i, 'person ' || i, 0
			from n`, int64(people))
		for i := 3; i <= people; i++ {
			tx.Exec("insert into label(number, person, rejected, vector) values(?, ?, 0, ?)",
				int64(i+100000), int64(i),
				vector.Bytes([]float32{float32(3 * i), 0}))
		}
		now := time.Now().UnixNano()
		tx.Exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < ?1)
			insert into sighting(id, office, camera, first, last, person, trust, stranger, size)
			select i, 1, 'door', ?2 - (?1 - i) * 1000000000, ?2 - (?1 - i) * 1000000000 + 500000000,
			iif(i % 3, 1 + i % ?3, null), iif(i % 3, 'confirmed', ''), iif(i % 3, 0,
			1 + i / 3 % 50), ?4 from n`,
			int64(sightings), now, int64(people), int64(faces*(jpeg+8)))
		tx.Exec(`with recursive n(i) as (select 0 union all select i + 1 from n where i < ?1)
			insert into face(number, office, sighting, stranger, camera, at, sharp, vector, jpeg)
			select ?4 * sighting.id + i, 1, sighting.id, iif(sighting.id > ?5 - 150 and i = 0,
			sighting.stranger, 0), 'door',
			first, 9, (select vector from label where id = 1), randomblob(?2) from sighting, n
			where i < ?3`,
			int64(faces-1), int64(jpeg), int64(faces), int64(faces), int64(sightings))
		tx.Exec("insert or replace into number values('sighting', ?), ('face', ?)",
			int64(sightings), int64(max(faces*(sightings+1), 200000)))
		return tx.Err()
	}))
}

// With as many sightings as are kept and ten thousand people, Now reads nothing and writes nothing.
func TestPlainNowOfMany(t *testing.T) {
	people, sightings := 1000, 2000
	if os.Getenv("FACEAUTH_SCALE") != "" {
		people, sightings = 10000, 20000
	}
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	crowd(t, g, people, sightings, 3, 100)
	nothing(t, g.Close())
	g = fixture.Must(gallery.Open(path, space))(t)
	t.Cleanup(func() { g.Close() })
	w := office.New(past(t, g), office.Options{Freeze: true})
	timed := func(what string, do func()) {
		do()
		best := time.Hour
		before := written(t)
		for range 5 {
			begun := time.Now()
			do()
			best = min(best, time.Since(begun))
		}
		t.Logf("%s: %v", what, best)
		if n := written(t) - before; n > 4096 { // lines of the log
			t.Errorf("%s writes %d bytes", what, n)
		}
	}
	if n := len(w.Now().Known); n != people {
		t.Errorf("%d people", n)
	}
	if n := len(w.Strangers()); n != 50 {
		t.Errorf("%d strangers", n)
	}
	timed("Now", func() { w.Now() })
	timed("Strangers", func() { w.Strangers() })
	timed("Sightings", func() { w.Sightings(0, 100) })
	timed("Visits of a day", func() {
		w.Visits(office.Wanted{From: time.Now().Add(-time.Hour), N: 100})
	})
	timed("Corrections", func() { w.Corrections(0, 100) })
	begun := time.Now()
	office.Minute(w)
	t.Logf("the minute: %v", time.Since(begun))
	begun = time.Now()
	office.Forgotten(w)
	w.Now()
	t.Logf("Now after a change of people: %v", time.Since(begun))
}

// ticking is a camera in which one person stays, whose clock a test moves on.
type ticking struct {
	frames int
	at     *atomic.Int64
	frame  func(i int) face.Frame
	each   func(i int)
	i      int
}

func (s *ticking) Next(ctx context.Context) (face.Frame, error) {
	s.each(s.i)
	if s.i == s.frames {
		<-ctx.Done()
		return face.Frame{}, ctx.Err()
	}
	f := s.frame(s.i)
	s.i++
	return f, nil
}
func (*ticking) Close() error { return nil }
func (*ticking) Dropped() int { return 0 }

// An hour of somebody who is always in view, at two frames a second, writes at most 12 MB, and an
// hour without anybody nothing. Beats and minutes are those of the simulated time. With -short it is
// a quarter of an hour.
func TestPlainBytesOfAnHour(t *testing.T) {
	last, part := 7320, int64(1)
	if testing.Short() {
		last, part = 1920, 4
	}
	for _, c := range []struct {
		who  string
		most int64
	}{{"a", 12 << 20}, {"s", 12 << 20}, {"", 4096}} {
		path := filepath.Join(t.TempDir(), "gallery")
		g := peopleAt(t, path)
		var at atomic.Int64
		clock := func() time.Time { return noon.Add(time.Duration(at.Load()) * time.Second / 2) }
		w := office.New(past(t, g), office.Options{Now: clock, Keep: true,
			Clock: func(face.Frame) time.Time { return clock() }})
		ctx, cancel := context.WithCancel(t.Context())
		var before, after int64
		s := &ticking{frames: last, at: &at, frame: func(i int) face.Frame {
			f := frames(n(1, c.who+"-"))[0]
			f.Index, f.Time = i, time.Duration(i)*time.Second/2
			for j := range f.Samples { // heads turn: each face differs
				x := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 4000)
				f.Samples[j].JPEG = x
				v := f.Samples[j].Vector
				f.Samples[j].Vector = []float32{v[0] + float32(i%17)/40, v[1] + float32(i%13)/40}
			}
			return f
		}, each: func(i int) {
			at.Store(int64(i))
			if i%4 == 0 {
				office.Beat(w)
			}
			if i%120 == 0 {
				office.Minute(w)
			}
			switch i {
			case 120:
				before = written(t)
			case last:
				after = written(t)
				cancel()
			}
		}}
		w.Run(ctx, []office.Camera{{Name: "desk",
			Open: func(context.Context, func() bool) (office.Stream, error) {
				return s, nil
			}}})
		log := fmt.Sprintf("%q: %.1f MB", c.who, float64(after-before)/1e6)
		t.Log(log)
		if after-before > max(c.most/part, 4096) {
			t.Error(log)
		}
	}
}

// While somebody is forgotten in a large file, no camera waits for long, and no byte is left.
func TestForgetInALargeFile(t *testing.T) {
	sightings := 300
	if os.Getenv("FACEAUTH_SCALE") != "" {
		sightings = 7000
	}
	path := filepath.Join(t.TempDir(), "gallery")
	g := peopleAt(t, path)
	crowd(t, g, 20, sightings, 4, 7000)
	nothing(t, g.Close())
	g = fixture.Must(gallery.Open(path, space))(t)
	t.Cleanup(func() { g.Close() })
	w := office.New(past(t, g), office.Options{Freeze: true})
	done := make(chan error)
	begun := time.Now()
	go func() { done <- refusal(w.Forget("person 7")) }()
	longest, looks := time.Duration(0), 0
	for {
		select {
		case err := <-done:
			nothing(t, err)
			took := time.Since(begun)
			size := fixture.Must(os.Stat(path))(t).Size()
			t.Logf("%d MB: forgotten after %v, a camera waited for at most %v of it, %d looks",
				size>>20, took, longest, looks)
			for _, end := range []string{"", "-wal"} {
				data, _ := os.ReadFile(path + end)
				if bytes.Contains(data, []byte("person 7\x00")) ||
					bytes.Contains(data, []byte("person 7")) {
					t.Errorf("the name is in the file %q", end)
				}
			}
			if n := len(w.Now().Known); n != 19 {
				t.Errorf("%d people are left", n)
			}
			return
		default:
		}
		at := time.Now()
		w.Number("alice") // takes the lock, as a frame does
		longest = max(longest, time.Since(at))
		looks++
		time.Sleep(time.Millisecond)
	}
}
