// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mediaType returns the type of a request's body.
func mediaType(r *http.Request) string {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return kind
}

// readBody decodes the body of a request into the struct that q points to: one JSON object with all
// fields, and no others. A field with the tag omitempty may be missing.
func readBody(r *http.Request, q any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil || sent == nil || !utf8.Valid(body) {
		return errors.New("the body must be one JSON object, {...}, in UTF-8")
	}
	into := reflect.ValueOf(q).Elem()
	for i, f := range fields(into.Type()) {
		value, there := sent[f.name]
		delete(sent, f.name)
		if !there && f.optional {
			continue
		}
		if !there {
			return fmt.Errorf("the field %q is missing; it must be %s", f.name, f.kind)
		}
		// For null, encoding/json would keep the old value of the field.
		if err := json.Unmarshal(value, into.Field(i).Addr().Interface()); err != nil ||
			string(value) == "null" {
			return fmt.Errorf("the field %q must be %s", f.name, f.kind)
		}
	}
	if len(sent) > 0 {
		return fmt.Errorf("the field %q is unknown", slices.Sorted(maps.Keys(sent))[0])
	}
	return nil
}

// field is a field of a request.
type field struct {
	name     string
	optional bool
	kind     string // in words
}

// fields returns the fields of a struct. In JSON their names are in lower case.
func fields(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		x := t.Field(i)
		f := field{strings.ToLower(x.Name), x.Tag != "", "a whole number"}
		switch x.Type.Kind() {
		case reflect.Bool:
			f.kind = "true or false"
		case reflect.String, reflect.Pointer:
			f.kind = "a text"
		case reflect.Slice:
			f.kind = "a list of whole numbers"
		}
		all = append(all, f)
	}
	return all
}

// query holds the parameters of a URL, and the first error in them.
type query struct {
	values url.Values
	by     visitor
	err    error
}

// asked returns the parameters of a URL. Only the given names are allowed, each once.
func asked(r *http.Request, names ...string) *query {
	q := &query{by: who(r)}
	q.values, q.err = url.ParseQuery(r.URL.RawQuery)
	for name, values := range q.values {
		switch {
		case !slices.Contains(names, name):
			q.fail("the parameter %q is unknown", name)
		case len(values) > 1:
			q.fail("the parameter %q appears twice", name)
		case !utf8.ValidString(values[0]):
			q.fail("the parameter %q is not UTF-8", name)
		}
	}
	return q
}

func (q *query) fail(format string, arguments ...any) {
	if q.err == nil {
		q.err = fmt.Errorf(format, arguments...)
	}
}

// number returns a whole number, or the default if the parameter is missing.
func (q *query) number(name string, least, otherwise, most uint64) uint64 {
	text := q.values.Get(name)
	if !q.values.Has(name) {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		q.fail("the parameter %q must be a whole number from %d to %d", name, least, most)
		return otherwise
	}
	return n
}

// needed returns a parameter that must be there, a whole number from least on.
func (q *query) needed(name string, least uint64) uint64 {
	n := q.number(name, least, mostNumber, mostNumber-1)
	if q.err == nil && n == mostNumber {
		q.fail("the parameter %q is missing", name)
	}
	return n
}

// text returns a parameter; it is an error if a needed one is missing.
func (q *query) text(name string, needed bool) string {
	text := q.values.Get(name)
	if needed && text == "" {
		q.fail("the parameter %q is missing", name)
	}
	return text
}

// truth returns whether a parameter is true; it is false if it is missing.
func (q *query) truth(name string) bool {
	switch text := q.values.Get(name); text {
	case "true":
		return true
	case "", "false":
	default:
		q.fail("the parameter %q must be true or false", name)
	}
	return false
}

// moment returns a time as RFC 3339 writes it, or the zero time if it is missing.
func (q *query) moment(name string) time.Time {
	if !q.values.Has(name) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, q.values.Get(name))
	if err != nil {
		q.fail("the parameter %q must be a time such as 2026-11-25T00:00:00Z", name)
	}
	return t
}
