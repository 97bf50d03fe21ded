// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/office/presence"
)

// Errors of [NewMQTT] and [MQTT.Send].
var (
	ErrTopic   = errors.New("unusable topic")
	ErrOffline = errors.New("there is no connection to the MQTT broker")
)

// Broker says where an MQTT broker is, and who we are to it.
type Broker struct {
	URL      string // mqtt://[user@]host[:port], or mqtts for TLS
	Password string
	Topic    string // that all topics begin with. Default "faceauth"; offices at one broker differ in it
	// Discovery is the topic below which Home Assistant looks for what there is. Default "homeassistant".
	Discovery string

	// People returns who is known and who of them is there. It must not block.
	People func() (known []string, there []presence.Person)
	// Failed is told of the end of a connection, and with nil of its beginning.
	Failed func(error)
}

// MQTT is a connection to a broker, which is made anew where it ends. Below its topic are
//
//	status                     "online" or, also where this program was killed, "offline"; retained
//	events                     every event, in JSON
//	people/ID/state            "ON" while a person is there, else "OFF"; retained
//	people/ID/attributes       where they are and since when, in JSON; retained
//
// and each person is a binary sensor to Home Assistant. What was retained of somebody who was forgotten is removed. Get
// one from [NewMQTT], and close it.
type MQTT struct {
	b      Broker
	server string
	user   string
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	client mqtt.Client       // nil where there is no connection
	said   map[string]string // what was retained, by topic
}

var _ Sink = (*MQTT)(nil)

// NewMQTT returns a connection, which is not waited for. The error wraps [ErrURL] or [ErrTopic].
func NewMQTT(b Broker) (*MQTT, error) {
	u, err := url.Parse(b.URL)
	if err != nil || u.Host == "" || u.Scheme != "mqtt" && u.Scheme != "mqtts" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("%w of an MQTT broker; use mqtt://user@host:1883, or mqtts for TLS", ErrURL)
	}
	if _, there := u.User.Password(); there {
		return nil, fmt.Errorf("%w of an MQTT broker: every user of this machine could read the password in it; put it into a file", ErrURL)
	}
	if b.Topic == "" {
		b.Topic = "faceauth"
	}
	if b.Discovery == "" {
		b.Discovery = "homeassistant"
	}
	for _, t := range []string{b.Topic, b.Discovery} {
		if strings.ContainsAny(t, "+#\x00") || strings.HasPrefix(t, "/") || strings.HasSuffix(t, "/") || strings.HasPrefix(t, "$") || len(t) > 200 {
			return nil, fmt.Errorf("%w %q; it has no + or # and neither begins nor ends with a slash", ErrTopic, t)
		}
	}
	if b.Failed == nil {
		b.Failed = func(error) {}
	}
	scheme, port := "tcp", "1883"
	if u.Scheme == "mqtts" {
		scheme, port = "ssl", "8883"
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &MQTT{
		b: b, server: scheme + "://" + net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)), user: u.User.Username(),
		cancel: cancel, ended: make(chan struct{}), said: make(map[string]string),
	}
	go m.run(ctx)
	return m, nil
}

// run connects until ctx ends, each time anew: what was on its way when a connection ended is in the queue of events,
// or said again as the state.
func (m *MQTT) run(ctx context.Context) {
	defer close(m.ended)
	pause := backoff.Pause{First: firstWait, Longest: longestWait}
	for {
		connected, err := m.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		m.b.Failed(fmt.Errorf("the MQTT broker: %w", err))
		if connected {
			pause.Reset()
		}
		if !pause.Wait(ctx) {
			return
		}
	}
}

// Pauses before the broker is tried again.
const (
	firstWait   = time.Second
	longestWait = time.Minute
)

// connect makes a connection and returns when it has ended, or ctx has.
func (m *MQTT) connect(ctx context.Context) (connected bool, err error) {
	lost := make(chan error, 1)
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(m.server).
		SetClientID(m.node()).SetUsername(m.user).SetPassword(m.b.Password).SetCleanSession(true).
		SetAutoReconnect(false).SetConnectRetry(false).SetOrderMatters(false).
		SetConnectTimeout(10*time.Second).SetWriteTimeout(10*time.Second).
		SetWill(m.b.Topic+"/status", "offline", 1, true).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { lost <- err }))
	defer client.Disconnect(250)
	made := client.Connect()
	select {
	case <-made.Done():
		if err := made.Error(); err != nil {
			return false, err
		}
	case <-ctx.Done():
		return false, ctx.Err()
	}
	m.b.Failed(nil)
	m.begin(client)
	defer m.end()
	select {
	case err := <-lost:
		return true, err
	case <-ctx.Done():
		client.Publish(m.b.Topic+"/status", 1, true, "offline").WaitTimeout(time.Second)
		return true, ctx.Err()
	}
}

// node is the name of this office to the broker and to Home Assistant, of letters, digits and "_".
func (m *MQTT) node() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, m.b.Topic)
}

// ID returns what stands for a person in topics.
func ID(name string) string {
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	sum := sha256.Sum256([]byte(name))
	return readable[:min(20, len(readable))] + "_" + hex.EncodeToString(sum[:4])
}

// begin says all anew: the broker may have lost it.
func (m *MQTT) begin(client mqtt.Client) {
	m.mu.Lock()
	clear(m.said)
	m.client = client
	m.mu.Unlock()
	// The broker tells what is retained of people, of whom some may be forgotten.
	client.Subscribe(m.config("+"), 1, func(_ mqtt.Client, said mqtt.Message) {
		if !said.Retained() || len(said.Payload()) == 0 {
			return
		}
		m.mu.Lock()
		if _, known := m.said[said.Topic()]; !known {
			m.said[said.Topic()] = "?" // which is not what it should be, whatever that is
		}
		m.mu.Unlock()
		m.Update()
	})
	client.Publish(m.b.Topic+"/status", 1, true, "online")
	m.Update()
}

func (m *MQTT) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = nil
}

// config returns the topic at which Home Assistant learns of a person.
func (m *MQTT) config(id string) string {
	return m.b.Discovery + "/binary_sensor/" + m.node() + "/" + id + "/config"
}

// Update says who is there, where that is not what was said last. It does not wait.
func (m *MQTT) Update() {
	known, there := m.b.People()
	in := make(map[string]presence.Person)
	for _, p := range there {
		in[p.Name] = p
	}
	want := make(map[string]string)
	for _, name := range known {
		id := ID(name)
		topic := m.b.Topic + "/people/" + id
		want[m.config(id)] = m.discovery(name, topic)
		state, attributes := "OFF", "{}"
		if p, ok := in[name]; ok {
			state = "ON"
			attributes = text(struct {
				Camera string    `json:"camera"`
				Since  time.Time `json:"since"`
				Trust  string    `json:"trust,omitempty"`
			}{p.Camera, p.Since, string(p.Trust)})
		}
		want[topic+"/state"], want[topic+"/attributes"] = state, attributes
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return
	}
	for topic := range m.said {
		if _, still := want[topic]; still {
			continue
		}
		if id, ok := strings.CutPrefix(topic, m.b.Discovery+"/binary_sensor/"+m.node()+"/"); ok {
			person := m.b.Topic + "/people/" + strings.TrimSuffix(id, "/config")
			m.client.Publish(person+"/state", 1, true, "")
			m.client.Publish(person+"/attributes", 1, true, "")
		}
		m.client.Publish(topic, 1, true, "")
		delete(m.said, topic)
	}
	for topic, payload := range want {
		if m.said[topic] != payload {
			m.said[topic] = payload
			m.client.Publish(topic, 1, true, payload)
		}
	}
}

// discovery is what Home Assistant is told of a person.
func (m *MQTT) discovery(name, topic string) string {
	return text(map[string]any{
		"name":                  name,
		"unique_id":             m.node() + "_" + ID(name),
		"device_class":          "presence",
		"state_topic":           topic + "/state",
		"json_attributes_topic": topic + "/attributes",
		"availability_topic":    m.b.Topic + "/status",
		"device":                map[string]any{"identifiers": []string{m.node()}, "name": m.b.Topic, "manufacturer": "faceauth"},
		"origin":                map[string]any{"name": "faceauth"},
	})
}

func text(v any) string {
	b, _ := json.Marshal(v) // of strings and times, which can be written
	return string(b)
}

// Send implements [Sink]. It waits until the broker has taken the event.
func (m *MQTT) Send(ctx context.Context, e presence.Event) error {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return ErrOffline
	}
	m.Update()
	sent := client.Publish(m.b.Topic+"/events", 1, false, text(e))
	select {
	case <-sent.Done():
		return sent.Error()
	case <-ctx.Done():
		return fmt.Errorf("the MQTT broker does not answer: %w", ctx.Err())
	}
}

// Close says that this program is not there any more, and ends the connection.
func (m *MQTT) Close() error {
	m.cancel()
	<-m.ended
	return nil
}

// Follow calls [MQTT.Update] every second until ctx ends: people are named and forgotten without an event.
func (m *MQTT) Follow(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.Update()
		case <-ctx.Done():
			return nil
		}
	}
}
