// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
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
	Topic    string // that all topics begin with. Default "faceauth"
	// Instance tells several offices at one broker apart: it follows Topic, and is in all that names an entity. It is of
	// letters, digits, "_" and "-". Default: none, for the only office at the broker.
	Instance string
	Name     string // of the office to people. Default: Topic
	// Discovery is the topic below which Home Assistant looks for what there is. Default "homeassistant".
	Discovery string
	// Faces has the last face of each person told. Whoever can read the broker can see it then.
	Faces bool

	// House returns what is true now. It must not block.
	House func() House
	// Failed is told of the end of a connection, and with nil of its beginning.
	Failed func(error)
}

// MQTT is a connection to a broker, which is made anew where it ends. What it says, and at which topics, is in
// docs/office.md; Home Assistant is told of all of it. What was retained of somebody who was forgotten is removed, and
// nothing that another office said. Get one from [NewMQTT], and close it.
type MQTT struct {
	b      Broker
	base   string // that all topics of this office begin with
	server string
	user   string
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	client mqtt.Client          // nil where there is no connection
	said   map[string]string    // what was retained, by topic
	seen   map[string]time.Time // when people were said to have been seen last
	config map[string]string    // of entities, by topic: they are many, and the same every second
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
	if strings.Trim(b.Instance, letters) != "" {
		return nil, fmt.Errorf("%w: the name of the instance, %q, may have letters, digits, _ and -", ErrTopic, b.Instance)
	}
	b.Name = cmp.Or(b.Name, b.Topic)
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
		cancel: cancel, ended: make(chan struct{}), said: make(map[string]string), seen: make(map[string]time.Time),
		config: make(map[string]string),
	}
	m.base = b.Topic
	if b.Instance != "" {
		m.base += "/" + b.Instance
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
		SetWill(m.base+"/status", "offline", 1, true).
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
		client.Publish(m.base+"/status", 1, true, "offline").WaitTimeout(time.Second)
		return true, ctx.Err()
	}
}

// letters are those that Home Assistant takes in a name of discovery.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// node is the name of this office to the broker and to Home Assistant.
func (m *MQTT) node() string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return '_'
	}, strings.ReplaceAll(m.base, "/", "_"))
}

// ID returns what stands for a person or a camera in topics.
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
	clear(m.seen)
	m.client = client
	m.mu.Unlock()
	// The broker tells what is retained of this office: of people, of whom some may be forgotten, and of faces.
	own := map[string]byte{m.b.Discovery + "/+/" + m.node() + "/+/config": 1, m.base + "/people/+/+": 1, m.base + "/cameras/+/+": 1}
	client.SubscribeMultiple(own, func(_ mqtt.Client, said mqtt.Message) {
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
	client.Publish(m.base+"/status", 1, true, "online")
	m.Update()
}

func (m *MQTT) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = nil
}

// Update says what is true, where that is not what was said last. It does not wait.
func (m *MQTT) Update() {
	h := m.b.House()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return
	}
	all := m.messages(h)
	wanted := make(map[string]bool)
	for _, x := range all {
		wanted[x.topic] = true
	}
	maps.DeleteFunc(m.config, func(topic, _ string) bool { return !wanted[topic] })
	for _, topic := range slices.Sorted(maps.Keys(m.said)) {
		if !wanted[topic] {
			m.client.Publish(topic, 1, true, "")
			delete(m.said, topic)
		}
	}
	for _, x := range all {
		if !x.keep && m.said[x.topic] != x.payload {
			m.said[x.topic] = x.payload
			m.client.Publish(x.topic, 1, true, x.payload)
		}
	}
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
	all := []mqtt.Token{client.Publish(m.base+"/events", 1, false, text(e))}
	if e.Kind == presence.Unknown {
		all = append(all, client.Publish(m.base+"/unknown", 1, false, stranger(e)))
	}
	for _, sent := range all {
		select {
		case <-sent.Done():
			if err := sent.Error(); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("the MQTT broker does not answer: %w", ctx.Err())
		}
	}
	return nil
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
