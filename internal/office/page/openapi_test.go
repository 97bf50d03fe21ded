// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/page"
	"github.com/faceauth/faceauth/internal/viewer"
)

// description returns the description that a page serves. It is made strict: an answer may have no
// field that the description does not name.
func description(t *testing.T, p http.Handler) (*openapi3.T, routers.Router) {
	t.Helper()
	doc := fixture.Must(openapi3.NewLoader().LoadFromData(ask(p, "GET", "/api/openapi.json",
		"").Body.Bytes()))(t)
	fixture.Check(t, doc.Validate(t.Context()))
	no := false
	for _, s := range doc.Components.Schemas {
		s.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &no}
	}
	doc.Servers = openapi3.Servers{{URL: "http://localhost:8090"}}
	r := fixture.Must(legacy.NewRouter(doc))(t)
	return doc, r
}

// briefly is a recorder that ends the request when something has been sent.
type briefly struct {
	*httptest.ResponseRecorder
	stop func()
}

func (b *briefly) Flush() {
	if b.Body.Len() > 0 {
		b.stop()
	}
}

// The description agrees with the handlers: every route is described, every answer is as described,
// and the handlers refuse every request that the description refuses.
func TestPlainOpenAPI(t *testing.T) {
	scene := newScene(t, page.Options{See: see})
	p := scene.page
	doc, router := description(t, p)
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	var described []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(described)
	routes := page.Routes(p)
	slices.Sort(routes)
	if !slices.Equal(described, routes) {
		t.Errorf("described are\n%s\nand there are\n%s", strings.Join(described, "\n"),
			strings.Join(routes, "\n"))
	}

	tried := make(map[string]bool)
	good := make(map[string]bool)
	try := func(method, path, body string, kind ...string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequest(method, "http://localhost:8090"+path, strings.NewReader(body))
		if method == http.MethodPost {
			r.Header.Set("Content-Type", append(kind, "application/json")[0])
		}
		route, parameters, err := router.FindRoute(r)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		in := &openapi3filter.RequestValidationInput{
			Request:    r,
			PathParams: parameters,
			Route:      route,
			Options: &openapi3filter.Options{
				AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
				IncludeResponseStatus: true,
			},
		}
		refused := openapi3filter.ValidateRequest(t.Context(), in)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(strings.NewReader(body))
		w := httptest.NewRecorder()
		var to http.ResponseWriter = w
		if strings.HasPrefix(path, "/api/changes") { // it has no end
			to = &briefly{w, stop}
		}
		p.ServeHTTP(to, r)
		if (refused != nil) != (w.Code == http.StatusBadRequest) {
			t.Errorf("%s %s %s: %d %s; the description says %v", method, path, body, w.Code, w.Body,
				refused)
		}
		err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: in, Status: w.Code, Header: w.Header(),
			Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())), Options: in.Options,
		})
		if err != nil {
			t.Errorf("%s %s: %d %.300s: %v", method, path, w.Code, w.Body, err)
		}
		key := method + " " + route.Path
		tried[key] = true
		good[key] = good[key] || w.Code == http.StatusOK
		return w
	}

	for _, path := range []string{
		"/api/now", "/api/inbox", "/api/strangers", "/api/people", "/api/person?name=Ann%20Archer",
		"/api/sightings",
		"/api/sightings?before=100000&n=2", "/api/events",
		"/api/events?n=200&name=Ann%20Archer&kind=arrived&camera=door",
		"/api/corrections?n=5", "/api/visits?days=3&n=5&name=Ann%20Archer", "/api/visits",
		"/api/attendance",
		"/api/sinks", "/api/openapi.json", "/camera/door", "/api/changes?live=true",
	} {
		if w := try("GET", path, ""); w.Code != http.StatusOK ||
			w.Body.Len() < 5 && !strings.Contains(path, "corrections") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for path, item := range doc.Paths.Map() {
		if item.Get == nil || strings.Contains(path, "{") || path == "/api/changes" {
			continue
		}
		for _, x := range item.Get.Parameters {
			answer := ask(p, "GET", path+"?"+x.Value.Name+"=1", "").Body.String()
			if strings.Contains(answer, "is unknown") {
				t.Errorf("%s: %s", path, answer)
			}
		}
	}
	for _, path := range []string{
		"/api/person?name=nobody", "/api/person", "/api/way", "/api/way?face=0",
		"/api/way?face=999999",
		"/api/events?n=0", "/api/events?n=201", "/api/changes?live=yes",
		"/api/sightings?before=x", "/face/999999", "/face/x", "/clip/999999/0", "/clip/x/0",
		"/camera/nowhere",
	} {
		if w := try("GET", path, ""); w.Code == http.StatusOK {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	if w := try("POST", "/api/recognise", jpegBegin, "image/jpeg"); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(),
			`"name":"Ann Archer","person":1,"near":true,"distance":0,`) ||
		!strings.Contains(w.Body.String(), `"reason":"no vector could be made of it"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := try("POST", "/api/recognise?before=true", jpegBegin, "image/jpeg"); w.Code != 200 ||
		!strings.Contains(w.Body.String(), `"before":[{"id":`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := try("POST", "/api/recognise", "garbage",
		"image/png"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	upload := func(path string, pictures ...string) *httptest.ResponseRecorder {
		t.Helper()
		var b bytes.Buffer
		m := multipart.NewWriter(&b)
		for _, x := range pictures {
			f, err := m.CreateFormFile("picture", x+".jpg")
			if err == nil {
				_, err = io.WriteString(f, jpegBegin+x)
			}
			fixture.Check(t, err)
		}
		m.Close()
		return try("POST", path, b.String(), m.FormDataContentType())
	}
	if w := upload("/api/people?name=Zoe", "good", "empty", "two", "blurred", "good", "ann",
		"other"); w.Code != 200 ||
		!strings.HasPrefix(w.Body.String(), `{"pictures":[{"file":"good.jpg","enrolled":true},`+
			`{"file":"empty.jpg","enrolled":false,"wrong":"no face was found"},`+
			`{"file":"two.jpg","enrolled":false,"wrong":"it shows 2 faces; cut out one of them"},`+
			`{"file":"blurred.jpg","enrolled":false,"wrong":"blurred"},`+
			`{"file":"good.jpg","enrolled":false,"wrong":"it is the same picture as another one"},`+
			`{"file":"ann.jpg","enrolled":false,"wrong":"it looks like Ann Archer"},`+
			`{"file":"other.jpg","enrolled":true}],"correction":{"id":`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	zoe := scene.office.Now().Known[slices.IndexFunc(scene.office.Now().Known,
		func(p office.KnownPerson) bool {
			return p.Name == "Zoe"
		})]
	if zoe.Faces != 2 {
		t.Errorf("%+v", zoe)
	}
	faces := fmt.Sprintf("/api/people/%d/faces", zoe.ID)
	for path, want := range map[string]int{
		faces: 200, faces + "?force=true": 200, "/api/people/99/faces": 404,
		"/api/people/x/faces": 404,
		faces + "?force=yes":  400, "/api/people": 400, "/api/people?name=": 400,
		"/api/people?name=%20a": 422,
	} {
		if w := upload(path, "third"); w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := upload(faces, strings.Split("abcdefghijk",
		"")...); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("11 pictures: %d %s", w.Code, w.Body)
	}
	if w := upload(faces); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("no picture: %d %s", w.Code, w.Body)
	}
	if w := ask(p, "POST", faces, jpegBegin, "Content-Type",
		"image/jpeg"); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("no form: %d %s", w.Code, w.Body)
	}
	try("GET", scene.learnedWay(), "")
	try("GET", "/learned/"+strings.TrimPrefix(scene.learnedWay(), "/api/way?face="), "")
	try("GET", "/api/confirmable?sighting="+scene.learnedSighting(), "")
	try("GET", scene.aFace(), "")
	try("GET", scene.aClip(), "")
	for _, c := range []struct{ path, good, bad string }{
		{"confirm", `{"sighting":` + scene.learnedSighting() + `}`, `{"sighting":"1"}`},
		{"split", `{"group":` + scene.group(0) + `,"faces":[` + scene.groupFace(0) + `]}`,
			`{"group":1,"faces":[-1]}`},
		{"merge", `{"into":` + scene.group(0) + `,"from":` + scene.lastGroup() + `}`, `{"into":1}`},
		{"ignore", `{"group":` + scene.group(0) + `,"ignored":true}`, `{"group":1,"ignored":1}`},
		{"name", `{"group":` + scene.group(0) + `,"name":"Zed","force":true}`,
			`{"group":1,"name":"a","more":2}`},
		{"forget-stranger", `{"group":` + scene.group(1) + `}`, `{}`},
		{"correct", `{"sighting":` + scene.sightingOf("Ann Archer") + `,"is":""}`,
			`{"sighting":1}`},
		{"picture", `{"name":"Ann Archer","face":0}`, `{"name":"Ann Archer"}`},
		{"alike", `{"name":"Ann Archer","other":"Ben Okafor"}`, `{"name":"Ann Archer"}`},
		{"take-back", `{"face":` + strings.TrimPrefix(scene.learnedWay(), "/api/way?face=") + `}`,
			`{"face":1.5}`},
		{"rename", `{"from":"Ann Archer","to":"Anna Archer"}`, `{"from":"a","to":null}`},
		{"undo", `{"id":1}`, `{"id":-1}`},
		{"forget", `{"name":"Dana","wait":true}`, `{"name":7}`},
		{"keep-after-all", `{"regret":1}`, `{}`},
		{"forget", `{"name":"Zed"}`, `{"name":7}`},
		{"keep", `{"on":false}`, `{"on":0}`},
	} {
		try("POST", "/api/"+c.path, c.bad)
		if w := try("POST", "/api/"+c.path, c.good); w.Code != http.StatusOK &&
			w.Code != http.StatusConflict {
			t.Errorf("%s %s: %d %s", c.path, c.good, w.Code, w.Body)
		}
	}
	for _, route := range routes {
		if !tried[route] {
			t.Errorf("%s was not tried", route)
		}
		if !good[route] {
			t.Errorf("%s was never well", route)
		}
	}
}

const jpegBegin = "\xff\xd8\xff"

// see looks at a picture by its name, or for recognition sees Ann.
func see(_ context.Context, b []byte, end string, enrol bool) (face.Frame, error) {
	if end != ".jpg" || !strings.HasPrefix(string(b), jpegBegin) {
		return face.Frame{}, fmt.Errorf("%w: %q", viewer.ErrPicture, b)
	}
	if enrol {
		return pictured(string(b[len(jpegBegin):])), nil
	}
	at := cast["Ann Archer"].at
	return face.Frame{Size: image.Pt(640, 480), Samples: []face.Sample{
		{Box: image.Rect(9, 9, 99, 99), Vector: at[:]}, {Reason: face.NoVector},
	}}, nil
}

// pictured is what a picture for an enrolment shows, by its name.
func pictured(name string) face.Frame {
	x := face.Sample{Box: image.Rect(9, 9, 99, 99), Vector: []float32{9, 9},
		JPEG: []byte(jpegBegin)}
	f := face.Frame{Size: image.Pt(640, 480)}
	switch name {
	case "empty":
		return f
	case "two":
		f.Samples = append(f.Samples, x)
	case "blurred":
		x.Reason = face.Blurred
	case "ann":
		at := cast["Ann Archer"].at
		x.Vector = at[:]
	case "other", "third":
		x.Vector = []float32{9, 9.1}
	}
	f.Samples = append(f.Samples, x)
	return f
}
