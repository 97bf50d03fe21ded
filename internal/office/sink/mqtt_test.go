// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/sighting"
)

// startBroker returns a running broker.
func startBroker(t *testing.T) *fixture.Broker {
	t.Helper()
	b := fixture.NewBroker(t)
	b.Start()
	return b
}

// happened returns the numbers of the sent events.
func happened(t *testing.T, l *fixture.Topics) (ids []uint64) {
	t.Helper()
	for _, m := range l.All() {
		if !strings.HasSuffix(m.Topic, "/events") {
			continue
		}
		var e presence.Event
		if err := json.Unmarshal([]byte(m.Payload), &e); err != nil {
			t.Error(err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// house is the true state.
type house struct {
	mu sync.Mutex
	h  office.Now
}

func (h *house) now() office.Now {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.h
}

func (h *house) set(known []string, there ...string) {
	h.change(func(h *office.Now) {
		h.Known, h.People = people(known...), nil
		for _, name := range there {
			h.People = append(h.People, presence.Presence{Who: sighting.Who{Name: name},
				Since: noon, Last: noon, Camera: "door"})
		}
	})
}

func (h *house) change(how func(*office.Now)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	how(&h.h)
}

// send waits for a working broker, and for one that is not there only so long.
func send(t *testing.T, m *sink.MQTT, id uint64, within time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return m.Send(ctx, sink.Message{Event: event(id)})
}

// people gives each name a number.
func people(names ...string) (all []office.KnownPerson) {
	for _, name := range names {
		all = append(all, office.KnownPerson{Person: gallery.Person{ID: number(name), Name: name},
			Face: uint64(number(name)), Trust: sighting.Confirmed})
	}
	return all
}

func number(name string) int64 { return int64(crc32.ChecksumIEEE([]byte(name))) }

func id(name string) string { return sink.PersonID(number(name)) }

func topic(name, what string) string { return "faceauth/people/" + id(name) + "/" + what }

func config(name string) string {
	return "homeassistant/binary_sensor/faceauth/" + id(name) + "/config"
}

// The retained messages at the broker are true, whichever side was restarted.
func TestSystemMQTT(t *testing.T) {
	b := startBroker(t)
	l := b.Listen("first")
	h := new(house)
	h.set([]string{"alice", "Bob+#/ Zoë"}, "alice")
	connect := func() *sink.MQTT {
		t.Helper()
		return fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: h.now}))(t)
	}
	m := connect()
	state := func(name string) string { return l.Get(topic(name, "state")) }
	wait(t, "presence", func() bool {
		return state("alice") == "ON" && state("Bob+#/ Zoë") == "OFF" &&
			l.Get("faceauth/status") == "online" &&
			l.Get(config("alice")) != "" && l.Get(topic("alice", "attributes")) != ""
	})
	var d map[string]any
	fixture.Check(t, json.Unmarshal([]byte(l.Get(config("alice"))), &d))
	if d["state_topic"] != topic("alice", "state") || d["name"] != "alice" ||
		d["device_class"] != "presence" ||
		d["availability_topic"] != "faceauth/status" ||
		d["unique_id"] != "faceauth_"+id("alice") {
		t.Errorf("%v", d)
	}
	if want := `{"camera":"door","since":"2026-11-21T12:00:00Z"}`; l.Get(topic("alice",
		"attributes")) != want {
		t.Errorf("attributes %s", l.Get(topic("alice", "attributes")))
	}

	// An event is sent together with the state that it caused.
	h.set([]string{"alice", "Bob+#/ Zoë"}, "Bob+#/ Zoë")
	for {
		if err := send(t, m, 7, time.Minute); err == nil {
			break
		} else if !errors.Is(err, sink.ErrOffline) {
			t.Fatal(err)
		}
	}
	wait(t, "the event", func() bool { return slices.Equal(happened(t, l), []uint64{7}) })
	wait(t, "who has come", func() bool {
		return state("alice") == "OFF" && state("Bob+#/ Zoë") == "ON"
	})

	// When the sink is closed, its status says so, also to clients that connect later.
	m.Close()
	late := b.Listen("late")
	wait(t, "the end", func() bool {
		return late.Get("faceauth/status") == "offline" &&
			late.Get(topic("alice", "state")) == "OFF"
	})

	// Somebody was forgotten while the program was not running.
	h.set([]string{"alice"})
	m = connect()
	wait(t, "that bob is forgotten", func() bool {
		return !strings.Contains(strings.Join(l.Names(), " "), id("Bob+#/ Zoë")) &&
			l.Get("faceauth/status") == "online"
	})

	// The broker restarts, and has lost everything.
	b.Stop()
	if err := send(t, m, 8, time.Second); err == nil {
		t.Error("an event was taken by a broker that is not there")
	}
	h.set([]string{"alice"}, "alice")
	b.Start()
	l = b.Listen("again")
	wait(t, "all of it again", func() bool {
		return l.Get(topic("alice", "state")) == "ON" && l.Get("faceauth/status") == "online" &&
			l.Get(config("alice")) != ""
	})
	m.Close()
}

// A reconnection costs one update, not one for each message that the broker has kept; those about
// forgotten people are removed.
func TestSystemManyPeople(t *testing.T) {
	b := startBroker(t)
	l := b.Listen("first")
	h := new(house)
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprint("person ", i))
	}
	h.set(names)
	var asked atomic.Int32
	connect := func() *sink.MQTT {
		return fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address,
			Now: func() office.Now {
				asked.Add(1)
				return h.now()
			}}))(t)
	}
	m := connect()
	wait(t, "everybody", func() bool { return l.Get("faceauth/count") != "" })
	m.Close()

	h.set(names[1:])
	asked.Store(0)
	begun := time.Now()
	m = connect()
	gone := id(names[0]) + "/"
	wait(t, "the end of somebody", func() bool {
		return !strings.Contains(strings.Join(l.Names(), " "), gone)
	})
	seconds := int32(time.Since(begun) / time.Second) // an update each second
	if n := asked.Load(); n > seconds+3 {
		t.Errorf("the state was asked for %d times in %d s", n, seconds)
	}
	t.Logf("%d updates in %v", asked.Load(), time.Since(begun))
	m.Close()
}

// client publishes nothing, and fails as told.
type client struct {
	mqtt.Client
	wrong error
	all   []string
}

func (c *client) SubscribeMultiple(map[string]byte, mqtt.MessageHandler) mqtt.Token { return nil }

func (c *client) Publish(topic string, _ byte, _ bool, payload any) mqtt.Token {
	c.all = append(c.all, fmt.Sprint(topic, " ", payload))
	return &answer{err: c.wrong}
}

// answer is that of a broker which has answered.
type answer struct {
	mqtt.Token
	err error
}

func (a *answer) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

func (a *answer) Error() error { return a.err }

// What the broker did not get is published again, though the connection lives; so is the end of
// somebody. A picture is read once.
func TestPublishedAgain(t *testing.T) {
	c := &client{wrong: errors.New("the broker is slow")}
	h := new(house)
	h.set([]string{"alice"}, "alice")
	read := 0
	m := sink.Connected(sink.Broker{Topic: "faceauth", Discovery: "homeassistant", Now: h.now,
		Faces: true, Face: func(uint64) []byte { read++; return []byte("picture") }}, c)
	if len(c.all) != 1 {
		t.Errorf("%d messages to a broker that takes none", len(c.all))
	}
	count := func(message string) (n int) {
		for _, x := range c.all {
			if strings.HasPrefix(x, message) {
				n++
			}
		}
		return n
	}
	c.wrong = nil
	m.Update()
	once, read1 := len(c.all), read
	m.Update()
	m.Update()
	if n := count(topic("alice", "state") + " ON"); n != 1 || len(c.all) != once || read != read1 {
		t.Errorf("the state was said %d times; %d messages and %d pictures more", n,
			len(c.all)-once, read-read1)
	}
	h.set(nil)
	c.wrong = errors.New("the broker is slow")
	m.Update()
	c.wrong = nil
	m.Update()
	m.Update()
	// the message, an end that failed, and the end
	if n := count(topic("alice", "attributes")); n != 3 {
		t.Errorf("%d messages about alice", n)
	}
}

func TestNewMQTT(t *testing.T) {
	for _, c := range []struct {
		b    sink.Broker
		want error
	}{
		{sink.Broker{URL: "http://host"}, sink.ErrURL},
		{sink.Broker{URL: "mqtt://"}, sink.ErrURL},
		{sink.Broker{URL: "mqtt://host/topic"}, sink.ErrURL},
		{sink.Broker{URL: "mqtt://me:secret@host"}, sink.ErrURL},
		{sink.Broker{URL: "mqtt://host", Topic: "a/#"}, sink.ErrTopic},
		{sink.Broker{URL: "mqtt://host", Topic: "/a"}, sink.ErrTopic},
		{sink.Broker{URL: "mqtt://host", Discovery: "$SYS"}, sink.ErrTopic},
		{sink.Broker{URL: "mqtt://host", Instance: "a/b"}, sink.ErrTopic},
	} {
		if _, err := sink.NewMQTT(c.b); !errors.Is(err, c.want) ||
			strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%+v: %v", c.b, err)
		}
	}
}

// Close works while a connection is being made, for the first time or again.
func TestSystemMQTTCloses(t *testing.T) {
	b := startBroker(t)
	m := fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: new(house).now}))(t)
	l := b.Listen("first")
	wait(t, "the connection", func() bool { return l.Get("faceauth/status") == "online" })
	b.Stop()
	wait(t, "the end of it", func() bool { return send(t, m, 1, time.Second) != nil })
	done := make(chan bool)
	go func() {
		m.Close()
		never, err := sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: new(house).now})
		if err != nil {
			t.Error(err)
		}
		never.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("closing takes for ever")
	}
}

// People whose names have the same readable form stay separate.
func TestID(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"alice", "Alice", "a lice", "Zoë", "Zo", "李", "王",
		strings.Repeat("x", 99),
		strings.Repeat("x", 98)} {
		id := sink.ID(name)
		if other, there := seen[id]; there || len(id) > 30 || strings.ContainsAny(id, "/+# ") {
			t.Errorf("%s: %q, and %s", name, id, other)
		}
		seen[id] = name
	}
}
