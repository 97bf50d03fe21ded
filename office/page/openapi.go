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

	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/sink"
	"github.com/faceauth/faceauth/sighting"
)

// object is a part of the description of the API.
type object = map[string]any

// about describes a route. What it takes and answers comes from its types.
type about struct {
	summary, more string
	parameters    []object
	answer        any    // a value of its type; nil for a file
	kind          string // media type of a file, or what a request has as its body
	refusals      string // names of answers, beside those that every route has
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

const enrolling = "The form has 1 to 10 pictures, JPEG, PNG or WebP, of at most 16 MiB each; names of fields do not " +
	"matter. Each must show one clear face. One request at a time, and 120 pictures a minute from one address."

// described has all routes of the API.
var described = map[string]about{
	"GET /api/now":       {summary: "The present state", answer: office.Now{}},
	"GET /api/sinks":     {summary: "The state of the delivery of events", answer: []sink.Status{}},
	"GET /api/inbox":     {summary: "Questions: first contradictions between labels, then the newest first", answer: []question{}},
	"GET /api/strangers": {summary: "Unknown people, the last seen first", answer: []office.Stranger{}},
	"GET /api/conflicts": {summary: "Contradictions between labels", answer: []office.Conflict{}},
	"GET /api/people":    {summary: "All known people", answer: []personShown{}},
	"GET /api/person": {summary: "The record of a person: enrolled, rejected and learned faces", answer: office.Profile{},
		parameters: []object{name}, refusals: "Missing"},
	"GET /api/way": {summary: "The path by which a learned face was accepted", answer: office.Way{}, refusals: "Missing",
		parameters: []object{needed(parameter("face", "Its number, from /api/person.", whole(1, 0, mostNumber)))}},
	"GET /api/sightings": {summary: "Sightings that can be corrected, the newest first", answer: []office.Sighting{},
		parameters: []object{before, most(mostSightings, mostSightings)}},
	"GET /api/confirmable": {summary: "The faces that confirming a sighting would enrol, those far from the enrolled " +
		"ones first", answer: []office.Confirmable{}, refusals: "Missing",
		parameters: []object{needed(parameter("sighting", "Its number.", whole(0, 0, mostNumber)))}},
	"GET /api/corrections": {summary: "Corrections, the newest first", answer: []office.Correction{},
		parameters: []object{before, most(usualEvents, mostEvents)}},
	"GET /api/visits": {summary: "Visits, the latest first: who was there from when to when", answer: []office.Visit{},
		refusals: "Missing", parameters: []object{from, to, parameter("name", "Only visits of this person.", anyText),
			parameter("days", "How far back, without from.", whole(1, 7, 366)), most(mostVisits, mostVisits)}},
	"GET /api/events": {summary: "Events, the newest first", answer: []office.Event{},
		parameters: []object{from, to, before, most(usualEvents, mostEvents),
			parameter("name", "Only events of this person.", anyText), parameter("kind", "Only events of this kind.", anyText),
			parameter("camera", "Only events of this camera.", anyText)}},
	"GET /api/changes": {summary: "A stream of what changes, for a page that is open", kind: "text/event-stream",
		more: "Server-sent events without names. Each has a JSON object with what has changed: now (who is here, and how " +
			"many questions are open), views (of the cameras that changed) and stale (the names of lists that changed: " +
			"people, sightings, inbox, events, corrections, sinks). The first has everything. A comment every 15 seconds " +
			"shows that the stream is alive.", refusals: "Busy",
		parameters: []object{parameter("live", "Whether views say where each face is.",
			object{"type": "boolean", "default": false})}},
	"GET /api/openapi.json": {summary: "This description", answer: object{}},
	"GET /face/{id}": {summary: "The picture of a face of a stranger, a sighting or an enrolment", kind: "image/jpeg",
		refusals: "Missing"},
	"GET /clip/{sighting}": {summary: "The beginning of a sighting as a film: AVI with motion JPEG, two pictures per " +
		"second, at most 16. Only if the office runs with --clips-mb", kind: "video/x-msvideo", refusals: "Missing"},
	"GET /clip/{sighting}/{picture}": {summary: "A picture of the film of a sighting, counted from 0", kind: "image/jpeg",
		refusals: "Missing"},
	"GET /camera/{name}": {summary: "The latest picture of a camera", kind: "image/jpeg", refusals: "Missing Soon",
		more: "Pictures are made only for some seconds after a request: the first request may find none."},
	"POST /api/name": {summary: "Name a stranger", more: "Their first four faces are enrolled. Without force, faces are " +
		"refused if they look like another person, like several people, or unlike the person of that name."},
	"POST /api/correct": {summary: "Correct the name of a sighting, or name an unknown one",
		more: "Is is the right name, or empty for an unknown person."},
	"POST /api/confirm": {summary: "Confirm the name of a sighting that only learned faces support",
		more: "Faces are those that were shown, from /api/confirmable. Nothing is enrolled if others would be."},
	"POST /api/merge":           {summary: "Merge two strangers who are one person"},
	"POST /api/split":           {summary: "Separate faces that show another person from a stranger"},
	"POST /api/ignore":          {summary: "Ignore a stranger, or notice them again"},
	"POST /api/forget-stranger": {summary: "Forget a stranger"},
	"POST /api/keep":            {summary: "Keep faces of strangers, or forget them and keep none"},
	"POST /api/forget":          {summary: "Forget a person and all learned faces"},
	"POST /api/rename": {summary: "Rename a person",
		more: "If another person has the name, the two become one person."},
	"POST /api/same": {summary: "Say that two people with names are one", more: "The other one gets the name."},
	"POST /api/alike": {summary: "Say that two people look alike and are two",
		more: "That their faces contradict each other is no question any more."},
	"POST /api/picture": {summary: "Choose the picture of a person",
		more: "Face is the number of an enrolled face; 0 for none."},
	"POST /api/take-back": {summary: "Take back a face of a person's page: a label, or a learned face with all faces " +
		"accepted through it", more: "Face is the number from /api/person."},
	"POST /api/undo": {summary: "Undo a correction", more: "The number is that of a correction whose can_undo is true."},
	"POST /api/unlabel": {summary: "Take back an enrolled or rejected face",
		more: "Not says that it is a negative label. Other is the person on the other side of a contradiction, and other_not " +
			"whether that is a negative label: then all faces of this side that contradict the other are taken back. A " +
			"person is removed with their last face."},
	"POST /api/recognise": {summary: "Who is in a picture", answer: recognition{}, kind: "image/jpeg image/png image/webp",
		more: "Nothing is stored or learned. One picture never confirms a name. At most 16 MiB; one picture at a time, and " +
			"120 pictures a minute from one address.", refusals: "Refused Large Kind Unusable Busy"},
	"POST /api/people": {summary: "Enrol a person from pictures", answer: enrolment{}, kind: multipartForm,
		more:       "Labels the faces with the name of a new or a known person. " + enrolling,
		parameters: []object{name, force}, refusals: "Refused Large Kind Unusable Busy"},
	"POST /api/people/{id}/faces": {summary: "Enrol more pictures of a person", answer: enrolment{}, kind: multipartForm,
		more:       "Labels the faces with the name of the person who has the number. " + enrolling,
		parameters: []object{force}, refusals: "Refused Large Kind Unusable Busy Missing"},
}

// refusals are the answers without a value that several routes have: status, and text.
var refusals = map[string][2]string{
	"Soon":         {"204", "There is no picture yet; pictures are made for some seconds after a request."},
	"Bad":          {"400", "A field or parameter is missing, unknown, repeated or of the wrong type."},
	"Unauthorized": {"401", "A token is needed."},
	"Forbidden":    {"403", "The request comes from another site, or uses a name that is not this machine's."},
	"Missing":      {"404", "Not found."},
	"Refused":      {"409", "The change is not possible. Nothing has changed, unless the text says so."},
	"Large":        {"413", "The body is too large."},
	"Kind":         {"415", "The body has another type."},
	"Unusable":     {"422", "The picture cannot be used, or there is none; the text says why."},
	"Tired":        {"429", "Too many wrong tokens, or too many pictures, came from this address."},
	"Busy":         {"503", "The machine is busy; the header Retry-After may say when to try again."},
}

// values are the values of types that have only some.
var values = map[reflect.Type]any{
	reflect.TypeFor[office.EventKind](): []office.EventKind{office.Arrived, office.Saw, office.Left, office.Unknown,
		office.Faceless, office.Mistake},
	reflect.TypeFor[office.CorrectionKind](): []office.CorrectionKind{office.Named, office.Renamed, office.Merged,
		office.Denied, office.Confirmed, office.Ignored, office.Noticed, office.Split, office.Unlabelled, office.Alike,
		office.Pictured, office.ForgotGroup, office.Forgot},
	reflect.TypeFor[office.Door]():    []office.Door{office.Entrance, office.Exit},
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
	for _, f := range fields(t) {
		properties[f.name] = s.of(t.Field(f.index).Type)
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
		a, there := described[r.pattern]
		if !there {
			panic("page: the API does not describe " + r.pattern)
		}
		item, _ := paths[path].(object)
		if item == nil {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(method)] = s.operation(a, path, r.takes)
	}
	answers := object{}
	for name, r := range refusals {
		answers[name] = object{"description": r[1], "content": content("text/plain", anyText)}
		if r[0] == "204" {
			answers[name] = object{"description": r[1]}
		}
	}
	return encoded(object{"openapi": "3.0.3",
		"info": object{"title": "faceauth office", "version": "1", "description": "The API of the page of a faceauth " +
			"office. Paths are relative to the address of the page. New versions may add fields to answers; requests are " +
			"checked strictly.",
			"license": object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}},
		"servers":  []object{{"url": "..", "description": "The address of the page"}},
		"security": []object{{"token": []string{}}, {"cookie": []string{}}, {}},
		"paths":    paths,
		"components": object{"schemas": s.named, "responses": answers, "securitySchemes": object{
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

// operation describes a route. Takes is the type of a change's body, or nil.
func (s schemas) operation(a about, path string, takes reflect.Type) object {
	op, file := object{"summary": a.summary}, object{"type": "string", "format": "binary"}
	if a.more != "" {
		op["description"] = a.more
	}
	parameters := slices.Clone(a.parameters)
	for rest := path; strings.Contains(rest, "{"); {
		var name string
		_, rest, _ = strings.Cut(rest, "{")
		name, rest, _ = strings.Cut(rest, "}")
		schema := whole(0, 0, mostNumber)
		if name == "name" || strings.HasSuffix(path, "/faces") {
			schema = anyText
		}
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	more := a.refusals + " Unauthorized Forbidden Tired"
	var good object
	switch {
	case takes != nil:
		op["requestBody"] = object{"required": true, "content": content("application/json", s.request(takes))}
		good = content("application/json", s.of(reflect.TypeFor[said]()))
		more += " Bad Refused Large Kind"
	case a.answer == nil:
		good = content(a.kind, file)
	default:
		good = content("application/json", s.of(reflect.TypeOf(a.answer)))
	}
	if a.kind == multipartForm {
		op["requestBody"] = object{"required": true, "content": content(a.kind, object{"type": "object",
			"additionalProperties": true})}
	} else if a.answer != nil && a.kind != "" {
		op["requestBody"] = object{"required": true, "content": content(a.kind, file)}
	}
	if takes == nil && !strings.HasPrefix(path, "/camera/") {
		more += " Bad"
	}
	responses := object{"200": object{"description": "The answer.", "content": good}}
	for _, name := range strings.Fields(more) {
		responses[refusals[name][0]] = object{"$ref": "#/components/responses/" + name}
	}
	op["responses"] = responses
	return op
}

// route is a request that programs may make.
type route struct {
	pattern string
	takes   reflect.Type // the body of a change, or nil
}

func (p *Page) route(pattern string, takes ...reflect.Type) {
	p.routes = append(p.routes, route{pattern, append(takes, nil)[0]})
}

// serveDescription serves the description of the API.
func (p *Page) serveDescription(w http.ResponseWriter, r *http.Request) {
	answer(w, r, json.RawMessage(p.description()))
}
