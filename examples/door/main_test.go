// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/fixture"
)

// The door opens for both enrolled people of the demo, and not for the stranger.
func TestDoor(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at half a minute of video")
	}
	t.Setenv("FACEAUTH_MODELS", fixture.Models(t))
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	s := fixture.Must(film.Write(context.Background(), stills, t.TempDir()))(t)
	var out strings.Builder
	args := []string{"alice=" + s.Enrolment[0].Path, "bob=" + s.Enrolment[1].Path, s.Recording}
	fixture.Check(t, run(context.Background(), &out, args))
	t.Log(out.String())
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if !strings.HasSuffix(line, "opens for alice") &&
			!strings.HasSuffix(line, "opens for bob") {
			t.Errorf("it printed %q", line)
		}
	}
	if !strings.Contains(out.String(), "alice") || !strings.Contains(out.String(), "bob") {
		t.Errorf("it printed\n%s", &out)
	}
}

func TestUsage(t *testing.T) {
	if err := run(context.Background(), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "usage:") {
		t.Errorf("error %v", err)
	}
}
