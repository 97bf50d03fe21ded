// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// message is a retained message at a topic.
type message struct {
	topic, payload string
	keep           bool // leave the broker's message as it is
}

// none tells Home Assistant that a state is unknown.
const none = "None"

// messages returns the messages that the broker should retain, in sending order: the configuration
// of an entity and its attributes come before its state. The lock is held.
func (m *MQTT) messages(now office.Now) (all []message) {
	device := map[string]any{
		"identifiers": []string{m.node()}, "name": m.b.Name, "manufacturer": "faceauth",
		"model": "office",
	}
	for field, value := range map[string]string{"sw_version": m.b.Version,
		"configuration_url": m.b.Page} {
		if value != "" {
			device[field] = value
		}
	}
	say := func(topic, payload string) {
		all = append(all, message{topic: m.base + topic, payload: payload})
	}
	// entity tells of an entity whose state is at a topic.
	entity := func(component, id, name, topic string, config map[string]any) {
		at := m.b.Discovery + "/" + component + "/" + m.node() + "/" + id + "/config"
		said := m.config[at]
		if said.name != name { // topic and name determine the message
			full := map[string]any{"name": name, "unique_id": m.node() + "_" + id, "device": device,
				"origin": map[string]any{"name": "faceauth"}}
			if config["availability"] == nil {
				full["availability_topic"] = m.base + "/status"
			}
			state := "state_topic"
			switch {
			case component == "image":
				state = "image_topic"
			case component == "device_tracker" && !m.old:
				state = "json_attributes_topic"
			}
			full[state] = m.base + topic
			maps.Copy(full, config)
			said = configuration{name, text(full)}
			m.config[at] = said
		}
		all = append(all, message{topic: at, payload: said.text})
	}
	say("/status", "online")
	jpeg := map[string]any{"content_type": "image/jpeg"}
	known := make(map[int64]bool, len(now.Known))
	for _, p := range now.Known {
		known[p.ID] = true
	}
	maps.DeleteFunc(m.seen, func(id int64, _ time.Time) bool { return !known[id] })
	maps.DeleteFunc(m.faces, func(id int64, _ uint64) bool { return !known[id] })
	there := make(map[string]*presence.Presence)
	for i, p := range now.People {
		there[p.Name] = &now.People[i]
	}
	for _, p := range now.Known {
		id, name, is := PersonID(p.ID), p.Name, there[p.Name]
		topic := "/people/" + id
		entity("binary_sensor", id, name, topic+"/state", map[string]any{
			"device_class": "presence", "json_attributes_topic": m.base + topic + "/attributes",
		})
		entity("sensor", id+"_last_seen", name+" last seen", topic+"/last_seen",
			map[string]any{"device_class": "timestamp"})
		entity("sensor", id+"_place", name+" place", topic+"/place", nil)
		entity("device_tracker", id+"_tracker", name+" tracker", topic+"/tracker",
			m.trackerConfig(topic))
		entity("event", id+"_event", name+" event", topic+"/event", map[string]any{
			"event_types": []presence.EventKind{presence.Arrived, presence.Saw, presence.Left,
				presence.Mistake, presence.Was},
		})
		say(topic+"/attributes", attributes(is))
		all = append(all, m.lastSeen(p, m.base+topic+"/last_seen", is))
		if m.b.Faces && m.b.Face != nil {
			entity("image", id, name, topic+"/face", jpeg)
			all = append(all, m.face(p, m.base+topic+"/face"))
		}
		say(topic+"/state", state(is))
		say(topic+"/place", place(is, p.Place))
		if m.old {
			say(topic+"/tracker", oldTracker(is))
		} else {
			say(topic+"/tracker", tracker(is))
		}
	}
	for _, c := range now.Cameras {
		id, topic := "camera_"+ID(c.Camera), "/cameras/"+ID(c.Camera)
		entity("binary_sensor", id, "Camera "+c.Camera, topic+"/state", map[string]any{
			"device_class": "connectivity", "entity_category": "diagnostic",
			"json_attributes_topic": m.base + topic + "/attributes",
		})
		// The sensor for the connection tells that the camera is down, and so it is available then.
		entity("sensor", id+"_people", "People at "+c.Camera, topic+"/people", map[string]any{
			"state_class": "measurement", "json_attributes_topic": m.base + topic +
				"/people_attributes",
			"availability_mode": "all", "availability": []any{
				map[string]any{"topic": m.base + "/status"},
				map[string]any{"topic": m.base + topic + "/availability"},
			},
		})
		last := message{topic: m.base + topic + "/last_face", keep: true}
		if c.Last != nil {
			last.payload, last.keep = cmp.Or(c.Last.Name, "unknown"), false
		}
		entity("sensor", id+"_last_face", "Last face at "+c.Camera, topic+"/last_face", nil)
		all = append(all, last)
		names := []string{}
		for _, p := range now.People {
			if p.Camera == c.Camera && (p.InView || p.Unsure) {
				names = append(names, p.Name)
			}
		}
		say(topic+"/attributes", text(map[string]string{"error": c.Error}))
		say(topic+"/people_attributes", text(map[string][]string{"names": names}))
		say(topic+"/state", onOff(c.Up))
		say(topic+"/people", text(len(names)))
		say(topic+"/availability", map[bool]string{false: "offline", true: "online"}[c.Up])
	}
	entity("sensor", "people", "People", "/count", map[string]any{
		"state_class": "measurement", "json_attributes_topic": m.base + "/count_attributes",
	})
	entity("event", "unknown", "Somebody unknown", "/unknown", map[string]any{
		"event_types": []string{string(presence.Unknown), betterPicture, string(presence.Faceless)},
	})
	if m.b.Faces {
		entity("image", "unknown", "Somebody unknown", "/unknown/face", jpeg)
	}
	say("/count_attributes", text(map[string]int{"known": len(now.People), "unknown": now.Unknown}))
	say("/count", text(len(now.People)+now.Unknown))
	return all
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// state returns the presence of a person; p is nil for an absent person.
func state(p *presence.Presence) string {
	if p != nil && p.Unsure {
		return none
	}
	return onOff(p != nil)
}

// place returns the camera where a person is, or the device of the fleet that sees an absent one.
func place(p *presence.Presence, elsewhere string) string {
	switch {
	case p == nil:
		return cmp.Or(elsewhere, "away")
	case p.InView || p.Unsure:
		return p.Camera
	}
	return "out of view"
}

// trackerConfig returns what the configuration of a device tracker has beside the topic of its
// state. Home Assistant 2026.7 reads zones from attributes, which know no unknown place: the
// tracker is then unavailable, and a person of Home Assistant passes over it as over an unknown one
// (homeassistant/components/mqtt/device_tracker.py, core pull request 172660 of 2026-06;
// developers.home-assistant.io/blog/2026/06/15/device-tracker-changes).
func (m *MQTT) trackerConfig(topic string) map[string]any {
	config := map[string]any{"source_type": "router"}
	if !m.old {
		config["availability_mode"] = "all"
		config["availability"] = []any{
			map[string]any{"topic": m.base + "/status"},
			map[string]any{"topic": m.base + topic + "/tracker",
				"value_template": "{{ 'offline' if value_json.unsure else 'online' }}"},
		}
	}
	return config
}

// tracker returns the attributes of a device tracker, of which a person of Home Assistant can be
// made.
func tracker(p *presence.Presence) string {
	zones := []string{}
	if p != nil {
		zones = append(zones, "zone.home")
	}
	return text(struct {
		Zones  []string `json:"in_zones"`
		Unsure bool     `json:"unsure"`
	}{zones, p != nil && p.Unsure})
}

// oldTracker returns the state of a device tracker for Home Assistant before 2026.7.
func oldTracker(p *presence.Presence) string {
	switch {
	case p == nil:
		return "not_home"
	case p.Unsure:
		return none
	}
	return "home"
}

// face returns the message with the picture of a person, which is read only if it is another one
// than before.
func (m *MQTT) face(p office.KnownPerson, topic string) message {
	is := message{topic: topic, keep: true}
	was := m.said[topic].payload
	if p.Face == 0 || p.Trust != sighting.Confirmed || m.faces[p.ID] == p.Face && was != "" &&
		was != unsaid {
		return is
	}
	picture := m.b.Face(p.Face)
	if picture != nil {
		m.faces[p.ID] = p.Face
		is.payload, is.keep = string(picture), false
	}
	return is
}

func attributes(p *presence.Presence) string {
	if p == nil {
		return "{}"
	}
	return text(struct {
		Camera string    `json:"camera"`
		Zone   string    `json:"zone,omitempty"`
		Since  time.Time `json:"since"`
		Trust  string    `json:"trust,omitempty"`
		sighting.Near
		Unsure bool `json:"unsure,omitempty"`
	}{p.Camera, p.Zone, p.Since, string(p.Trust), p.Near, p.Unsure})
}

// seenEvery is the pause between two messages about the last sighting of a present person.
const seenEvery = time.Minute

// lastSeen returns the message with the last sighting of a person. If it is unknown, the broker's
// message stays.
func (m *MQTT) lastSeen(who office.KnownPerson, topic string, p *presence.Presence) message {
	at := who.Last
	if p != nil {
		at = p.Last
		if said := m.seen[who.ID]; !said.IsZero() && at.Sub(said).Abs() < seenEvery {
			at = said
		}
	}
	if at.IsZero() {
		return message{topic: topic, keep: true}
	}
	m.seen[who.ID] = at
	return message{topic: topic, payload: at.UTC().Format(time.RFC3339)}
}

// betterPicture is the type of the second event of an unknown person.
const betterPicture = "better_picture"

// eventText returns an event for an event entity.
func eventText(e Message) string {
	kind := string(e.Kind)
	if e.Better {
		kind = betterPicture
	}
	return text(struct {
		Type     string    `json:"event_type"`
		Camera   string    `json:"camera"`
		Zone     string    `json:"zone,omitempty"`
		Group    uint64    `json:"group,omitempty"`
		Sighting uint64    `json:"sighting,omitempty"`
		Of       uint64    `json:"of,omitempty"`
		Face     uint64    `json:"face,omitempty"`
		Link     string    `json:"link,omitempty"`
		At       time.Time `json:"at"`
	}{kind, e.Camera, e.Zone, e.Group, e.Sighting, e.Of, e.Face, e.Link, e.At})
}

func text(v any) string {
	b, _ := json.Marshal(v) // strings, numbers and times cannot fail
	return string(b)
}
