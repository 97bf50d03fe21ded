// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/sink"
)

// broker is a mosquitto of our own.
type broker struct {
	t       *testing.T
	address string
	config  string
	process *exec.Cmd
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{t: t, address: l.Addr().String(), config: filepath.Join(t.TempDir(), "mosquitto.conf")}
	l.Close()
	port := b.address[strings.LastIndex(b.address, ":")+1:]
	if err := os.WriteFile(b.config, []byte("listener "+port+" 127.0.0.1\nallow_anonymous true\npersistence false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program = "/usr/sbin/mosquitto" // Debian's place for it, which is not in everybody's path
	}
	b.process = exec.Command(program, "-c", b.config)
	if err := b.process.Start(); err != nil {
		fixture.Missing(b.t, "there is no mosquitto; install the Debian package of that name")
	}
	wait(b.t, "the broker", func() bool {
		c, err := net.Dial("tcp", b.address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (b *broker) stop() {
	b.process.Process.Kill()
	b.process.Wait()
}

// listener keeps what is said at a broker.
type listener struct {
	mu     sync.Mutex
	topics map[string]string
	events []uint64
	order  []string // of topics, as they came
}

func (b *broker) listen(id string) *listener {
	b.t.Helper()
	l := &listener{topics: make(map[string]string)}
	c := mqtt.NewClient(mqtt.NewClientOptions().AddBroker("tcp://" + b.address).SetClientID(id).SetAutoReconnect(false))
	if token := c.Connect(); !token.WaitTimeout(5*time.Second) || token.Error() != nil {
		b.t.Fatal(token.Error())
	}
	b.t.Cleanup(func() { c.Disconnect(0) })
	c.Subscribe("#", 1, func(_ mqtt.Client, m mqtt.Message) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.HasSuffix(m.Topic(), "/events") {
			var e presence.Event
			if err := json.Unmarshal(m.Payload(), &e); err != nil {
				b.t.Error(err)
			}
			l.events = append(l.events, e.ID)
			return
		}
		l.order = append(l.order, m.Topic())
		l.topics[m.Topic()] = string(m.Payload())
		if len(m.Payload()) == 0 {
			delete(l.topics, m.Topic())
		}
	}).WaitTimeout(5 * time.Second)
	return l
}

func (l *listener) get(topic string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topics[topic]
}

func (l *listener) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(l.topics)), " ")
}

// house says what is true.
type house struct {
	mu sync.Mutex
	h  sink.House
}

func (h *house) now() sink.House {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.h
}

func (h *house) set(known []string, there ...string) {
	h.change(func(h *sink.House) {
		h.Known, h.There = known, nil
		for _, name := range there {
			h.There = append(h.There, presence.Person{Name: name, Since: noon, Last: noon, Camera: "door"})
		}
	})
}

func (h *house) change(how func(*sink.House)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	how(&h.h)
}

// send waits no longer than a broker that is there could need.
func send(t *testing.T, m *sink.MQTT, id uint64) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return m.Send(ctx, event(id))
}

func topic(name, what string) string { return "faceauth/people/" + sink.ID(name) + "/" + what }

func config(name string) string {
	return "homeassistant/binary_sensor/faceauth/" + sink.ID(name) + "/config"
}

// What is retained at the broker is true, whoever was started again.
func TestMQTT(t *testing.T) {
	b := startBroker(t)
	l := b.listen("first")
	h := new(house)
	h.set([]string{"alice", "Bob+#/ Zoë"}, "alice")
	connect := func() *sink.MQTT {
		t.Helper()
		m, err := sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.address, House: h.now})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := connect()
	state := func(name string) string { return l.get(topic(name, "state")) }
	wait(t, "presence", func() bool {
		return state("alice") == "ON" && state("Bob+#/ Zoë") == "OFF" && l.get("faceauth/status") == "online" &&
			l.get(config("alice")) != "" && l.get(topic("alice", "attributes")) != ""
	})
	var d map[string]any
	if err := json.Unmarshal([]byte(l.get(config("alice"))), &d); err != nil {
		t.Fatal(err)
	}
	if d["state_topic"] != topic("alice", "state") || d["name"] != "alice" || d["device_class"] != "presence" || d["availability_topic"] != "faceauth/status" || d["unique_id"] != "faceauth_"+sink.ID("alice") {
		t.Errorf("%v", d)
	}
	if want := `{"camera":"door","since":"2026-11-21T12:00:00Z"}`; l.get(topic("alice", "attributes")) != want {
		t.Errorf("attributes %s", l.get(topic("alice", "attributes")))
	}

	// An event comes with the state that it led to.
	h.set([]string{"alice", "Bob+#/ Zoë"}, "Bob+#/ Zoë")
	for {
		if err := send(t, m, 7); err == nil {
			break
		} else if !errors.Is(err, sink.ErrOffline) {
			t.Fatal(err)
		}
	}
	wait(t, "the event", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return slices.Equal(l.events, []uint64{7}) })
	wait(t, "who has come", func() bool { return state("alice") == "OFF" && state("Bob+#/ Zoë") == "ON" })

	// Closed, it says so; and whoever comes later is told the same.
	m.Close()
	late := b.listen("late")
	wait(t, "the end", func() bool {
		return late.get("faceauth/status") == "offline" && late.get(topic("alice", "state")) == "OFF"
	})

	// Somebody was forgotten while the program was not running.
	h.set([]string{"alice"})
	m = connect()
	wait(t, "that bob is forgotten", func() bool {
		return !strings.Contains(l.all(), sink.ID("Bob+#/ Zoë")) && l.get("faceauth/status") == "online"
	})

	// The broker is started again, and has lost everything.
	b.stop()
	if err := send(t, m, 8); err == nil {
		t.Error("an event was taken by a broker that is not there")
	}
	h.set([]string{"alice"}, "alice")
	b.start()
	l = b.listen("again")
	wait(t, "all of it again", func() bool {
		return l.get(topic("alice", "state")) == "ON" && l.get("faceauth/status") == "online" && l.get(config("alice")) != ""
	})
	m.Close()
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
		if _, err := sink.NewMQTT(c.b); !errors.Is(err, c.want) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%+v: %v", c.b, err)
		}
	}
}

// A connection that is being made, or made anew, can be closed.
func TestMQTTCloses(t *testing.T) {
	b := startBroker(t)
	m, err := sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.address, House: new(house).now})
	if err != nil {
		t.Fatal(err)
	}
	l := b.listen("first")
	wait(t, "the connection", func() bool { return l.get("faceauth/status") == "online" })
	b.stop()
	wait(t, "the end of it", func() bool { return send(t, m, 1) != nil })
	done := make(chan bool)
	go func() {
		m.Close()
		never, err := sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.address, House: new(house).now})
		if err != nil {
			t.Error(err)
		}
		never.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("closing takes for ever")
	}
}

// People whose names are read alike are not one.
func TestID(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"alice", "Alice", "a lice", "Zoë", "Zo", "李", "王", strings.Repeat("x", 99), strings.Repeat("x", 98)} {
		id := sink.ID(name)
		if other, there := seen[id]; there || len(id) > 30 || strings.ContainsAny(id, "/+# ") {
			t.Errorf("%s: %q, and %s", name, id, other)
		}
		seen[id] = name
	}
}
