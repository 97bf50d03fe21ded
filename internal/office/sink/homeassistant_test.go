// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/sighting"
)

// rules are Home Assistant's rules for discovery messages.
type rules struct {
	Version, Read, Topic                 string
	Deprecated                           map[string][]string
	Common, Device, Origin, Availability map[string]string
	Entities                             map[string]map[string]string
	Values                               map[string][]string
}

func readRules(t *testing.T) (r rules) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "homeassistant.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	fixture.Check(t, err)
	if _, err := time.Parse(time.DateOnly, r.Read); err != nil || r.Version == "" {
		t.Fatal("the rules do not say of which version of Home Assistant they are, and when they " +
			"were read")
	}
	return r
}

// check returns the rules that a discovery message breaks.
func (r rules) check(topic, payload string) error {
	if !regexp.MustCompile(r.Topic).MatchString(topic) {
		return errors.New("the topic is none of discovery")
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(payload), &config); err != nil {
		return err
	}
	component := strings.Split(topic, "/")[1]
	fields := maps.Clone(r.Entities[component])
	maps.Copy(fields, r.Common)
	if id, _ := config["unique_id"].(string); id == "" {
		return errors.New("there is no unique_id")
	}
	if config["availability"] != nil && config["availability_topic"] != nil {
		return errors.New("there are availability and availability_topic")
	}
	for _, name := range append(slices.Clone(r.Deprecated["common"]), r.Deprecated[component]...) {
		if config[name] != nil {
			return fmt.Errorf("%s is deprecated", name)
		}
	}
	return r.fields(config, fields)
}

func (r rules) fields(config map[string]any, fields map[string]string) error {
	for name := range fields {
		if plain, required := strings.CutSuffix(name, "*"); required && config[plain] == nil {
			return fmt.Errorf("%s is missing", plain)
		}
	}
	for name, v := range config {
		kind, there := fields[name]
		if !there {
			if kind, there = fields[name+"*"]; !there {
				return fmt.Errorf("there is no field %s", name)
			}
		}
		if err := r.value(v, kind); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (r rules) value(v any, kind string) error {
	s, isText := v.(string)
	switch kind {
	case "device", "origin":
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no object", v)
		}
		return r.fields(m, map[string]map[string]string{"device": r.Device,
			"origin": r.Origin}[kind])
	case "availability":
		l, ok := v.([]any)
		for _, x := range l {
			m, isObject := x.(map[string]any)
			if !isObject {
				return fmt.Errorf("%v is no object", x)
			}
			if err := r.fields(m, r.Availability); err != nil {
				return err
			}
		}
		if !ok {
			return fmt.Errorf("%v is no list", v)
		}
	case "list":
		if l, ok := v.([]any); !ok || len(l) == 0 {
			return fmt.Errorf("%v is no list", v)
		}
	case "number", "qos":
		if _, ok := v.(float64); !ok {
			return fmt.Errorf("%v is no number", v)
		}
	case "bool":
		if _, ok := v.(bool); !ok {
			return fmt.Errorf("%v is not true or false", v)
		}
	case "name":
		if v != nil && !isText {
			return fmt.Errorf("%v is no name", v)
		}
	case "topic":
		if !isText || s == "" || strings.ContainsAny(s, "+#\x00") {
			return fmt.Errorf("%v is no topic", v)
		}
	case "string":
		if !isText {
			return fmt.Errorf("%v is no text", v)
		}
	default:
		values, there := r.Values[kind]
		if !there {
			return fmt.Errorf("the rules have no kind %s", kind)
		}
		if !slices.Contains(values, s) {
			return fmt.Errorf("%v is none of %q", v, values)
		}
	}
	return nil
}

// The rules refuse messages that Home Assistant refuses; otherwise they would prove nothing.
func TestRules(t *testing.T) {
	r := readRules(t)
	const topic = "homeassistant/binary_sensor/faceauth/alice/config"
	good := `{"unique_id":"x","state_topic":"a/b","device":{"identifiers":["f"]},"name":"alice"}`
	if err := r.check(topic, good); err != nil {
		t.Error(err)
	}
	for topic, payload := range map[string]string{
		topic + "/more": good,
		"homeassistant/binary_sensor/faceauth/a.b/config": good,
		topic: `{"unique_id":"x","device":{"identifiers":["f"]}}`,
		"homeassistant/image/faceauth/alice/config":      `{"unique_id":"x","state_topic":"a"}`,
		"homeassistant/event/faceauth/unknown/config":    `{"unique_id":"x","state_topic":"a"}`,
		"homeassistant/sensor/faceauth/a/config":         `{"unique_id":"x","state_topic":"a","device_class":"time"}`,
		"homeassistant/sensor/faceauth/b/config":         `{"unique_id":"x","state_topic":"a","device":{"name":"f"}}`,
		"homeassistant/sensor/faceauth/c/config":         `{"unique_id":"x","state_topic":"a","entity_category":"system"}`,
		"homeassistant/sensor/faceauth/d/config":         `{"unique_id":"x","state_topic":"a/#"}`,
		"homeassistant/sensor/faceauth/e/config":         `{"state_topic":"a"}`,
		"homeassistant/sensor/faceauth/f/config":         `{"unique_id":"x","state_topic":"a","colour":"red"}`,
		"homeassistant/sensor/faceauth/g/config":         `{"unique_id":"x","state_topic":"a","availability":["a"]}`,
		"homeassistant/sensor/faceauth/h/config":         `{"unique_id":"x","state_topic":"a","availability":[{"t":"a"}]}`,
		"homeassistant/sensor/faceauth/j/config":         `{"unique_id":"x","state_topic":"a","object_id":"x"}`,
		"homeassistant/device_tracker/faceauth/k/config": `{"unique_id":"x","source_type":"router"}`,
		"homeassistant/device_tracker/faceauth/l/config": `{"unique_id":"x","state_topic":"a",` +
			`"json_attributes_topic":"a"}`,
		"homeassistant/sensor/faceauth/i/config": `{"unique_id":"x","state_topic":"a","availability_topic":"a",` +
			`"availability":[{"topic":"a"}]}`,
	} {
		if r.check(topic, payload) == nil {
			t.Errorf("%s %s is taken", topic, payload)
		}
	}
}

// Home Assistant would accept every message, and every message is true. Attributes are sent before
// their state, and no face leaves the machine unless this is asked for.
func TestHomeAssistant(t *testing.T) {
	r := readRules(t)
	b := startBroker(t)
	h := new(house)
	odd := "Zoë + #/\"<b>"
	faces := map[uint64][]byte{uint64(number("alice")): {0xff, 0xd8, 1}}
	h.change(func(h *office.Now) {
		h.Known = people("alice", "bob", odd)
		h.People = []presence.Presence{
			{Who: sighting.Who{Name: "alice", Trust: "confirmed"}, Since: noon,
				Last: noon.Add(time.Second), Camera: "door", InView: true},
			{Who: sighting.Who{Name: odd}, Since: noon, Last: noon, Camera: "yard", Unsure: true},
		}
		h.Known[1].Last = noon.Add(-time.Hour).In(time.FixedZone("", 3600))
		h.Unknown = 2
		h.Cameras = []office.View{{Health: office.Health{Camera: "door", Up: true}},
			{Health: office.Health{Camera: "the yard", Error: "no frame"}}}
	})
	l := b.Listen("listener")
	connect := func(withFaces bool) *sink.MQTT {
		t.Helper()
		m := fixture.Must(sink.NewMQTT(
			sink.Broker{
				URL:      "mqtt://" + b.Address,
				Now:      h.now,
				Face:     func(n uint64) []byte { return faces[n] },
				Instance: "3fa2",
				Name:     "the office",
				Version:  "1.2.3",
				Page:     "https://office.example:8090/",
				Faces:    withFaces,
			},
		))(t)
		wait(t, "the connection",
			func() bool {
				return l.Get("faceauth/3fa2/count") != "" &&
					l.Get("faceauth/3fa2/status") == "online"
			})
		return m
	}
	m := connect(false)
	person := func(name, what string) string {
		return "faceauth/3fa2/people/" + id(name) + "/" + what
	}
	camera := func(name string) string { return "faceauth/3fa2/cameras/" + sink.ID(name) }
	expect := func(topic, want string) {
		t.Helper()
		wait(t, topic+" "+want+", got "+l.Get(topic), func() bool { return l.Get(topic) == want })
	}
	expect(person("alice", "state"), "ON")
	expect(person("alice", "attributes"),
		`{"camera":"door","since":"2026-11-21T12:00:00Z","trust":"confirmed"}`)
	expect(person("alice", "last_seen"), "2026-11-21T12:00:01Z")
	expect(person("bob", "state"), "OFF")
	expect(person("bob", "attributes"), "{}")
	expect(person("bob", "last_seen"), "2026-11-21T11:00:00Z")
	expect(person(odd, "state"), "None")
	expect(camera("door")+"/state", "ON")
	expect(camera("the yard")+"/state", "OFF")
	expect(camera("the yard")+"/attributes", `{"error":"no frame"}`)
	expect(camera("door")+"/people", "1")
	expect(camera("door")+"/people_attributes", `{"names":["alice"]}`)
	expect(camera("door")+"/availability", "online")
	expect(camera("the yard")+"/people_attributes", `{"names":[]}`)
	expect(camera("the yard")+"/availability", "offline")
	var people struct {
		Mode   string `json:"availability_mode"`
		Topics []struct{ Topic string }
	}
	config := l.Get("homeassistant/sensor/faceauth_3fa2/camera_" + sink.ID("door") +
		"_people/config")
	if err := json.Unmarshal([]byte(strings.Replace(config, `"availability":`, `"topics":`, 1)),
		&people); err != nil ||
		fmt.Sprint(people) != "{all [{faceauth/3fa2/status} {"+camera("door")+"/availability}]}" {
		t.Errorf("%+v, %v", people, err)
	}
	expect("faceauth/3fa2/count", "4")
	expect("faceauth/3fa2/count_attributes", `{"known":2,"unknown":2}`)

	unique := make(map[string]bool)
	kinds := make(map[string]int)
	for _, topic := range l.Names() {
		payload := l.Get(topic)
		if !strings.HasPrefix(topic, "homeassistant/") {
			if strings.HasSuffix(topic, "/face") {
				t.Errorf("%s without being asked for", topic)
			}
			continue
		}
		if err := r.check(topic, payload); err != nil {
			t.Errorf("%s %s: %v", topic, payload, err)
		}
		var d struct {
			ID string `json:"unique_id"`
		}
		if err := json.Unmarshal([]byte(payload), &d); err != nil ||
			unique[d.ID+strings.Split(topic, "/")[1]] {
			t.Errorf("%s: unique_id %q; %v", topic, d.ID, err)
		}
		for _, field := range []string{`"sw_version":"1.2.3"`,
			`"configuration_url":"https://office.example:8090/"`} {
			if !strings.Contains(payload, field) {
				t.Errorf("%s: no %s in %s", topic, field, payload)
			}
		}
		unique[d.ID+strings.Split(topic, "/")[1]] = true
		kinds[strings.Split(topic, "/")[1]]++
	}
	if want := map[string]int{"binary_sensor": 5, "sensor": 11, "event": 4,
		"device_tracker": 3}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	order := topics(l)
	for _, name := range []string{"alice", "bob", odd} {
		state, attributes, last := slices.Index(order, person(name, "state")), slices.Index(order,
			person(name, "attributes")), slices.Index(order, person(name, "last_seen"))
		if state < attributes || state < last && last >= 0 {
			t.Errorf("%s: the state came %d., the attributes %d.", name, state, attributes)
		}
	}

	// The time of the last sight is not sent every second. When a person leaves, the exact time is
	// sent.
	h.change(func(h *office.Now) {
		h.People = slices.Clone(h.People)
		h.People[0].Last = noon.Add(30 * time.Second)
	})
	m.Update()
	h.change(func(h *office.Now) {
		h.People = h.People[1:]
		h.Known = slices.Clone(h.Known)
		h.Known[0].Last = noon.Add(31 * time.Second)
	})
	m.Update()
	expect(person("alice", "state"), "OFF")
	expect(person("alice", "last_seen"), "2026-11-21T12:00:31Z")
	expect(person("bob", "last_seen"), "2026-11-21T11:00:00Z") // nothing newer is known
	if n := count(topics(l), person("alice", "last_seen")); n != 2 {
		t.Errorf("it was said %d times when alice was seen last", n)
	}

	// A camera comes back.
	h.change(func(h *office.Now) {
		h.Cameras = []office.View{{Health: office.Health{Camera: "the yard", Up: true}}}
	})
	m.Update()
	expect(camera("the yard")+"/availability", "online")
	expect(camera("door")+"/availability", "") // it was removed

	// The places of people.
	expect(person("alice", "place"), "away")
	expect(person(odd, "place"), "yard")
	expect(person("alice", "tracker"), `{"in_zones":[],"unsure":false}`)
	expect(person(odd, "tracker"), `{"in_zones":["zone.home"],"unsure":true}`)
	h.change(func(h *office.Now) {
		h.People = slices.Clone(h.People)
		h.People[0].Unsure = false // at an entrance
		h.Known = slices.Clone(h.Known)
		h.Known[0].Place = "hall"
	})
	m.Update()
	expect(person("alice", "place"), "hall")
	expect(person(odd, "place"), "out of view")
	expect(person(odd, "tracker"), `{"in_zones":["zone.home"],"unsure":false}`)
	expect(person(odd, "state"), "ON")
	again := sink.Message{Event: presence.Event{ID: 4, Kind: presence.Saw, Camera: "door",
		Who: sighting.Who{Person: number("bob")}, At: noon}}
	fixture.Check(t, m.Send(t.Context(), again))
	expect(person("bob", "event"),
		`{"event_type":"seen","camera":"door","at":"2026-11-21T12:00:00Z"}`)
	places := "homeassistant/sensor/faceauth_3fa2/" + id("bob") + "_place/config"
	if err := r.check(places, l.Get(places)); err != nil {
		t.Error(err)
	}

	// An unknown person is an event, and not a state.
	stranger := presence.Event{ID: 5, Kind: presence.Unknown, Camera: "door", Group: 3, At: noon,
		Sighting: 8}
	for _, x := range []sink.Message{
		{Event: stranger, Face: 9, Link: "https://office.example/#inbox", Picture: []byte("first")},
		{Event: stranger, Face: 11, Picture: []byte("second"), Better: true},
	} {
		fixture.Check(t, m.Send(t.Context(), x))
		expect("faceauth/3fa2/unknown/face", string(x.Picture))
		kind, link := "unknown", `"link":"https://office.example/#inbox",`
		if x.Better {
			kind, link = "better_picture", ""
		}
		expect("faceauth/3fa2/unknown",
			fmt.Sprintf(`{"event_type":%q,"camera":"door","group":3,"sighting":8,`+
				`"face":%d,%s"at":"2026-11-21T12:00:00Z"}`, kind, x.Face, link))
	}
	got := l.Get("faceauth/3fa2/events")
	if strings.Contains(got, "picture") || !strings.Contains(got, `"better":true`) {
		t.Error(got)
	}
	late := b.Listen("late")
	wait(t, "the rest", func() bool { return late.Get("faceauth/3fa2/count") != "" })
	if got := late.Get("faceauth/3fa2/unknown") +
		late.Get("faceauth/3fa2/unknown/face"); got != "" {
		t.Errorf("the event is retained: %s", got)
	}

	// Faces are sent, and removed.
	m.Close()
	m = connect(true)
	expect(person("alice", "face"), string(faces[uint64(number("alice"))]))
	image := "homeassistant/image/faceauth_3fa2/" + id("alice") + "/config"
	const strangers = "homeassistant/image/faceauth_3fa2/unknown/config"
	wait(t, "the image", func() bool { return l.Get(image) != "" && l.Get(strangers) != "" })
	for _, topic := range []string{image, strangers} {
		if err := r.check(topic, l.Get(topic)); err != nil {
			t.Error(err)
		}
	}
	m.Close()
	m = connect(false)
	wait(t, "no faces", func() bool {
		return l.Get(image)+l.Get(strangers) == "" && l.Get(person("alice", "face")) == ""
	})
	m.Close()
	expect("faceauth/3fa2/status", "offline")
}

// A version of before 2026.7 knows no zones of a tracker.
func TestOldHomeAssistant(t *testing.T) {
	b := startBroker(t)
	l := b.Listen("listener")
	h := new(house)
	h.set([]string{"alice", "bob"}, "alice")
	tracker := "homeassistant/device_tracker/faceauth/" + id("alice") + "_tracker/config"
	for _, c := range []struct{ version, state, config string }{
		{"2025.12", "home", "state_topic"}, {"2026.6", "home", "state_topic"},
		{"2026.7", `{"in_zones":["zone.home"],"unsure":false}`, "json_attributes_topic"},
		{"2027.1.0", `{"in_zones":["zone.home"],"unsure":false}`, "json_attributes_topic"},
	} {
		m := fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: h.now,
			HomeAssistant: c.version}))(t)
		field := fmt.Sprintf("%q:%q", c.config, topic("alice", "tracker"))
		wait(t, c.version, func() bool {
			return l.Get(topic("alice", "tracker")) == c.state &&
				strings.Contains(l.Get(tracker), field)
		})
		m.Close()
	}
	for _, version := range []string{"new", "2026", "2026.13"} {
		_, err := sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, HomeAssistant: version})
		if !errors.Is(err, sink.ErrVersion) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// topics returns the topics of all messages, in the order in which they came.
func topics(l *fixture.Topics) (all []string) {
	for _, m := range l.All() {
		all = append(all, m.Topic)
	}
	return all
}

func count(all []string, what string) (n int) {
	for _, x := range all {
		if x == what {
			n++
		}
	}
	return n
}

// Two offices at one broker do not disturb each other, whichever of them restarts, although they
// know different people.
func TestTwoOffices(t *testing.T) {
	b := startBroker(t)
	l := b.Listen("listener")
	upstairs, downstairs := new(house), new(house)
	upstairs.set([]string{"alice", "bob"}, "alice")
	downstairs.set([]string{"alice", "carol"}, "carol")
	start := func(h *house, instance string) *sink.MQTT {
		t.Helper()
		m := fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: h.now,
			Instance: instance}))(t)
		wait(t, "the connection of "+instance, func() bool {
			return l.Get("faceauth/"+instance+"/status") == "online" &&
				l.Get("faceauth/"+instance+"/count") != ""
		})
		return m
	}
	one, two := start(upstairs, "up"), start(downstairs, "down")
	names := func() string { return strings.Join(l.Names(), " ") }
	all := names()
	if n := strings.Count(all, "binary_sensor/faceauth_up/"); n != 2 {
		t.Errorf("%d people upstairs: %s", n, all)
	}
	for range 2 { // the later office finds the retained messages of the other
		one.Close()
		one = start(upstairs, "up")
		two.Close()
		two = start(downstairs, "down")
	}
	for _, topic := range []string{"up/people/" + id("alice"), "down/people/" + id("carol")} {
		if l.Get("faceauth/"+topic+"/state") != "ON" {
			t.Errorf("%s: %q", topic, l.Get("faceauth/"+topic+"/state"))
		}
	}
	upstairs.set([]string{"alice"})
	one.Update()
	wait(t, "that bob is forgotten upstairs", func() bool {
		return !strings.Contains(names(), id("bob"))
	})
	if now := names(); strings.Count(now, "/faceauth_down/") != strings.Count(all,
		"/faceauth_down/") ||
		strings.Count(now, "faceauth/down/") < strings.Count(all, "faceauth/down/") {
		t.Errorf("downstairs has changed: %s", now)
	}
	one.Close()
	two.Close()
}

// The later of two updates is published, also if the earlier one has asked for the state before.
func TestUpdatesAtOnce(t *testing.T) {
	b := startBroker(t)
	l := b.Listen("listener")
	h := new(house)
	h.set([]string{"alice", "bob"})
	var slow atomic.Bool
	asked, goOn := make(chan bool, 1), make(chan bool)
	m := fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: func() office.Now {
		now := h.now()
		if slow.CompareAndSwap(true, false) {
			asked <- true
			<-goOn
		}
		return now
	}}))(t)
	wait(t, "bob", func() bool { return strings.Contains(strings.Join(l.Names(), " "), id("bob")) })
	wait(t, "the count", func() bool { return l.Get("faceauth/count") != "" })
	slow.Store(true)
	var both sync.WaitGroup
	both.Go(m.Update)
	<-asked
	h.set([]string{"alice"})
	later := make(chan bool)
	both.Go(func() { defer close(later); m.Update() })
	select {
	case <-later:
	case <-time.After(50 * time.Millisecond): // it waits for the earlier one
	}
	close(goOn)
	both.Wait()
	m.Close()
	wait(t, "the last message", func() bool { return l.Get("faceauth/status") == "offline" })
	if all := strings.Join(l.Names(), " "); strings.Contains(all, id("bob")) {
		t.Errorf("bob is published again: %s", all)
	}
}

// A person who gets another name keeps the entities with their history: nothing is removed at the
// broker, and the same entities have the new name.
func TestRenamed(t *testing.T) {
	b := startBroker(t)
	l := b.Listen("listener")
	h := new(house)
	h.set([]string{"alice", "bob"}, "alice")
	m := fixture.Must(sink.NewMQTT(sink.Broker{URL: "mqtt://" + b.Address, Now: h.now}))(t)
	defer m.Close()
	// The number of people is the last message.
	wait(t, "alice", func() bool {
		return l.Get(topic("alice", "state")) == "ON" && l.Get("faceauth/count") == "1"
	})
	before := len(l.All())
	h.change(func(h *office.Now) {
		h.Known = people("alice", "bob")
		h.Known[0].Name = "Alice Archer"
		h.People = []presence.Presence{{Who: sighting.Who{Name: "Alice Archer"},
			Since: noon, Last: noon, Camera: "door"}}
	})
	m.Update()
	wait(t, "the new name", func() bool {
		return strings.Contains(l.Get(config("alice")), `"name":"Alice Archer"`)
	})
	var said map[string]any
	if err := json.Unmarshal([]byte(l.Get(config("alice"))), &said); err != nil ||
		said["unique_id"] != "faceauth_"+id("alice") {
		t.Errorf("%v, %v", said, err)
	}
	wait(t, "all of them", func() bool {
		return strings.Contains(l.Get("homeassistant/sensor/faceauth/"+id("alice")+"_place/config"),
			"Alice Archer place")
	})
	for _, x := range l.All()[before:] {
		if x.Payload == "" || !strings.Contains(x.Topic, id("alice")) ||
			!strings.HasSuffix(x.Topic, "/config") {
			t.Errorf("%s %q", x.Topic, x.Payload)
		}
	}
	if l.Get(topic("alice", "state")) != "ON" {
		t.Error("she is not there any more")
	}
}
