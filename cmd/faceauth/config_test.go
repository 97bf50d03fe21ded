// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/config"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/spf13/cobra"
)

// asked are the flags of an office.
type asked struct {
	room
	keep bool
}

// configured returns the settings that an office takes from a configuration file and from
// arguments.
func configured(t *testing.T, mode os.FileMode, text string,
	args ...string) (asked, []config.Camera, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "office.yaml")
	fixture.Check(t, os.WriteFile(path, []byte(text), 0o600))
	fixture.Check(t, os.Chmod(path, mode))
	var r room
	var o options
	c := &cobra.Command{Use: "office"}
	o.recogniserFlags(c)
	r.flags(c)
	fixture.Check(t, c.ParseFlags(append([]string{"--config", path}, args...)))
	all, secrets, err := config.Read(c, path, c.Flags().Args())
	r.inline = secrets
	return asked{r, o.keep}, all, path, err
}

func TestConfig(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	const text = `
# An office.
cameras:
  - name: door
    source: rtsp://camera.local/stream?profile=1
    substream: rtsp://camera.local/small
    user: viewer
    password: "a b/@:?#c"
  - {name: desk, source: 0}
state: ~/office
away: 20s
learn: true
fps: 2.5
k: 300
page: 0.0.0.0:8443
mqtt: mqtt://faceauth@broker
secrets:
  token: correct horse battery staple
  mqtt-password: hush
  webhook-secret: also made up for this test
`
	r, cameras, _, err := configured(t, 0o600, text)
	fixture.Check(t, err)
	want := []config.Camera{
		{Name: "door", Source: "rtsp://viewer:a%20b%2F%40%3A%3F%23c@camera.local/stream?profile=1",
			Substream: "rtsp://viewer:a%20b%2F%40%3A%3F%23c@camera.local/small"},
		{Name: "desk", Source: "0"}}
	if !reflect.DeepEqual(cameras, want) {
		t.Errorf("%+v, want %+v", cameras, want)
	}
	if r.state != filepath.Join(home, "office") || r.office.Presence.Away != 20*time.Second ||
		!r.keep || r.fps != 2.5 ||
		r.address != "0.0.0.0:8443" || r.broker.URL != "mqtt://faceauth@broker" {
		t.Errorf("%+v", r)
	}
	if want := (config.Secrets{Token: "correct horse battery staple", MQTTPassword: "hush",
		WebhookSecret: "also made up for this test"}); r.inline != want {
		t.Errorf("%+v", r.inline)
	}

	// A mask and zones are polygons, and what a camera with a mask shows is not turned by itself.
	_, cameras, _, err = configured(t, 0o644, `
cameras:
  - {name: a, source: 0, mask: ["0,0 1,0 0,1", "0,0 .5,0 .5,1"], zones: {desk: "0,0 1,0 1,1"}}`)
	corners := []face.Point{{}, {X: 1}, {Y: 1}, {X: 1, Y: 1}, {X: .5}, {X: .5, Y: 1}}
	want = []config.Camera{{Name: "a", Source: "0",
		Mask: []face.Polygon{{corners[0], corners[1], corners[2]},
			{corners[0], corners[4], corners[5]}},
		Zones: []face.Zone{{Name: "desk", Area: face.Polygon{corners[0], corners[1],
			corners[3]}}}}}
	if err != nil || !reflect.DeepEqual(cameras, want) {
		t.Errorf("%+v, %v; want %+v", cameras, err, want)
	}

	// The command line overrides the file.
	r, cameras, _, err = configured(t, 0o600, text, "hall=1", "--away", "3s", "--learn=false")
	if err != nil || r.office.Presence.Away != 3*time.Second || r.keep || r.fps != 2.5 ||
		!reflect.DeepEqual(cameras, []config.Camera{{Name: "hall", Source: "1"}}) {
		t.Errorf("%+v, %+v, %v", r, cameras, err)
	}

	// A file without a secret may be read by others.
	if _, _, _, err := configured(t, 0o644,
		"cameras: [{name: desk, source: 0}]\npage: 127.0.0.1:0\n"); err != nil {
		t.Error(err)
	}
}

func TestConfigErrors(t *testing.T) {
	camera := "cameras: [{name: desk, source: 0}]\n"
	for text, want := range map[string]string{
		"": ": FILE is empty; docs/office-reference.md shows " +
			"what it may hold",
		"# nothing\n":                          ": FILE is empty",
		camera + "---\naway: 5s\n":             "FILE has more after a line with ---; write one document",
		camera + "secrets: {token: *hush}\n":   "FILE: a value begins with *; put it in quotes",
		camera + "secrets: {token: !hush x}\n": "line 2: token begins with & or !; put it in quotes",
		camera + "secrets: {token: &hush x}\n": "line 2: token begins with & or !; put it in quotes",
		"cameras: [":                           "did not find expected node content",
		"- a":                                  "line 1: there must be keys",
		"away: 10s\n": "FILE has no cameras; list them under cameras, " +
			"or name them on the command line",
		camera + "awya: 10s\n": "line 2: unknown key \"awya\"; did you mean away?",
		camera + "nobody: 10s\n": "line 2: unknown key \"nobody\"; the keys are cameras, secrets, " +
			"and the flags of faceauth office without their dashes",
		camera + "mqtt_topic: x\n":      "line 2: unknown key \"mqtt_topic\"; did you mean mqtt-topic?",
		camera + "config: x\n":          "line 2: unknown key \"config\"",
		camera + "away: soon\n":         "line 2: away needs a time such as 10s or 5m",
		camera + "learn: perhaps\n":     "line 2: learn needs true or false",
		camera + "fps: many\n":          "line 2: fps needs a number",
		camera + "k: -1\n":              "line 2: k: it must be positive and finite",
		camera + "keep-mb: 1.5\n":       "line 2: keep-mb needs a whole number",
		camera + "state:\n":             "line 2: state needs one value",
		camera + "state: [a]\n":         "line 2: state needs one value",
		camera + "away: 1s\naway: 2s\n": "line 3: away is also in line 2",
		"cameras: 0\n":                  "line 1: cameras must be a list",
		"cameras:\n- name: desk\n  source: 0\n- name: desk\n  source: 1\n": "line 4: " +
			"the name of camera \"desk\" is given twice",
		"cameras:\n- source: 0\n":  "line 2: the camera needs a name",
		"cameras:\n- name: desk\n": "line 2: camera \"desk\" needs a source",
		"cameras:\n- name: desk\n  url: 0\n": "line 3: unknown key \"url\"; there are name, " +
			"source, rotate, substream, door, user, password",
		"cameras:\n- {name: a, source: 0, user: me, password: hush}": "line 2: " +
			"camera \"a\" has a user, but its source is not a URL",
		"cameras:\n- {name: a, source: http://x/, password: hush}": "line 2: camera \"a\" has a password and no user",
		"cameras:\n- {name: a, source: http://me@x/, user: me}": "line 2: camera \"a\" has a user, " +
			"and its source has one, too",
		"cameras:\n- {name: a, source: \"http://hush:x y/\"}": "line 2: camera \"a\": the source is not a " +
			"valid URL",
		"cameras:\n- {name: a, source: 0, substream: http://x/}": "camera \"a\" has a substream, which is for " +
			"cameras with a URL, and needs a URL",
		"cameras:\n- {name: a, source: http://x/, substream: 0}": "camera \"a\" has a substream",
		"cameras:\n- {name: a, source: http://x/, substream: \"http://hush:x y/\"}": "line 2: camera \"a\": the " +
			"source is not a valid URL",
		"cameras:\n- name: desk\n  source: 0\n  rotate: 45\n":           "line 4: rotate needs auto, 0, 90, 180 or 270",
		"cameras:\n- {name: a, source: 0, mask: \"0,0 1,0 1,1\"}":       "line 2: mask must be a list",
		"cameras:\n- {name: a, source: 0, mask: [\"0,0 1,0\"]}":         "line 2: a polygon needs 3 to 64 corners",
		"cameras:\n- {name: a, source: 0, mask: [\"0,0 1,0 1;1\"]}":     "line 2: a polygon needs 3 to 64",
		"cameras:\n- {name: a, source: 0, mask: [\"0,0 1,0 1,1x\"]}":    "line 2: a polygon needs 3 to 64",
		"cameras:\n- {name: a, source: 0, mask: [{a: 1}]}":              "line 2: a polygon needs 3 to 64",
		"cameras:\n- {name: a, source: 0, zones: {b: \"0,0 2,0 0,1\"}}": "line 2: a polygon needs 3 to 64",
		"cameras:\n- {name: a, source: 0, zones: {b: }}":                "line 2: b needs one value",
		"cameras:\n- {name: a, source: 0, rotate: auto, mask: [\"0,0 1,0 1,1\"]}": "line 2: camera " +
			"\"a\" has a mask: rotate needs 0, 90, 180 or 270",
		camera + "secrets: {tokens: hush}\n": "line 2: unknown key \"tokens\"; " +
			"did you mean token?",
		camera + "secrets: {token: \"\"}\n":   "line 2: token is empty",
		camera + "secrets: {token: [hush]}\n": "line 2: token needs one value",
		camera + "x: &a hush\n":               "line 2: unknown key \"x\"",
		"cameras: &a [{name: desk, source: 0}]\nsecrets: *a\n": "line 2: secrets is an alias; " +
			"write the value itself",
		camera + strings.Repeat("# a long file of remarks\n", 1<<16):   "is longer than a configuration, which has at most",
		"a: &a [hush]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c]": "line 1: unknown key \"a\"",
	} {
		_, _, path, err := configured(t, 0o600, text)
		if err == nil || strings.Contains(err.Error(), "hush") ||
			!strings.Contains(": "+strings.ReplaceAll(err.Error(), path, "FILE"), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{
		camera + "secrets: {token: hush hush hush hush}",
		"cameras:\n- name: a\n  source: http://x/?token=hush\n",
		"cameras:\n- {name: a, source: http://me:hush@x/}",
		"cameras:\n- {name: a, source: http://x/, user: me, password: hush}", camera +
			"webhook: https://x/?key=hush",
		"cameras:\n- {name: a, source: \"frigate://b/c?api=http://me:hush@x\"}",
		"cameras:\n- {name: a, source: http://x/k=hush}",
		"cameras:\n- {name: a, source: \"http://x/?src=a&token=hush\"}",
	} {
		want := regexp.MustCompile(
			`^line \d: others can read the secret in \S+; run: chmod 600 \S+$`)
		if _, _, _, err := configured(t, 0o644, text); err == nil ||
			!want.MatchString(err.Error()) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{ // a query without a secret
		"cameras:\n- {name: a, source: \"frigate://b/c?api=http://x:5000&topic=frigate\"}\n",
		"cameras:\n- {name: a, source: \"http://x:1984/api/stream.mjpeg?src=door\"}\n",
	} {
		if _, _, _, err := configured(t, 0o644, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, _, err := config.Read(new(cobra.Command), none, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The example in the documentation can be read, and uses only keys that exist.
func TestConfigExample(t *testing.T) {
	doc := fixture.Must(os.ReadFile(filepath.Join(fixture.Root(t), "docs",
		"office-reference.md")))(t)
	_, text, _ := strings.Cut(string(doc), "## The configuration file")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, ok := strings.Cut(text, "\n```")
	if !ok {
		t.Fatal("docs/office-reference.md has no example")
	}
	r, cameras, _, err := configured(t, 0o600, text)
	fixture.Check(t, err)
	container := fixture.Must(os.ReadFile(filepath.Join(fixture.Root(t), "packaging", "container",
		"office.yaml")))(t)
	if _, _, _, err := configured(t, 0o600, string(container)); err != nil {
		t.Error(err)
	}
	if len(cameras) < 2 || r.state == "" || r.address == "" || r.broker.URL == "" ||
		r.inline.Token == "" ||
		r.inline.MQTTPassword == "" {
		t.Errorf("%+v, %+v", cameras, r)
	}
}
