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
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/broker"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// Errors of [NewMQTT] and [MQTT.Send].
var (
	ErrTopic   = errors.New("unusable topic")
	ErrVersion = errors.New("unusable version of Home Assistant")
	ErrOffline = errors.New("there is no connection to the MQTT broker")
)

// Broker holds the settings of a connection to an MQTT broker.
type Broker struct {
	URL      string // mqtt://[user@]host[:port], or mqtts for TLS
	Password string
	Topic    string // prefix of all topics. Default "faceauth"
	// Instance distinguishes several offices at one broker: it follows Topic, and is part of all
	// names of entities. It may have letters, digits, "_" and "-". Default: none, for the only
	// office at the broker.
	Instance string
	Name     string // name of the office for people. Default: Topic
	Version  string // of the program, for people; "" for none
	Page     string // URL of the office's page, for people; "" for none
	// Discovery is the topic under which Home Assistant finds entities. Default "homeassistant".
	Discovery string
	// HomeAssistant is its version, as in 2026.6, if it is older than 2026.7: it then gets device
	// trackers in a form that stops working with 2027.1. Default: a newer one.
	HomeAssistant string
	// Faces publishes a picture of each person, of the last sighting that was confirmed or the one
	// that a user chose, and that of unknown people if messages have it. Everybody who can read the
	// broker can then see it. The broker retains no face of an unknown person.
	Faces bool

	// Now returns the present state ([office.Office.Now]). It must not block, nor call the
	// connection.
	Now func() office.Now
	// Face returns a picture as JPEG, or nil ([office.Office.Face]). It is only called if Faces is
	// set. May be nil.
	Face func(number uint64) []byte
	// Failed is called with an error when a connection ends, and with nil when one begins.
	Failed func(error)
}

// MQTT is a connection to a broker. It reconnects by itself. docs/office-reference.md lists its
// topics and messages; Home Assistant gets all of them. It removes retained messages about
// forgotten people, and never changes messages of another office. [NewMQTT] makes one; close it.
type MQTT struct {
	b      Broker
	base   string // prefix of all topics of this office
	at     broker.Address
	cancel context.CancelFunc
	ended  chan struct{}

	old bool // Home Assistant is older than 2026.7

	mu     sync.Mutex
	client mqtt.Client         // nil without a connection
	said   map[string]said     // retained messages, by topic
	seen   map[int64]time.Time // last published sighting of each person, by number
	faces  map[int64]uint64    // the picture that was published last of each person, by number
	config map[string]configuration
}

// configuration is the cached message about an entity.
type configuration struct{ name, text string }

// said is the last message at a topic.
type said struct {
	payload string     // "" after a removal
	sent    mqtt.Token // tells when the broker has it; nil if it has
}

// unsaid is the payload of a topic whose message must be published or removed: it differs from
// every real one.
const unsaid = "?"

var _ Sink = (*MQTT)(nil)

// NewMQTT returns a connection and does not wait for it. The error wraps [ErrURL] or [ErrTopic].
func NewMQTT(b Broker) (*MQTT, error) {
	u, err := url.Parse(b.URL)
	if err != nil || u.Host == "" || u.Scheme != "mqtt" && u.Scheme != "mqtts" || u.Path != "" &&
		u.Path != "/" {
		return nil, fmt.Errorf("%w of an MQTT broker; use mqtt://user@host:1883, or mqtts for TLS",
			ErrURL)
	}
	if _, there := u.User.Password(); there {
		return nil, fmt.Errorf(
			"%w of an MQTT broker: it contains a password, "+
				"which every user of this machine could read; put the password into a file",
			ErrURL)
	}
	if b.Topic == "" {
		b.Topic = "faceauth"
	}
	if b.Discovery == "" {
		b.Discovery = "homeassistant"
	}
	if strings.Trim(b.Instance, letters) != "" {
		return nil, fmt.Errorf(
			"%w: the name of the instance, %q, may have letters, digits, _ and -", ErrTopic,
			b.Instance)
	}
	b.Name = cmp.Or(b.Name, b.Topic)
	var year, month int
	if b.HomeAssistant != "" {
		_, err = fmt.Sscanf(b.HomeAssistant, "%d.%d", &year, &month)
	}
	if err != nil || month > 12 {
		return nil, fmt.Errorf("%w: %q; write it as in 2026.6", ErrVersion, b.HomeAssistant)
	}
	for _, t := range []string{b.Topic, b.Discovery} {
		if strings.ContainsAny(t, "+#\x00") || strings.HasPrefix(t, "/") ||
			strings.HasSuffix(t, "/") ||
			strings.HasPrefix(t, "$") ||
			len(t) > 200 {
			return nil, fmt.Errorf(
				"%w %q; it must not contain + or #, nor begin or end with a slash", ErrTopic, t)
		}
	}
	if b.Failed == nil {
		b.Failed = func(error) {}
	}
	m := newMQTT(b)
	m.at = broker.At(u, u.Scheme == "mqtts")
	m.at.Password = b.Password
	m.old = b.HomeAssistant != "" && (year < 2026 || year == 2026 && month < 7)
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go m.run(ctx)
	return m, nil
}

// newMQTT returns a connection that was not made.
func newMQTT(b Broker) *MQTT {
	m := &MQTT{b: b, base: b.Topic, ended: make(chan struct{}), said: make(map[string]said),
		seen: make(map[int64]time.Time), faces: make(map[int64]uint64),
		config: make(map[string]configuration)}
	if b.Instance != "" {
		m.base += "/" + b.Instance
	}
	return m
}

// run connects again and again until ctx ends. Messages that were not delivered are in the queue of
// events, or are sent again as part of the state.
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

// connect makes a connection and returns when the connection or ctx has ended.
func (m *MQTT) connect(ctx context.Context) (connected bool, err error) {
	client, lost, err := broker.Dial(ctx, m.at,
		mqtt.NewClientOptions().SetClientID(m.node()).SetOrderMatters(false).
			SetWill(m.base+"/status", "offline", 1, true))
	if err != nil {
		return false, err
	}
	defer client.Disconnect(250)
	m.b.Failed(nil)
	m.begin(client)
	defer m.end()
	tick := time.NewTicker(time.Second) // people are named and forgotten without an event
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.Update()
		case err := <-lost:
			return true, err
		case <-ctx.Done():
			client.Publish(m.base+"/status", 1, true, "offline").WaitTimeout(time.Second)
			return true, ctx.Err()
		}
	}
}

// letters are the characters that Home Assistant allows in a name of discovery.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// node returns the name of this office at the broker and in Home Assistant.
func (m *MQTT) node() string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return '_'
	}, strings.ReplaceAll(m.base, "/", "_"))
}

// PersonID returns the topic part for a person with a number. It stays when the person gets another
// name.
func PersonID(number int64) string { return fmt.Sprintf("person_%d", number) }

// ID returns the topic part for a camera.
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

// begin publishes everything again, because the broker may have lost it.
func (m *MQTT) begin(client mqtt.Client) {
	m.mu.Lock()
	clear(m.said)
	clear(m.seen)
	clear(m.faces)
	m.client = client
	m.mu.Unlock()
	// The broker sends the retained messages of this office: among them may be faces, and messages
	// about forgotten people.
	own := map[string]byte{
		m.b.Discovery + "/+/" + m.node() + "/+/config": 1,
		m.base + "/people/+/+":                         1,
		m.base + "/cameras/+/+":                        1,
	}
	client.SubscribeMultiple(own, func(_ mqtt.Client, kept mqtt.Message) {
		if !kept.Retained() || len(kept.Payload()) == 0 {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if _, known := m.said[kept.Topic()]; !known {
			// the next update removes it: there may be thousands
			m.said[kept.Topic()] = said{payload: unsaid}
		}
	})
	m.Update()
}

func (m *MQTT) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = nil
}

// Update publishes the parts of the state that have changed, as it happens every second anyway. It
// does not wait for the broker. What the broker did not get is published again by a later update.
func (m *MQTT) Update() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return
	}
	m.confirm()
	all := m.messages(m.b.Now()) // a state of before the lock could be older than what is published
	wanted := make(map[string]bool)
	for _, x := range all {
		wanted[x.topic] = true
	}
	maps.DeleteFunc(m.config, func(topic string, _ configuration) bool { return !wanted[topic] })
	for _, topic := range slices.Sorted(maps.Keys(m.said)) {
		if !wanted[topic] && m.said[topic].payload != "" && !m.say(topic, "") {
			return
		}
	}
	for _, x := range all {
		was, there := m.said[x.topic]
		if x.keep || there && was.payload == x.payload {
			continue
		}
		if !m.say(x.topic, x.payload) {
			return
		}
	}
}

// confirm notes which messages the broker has got, and which it has not.
func (m *MQTT) confirm() {
	for topic, s := range m.said {
		switch {
		case s.sent == nil || !ended(s.sent):
		case s.sent.Error() != nil:
			m.said[topic] = said{payload: unsaid}
		case s.payload == "":
			delete(m.said, topic)
		default:
			m.said[topic] = said{payload: s.payload}
		}
	}
}

// say publishes a retained message, and returns whether others can follow.
func (m *MQTT) say(topic, payload string) bool {
	sent := m.client.Publish(topic, 1, true, payload)
	m.said[topic] = said{payload, sent}
	return !ended(sent) || sent.Error() == nil
}

// ended reports whether a message was confirmed, or has failed.
func ended(sent mqtt.Token) bool {
	select {
	case <-sent.Done():
		return true
	default:
		return false
	}
}

// Send implements [Sink]. It waits until the broker has confirmed the event.
func (m *MQTT) Send(ctx context.Context, e Message) error {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return ErrOffline
	}
	m.Update()
	var all []mqtt.Token
	publish := func(topic string, payload any) {
		all = append(all, client.Publish(m.base+topic, 1, false, payload))
	}
	if e.Picture != nil {
		publish("/unknown/face", e.Picture)
		e.Picture = nil
	}
	publish("/events", text(e))
	switch {
	case e.Kind == presence.Unknown, e.Kind == presence.Faceless:
		publish("/unknown", eventText(e))
	case e.Person != 0:
		publish("/people/"+PersonID(e.Person)+"/event", eventText(e))
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

// Close publishes that this program is offline, and ends the connection.
func (m *MQTT) Close() error {
	m.cancel()
	<-m.ended
	return nil
}
