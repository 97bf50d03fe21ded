// SPDX-License-Identifier: Apache-2.0

// Package sink sends the events of a room to other programs: to a webhook or an MQTT broker.
//
// [Deliver] sends the events of a queue to a [Sink], each at least once and in order. After a
// failure it tries again, with growing pauses, as long as the queue keeps the event. A failing sink
// delays nothing else. [NewWebhook] and [NewMQTT] make sinks.
package sink

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/internal/album"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// Message is an event, with what helps to decide who an unknown person is.
type Message struct {
	presence.Event
	Link    string `json:"link,omitempty"`    // address of the page where a user can name them
	Face    uint64 `json:"face,omitempty"`    // number of the picture at the page
	Picture []byte `json:"picture,omitempty"` // the best picture of the face until now: JPEG
	// Better says that the same event was sent before with a poorer picture.
	Better bool `json:"better,omitempty"`

	clear float64 // how clear the picture is, see [album.Face.Clear]
}

// Sink receives events. Send returns when its context ends. The same event may come twice, with the
// same number.
type Sink interface {
	Send(ctx context.Context, m Message) error
}

// Options of [Deliver]. A zero field means the default.
type Options struct {
	Timeout    time.Duration // time limit of one try. Default 10 s
	Backoff    time.Duration // pause before the next try; each failure doubles it. Default 1 s
	MaxBackoff time.Duration // longest pause. Default 5 min

	Link string // address of the page for people; "" for none
	// Shot returns the best picture of the person of an event. May be nil.
	Shot  func(presence.Event) album.Face
	Faces bool // send the picture of an unknown person
	// Better is the time after which such an event is sent a second time, if there is a clearer
	// picture then. Default 8 s.
	Better time.Duration

	// Quiet reports whether nothing is sent about the person of an event. May be nil.
	Quiet func(presence.Event) bool

	// Failed is called with the error of each try, or with nil.
	Failed func(error)
}

// clearer is the least difference of [album.Face.Clear] between two pictures that is worth a
// second message: half as much contrast again.
const clearer = .4

// mostPromised limits the number of events whose pictures may become better.
const mostPromised = 64

// promise is an event that was sent with a picture that may become better.
type promise struct {
	sent Message
	due  time.Time
}

// delivery is the state of delivering to one sink.
type delivery struct {
	Options
	q        *office.Queue
	promised []promise // the oldest first
}

// next returns the message to send now. If there is none, wait is the time after which there may be
// one without an event.
func (d *delivery) next() (m Message, wait time.Duration, ok bool, err error) {
	e, ok, err := d.q.Next()
	for err == nil && ok && d.Quiet != nil && d.Quiet(e) {
		d.q.Done(e.ID)
		e, ok, err = d.q.Next()
	}
	if err != nil || ok {
		return d.message(e), 0, ok, err
	}
	for len(d.promised) > 0 {
		p := d.promised[0]
		wait = time.Until(p.due)
		if wait > 0 {
			return m, wait, false, nil
		}
		m = d.message(p.sent.Event)
		if m.Face != 0 && m.Face != p.sent.Face && m.clear > p.sent.clear+clearer {
			m.Better = true
			return m, 0, true, nil
		}
		d.promised = d.promised[1:]
	}
	return m, time.Hour, false, nil
}

// message returns an event as it is now.
func (d *delivery) message(e presence.Event) Message {
	m := Message{Event: e}
	if e.Kind != presence.Unknown {
		return m
	}
	m.Link = d.Link
	if m.Link != "" && e.Group > 0 {
		m.Link = fmt.Sprintf("%s/stranger-%d", m.Link, e.Group)
	}
	if d.Shot != nil && d.Faces {
		best := d.Shot(e)
		m.Face, m.Picture, m.clear = best.ID, best.JPEG, best.Clear()
	}
	return m
}

// done records that a message has arrived.
func (d *delivery) done(m Message) {
	if m.Better {
		d.promised = d.promised[1:]
		return
	}
	d.q.Done(m.ID)
	if m.Kind == presence.Unknown && d.Faces && d.Shot != nil {
		m.Picture = nil
		d.promised = append(d.promised, promise{m, time.Now().Add(d.Better)})
		d.promised = slices.Delete(d.promised, 0, max(0, len(d.promised)-mostPromised))
	}
}

// Deliver sends events from q to s until ctx ends. An unknown person's event may be sent a second
// time with a clearer picture, unless ctx ends before.
func Deliver(ctx context.Context, q *office.Queue, s Sink, o Options) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 5*time.Minute)
	o.Better = cmp.Or(o.Better, 8*time.Second)
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	d := &delivery{Options: o, q: q}
	pause := backoff.Pause{First: o.Backoff, Longest: o.MaxBackoff}
	unread := false // the last event could not be read
	for {
		m, wait, ok, err := d.next()
		if err != nil || unread {
			o.Failed(err)
		}
		unread = err != nil
		if unread { // nobody knows whether the queue is empty
			if !pause.Wait(ctx) {
				return
			}
			continue
		}
		if !ok {
			select {
			case <-q.More():
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			continue
		}
		err = send(ctx, s, m, o.Timeout)
		if ctx.Err() == nil {
			o.Failed(err)
		}
		if err == nil {
			d.done(m)
			pause.Reset()
		} else if !pause.Wait(ctx) {
			return
		}
	}
}

func send(ctx context.Context, s Sink, m Message, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Send(ctx, m)
}
