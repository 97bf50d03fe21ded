// SPDX-License-Identifier: Apache-2.0

// Package config reads which cameras an office watches: from the command line, or from a configuration file (YAML),
// which also has secrets and values of flags. [Read] is its whole work.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// mostConfig is the largest size of a configuration file.
const mostConfig = 1 << 20

// Secrets holds the values under "secrets" in a configuration file. They replace files of secrets.
type Secrets struct{ Token, MQTTPassword, WebhookSecret string }

// configFile is a configuration file while it is read.
type configFile struct {
	path    string
	cameras []Camera
	secrets Secrets
	secret  *yaml.Node // the first secret in the file; then only its owner may read the file
}

// Read returns the cameras of the command line, or else of the file at path, with the substreams of the command line.
// The other keys of the file set flags of c that the command line does not set. Path may be "".
func Read(c *cobra.Command, path string, args, smaller []string) (all []Camera, s Secrets, err error) {
	if all, err = sources(args); err != nil {
		return nil, s, err
	}
	if path != "" {
		f := configFile{path: path}
		if err := f.read(c.Flags()); err != nil {
			return nil, s, err
		}
		s = f.secrets
		if len(all) == 0 {
			all = f.cameras
		}
	}
	switch {
	case len(all) > 0:
		return all, s, substreams(all, smaller)
	case path != "":
		return nil, s, fmt.Errorf("%s has no cameras; list them under cameras, or name them on the command line", path)
	}
	return nil, s, fmt.Errorf("no camera is given; name one, or give --config FILE; see %s --help", c.CommandPath())
}

// Camera is a camera, or a recording, of an office.
type Camera struct {
	Name, Source string
	Rotate       cli.Rotation // "" for --rotate
	Substream    string       // a smaller stream; "" for none
	Door         string       // "entrance", "exit", or "" for a room
}

// sources parses the arguments. The scheme of a URL stands before its first "=".
func sources(args []string) (all []Camera, err error) {
	taken := make(map[string]bool)
	for _, a := range args {
		n := Camera{Name: a, Source: a}
		if name, source, ok := strings.Cut(a, "="); ok && name != "" && !strings.ContainsAny(name, "/:") {
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

// substreams gives cameras the streams of --substream.
func substreams(all []Camera, given []string) error {
	for _, text := range given {
		name, url, ok := strings.Cut(text, "=")
		found := false
		for i := range all {
			if all[i].Name == name {
				all[i].Substream, found = url, true
			}
		}
		if !ok || !found {
			return errors.New("--substream needs NAME=URL, with the name of a camera")
		}
	}
	for _, n := range all {
		if n.Substream != "" && !(input.IsURL(n.Substream) && input.IsURL(n.Source)) {
			return fmt.Errorf("camera %q has a substream, which is for cameras with a URL, and needs a URL", n.Name)
		}
	}
	return nil
}

// Doors makes cameras entrances and exits by name.
func Doors(all []Camera, entrances, exits []string) error {
	for door, names := range map[string][]string{"entrance": entrances, "exit": exits} {
		for _, name := range names {
			at := slices.IndexFunc(all, func(n Camera) bool { return n.Name == name })
			if at < 0 {
				return fmt.Errorf("--%s %s: no camera has this name", door, name)
			}
			all[at].Door = door
		}
	}
	return nil
}

// read reads the file. Flags of the command line keep their values.
func (f *configFile) read(flags *pflag.FlagSet) error {
	file, err := safefile.Open(f.path)
	if err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	if info.Size() > mostConfig {
		return fmt.Errorf("%s has %d bytes, and a configuration has at most %d", f.path, info.Size(), mostConfig)
	}
	text, err := io.ReadAll(io.LimitReader(file, mostConfig))
	if err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0:
		return fmt.Errorf("%s is empty; docs/office-reference.md shows what it may hold", f.path)
	// the text quotes a value, which may be a password
	case err != nil && strings.Contains(err.Error(), "unknown anchor"):
		return fmt.Errorf("%s: a value begins with *; put it in quotes", f.path)
	case err != nil:
		return fmt.Errorf("%s: %s", f.path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has more after a line with ---; write one document", f.path)
	}
	if err := f.take(document.Content[0], flags); err != nil {
		return err
	}
	if f.secret != nil && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can read %s, which has a secret in line %d; run: chmod 600 %s", f.path, f.secret.Line,
			f.path)
	}
	return nil
}

// wrong returns an error about a place in the file. It contains no value, because a value may be secret.
func (f *configFile) wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s, line %d: %w", f.path, n.Line, fmt.Errorf(format, args...))
}

// each calls do with each key and value of a mapping. Names has the allowed keys.
func (f *configFile) each(n *yaml.Node, names []string, do func(key string, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return f.wrong(n, "there must be keys with values, as in \"key: value\"")
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if line, twice := seen[key.Value]; twice {
			return f.wrong(key, "%s is also in line %d", key.Value, line)
		}
		seen[key.Value] = key.Line
		if key.Kind != yaml.ScalarNode || !slices.Contains(names, key.Value) {
			return f.wrong(key, "unknown key %q%s", key.Value, like(key.Value, names))
		}
		if value.Kind == yaml.AliasNode {
			return f.wrong(value, "%s is an alias; write the value itself", key.Value)
		}
		if err := do(key.Value, value); err != nil {
			return err
		}
	}
	return nil
}

// like returns a suggestion: the name that was probably meant, or all names if there are few.
func like(name string, names []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for _, n := range names {
		if p, q := plain(n), plain(name); p == q || strings.TrimSuffix(p, "s") == strings.TrimSuffix(q, "s") {
			return fmt.Sprintf("; did you mean %s?", n)
		}
	}
	if len(names) <= 7 {
		return "; there are " + strings.Join(names, ", ")
	}
	return "; the keys are cameras, secrets, and the flags of faceauth office without their dashes"
}

// value returns the text of a value.
func (f *configFile) value(key string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", f.wrong(n, "%s needs one value", key)
	}
	if n.Anchor != "" || !strings.HasPrefix(n.Tag, "!!") { // YAML would drop the first word of such a password
		return "", f.wrong(n, "%s begins with & or !; put it in quotes", key)
	}
	return n.Value, nil
}

// hide is [configFile.value] for a secret.
func (f *configFile) hide(key string, n *yaml.Node) (string, error) {
	s, err := f.value(key, n)
	if err == nil && s == "" {
		err = f.wrong(n, "%s is empty", key)
	}
	f.secret = n
	return s, err
}

// take reads the whole file.
func (f *configFile) take(n *yaml.Node, flags *pflag.FlagSet) error {
	given := make(map[string]bool)
	names := []string{"cameras", "secrets"}
	flags.VisitAll(func(flag *pflag.Flag) {
		given[flag.Name] = flag.Changed
		switch flag.Name {
		case "config", "help":
		case "substream", "entrance", "exit": // each camera has its own
		default:
			names = append(names, flag.Name)
		}
	})
	return f.each(n, names, func(key string, value *yaml.Node) error {
		switch key {
		case "cameras":
			return f.takeCameras(value)
		case "secrets":
			return f.takeSecrets(value)
		}
		s, err := f.value(key, value)
		if err != nil {
			return err
		}
		if u, err := url.Parse(s); err == nil && strings.Contains(s, "://") {
			// the URL of a broker contains no password
			user := u.User != nil && u.Scheme != "mqtt" && u.Scheme != "mqtts"
			if user || u.RawQuery != "" {
				f.secret = value
			}
		}
		if given[key] {
			return nil
		}
		kind := flags.Lookup(key).Value.Type()
		if rest, ok := strings.CutPrefix(s, "~/"); ok && kind == "string" { // no shell has expanded it
			home, err := os.UserHomeDir()
			if err != nil {
				return f.wrong(value, "%s: %w", key, err)
			}
			s = filepath.Join(home, rest)
		}
		if flags.Set(key, s) != nil {
			what := kinds[kind]
			switch flags.Lookup(key).Value.(type) {
			case *cli.Positive[int], *cli.Positive[float64]:
				what += " above 0"
			}
			return f.wrong(value, "%s needs %s", key, what)
		}
		return nil
	})
}

// kinds describes the types of flags in words.
var kinds = map[string]string{
	"bool": "true or false", "duration": "a time such as 10s or 5m", "float64": "a number", "int": "a whole number",
	"rotation": "auto, 0, 90, 180 or 270", "string": "a text",
}

func (f *configFile) takeSecrets(n *yaml.Node) error {
	into := map[string]*string{"token": &f.secrets.Token, "mqtt-password": &f.secrets.MQTTPassword,
		"webhook-secret": &f.secrets.WebhookSecret}
	names := []string{"token", "mqtt-password", "webhook-secret"}
	return f.each(n, names, func(key string, value *yaml.Node) (err error) {
		*into[key], err = f.hide(key, value)
		return err
	})
}

func (f *configFile) takeCameras(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return f.wrong(n, "cameras must be a list, each with \"- name: NAME\"")
	}
	for _, item := range n.Content {
		camera, err := f.camera(item)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(f.cameras, func(o Camera) bool { return o.Name == camera.Name }) {
			return f.wrong(item, "the name of camera %q is given twice", camera.Name)
		}
		f.cameras = append(f.cameras, camera)
	}
	return nil
}

// camera reads one camera of the list.
func (f *configFile) camera(n *yaml.Node) (camera Camera, err error) {
	var user, password, rotate string
	texts := map[string]*string{"name": &camera.Name, "source": &camera.Source, "rotate": &rotate,
		"substream": &camera.Substream, "door": &camera.Door, "user": &user}
	names := []string{"name", "source", "rotate", "substream", "door", "user", "password"}
	err = f.each(n, names, func(key string, value *yaml.Node) (err error) {
		if key == "password" {
			password, err = f.hide(key, value)
			return err
		}
		*texts[key], err = f.value(key, value)
		switch {
		case err != nil:
			return err
		case key == "rotate" && camera.Rotate.Set(rotate) != nil:
			return f.wrong(value, "rotate needs %s", kinds["rotation"])
		case key == "door" && camera.Door != "entrance" && camera.Door != "exit":
			return f.wrong(value, "door needs entrance or exit")
		}
		return nil
	})
	switch {
	case err != nil:
		return camera, err
	case camera.Name == "":
		return camera, f.wrong(n, "the camera needs a name")
	case camera.Source == "":
		return camera, f.wrong(n, "camera %q needs a source: a URL, a camera's number, or a recording", camera.Name)
	case user == "" && password != "":
		return camera, f.wrong(n, "camera %q has a password and no user", camera.Name)
	}
	if input.IsRecording(camera.Source) || !strings.Contains(camera.Source, "://") {
		if user != "" {
			return camera, f.wrong(n, "camera %q has a user, but its source is not a URL", camera.Name)
		}
		return camera, nil
	}
	for _, at := range []*string{&camera.Source, &camera.Substream} {
		u, err := url.Parse(*at)
		if err != nil {
			return camera, f.wrong(n, "camera %q: %w", camera.Name, errors.New("the source is not a valid URL"))
		}
		if u.User != nil || u.RawQuery != "" || strings.Contains(u.Path, "=") {
			f.secret = n
		}
		if user != "" && *at != "" {
			if u.User != nil {
				return camera, f.wrong(n, "camera %q has a user, and its source has one, too", camera.Name)
			}
			u.User = url.UserPassword(user, password)
			if password == "" {
				u.User = url.User(user)
			}
			*at = u.String()
		}
	}
	return camera, nil
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
