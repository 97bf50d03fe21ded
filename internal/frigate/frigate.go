// SPDX-License-Identifier: Apache-2.0

// Package frigate makes a camera of an office from the events of Frigate (https://frigate.video), a
// recorder that follows people by itself.
//
// [New] makes a [Camera] from a URL. Its Open is that of an [office.Camera] with Stills. The camera
// hears of Frigate's events by MQTT, asks Frigate's HTTP API for their snapshots, and gives the
// face in a snapshot to the office, with the event as its track. [Camera.Seen] takes what the
// office says, and tells Frigate: a confirmed name becomes the sub label of the event.
//
// An event that nobody has ended goes on without a new snapshot: its person is still there, as a
// held face.
package frigate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/broker"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/viewer"
	"github.com/faceauth/faceauth/sighting"
)

// ErrURL is wrapped by the error of [New].
var ErrURL = errors.New("unusable address of Frigate")

// Options of a [Camera].
type Options struct {
	Timeout time.Duration // for an answer of the API. Default 10 s
	// See finds the faces of a picture (JPEG), and makes a picture of the frame. If its error wraps
	// [viewer.ErrPicture], the camera goes on with the next picture.
	See  func(ctx context.Context, picture []byte) (face.Frame, error)
	Warn func(string) // called with a sentence about a message or a picture that cannot be used
}

// Limits of what others send.
const (
	mostPicture = 16 << 20 // bytes of a snapshot
	mostEvents  = 64       // of a camera at once; for a new one the oldest is dropped
	mostLabel   = 100      // characters of a sub label, by Frigate's API
)

// beat is the time between two frames of a quiet camera.
const beat = time.Second

// silent is the time after which an event counts as ended. Frigate tells of each event once a
// minute at least.
var silent = 2 * time.Minute

// Camera is a camera of Frigate. [New] makes one. One stream of it may be open at a time.
type Camera struct {
	o          Options
	at         broker.Address
	name       string // in Frigate
	topic, api string
	client     *http.Client

	tracks  int      // number of the last event with a track
	shown   []*event // of the samples of the last frame
	answers []label
	warned  string

	mu      sync.Mutex // guards the fields below
	events  []*event   // not ended, the oldest first
	turned  []time.Time
	news    chan struct{}
	dropped int
}

// event is a person whom Frigate follows.
type event struct {
	id       string
	begun    time.Time
	heard    time.Time       // the last message
	box      image.Rectangle // at that time
	snapshot snapshot        // the best until then
	looked   float64         // FrameTime of the snapshot that was looked at

	face face.Sample // the last face, held; Track is 0 for none
	name string      // as the office last said, and whether it was confirmed
	sure bool
}

// snapshot is Frigate's best picture of an event.
type snapshot struct {
	FrameTime float64 `json:"frame_time"`
	Box       [4]int  `json:"box"` // left, top, right and bottom in the frame
}

// message is what is used of a message at the topic events.
type message struct {
	Type  string
	After struct {
		ID, Camera, Label string
		False             bool `json:"false_positive"`
		Box               [4]int
		Snapshot          *snapshot
	}
}

// label is a sub label of an event, with the share of its snapshots that support it.
type label struct {
	id    string
	Name  string  `json:"subLabel"`
	Share float64 `json:"subLabelScore"`
}

// number matches the numbers of events, which become a part of a path.
var number = regexp.MustCompile(`^[0-9][0-9A-Za-z._-]{0,63}$`)

// New returns the camera of frigate://[user[:password]@]broker[:port]/CAMERA?api=http://HOST:5000;
// frigates uses TLS. A further parameter is topic, Frigate's topic_prefix. The error wraps
// [ErrURL], and does not contain the URL.
func New(address string, o Options) (*Camera, error) {
	wrong := func(why string) (*Camera, error) {
		return nil, fmt.Errorf(
			"%w: %s; use frigate://user@broker/CAMERA?api=http://host:5000, or frigates for TLS",
			ErrURL, why)
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "frigate" && u.Scheme != "frigates" {
		return wrong("it names no broker")
	}
	q, err := url.ParseQuery(u.RawQuery)
	api, bad := url.Parse(q.Get("api"))
	c := &Camera{
		o: o, at: broker.At(u, u.Scheme == "frigates"), name: strings.Trim(u.Path, "/"),
		topic: cmp.Or(q.Get("topic"), "frigate"), api: strings.TrimRight(q.Get("api"), "/"),
		news: make(chan struct{}, 1),
		client: &http.Client{
			Timeout: cmp.Or(o.Timeout, 10*time.Second),
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
	q.Del("api")
	q.Del("topic")
	switch {
	case err != nil || bad != nil || api.Host == "" || api.Scheme != "http" &&
		api.Scheme != "https":
		return wrong("api must be the address of Frigate's HTTP API")
	case c.name == "" || strings.Contains(c.name, "/"):
		return wrong("it names no camera")
	case strings.ContainsAny(c.topic, "+#\x00"):
		return wrong("topic must be Frigate's topic_prefix")
	case len(q) > 0:
		return wrong("its parameters are api and topic")
	}
	return c, nil
}

// Open connects to the broker. It is [office.Camera].Open.
func (c *Camera) Open(ctx context.Context, _ func() bool) (office.Stream, error) {
	link, lost, err := broker.Dial(ctx, c.at, mqtt.NewClientOptions())
	if err != nil {
		return nil, fmt.Errorf("the MQTT broker: %w", err)
	}
	done := link.SubscribeMultiple(map[string]byte{c.topic + "/events": 1, c.topic +
		"/available": 1},
		func(_ mqtt.Client, m mqtt.Message) {
			if strings.HasSuffix(m.Topic(), "/events") {
				c.hear(m.Payload())
			} else if string(m.Payload()) != "online" {
				select {
				case lost <- errors.New("it says that Frigate is offline"):
				default:
				}
			}
		})
	select {
	case <-done.Done():
		err = done.Error()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		link.Disconnect(0)
		return nil, fmt.Errorf("the MQTT broker: %w", err)
	}
	return &stream{c, link, lost}, nil
}

// hear takes in a message about an event. The messages of a connection come one after another.
func (c *Camera) hear(text []byte) {
	var m message
	if json.Unmarshal(text, &m) != nil || m.Type == "" {
		c.warn("a message of Frigate is no event; is topic its topic_prefix?")
		return
	}
	x := m.After
	if x.Camera != c.name || x.Label != "person" || x.False || !number.MatchString(x.ID) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.events, func(e *event) bool { return e.id == x.ID })
	switch {
	case m.Type == "end":
		if at >= 0 {
			if e := c.events[at]; e.face.Track == 0 && !e.due() && len(c.turned) < mostEvents {
				c.turned = append(c.turned, e.begun)
			}
			c.events = slices.Delete(c.events, at, at+1)
		}
		return
	case at < 0:
		at = len(c.events)
		c.events = append(c.events, &event{id: x.ID, begun: time.Now()})
	}
	e := c.events[at]
	e.heard, e.box = time.Now(), rectangle(x.Box)
	if s := x.Snapshot; s != nil && s.FrameTime != e.snapshot.FrameTime {
		if e.due() {
			c.dropped++
		}
		e.snapshot = *s
	}
	c.events = slices.Delete(c.events, 0, max(0, len(c.events)-mostEvents))
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func rectangle(box [4]int) image.Rectangle { return image.Rect(box[0], box[1], box[2], box[3]) }

// due reports whether there is a snapshot that was not looked at.
func (e *event) due() bool { return e.snapshot.FrameTime != e.looked }

// warn calls Warn, unless the last sentence was the same.
func (c *Camera) warn(text string) {
	c.mu.Lock()
	news := text != c.warned
	c.warned = text
	c.mu.Unlock()
	if news && c.o.Warn != nil {
		c.o.Warn(text)
	}
}

// next forgets the events of which nothing was heard for long. It returns the first event with a
// new snapshot, or nil, with this snapshot and the boxes of the other events.
func (c *Camera) next() (first *event, s snapshot, others []image.Rectangle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = slices.DeleteFunc(c.events, func(e *event) bool {
		return time.Since(e.heard) > silent
	})
	for _, e := range c.events {
		if first == nil && e.due() {
			first, s = e, e.snapshot
		} else {
			others = append(others, e.box)
		}
	}
	return first, s, others
}

// stream is a connection to the broker.
type stream struct {
	*Camera
	link mqtt.Client
	lost <-chan error
}

var _ office.Stream = (*stream)(nil)

// Next implements [office.Stream]: it returns the face of a new snapshot, or after a second without
// one no new face, with the faces of the other events as held ones. After an error, snapshots and
// answers are tried again in the next stream.
func (s *stream) Next(ctx context.Context) (f face.Frame, err error) {
	for ; len(s.answers) > 0; s.answers = s.answers[1:] {
		if err := s.tell(ctx, s.answers[0]); err != nil {
			return f, err
		}
	}
	quiet := time.NewTimer(beat)
	defer quiet.Stop()
	e, best, others := s.next()
	for waited := false; e == nil && !waited; e, best, others = s.next() {
		select {
		case <-s.news:
		case <-quiet.C:
			waited = true
		case err := <-s.lost:
			return f, fmt.Errorf("the MQTT broker: %w", err)
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
	s.shown = s.shown[:0]
	if e != nil {
		f, err = s.look(ctx, e, best, others)
		if err != nil {
			return f, err
		}
	}
	s.hold(&f)
	return f, nil
}

// look returns the frame of a snapshot, with the face of its event.
func (s *stream) look(ctx context.Context, e *event, best snapshot,
	others []image.Rectangle) (f face.Frame,
	err error) {
	// Without crop the picture is the frame to which the boxes belong. Nothing is drawn into it.
	jpeg, err := s.ask(ctx, http.MethodGet, e.id+
		"/snapshot.jpg?crop=0&bbox=0&timestamp=0&quality=95", nil)
	if err == nil {
		f, err = s.o.See(ctx, jpeg)
	}
	if err != nil && !errors.Is(err, viewer.ErrPicture) && !errors.Is(err, errRefused) {
		return f, err
	}
	s.mu.Lock()
	e.looked = best.FrameTime
	s.mu.Unlock()
	if err != nil {
		s.warn("a snapshot of Frigate: " + err.Error())
		return face.Frame{}, nil
	}
	f.Samples = own(f.Samples, rectangle(best.Box), others)
	for i, x := range f.Samples {
		x.Track = e.face.Track
		if x.Track == 0 {
			s.tracks++
			x.Track = s.tracks
		}
		f.Samples[i], s.shown = x, append(s.shown, e)
		x.Held, x.Vector, x.Landmarks, x.JPEG = true, nil, nil, nil
		s.mu.Lock()
		e.face = x
		s.mu.Unlock()
	}
	return f, nil
}

// own returns the face in the box of an event. If there are several, or if the face is in another
// event's box, too, it returns none: it may be another person's.
func own(all []face.Sample, box image.Rectangle, others []image.Rectangle) []face.Sample {
	middle := func(x face.Sample) image.Point { return x.Box.Min.Add(x.Box.Max).Div(2) }
	all = slices.DeleteFunc(all, func(x face.Sample) bool { return !middle(x).In(box) })
	if len(all) != 1 ||
		slices.ContainsFunc(others, func(o image.Rectangle) bool { return middle(all[0]).In(o) }) {
		return nil
	}
	return all
}

// hold adds the events that go on to a frame. Their faces have no place in its picture.
func (s *stream) hold(f *face.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.face.Track == 0 || slices.Contains(s.shown, e) {
			continue
		}
		if f.JPEG != nil {
			e.face.Box = image.Rectangle{}
		}
		f.Samples, s.shown = append(f.Samples, e.face), append(s.shown, e)
	}
}

// Seen takes what the office says about the last frame, as [office.Options].Frame has it. Frigate
// is told by the next call of Next.
func (c *Camera) Seen(seen []presence.Seen) {
	for i, x := range seen {
		e, sure := c.shown[i], x.Trust == sighting.Confirmed
		if x.Name == "" || x.Name == e.name && (e.sure || !sure) {
			continue
		}
		e.name, e.sure = x.Name, sure
		if sure {
			name := []rune(x.Name)
			c.answers = append(c.answers, label{e.id, string(name[:min(mostLabel, len(name))]),
				x.Share})
		}
	}
}

// tell sends a label to Frigate.
func (s *stream) tell(ctx context.Context, l label) error {
	body, err := json.Marshal(l)
	if err == nil {
		_, err = s.ask(ctx, http.MethodPost, l.id+"/sub_label", body)
	}
	if errors.Is(err, errRefused) {
		s.warn("Frigate does not take a sub label: " + err.Error())
		err = nil
	}
	return err
}

// errRefused is an error about one event, after which Frigate can be asked about others.
var errRefused = errors.New("its API answers")

// ask sends a request about an event to Frigate's API.
func (s *stream) ask(ctx context.Context, method, what string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.api+"/api/events/"+what,
		bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address of Frigate's API cannot be used")
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := s.client.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) { // without the URL
			err = of.Err
		}
		return nil, fmt.Errorf("the API of Frigate does not answer: %w", err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, mostPicture+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the API of Frigate does not answer: %w", err)
	case len(b) > mostPicture:
		return nil, fmt.Errorf("%w: it has more than %d bytes", viewer.ErrPicture, mostPicture)
	case a.StatusCode/100 == 2:
		return b, nil
	case a.StatusCode == http.StatusUnauthorized || a.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf(
			"the API of Frigate answers %s; give the address of its port without a login, 5000",
			a.Status)
	case a.StatusCode/100 == 4: // this event, and not Frigate
		return nil, fmt.Errorf("%w %s", errRefused, a.Status)
	}
	return nil, fmt.Errorf("the API of Frigate answers %s", a.Status)
}

// Empty reports whether Frigate follows nobody.
func (s *stream) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events) == 0
}

// Faceless returns when the people came who have left since the last call, and of whom no snapshot
// showed a face.
func (s *stream) Faceless() (all []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.turned = s.turned, nil
	return all
}

func (s *stream) Dropped() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

func (s *stream) Close() error {
	s.link.Disconnect(100)
	return nil
}
