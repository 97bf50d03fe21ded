// SPDX-License-Identifier: Apache-2.0

package days

import (
	"context"
	"image"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/faceauth/faceauth/face"
)

// visit is a person who walks through the view of a camera.
type visit struct {
	person   string
	camera   int
	at       int // first frame of the day
	samples  []shown
	from, to int // where they come in and go out, in pixels
}

// frameTime is the time between frames of a day.
const frameTime = 40 * time.Millisecond

// faceWidth is the width of a face in pixels, in a frame that is sceneWidth wide.
const (
	faceWidth  = 100
	sceneWidth = 640
)

// day holds the frames of the cameras while people come and go.
type day struct {
	frames  [][]face.Frame // by camera
	truth   []map[place]string
	patches []map[place][]uint8
	judged  map[when]int // faces with a vector
	visits  []visit
	length  int
}

// when is a person in a frame.
type when struct {
	person string
	frame  int
}

// place is the position of a face: boxes of one frame differ.
type place struct {
	frame int
	box   image.Rectangle
}

// compose lets each person come several times, at random times and cameras. The pauses are shorter
// and longer than the time after which a person has left. A person who walks behind another one is
// hidden.
func compose(rnd *rand.Rand, people []subject, o Options) day {
	d := day{
		frames: make([][]face.Frame, o.Cameras), truth: make([]map[place]string, o.Cameras),
		patches: make([]map[place][]uint8, o.Cameras), judged: make(map[when]int),
	}
	for _, p := range people {
		at := rnd.IntN(int(o.Away / frameTime))
		for _, part := range p.visits {
			v := visit{person: p.name, camera: rnd.IntN(o.Cameras), at: at, samples: part}
			v.from, v.to = rnd.IntN(sceneWidth-faceWidth), rnd.IntN(sceneWidth-faceWidth)
			d.visits = append(d.visits, v)
			end := at + len(part)
			d.length = max(d.length, end)
			pause := o.Away * 3 / 10
			if rnd.IntN(2) == 0 {
				pause = o.Away * 3 / 2
			}
			at = end + int(pause/frameTime)
		}
	}
	for c := range o.Cameras {
		d.truth[c], d.patches[c] = make(map[place]string), make(map[place][]uint8)
		d.frames[c] = make([]face.Frame, d.length)
		for i := range d.length {
			f := &d.frames[c][i]
			f.Index, f.Time = i, time.Duration(i)*frameTime
			for _, v := range d.visits {
				if k := i - v.at; v.camera == c && k >= 0 && k < len(v.samples) &&
					v.samples[k].Space != "" {
					x := v.from + (v.to-v.from)*k/len(v.samples)
					s := v.samples[k]
					s.Box = image.Rect(x, 0, x+faceWidth, faceWidth*5/4)
					if !hidden(s.Box, f.Samples) {
						f.Samples = append(f.Samples, s.Sample)
						at := place{i, s.Box}
						d.truth[c][at], d.patches[c][at] = v.person, s.patch
						if s.Vector != nil {
							d.judged[when{v.person, i}]++
						}
					}
				}
			}
		}
	}
	return d
}

// hidden reports whether a face is behind another one.
func hidden(box image.Rectangle, others []face.Sample) bool {
	for _, o := range others {
		if face.Overlap(box, o.Box) > .4 {
			return true
		}
	}
	return false
}

// turns lets the cameras of a day deliver their frames by turns, so that a day always gives the
// same result.
type turns struct {
	frames []face.Frame
	at     int
	turn   chan struct{}
	next   chan struct{}
	clock  *clock
	spare  *spare // nil: all faces are judged
}

// clock is the time of the day.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) get() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (t *turns) Next(ctx context.Context) (face.Frame, error) {
	if t.at > 0 {
		t.next <- struct{}{}
	}
	select {
	case <-t.turn:
	case <-ctx.Done():
		return face.Frame{}, ctx.Err()
	}
	if t.at == len(t.frames) {
		t.next <- struct{}{}
		return face.Frame{}, io.EOF
	}
	f := t.frames[t.at]
	t.at++
	t.clock.mu.Lock()
	t.clock.now = noon.Add(f.Time)
	t.clock.mu.Unlock()
	if t.spare != nil {
		f.Samples = t.spare.hold(f)
	}
	return f, nil
}

var _ face.Holding = (*turns)(nil)

// Look implements [face.Holding].
func (t *turns) Look(tracks ...int) {
	if t.spare != nil {
		t.spare.faces.Ask(tracks...)
	}
}

func (t *turns) Dropped() int { return 0 }
func (t *turns) Close() error { return nil }
