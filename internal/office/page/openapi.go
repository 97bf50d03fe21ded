// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/sighting"
)

// object is a part of the description of the API.
type object = map[string]any

// route is a request that programs may make. What it takes and answers comes from its types.
type route struct {
	pattern, summary, more string
	parameters             []object
	takes, answer          reflect.Type // the body of a change; an answer that is no file
	kind                   string       // media type of a file, or what a request has as its body
}

// handle adds a handler with its description.
func (p *Page) handle(m *http.ServeMux, r route, do http.HandlerFunc) {
	p.routes = append(p.routes, r)
	m.HandleFunc(r.pattern, do)
}

// parameter describes a parameter of a query.
func parameter(name, text string, schema object) object {
	return object{"name": name, "in": "query", "description": text, "schema": schema}
}

func needed(p object) object {
	p["required"] = true
	return p
}

func whole(least, otherwise, most uint64) object {
	s := object{"type": "integer", "format": "int64", "minimum": least}
	if most < mostNumber {
		s["maximum"], s["default"] = most, otherwise
	}
	return s
}

var (
	anyText = object{"type": "string"}
	aMoment = object{"type": "string", "format": "date-time"}
	before  = parameter("before", "The number before which to begin; 0 or missing for the newest.",
		whole(0, 0, mostNumber))
	from = parameter("from", "Nothing that was over before this time.", aMoment)
	to   = parameter("to", "Nothing that began at this time or later.", aMoment)
	name = needed(parameter("name", "The name of the person.", object{"type": "string", "minLength": 1}))
)

func most(usual, most uint64) object {
	return parameter("n", "The greatest number in the answer.", whole(1, usual, most))
}

var force = parameter("force", "Accept faces that look like another person, or unlike this person.",
	object{"type": "string", "enum": []string{"true", "false"}})

// values are the values of types that have only some.
var values = map[reflect.Type]any{
	reflect.TypeFor[presence.EventKind](): []presence.EventKind{presence.Arrived, presence.Saw, presence.Left, presence.Unknown,
		presence.Faceless, presence.Mistake, presence.Was},
	reflect.TypeFor[office.CorrectionKind](): []office.CorrectionKind{office.Named, office.Renamed, office.Merged,
		office.Denied, office.Confirmed, office.Ignored, office.Noticed, office.Split, office.Unlabelled, office.Alike,
		office.Pictured, office.ForgotGroup, office.Forgot},
	reflect.TypeFor[presence.Door]():  []presence.Door{presence.Entrance, presence.Exit},
	reflect.TypeFor[sighting.Trust](): []sighting.Trust{sighting.Confirmed, sighting.Likely},
}

// schemas makes schemas of types.
type schemas struct {
	named  map[string]object
	types  map[string]reflect.Type
	fields map[string]string // comments, by package, type and field
}

// of returns the schema of a type.
func (s schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return aMoment
	case values[t] != nil:
		return object{"type": "string", "enum": values[t]}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return anyText
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint64:
		return whole(0, 0, mostNumber)
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": s.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return object{"type": "object"}
		}
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.reference(t)
	}
	panic("page: the API cannot have " + t.String())
}

// reference returns a reference to the schema of a struct.
func (s schemas) reference(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if other := s.types[name]; other != nil && other != t {
		panic(fmt.Sprintf("page: %v and %v have one name in the API", t, other))
	}
	if s.named[name] == nil {
		s.named[name], s.types[name] = object{}, t // it may have itself
		properties, required := object{}, []string{}
		s.members(t, properties, &required)
		s.named[name] = structure(properties, required)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// members adds the fields of a struct, as encoding/json sees them.
func (s schemas) members(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || name == "" && !f.Anonymous:
			continue
		case name == "":
			s.members(f.Type, properties, required)
			continue
		}
		schema := maps.Clone(s.of(f.Type))
		comment := s.fields[strings.TrimPrefix(t.PkgPath(), module)+"."+t.Name()+"."+f.Name]
		if comment != "" && schema["$ref"] == nil {
			schema["description"] = comment
		}
		properties[name] = schema
		if options == "" {
			*required = append(*required, name)
		}
	}
}

const module = "github.com/faceauth/faceauth/"

// request returns the schema of the body of a change.
func (s schemas) request(t reflect.Type) object {
	properties, required := object{}, []string{}
	for i, f := range fields(t) {
		properties[f.name] = s.of(t.Field(i).Type)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	all := structure(properties, required)
	all["additionalProperties"] = false
	return all
}

func structure(properties object, required []string) object {
	all := object{"type": "object", "properties": properties}
	if len(required) > 0 { // OpenAPI allows no empty list
		slices.Sort(required)
		all["required"] = required
	}
	return all
}

// describe returns the description of the API: of each route, from its types.
func (p *Page) describe() []byte {
	s := schemas{named: make(map[string]object), types: make(map[string]reflect.Type)}
	if err := json.Unmarshal(file("fields.json"), &s.fields); err != nil {
		panic("page: " + err.Error())
	}
	paths := object{}
	for _, r := range p.routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		item, _ := paths[path].(object)
		if item == nil {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(method)] = s.operation(r, path)
	}
	return encoded(object{"openapi": "3.0.3",
		"info": object{"title": "faceauth office", "version": "1", "description": "The API of the page of a faceauth " +
			"office. Paths are relative to the address of the page. New versions may add fields to answers; requests are " +
			"checked strictly. A refusal is a text that says why. Its status is 400 if a field or parameter is missing, " +
			"unknown or of the wrong type, 401 without a token, 403 from another site or under a name that is not this " +
			"machine's, 404 for what is not there, 409 if the change is not possible, 413, 415 or 422 for a body that is too " +
			"large, has another type or cannot be used, 429 after too many wrong tokens or pictures from this address, and " +
			"503 while the machine is busy. Nothing has changed then.",
			"license": object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}},
		"servers":  []object{{"url": "..", "description": "The address of the page"}},
		"security": []object{{"token": []string{}}, {"cookie": []string{}}, {}},
		"paths":    paths,
		"components": object{"schemas": s.named, "securitySchemes": object{
			"token":  object{"type": "http", "scheme": "bearer"},
			"cookie": object{"type": "apiKey", "in": "cookie", "name": p.cookie.Name}}}})
}

func content(kinds string, schema object) object {
	all := object{}
	for _, kind := range strings.Fields(kinds) {
		all[kind] = object{"schema": schema}
	}
	return all
}

// pathNames returns the names of the parts of a path that differ.
func pathNames(path string) (all []string) {
	for _, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, "{") {
			all = append(all, strings.Trim(part, "{}"))
		}
	}
	return all
}

// operation describes a route.
func (s schemas) operation(r route, path string) object {
	op, file := object{"summary": r.summary}, object{"type": "string", "format": "binary"}
	if r.more != "" {
		op["description"] = r.more
	}
	parameters := slices.Clone(r.parameters)
	for _, name := range pathNames(path) {
		schema := whole(0, 0, mostNumber)
		if name == "name" || strings.HasSuffix(path, "/faces") {
			schema = anyText
		}
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	good := content(r.kind, file)
	if r.answer != nil {
		good = content("application/json", s.of(r.answer))
	}
	takes := func(kinds string, schema object) {
		op["requestBody"] = object{"required": true, "content": content(kinds, schema)}
	}
	switch {
	case r.takes != nil:
		takes("application/json", s.request(r.takes))
	case r.kind == multipartForm:
		takes(r.kind, object{"type": "object", "additionalProperties": true})
	case r.answer != nil && r.kind != "":
		takes(r.kind, file)
	}
	responses := object{"200": object{"description": "The answer.", "content": good},
		"default": object{"description": "A refusal.", "content": content("text/plain", anyText)}}
	if r.kind == "image/jpeg" {
		responses["204"] = object{"description": "There is no picture yet, or no longer."}
	}
	op["responses"] = responses
	return op
}
