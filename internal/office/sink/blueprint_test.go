// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/faceauth/faceauth/internal/fixture"
)

// automation is an automation of Home Assistant.
type automation struct {
	Alias      string
	Mode       string
	Max        int
	Variables  map[string]any
	Triggers   []map[string]any
	Conditions []any
	Actions    []map[string]any
}

// blueprint is the part of Home Assistant's schema of blueprints that ours uses; other fields are
// refused.
type blueprint struct {
	Blueprint struct {
		Name, Description, Domain string
		HomeAssistant             struct {
			MinVersion string `yaml:"min_version"`
		}
		Input map[string]struct {
			Name, Description string
			Default           any
			Selector          map[string]any
		}
	}
	automation `yaml:",inline"`
}

func strictly(t *testing.T, name string, into any) []byte {
	t.Helper()
	f := fixture.Must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "office", "homeassistant",
		name)))(t)
	var node yaml.Node
	fixture.Check(t, yaml.Unmarshal(f, &node))
	fixture.Check(t, node.Decode(into))
	return f
}

// The blueprint and the examples are automations: each has triggers that name what they wait for,
// and actions. The blueprint uses all of its inputs, no others, and only attributes that our events
// have.
func TestBlueprint(t *testing.T) {
	var b blueprint
	text := string(strictly(t, "stranger.yaml", &b))
	sound(t, "the blueprint", b.automation)
	if b.Blueprint.Domain != "automation" || b.Blueprint.Name == "" ||
		b.Blueprint.HomeAssistant.MinVersion == "" {
		t.Errorf("%+v", b.Blueprint)
	}
	used := make(map[string]bool)
	for _, m := range regexp.MustCompile(`!input (\w+)`).FindAllStringSubmatch(text, -1) {
		used[m[1]] = true
		if in, there := b.Blueprint.Input[m[1]]; !there || len(in.Selector) != 1 || in.Name == "" {
			t.Errorf("the input %s: %+v", m[1], in)
		}
	}
	if len(used) != len(b.Blueprint.Input) {
		t.Errorf("used are %v", used)
	}
	for _, m := range regexp.MustCompile(`seen\.(\w+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains([]string{"camera", "sighting", "face", "link", "at"}, m[1]) {
			t.Errorf("our events have no %s", m[1])
		}
	}
	var all []automation
	strictly(t, "automations.yaml", &all)
	if len(all) != 3 {
		t.Errorf("%d automations", len(all))
	}
	for _, a := range all {
		sound(t, a.Alias, a)
	}
}

func sound(t *testing.T, name string, a automation) {
	t.Helper()
	if len(a.Triggers) == 0 || len(a.Actions) == 0 ||
		!slices.Contains([]string{"single", "queued"}, a.Mode) {
		t.Errorf("%s: %+v", name, a)
	}
	for _, x := range a.Triggers {
		if kind, _ := x["trigger"].(string); x["entity_id"] == nil || kind != "state" &&
			kind != "numeric_state" {
			t.Errorf("%s: trigger %v", name, x)
		}
	}
	for _, x := range a.Conditions {
		if m, isMap := x.(map[string]any); isMap && m["condition"] == nil {
			t.Errorf("%s: condition %v", name, x)
		}
	}
	for _, x := range a.Actions {
		if action, _ := x["action"].(string); !regexp.MustCompile(`^\w+\.\w+$`).MatchString(
			action) &&
			(x["domain"] == nil || x["device_id"] == nil || x["type"] == nil) {
			t.Errorf("%s: action %v", name, x)
		}
	}
}
