// SPDX-License-Identifier: Apache-2.0

package frigate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/broker"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/frigate"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/viewer"
	"github.com/faceauth/faceauth/online"
)

var space = face.Space{ID: "plane", Dim: 2, Scale: 1, Sigma: .2, Gamma: 1e-3, Reach: .86,
	ImpostorRadius: .93, Look: .1}

// found is a face in a snapshot of the tests, and where its middle is.
type found struct {
	Vector []float32
	At     image.Point
}

// at is a face in the box of the fixture.
func at(x, y float32) found { return found{[]float32{x, y}, image.Pt(400, 140)} }

// house is an office with one camera of Frigate, its broker and its API.
type house struct {
	t      *testing.T
	broker *fixture.Broker
	sender mqtt.Client
	office *office.Office
	time   float64

	mu        sync.Mutex
	snapshots map[string][]byte
	refuse    func(*http.Request) int // status, or 0
	asked     []string                // the requests that were answered
	looking   bool                    // a snapshot was given, and is not judged
	said      []string                // events, health and warnings
}

func newHouse(t *testing.T, parameters string) *house {
	t.Helper()
	h := &house{t: t, broker: fixture.NewBroker(t), snapshots: make(map[string][]byte)}
	h.broker.Start()
	h.connect()
	api := httptest.NewServer(h)
	t.Cleanup(api.Close)
	g := fixture.Must(gallery.New(space, online.Settings{}))(t)
	for i, name := range []string{"alice", "bob"} {
		fixture.Must(g.Enroll(name, [][]float32{{float32(2 * i), 0}}, time.Now(),
			gallery.Enrolment{}))(t)
	}
	c, err := frigate.New("frigate://"+h.broker.Address+"/door?api="+api.URL+"/"+parameters,
		frigate.Options{
			See: func(_ context.Context, picture []byte) (f face.Frame, err error) {
				var all []found
				if json.Unmarshal(picture, &all) != nil {
					return f, viewer.ErrPicture
				}
				f.Size, f.JPEG = image.Pt(640, 480), picture
				for _, x := range all {
					f.Samples = append(f.Samples, face.Sample{Vector: x.Vector, JPEG: picture,
						Box: image.Rectangle{x.At, x.At}.Inset(-20)})
				}
				return f, nil
			},
			Warn: func(s string) { h.say("warning: " + s) },
		})
	fixture.Check(t, err)
	past := fixture.Must(office.OpenPast(g, "", office.PastSettings{}))(t)
	h.office = office.New(past, office.Options{
		Presence: presence.Settings{Away: 2 * time.Second}, Backoff: 50 * time.Millisecond,
		Faceless: true,
		Frame: func(_ string, _ time.Time, seen []presence.Seen) {
			c.Seen(seen)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.looking = false
		},
		Event:  func(e presence.Event) { h.say(fmt.Sprintf("%s %s", e.Kind, e.Name)) },
		Health: func(x office.Health) { h.say(fmt.Sprintf("up %t %s", x.Up, x.Error)) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- h.office.Run(ctx,
			[]office.Camera{{Name: "door", Stills: true, Open: c.Open}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("asked %q, said %q", h.asked, h.said)
		}
	})
	h.until("the camera", func() bool { return h.has("up true ") })
	return h
}

// connect connects Frigate to the broker.
func (h *house) connect() {
	h.t.Helper()
	var err error
	if h.sender, _, err = broker.Dial(h.t.Context(), broker.Address{Host: h.broker.Address},
		mqtt.NewClientOptions()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { h.sender.Disconnect(0) })
}

func (h *house) say(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, s)
}

// has reports whether something was said or asked that begins so.
func (h *house) has(begin string) bool { return h.count(begin) > 0 }

func (h *house) count(begin string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Concat(h.said, h.asked) {
		if strings.HasPrefix(s, begin) {
			n++
		}
	}
	return n
}

func (h *house) until(what string, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("in vain: %s", what)
		}
	}
}

// answers makes the API refuse requests.
func (h *house) answers(refuse func(*http.Request) int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = refuse
}

// ServeHTTP is Frigate's API.
func (h *house) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		if status := h.refuse(r); status != 0 {
			http.Error(w, "no", status)
			return
		}
	}
	body, _ := io.ReadAll(r.Body)
	h.asked = append(h.asked, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body))
	if r.Method == http.MethodPost {
		return
	}
	h.looking = true
	id, _ := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/events/"), "/snapshot.jpg")
	if picture, ok := h.snapshots[id]; ok {
		w.Write(picture)
		return
	}
	http.NotFound(w, r)
}

// send publishes a message about an event, after changes of its last state.
func (h *house) send(kind, id string, change func(after map[string]any)) {
	h.t.Helper()
	text, err := os.ReadFile("testdata/event.json")
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	fixture.Check(h.t, err)
	after := m["after"].(map[string]any)
	h.time++
	m["type"], after["id"], after["snapshot"].(map[string]any)["frame_time"] = kind, id, h.time
	if change != nil {
		change(after)
	}
	if text, err = json.Marshal(m); err != nil {
		h.t.Fatal(err)
	}
	h.publish("frigate/events", text)
}

func (h *house) publish(topic string, text []byte) {
	h.t.Helper()
	if sent := h.sender.Publish(topic, 1, false, text); !sent.WaitTimeout(time.Minute) ||
		sent.Error() != nil {
		h.t.Fatal(sent.Error())
	}
}

// rest waits until the office has nothing more to say of what it has seen.
func (h *house) rest() {
	h.t.Helper()
	frames := h.office.Now().Cameras[0].Frames
	h.until("a frame", func() bool { return h.office.Now().Cameras[0].Frames > frames })
}

// show publishes that an event has a better snapshot, and waits until the office has looked at it.
func (h *house) show(id string, faces ...found) {
	h.t.Helper()
	picture := fixture.Must(json.Marshal(append([]found{}, faces...)))(h.t)
	h.picture(id, picture)
}

func (h *house) picture(id string, picture []byte) {
	h.t.Helper()
	h.mu.Lock()
	h.snapshots[id] = picture
	h.mu.Unlock()
	get := "GET /api/events/" + id + "/snapshot.jpg"
	before := h.count(get)
	h.send("update", id, nil)
	h.until("a look at the snapshot", func() bool {
		n := h.count(get)
		h.mu.Lock()
		defer h.mu.Unlock()
		return n > before && !h.looking
	})
}

const event, other = "1795251731.482913-q3kz7t", "1795251740.1-abcdef"

// labels returns the sub labels that Frigate got.
func (h *house) labels() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.asked {
		if label, ok := strings.CutPrefix(s, "POST /api/events/"); ok {
			all = append(all, label)
		}
	}
	return all
}

// The snapshots of an event are one sighting. Two different ones near enrolled faces confirm a
// name, which Frigate gets once. The person is there until the event ends, however few its
// snapshots are.
func TestSystemConfirmed(t *testing.T) {
	h := newHouse(t, "")
	h.send("new", event, func(after map[string]any) { after["snapshot"] = nil })
	h.show(event, at(0, .05))
	h.rest()
	if got := h.labels(); got != nil || h.has("arrived") {
		t.Errorf("after one picture: %q", got)
	}
	h.show(event, at(.2, 0))
	want := []string{event + `/sub_label {"subLabel":"alice","subLabelScore":1}`}
	h.until("the label", func() bool { return reflect.DeepEqual(h.labels(), want) })
	time.Sleep(3 * time.Second) // longer than away
	h.show(event, at(0, .2))
	h.rest()
	if got := h.labels(); !reflect.DeepEqual(got, want) || !h.has("arrived alice") ||
		h.has("left") {
		t.Errorf("%q", got)
	}
	if all := h.office.Sightings(0, 64); len(all) != 1 || all[0].Name != "alice" ||
		all[0].Trust != "confirmed" {
		t.Errorf("%+v", all)
	}
	if jpeg, _, _ := h.office.Picture("door"); jpeg == nil {
		t.Error("the camera has no picture")
	}
	h.send("end", event, func(after map[string]any) { after["end_time"] = h.time })
	h.until("that she has left", func() bool { return h.has("left alice") })
	h.until("an empty tile", func() bool {
		jpeg, _, _ := h.office.Picture("door")
		return jpeg == nil
	})
}

// One still picture confirms nobody, however often it comes; nor do two people in turn.
func TestSystemNotConfirmed(t *testing.T) {
	h := newHouse(t, "")
	for i := range 6 {
		h.show(event, at(.05*float32(i%2), 0)) // it moves less than a look
	}
	for i := range 3 {
		h.show(other, at(2*float32(i%2), 0)) // alice, bob, alice
	}
	h.rest()
	if got := h.labels(); got != nil || h.has("arrived") || h.has("unknown") {
		t.Errorf("%q", got)
	}
}

// A stranger is told of once, after three looks in a second and a half, and gets no label. Who
// leaves without a face in a snapshot is told of, too.
func TestSystemStranger(t *testing.T) {
	h := newHouse(t, "")
	h.show(other)
	h.send("end", other, func(map[string]any) {})
	h.until("somebody without a face", func() bool { return h.has("faceless ") })
	for i := range 5 {
		h.show(event, at(0, 2+float32(i)/10))
		time.Sleep(400 * time.Millisecond)
		if i < 2 && h.has("unknown") {
			t.Errorf("after picture %d", i)
		}
	}
	h.rest()
	if got := h.labels(); got != nil || h.count("unknown") != 1 || h.count("faceless") != 1 {
		t.Errorf("%q", got)
	}
}

// Messages about others, and messages that lie, cause no request.
func TestSystemIgnored(t *testing.T) {
	h := newHouse(t, "")
	h.send("new", event, func(after map[string]any) { after["camera"] = "yard" })
	h.send("new", event, func(after map[string]any) { after["label"] = "car" })
	h.send("new", event, func(after map[string]any) { after["false_positive"] = true })
	for _, id := range []string{"../../config", "", ".", "1/2", "1?x", strings.Repeat("1", 65)} {
		h.send("new", id, nil)
	}
	for _, text := range []string{"", "garbage", "[]", "{}", `{"type":3}`,
		`{"type":"new","after":{"id":[]}}`,
		strings.Repeat("[", 1<<16)} {
		h.publish("frigate/events", []byte(text))
	}
	h.until("the warning", func() bool {
		return h.has("warning: a message of Frigate is no event")
	})
	h.publish("frigate/events", make([]byte, 1<<20)) // ends the connection, and nothing else
	h.until("the end", func() bool {
		return h.has("up false the MQTT broker: the broker sent a message of more than")
	})
	h.until("the return", func() bool { return h.count("up true") == 2 })
	for i := range 99 { // more than are held
		h.send("new", fmt.Sprint("2.", i, "-x"), func(after map[string]any) {
			after["snapshot"] = nil
		})
	}
	if h.has("GET") {
		t.Error("something was asked for")
	}
	h.show(event, at(0, 0))
	if n := h.count("warning: a message"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// Snapshots that cannot be used are named, and the next one is looked at.
func TestSystemPoorSnapshots(t *testing.T) {
	h := newHouse(t, "")
	h.picture(event, []byte("no picture"))
	h.until("a warning", func() bool {
		return h.has("warning: a snapshot of Frigate: the picture cannot be used")
	})
	h.picture(event, make([]byte, 16<<20+1))
	h.until("a warning", func() bool {
		return h.has("warning: a snapshot of Frigate: the picture cannot be used: it has more " +
			"than 16777216 bytes")
	})
	h.answers(func(*http.Request) int { return 404 })
	h.send("update", event, nil)
	h.until("a warning", func() bool {
		return h.has("warning: a snapshot of Frigate: its API answers 404 Not Found")
	})
	h.answers(nil)
	h.show(event) // nobody
	// two people: whose event is it?
	h.show(event, at(0, 0), at(2, 0))
	h.show(event, found{[]float32{2, 0}, image.Pt(100, 100)}, at(0, .2)) // bob is not in the box
	h.show(event, at(0, 0))
	h.until("alice", func() bool { return len(h.labels()) == 1 })
	// A face that two events may claim is nobody's.
	for i := range 3 {
		h.show(other, at(.2*float32(i), 0))
	}
	h.rest()
	if got := h.labels(); len(got) != 1 || h.has("up false") {
		t.Errorf("%q", got)
	}
}

// While the API is down the camera is down, and says so. Then the same snapshots and answers are
// tried again.
func TestSystemDown(t *testing.T) {
	h := newHouse(t, "")
	refuse := func(path string, status int) {
		h.answers(func(r *http.Request) int {
			if strings.Contains(r.URL.Path, path) {
				return status
			}
			return 0
		})
	}
	refuse("", 502)
	h.mu.Lock()
	h.snapshots[event] = []byte(`[{"Vector":[0,0],"At":{"X":400,"Y":140}}]`)
	h.mu.Unlock()
	h.send("new", event, nil)
	h.until("502", func() bool {
		return h.has(
			"up false the API of Frigate answers 502 Bad Gateway")
	})
	refuse("sub_label", 403)
	h.until("the snapshot", func() bool { return h.has("GET") })
	h.show(event, at(.2, 0))
	h.until("403", func() bool {
		return h.has("up false the API of Frigate answers 403 Forbidden; give the address of its " +
			"port without a login, 5000")
	})
	h.answers(nil)
	want := []string{event + `/sub_label {"subLabel":"alice","subLabelScore":1}`}
	h.until("the label", func() bool { return reflect.DeepEqual(h.labels(), want) })
	h.send("end", event, nil)
	refuse("sub_label", 400)
	for i := range 2 {
		h.show(other, at(2, .2*float32(i)))
	}
	h.until("400", func() bool {
		return h.has(
			"warning: Frigate does not take a sub label: its API answers 400")
	})
	h.answers(nil)

	h.publish("frigate/available", []byte("offline"))
	h.until("offline", func() bool {
		return h.has("up false the MQTT broker: it says that Frigate is offline")
	})
	h.broker.Stop()
	h.until("the broker's end", func() bool {
		return h.has("up false the MQTT broker: network Error")
	})
	h.broker.Start()
	h.connect()
	h.until("the return", func() bool { return h.office.Now().Cameras[0].Up })
	h.show(event, at(.4, 0))
}

// If the end of an event was lost, the person leaves some time after the last message.
func TestSystemSilent(t *testing.T) {
	frigate.SetSilent(t, 3*time.Second)
	h := newHouse(t, "")
	h.show(event, at(0, 0))
	h.show(event, at(.2, 0))
	h.until("alice", func() bool { return h.has("arrived alice") })
	h.until("her departure", func() bool { return h.has("left alice") })
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"mqtt://host/door?api=http://f:5000", "it names no broker"},
		{"frigate:///door?api=http://f:5000", "it names no broker"},
		{"frigate://me:hidden@host/?api=http://f:5000", "it names no camera"},
		{"frigate://host/a/b?api=http://f:5000", "it names no camera"},
		{"frigate://me:hidden@host/door", "api must be"},
		{"frigate://host/door?api=f:5000", "api must be"},
		{"frigate://host/door?api=http://f&topic=a/%23", "topic must be"},
		{"frigate://host/door?api=http://f&crop=1", "its parameters are api and topic"},
		{"frigate://host/door?%zz", "api must be"},
	} {
		_, err := frigate.New(c.url, frigate.Options{})
		if !errors.Is(err, frigate.ErrURL) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", c.url, err)
		}
	}
	for _, u := range []string{"frigates://me@host:1/door?api=https://f/x/&topic=home/frigate"} {
		if _, err := frigate.New(u, frigate.Options{}); err != nil {
			t.Error(err)
		}
	}
}
