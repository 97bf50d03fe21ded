// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/fixture"
)

// While it follows the demo's recording, it says twice at once who is in a photograph; it keeps the
// stranger's picture.
func TestVisitors(t *testing.T) {
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("FACEAUTH_MODELS", fixture.Models(t))
	t.Chdir(t.TempDir())
	script := fixture.Must(film.Write(context.Background(), stills, "."))(t)
	for still, name := range map[string]string{"s2/1.pgm": "alice.pgm", "s3/1.pgm": "bob.pgm"} {
		b := fixture.Must(os.ReadFile(filepath.Join(stills, still)))(t)
		fixture.Check(t, os.WriteFile(name, b, 0o600))
	}
	asked := fixture.Must(os.ReadFile(filepath.Join(stills, "s2/5.pgm")))(t)
	l := fixture.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	answers := make(chan string)
	for range 2 {
		go func() {
			client := http.Client{Timeout: time.Minute}
			a, err := client.Post("http://"+l.Addr().String(), "", bytes.NewReader(asked))
			if err != nil {
				answers <- err.Error()
				return
			}
			defer a.Body.Close()
			b, _ := io.ReadAll(a.Body)
			answers <- string(b)
		}()
	}
	ended := make(chan error)
	go func() {
		ended <- run(context.Background(), l, []string{"alice.pgm", "bob.pgm"}, script.Recording)
	}()
	for range 2 {
		a := <-answers
		if !strings.Contains(a, " alice ") || !strings.Contains(a, "a stranger comes as near") {
			t.Errorf("it answers %q", a)
		}
	}
	fixture.Check(t, <-ended)
	strangers, _ := filepath.Glob("stranger-*.jpg")
	if len(strangers) == 0 {
		t.Error("it keeps no stranger's picture")
	}
}
