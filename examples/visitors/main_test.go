// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/faceauth/faceauth"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/fixture"
)

// While it follows a film of a stranger, it enrols somebody, and says twice at once who is in a
// photograph; it keeps the stranger's picture.
func TestVisitors(t *testing.T) {
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	still := func(name string) []byte {
		return fixture.Must(os.ReadFile(filepath.Join(stills, name)))(t)
	}
	r := fixture.Must(faceauth.New(faceauth.Options{Models: fixture.Models(t)}))(t)
	defer r.Close()
	t.Chdir(t.TempDir())
	film := cv.NewVideoWriter("film.avi", "MJPG", 15)
	for i := range 12 {
		m := fixture.Must(facedet.DecodePicture(still(fmt.Sprintf("s1/%d.pgm", i/3+1))))(t)
		fixture.Check(t, film.Write(m))
		m.Close()
	}
	fixture.Check(t, film.Close())
	server := httptest.NewServer(photographs(r))
	defer server.Close()
	send := func(method, path, picture, want string) {
		q, err := http.NewRequest(method, server.URL+path, bytes.NewReader(still(picture)))
		fixture.Check(t, err)
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Error(err)
			return
		}
		defer a.Body.Close()
		if b, err := io.ReadAll(a.Body); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s %s: %q, %v", method, path, b, err)
		}
	}
	send("PUT", "/alice", "s2/1.pgm", "Faces:1")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { send("POST", "/", "s2/5.pgm", "[alice; a stranger comes as near") })
	}
	fixture.Check(t, follow(t.Context(), r, "film.avi"))
	all.Wait()
	kept, err := filepath.Glob("stranger-*.jpg")
	if err != nil || len(kept) == 0 {
		t.Errorf("pictures of strangers: %v, %v", kept, err)
	}
}
