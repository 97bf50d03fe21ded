// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/fixture"
)

// The description of this folder, whose network is installed, tells the people of the demo apart.
func TestNetwork(t *testing.T) {
	dir := fixture.Models(t)
	t.Setenv("FACEAUTH_MODELS", dir)
	stills, err := demo.Find()
	if err != nil {
		t.Skip(err)
	}
	distance := func(a, b string) (d float64) {
		t.Helper()
		var out strings.Builder
		fixture.Check(t, run(context.Background(), &out,
			[]string{"network.json", filepath.Join(stills, a), filepath.Join(stills, b)}))
		if _, err := fmt.Sscanf(out.String(), "distance %f,", &d); err != nil {
			t.Fatalf("it printed %q", &out)
		}
		return d
	}
	same, other := distance("s1/1.pgm", "s1/2.pgm"), distance("s1/1.pgm", "s2/1.pgm")
	t.Logf("one person %.3f, two people %.3f", same, other)
	if same > .93 || other < .93 {
		t.Errorf("one person %.3f, two people %.3f; the impostor radius is .93", same, other)
	}
	if distance("s1/1.pgm", "s1/1.pgm") != 0 {
		t.Error("a picture is away from itself")
	}
	if err := run(context.Background(), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "usage:") {
		t.Errorf("error %v", err)
	}
}
