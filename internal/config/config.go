// SPDX-License-Identifier: Apache-2.0

// Package config reads which cameras an office watches: from the command line, or from a
// configuration file (YAML), which also has secrets and values of flags. [Read] is its whole work.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// mostConfig is the largest size of a configuration file.
const mostConfig = 1 << 20

// Camera is a camera, or a recording, of an office.
type Camera struct {
	Name, Source string
	Rotate       face.Rotation // "" for --rotate
	Substream    string        // a smaller stream; "" for none
	Door         string        // "entrance", "exit", or "" for a room
	Mask         []face.Polygon
	Zones        []face.Zone
}

// Secrets holds the values under "secrets" in a configuration file. They replace files of secrets.
type Secrets struct{ Token, LookToken, MQTTPassword, WebhookSecret, NtfyToken string }

// Read returns the cameras of the command line, or else of the file at path. The other keys of the
// file set flags of c that the command line does not set. Path may be "".
func Read(c *cobra.Command, path string, args []string) (all []Camera, s Secrets, err error) {
	all, err = sources(args)
	if err != nil {
		return nil, s, err
	}
	if path != "" {
		listed, secrets, err := file(path).read(c.Flags())
		if err != nil {
			return nil, s, err
		}
		s = secrets
		if len(all) == 0 {
			all = listed
		}
	}
	switch {
	case len(all) > 0:
		return all, s, nil
	case path != "":
		return nil, s,
			fmt.Errorf("%s has no cameras; list them under cameras, or name them "+
				"on the command line", path)
	}
	return nil, s, fmt.Errorf("no camera is given; name one, or give --config FILE; see %s --help",
		c.CommandPath())
}

// sources parses the arguments. The scheme of a URL stands before its first "=".
func sources(args []string) (all []Camera, err error) {
	taken := make(map[string]bool)
	for _, a := range args {
		n := Camera{Name: a, Source: a}
		if name, source, ok := strings.Cut(a, "="); ok && name != "" &&
			!strings.ContainsAny(name, "/:") {
			n.Name, n.Source = name, source
		} else if input.IsRecording(a) {
			n.Name = filepath.Base(a)
		} else if strings.Contains(a, "://") { // what may be secret in a URL is in no event
			return nil, errors.New("the URL needs a name; put NAME= before it")
		}
		if n.Source == "" || taken[n.Name] {
			return nil, fmt.Errorf("camera %q has no source, or its name is given twice", n.Name)
		}
		taken[n.Name] = true
		all = append(all, n)
	}
	return all, nil
}

// file is a configuration file, by its path.
type file string

// hidden matches what others may not read, a password or a secret, and URLs, in which they may
// stand. The URL of a broker contains no password.
var hidden = regexp.MustCompile(`\b(secrets|password)\s*:|\b(https?|rtsps?|frigates?)://[^\s"']*`)

// plain matches the parameters of URLs that are not secret: those of Frigate, of go2rtc, and
// numbers of streams.
var plain = regexp.MustCompile(`^(api|topic|src|channel|subtype)=[^@?&#]*$`)

// secretAt returns where the first secret of a file begins, or -1.
func secretAt(text []byte) int {
	for _, at := range hidden.FindAllIndex(text, -1) {
		_, address, isURL := strings.Cut(string(text[at[0]:at[1]]), "://")
		path, query, asks := strings.Cut(address, "?")
		secret := func(parameter string) bool { return !plain.MatchString(parameter) }
		if !isURL || strings.ContainsAny(path, "@=") || asks &&
			slices.ContainsFunc(strings.Split(query, "&"), secret) {
			return at[0]
		}
	}
	return -1
}

// read reads the file. Flags of the command line keep their values.
func (f file) read(flags *pflag.FlagSet) (cameras []Camera, s Secrets, err error) {
	text, err := safefile.ReadBytes(string(f))
	if err != nil {
		return nil, s, fmt.Errorf("the configuration: %w", err)
	}
	if len(text) > mostConfig {
		return nil, s, fmt.Errorf("%s is longer than a configuration, which has at most %d bytes",
			f, mostConfig)
	}
	root, err := f.parse(text)
	if err != nil {
		return nil, s, err
	}
	if at := secretAt(text); at >= 0 {
		if _, err := safefile.ReadSecret(string(f)); err != nil {
			return nil, s, fmt.Errorf("line %d: %w", 1+bytes.Count(text[:at], []byte("\n")), err)
		}
	}
	return f.take(root, flags)
}

// parse returns the only document of the file.
func (f file) parse(text []byte) (*yaml.Node, error) {
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0:
		return nil, fmt.Errorf("%s is empty; docs/office-reference.md shows what it may hold", f)
	// the text quotes a value, which may be a password
	case err != nil && strings.Contains(err.Error(), "unknown anchor"):
		return nil, fmt.Errorf("%s: a value begins with *; put it in quotes", f)
	case err != nil:
		return nil, fmt.Errorf("%s: %s", f, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has more after a line with ---; write one document", f)
	}
	return document.Content[0], nil
}

// wrong returns an error about a place in the file. It contains no value, because a value may be
// secret.
func (f file) wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s, line %d: %w", f, n.Line, fmt.Errorf(format, args...))
}

// values are the values of a mapping, by key.
type values map[string]*yaml.Node

// text returns the text of a value; "" if there is none.
func (v values) text(key string) string {
	if v[key] == nil {
		return ""
	}
	return v[key].Value
}

// structured are the keys whose values are more than a text.
var structured = []string{"cameras", "secrets", "mask", "zones"}

// mapping returns the values of a mapping. Names has the allowed keys; none allow all.
func (f file) mapping(n *yaml.Node, names ...string) (values, error) {
	if n.Kind != yaml.MappingNode {
		return nil, f.wrong(n, "there must be keys with values, as in \"key: value\"")
	}
	all, lines := values{}, make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		key := at.Value
		switch {
		case all[key] != nil:
			return nil, f.wrong(at, "%s is also in line %d", key, lines[key])
		case at.Kind != yaml.ScalarNode || len(names) > 0 && !slices.Contains(names, key):
			known := "; there are " + strings.Join(names, ", ")
			if len(names) > 9 {
				known = "; the keys are cameras, secrets, and the flags of faceauth office " +
					"without their dashes"
			}
			return nil, f.wrong(at, "unknown key %q%s", key,
				cmp.Or(cli.DidYouMean(cli.Near(names, key)), known))
		case value.Kind == yaml.AliasNode:
			return nil, f.wrong(value, "%s is an alias; write the value itself", key)
		case slices.Contains(structured, key):
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return nil, f.wrong(value, "%s needs one value", key)
		case value.Anchor != "" || !strings.HasPrefix(value.Tag, "!!"):
			// YAML would drop the first word of such a password
			return nil, f.wrong(value, "%s begins with & or !; put it in quotes", key)
		}
		all[key], lines[key] = value, at.Line
	}
	return all, nil
}

// take takes in the whole file.
func (f file) take(n *yaml.Node, flags *pflag.FlagSet) (cameras []Camera, s Secrets, err error) {
	names := []string{"cameras", "secrets"}
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "config" && flag.Name != "help" {
			names = append(names, flag.Name)
		}
	})
	all, err := f.mapping(n, names...)
	if err != nil {
		return nil, s, err
	}
	for _, name := range names {
		value := all[name]
		switch {
		case value == nil:
		case name == "cameras":
			cameras, err = f.cameras(value)
		case name == "secrets":
			s, err = f.secrets(value)
		case !flags.Changed(name):
			err = f.set(flags, flags.Lookup(name), value)
		}
		if err != nil {
			return nil, s, err
		}
	}
	return cameras, s, nil
}

// kinds describes the types of flags in words.
var kinds = map[string]string{
	"bool": "true or false", "duration": "a time such as 10s or 5m", "float64": "a number",
	"int":    "a whole number",
	"string": "a text",
}

// set gives a flag its value in the file.
func (f file) set(flags *pflag.FlagSet, flag *pflag.Flag, value *yaml.Node) error {
	text, kind := value.Value, flag.Value.Type()
	// no shell has expanded it
	if rest, ok := strings.CutPrefix(text, "~/"); ok && kind == "string" {
		home, err := os.UserHomeDir()
		if err != nil {
			return f.wrong(value, "%s: %w", flag.Name, err)
		}
		text = filepath.Join(home, rest)
	}
	err := flags.Set(flag.Name, text)
	if err == nil {
		return nil
	}
	if what, ok := kinds[kind]; ok {
		return f.wrong(value, "%s needs %s", flag.Name, what)
	}
	// a flag of ours, whose errors quote no value
	return f.wrong(value, "%s: %w", flag.Name, errors.Unwrap(err))
}

func (f file) secrets(n *yaml.Node) (s Secrets, err error) {
	all, err := f.mapping(n, "token", "look-token", "mqtt-password", "webhook-secret",
		"ntfy-token")
	for key, value := range all {
		if value.Value == "" {
			return s, f.wrong(value, "%s is empty", key)
		}
	}
	return Secrets{all.text("token"), all.text("look-token"), all.text("mqtt-password"),
		all.text("webhook-secret"), all.text("ntfy-token")}, err
}

func (f file) cameras(n *yaml.Node) (all []Camera, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, f.wrong(n, "cameras must be a list, each with \"- name: NAME\"")
	}
	for _, item := range n.Content {
		camera, err := f.camera(item)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o Camera) bool { return o.Name == camera.Name }) {
			return nil, f.wrong(item, "the name of camera %q is given twice", camera.Name)
		}
		all = append(all, camera)
	}
	return all, nil
}

// camera reads one camera of the list.
func (f file) camera(n *yaml.Node) (camera Camera, err error) {
	all, err := f.mapping(n, "name", "source", "rotate", "substream", "door", "user", "password",
		"mask", "zones")
	if err != nil {
		return camera, err
	}
	camera = Camera{Name: all.text("name"), Source: all.text("source"),
		Substream: all.text("substream"),
		Door:      all.text("door"), Rotate: face.Rotation(all.text("rotate"))}
	camera.Mask, camera.Zones, err = f.areas(all["mask"], all["zones"])
	if err != nil {
		return camera, err
	}
	// what a camera shows may not turn below its mask
	turned := camera.Rotate == face.Auto && camera.Mask != nil
	user, password := all.text("user"), all.text("password")
	isURL := strings.Contains(camera.Source, "://")
	_, _, turns := camera.Rotate.Degrees()
	switch {
	case camera.Name == "":
		return camera, f.wrong(n, "the camera needs a name")
	case camera.Source == "":
		return camera,
			f.wrong(n, "camera %q needs a source: a URL, a camera's number, or a recording",
				camera.Name)
	case !turns:
		return camera, f.wrong(all["rotate"], "rotate needs auto, 0, 90, 180 or 270")
	case turned:
		return camera, f.wrong(all["rotate"],
			"camera %q has a mask: rotate needs 0, 90, 180 or 270", camera.Name)
	case all["door"] != nil && camera.Door != "entrance" && camera.Door != "exit":
		return camera, f.wrong(all["door"], "door needs entrance or exit")
	case user == "" && password != "":
		return camera, f.wrong(n, "camera %q has a password and no user", camera.Name)
	case user != "" && !isURL:
		return camera, f.wrong(n, "camera %q has a user, but its source is not a URL", camera.Name)
	case camera.Substream != "" && !(input.IsURL(camera.Substream) && input.IsURL(camera.Source)):
		return camera,
			f.wrong(n, "camera %q has a substream, which is for cameras with a URL, "+
				"and needs a URL",
				camera.Name)
	}
	for _, at := range []*string{&camera.Source, &camera.Substream} {
		if !isURL || *at == "" {
			continue
		}
		u, err := url.Parse(*at)
		switch {
		case err != nil:
			return camera, f.wrong(n, "camera %q: the source is not a valid URL", camera.Name)
		case user == "":
			continue
		case u.User != nil:
			return camera, f.wrong(n, "camera %q has a user, and its source has one, too",
				camera.Name)
		}
		u.User = url.UserPassword(user, password)
		if password == "" {
			u.User = url.User(user)
		}
		*at = u.String()
	}
	return camera, nil
}

// mostAreas is the greatest number of masks, and of zones, of a camera.
const mostAreas = 32

// areas reads the parts of a camera's picture that are not looked at, and those with a name; either
// may be nil.
func (f file) areas(mask, zones *yaml.Node) (m []face.Polygon, z []face.Zone, err error) {
	read := func(n *yaml.Node) face.Polygon {
		p, wrong := polygon(n.Value)
		if wrong != nil && err == nil {
			err = f.wrong(n, "%w", wrong)
		}
		return p
	}
	if mask != nil && mask.Kind != yaml.SequenceNode {
		return nil, nil, f.wrong(mask, "mask must be a list of polygons, each after a dash")
	}
	if mask != nil {
		for _, n := range mask.Content {
			m = append(m, read(n))
		}
	}
	if zones != nil {
		all, wrong := f.mapping(zones)
		if wrong != nil {
			return nil, nil, wrong
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			z = append(z, face.Zone{Name: name, Area: read(all[name])})
			if wrong := face.CheckName(name); wrong != nil && err == nil {
				err = f.wrong(all[name], "the zone: %w", wrong)
			}
		}
	}
	if len(m) > mostAreas || len(z) > mostAreas {
		return nil, nil, f.wrong(cmp.Or(mask, zones), "a camera has at most %d masks and %d zones",
			mostAreas, mostAreas)
	}
	return m, z, err
}

// polygon reads a polygon: corners with spaces between them, "0,0 0.5,0 0.5,0.4".
func polygon(text string) (face.Polygon, error) {
	var p face.Polygon
	for _, corner := range strings.Fields(text) {
		var at face.Point
		var rest string
		n, _ := fmt.Sscanf(corner+" .", "%f,%f %s", &at.X, &at.Y, &rest)
		if n != 3 || rest != "." {
			return nil, face.Polygon(nil).Check() // says what it needs
		}
		p = append(p, at)
	}
	return p, p.Check()
}

// Secret returns the content of a file without white space at its ends, or inline if path is empty.
func Secret(path, inline string) (string, error) {
	if path == "" {
		return inline, nil
	}
	text, err := safefile.ReadSecret(path)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return "", fmt.Errorf("%s is empty; write the secret into it", path)
	}
	return s, nil
}
