// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/sighting"
)

// message is a retained message at a topic.
type message struct {
	topic, payload string
	keep           bool // leave the broker's message as it is
}

// none tells Home Assistant that a state is unknown.
const none = "None"

// messages returns the messages that the broker should retain, in sending order: the configuration of an entity comes
// before its state. The lock is held.
func (m *MQTT) messages(now office.Now) []message {
	var entities, details, states []message
	device := map[string]any{
		"identifiers": []string{m.node()}, "name": m.b.Name, "manufacturer": "faceauth", "model": "office",
	}
	for field, value := range map[string]string{"sw_version": m.b.Version, "configuration_url": m.b.Page} {
		if value != "" {
			device[field] = value
		}
	}
	entity := func(component, id string, config map[string]any) {
		topic := m.b.Discovery + "/" + component + "/" + m.node() + "/" + id + "/config"
		name, _ := config["name"].(string)
		if said := m.config[topic]; said.name == name && said.text != "" { // topic and name determine the message
			entities = append(entities, message{topic: topic, payload: said.text})
			return
		}
		config["unique_id"] = m.node() + "_" + id
		if config["availability"] == nil {
			config["availability_topic"] = m.base + "/status"
		}
		config["device"], config["origin"] = device, map[string]any{"name": "faceauth"}
		m.config[topic] = configuration{name, text(config)}
		entities = append(entities, message{topic: topic, payload: m.config[topic].text})
	}
	known := make(map[int64]bool, len(now.Known))
	for _, p := range now.Known {
		known[p.ID] = true
	}
	maps.DeleteFunc(m.seen, func(id int64, _ time.Time) bool { return !known[id] })
	there := make(map[string]*office.Presence)
	for i, p := range now.People {
		there[p.Name] = &now.People[i]
	}
	for _, p := range now.Known {
		if p.ID == 0 { // who has no number yet
			continue
		}
		id, name := PersonID(p.ID), p.Name
		topic := m.base + "/people/" + id
		entity("binary_sensor", id, map[string]any{
			"name": name, "device_class": "presence",
			"state_topic": topic + "/state", "json_attributes_topic": topic + "/attributes",
		})
		entity("sensor", id+"_last_seen", map[string]any{
			"name": name + " last seen", "device_class": "timestamp", "state_topic": topic + "/last_seen",
		})
		details = append(details, message{topic: topic + "/attributes", payload: attributes(there[name])},
			m.lastSeen(p, topic+"/last_seen", there[name]))
		if m.b.Faces && m.b.Face != nil {
			entity("image", id, map[string]any{
				"name": name, "image_topic": topic + "/face", "content_type": "image/jpeg",
			})
			var jpeg []byte
			if p.Face != 0 && p.Trust == sighting.Confirmed {
				jpeg = m.b.Face(p.Face)
			}
			details = append(details, message{topic: topic + "/face", payload: string(jpeg), keep: jpeg == nil})
		}
		states = append(states, message{topic: topic + "/state", payload: state(there[name])})
		entity("sensor", id+"_place", map[string]any{"name": name + " place", "state_topic": topic + "/place"})
		entity("device_tracker", id+"_tracker", map[string]any{
			"name": name + " tracker", "state_topic": topic + "/tracker", "source_type": "router",
		})
		entity("event", id+"_event", map[string]any{
			"name": name + " event", "state_topic": topic + "/event",
			"event_types": []office.EventKind{office.Arrived, office.Saw, office.Left, office.Mistake},
		})
		states = append(states, message{topic: topic + "/place", payload: place(there[name], p.Place)},
			message{topic: topic + "/tracker", payload: tracker(there[name])})
	}
	for _, c := range now.Cameras {
		id := "camera_" + ID(c.Camera)
		topic := m.base + "/cameras/" + ID(c.Camera)
		entity("binary_sensor", id, map[string]any{
			"name": "Camera " + c.Camera, "device_class": "connectivity", "entity_category": "diagnostic",
			"state_topic": topic + "/state", "json_attributes_topic": topic + "/attributes",
		})
		details = append(details, message{topic: topic + "/attributes", payload: text(map[string]string{"error": c.Error})})
		states = append(states, message{topic: topic + "/state", payload: onOff(c.Up)})
		// The sensor for the connection tells that the camera is down, and so it is available then.
		entity("sensor", id+"_people", map[string]any{
			"name": "People at " + c.Camera, "state_class": "measurement",
			"state_topic": topic + "/people", "json_attributes_topic": topic + "/people_attributes",
			"availability_mode": "all", "availability": []any{
				map[string]any{"topic": m.base + "/status"}, map[string]any{"topic": topic + "/availability"},
			},
		})
		names := []string{}
		for _, p := range now.People {
			if p.Camera == c.Camera && (p.InView || p.Unsure) {
				names = append(names, p.Name)
			}
		}
		details = append(details, message{topic: topic + "/people_attributes",
			payload: text(map[string][]string{"names": names})})
		states = append(states, message{topic: topic + "/people", payload: text(len(names))},
			message{topic: topic + "/availability", payload: map[bool]string{false: "offline", true: "online"}[c.Up]})
	}
	entity("sensor", "people", map[string]any{
		"name": "People", "state_class": "measurement",
		"state_topic": m.base + "/count", "json_attributes_topic": m.base + "/count_attributes",
	})
	details = append(details, message{topic: m.base + "/count_attributes",
		payload: text(map[string]int{"known": len(now.People), "unknown": now.Unknown})})
	states = append(states, message{topic: m.base + "/count", payload: text(len(now.People) + now.Unknown)})
	entity("event", "unknown", map[string]any{
		"name": "Somebody unknown", "event_types": []string{string(office.Unknown), betterPicture, string(office.Faceless)},
		"state_topic": m.base + "/unknown",
	})
	if m.b.Faces {
		entity("image", "unknown", map[string]any{
			"name": "Somebody unknown", "image_topic": m.base + "/unknown/face", "content_type": "image/jpeg",
		})
	}
	return append(append(entities, details...), states...)
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// state returns the presence of a person; p is nil for an absent person.
func state(p *office.Presence) string {
	if p != nil && p.Unsure {
		return none
	}
	return onOff(p != nil)
}

// place returns the camera where a person is, or the device of the fleet that sees an absent one.
func place(p *office.Presence, elsewhere string) string {
	switch {
	case p == nil:
		return cmp.Or(elsewhere, "away")
	case p.InView || p.Unsure:
		return p.Camera
	}
	return "out of view"
}

// tracker returns the state of a device tracker, of which a person of Home Assistant can be made.
func tracker(p *office.Presence) string {
	switch {
	case p == nil:
		return "not_home"
	case p.Unsure:
		return none
	}
	return "home"
}

func attributes(p *office.Presence) string {
	if p == nil {
		return "{}"
	}
	return text(struct {
		Camera string    `json:"camera"`
		Since  time.Time `json:"since"`
		Trust  string    `json:"trust,omitempty"`
		office.Near
		Unsure bool `json:"unsure,omitempty"`
	}{p.Camera, p.Since, string(p.Trust), p.Near, p.Unsure})
}

// seenEvery is the pause between two messages about the last sighting of a present person.
const seenEvery = time.Minute

// lastSeen returns the message with the last sighting of a person. If it is unknown, the broker's message stays.
func (m *MQTT) lastSeen(who office.KnownPerson, topic string, p *office.Presence) message {
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
		Group    uint64    `json:"group,omitempty"`
		Sighting uint64    `json:"sighting,omitempty"`
		Face     uint64    `json:"face,omitempty"`
		Link     string    `json:"link,omitempty"`
		At       time.Time `json:"at"`
	}{kind, e.Camera, e.Group, e.Sighting, e.Face, e.Link, e.At})
}

func text(v any) string {
	b, _ := json.Marshal(v) // strings, numbers and times cannot fail
	return string(b)
}
