// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/fixture"
)

// A server begins with an invitation, and its backup is a server with the same key.
func TestProgram(t *testing.T) {
	said := new(fixture.Log)
	run := func(ctx context.Context, want int, args ...string) {
		t.Helper()
		if code := cli.Run(ctx, newRoot(), args, said, said); code != want {
			t.Errorf("%q ends with %d: %s", args, code, said)
		}
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	invitation := regexp.MustCompile(`faceauth fleet join faceauth-fleet-1-\S+`)
	for _, folder := range []string{"first", "again"} {
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() {
			defer close(ended)
			run(ctx, 0, "serve", at(folder), "--listen", fixture.ClosedAddress(t))
		}()
		for begun := time.Now(); !invitation.MatchString(said.String()); time.Sleep(
			20 * time.Millisecond) {
			if time.Since(begun) > 3*time.Minute {
				t.Fatal(said)
			}
		}
		run(t.Context(), 0, "backup", at(folder), at(folder+".backup"))
		end()
		<-ended
		if folder == "first" {
			run(t.Context(), 0, "restore", at("first.backup"), at("again"))
			*said = fixture.Log{}
		}
	}
	run(t.Context(), 1, "restore", at("again.backup"), at("first"))
	run(t.Context(), 1, "backup", at("nowhere"), at("x"))
	run(t.Context(), 2, "serve", "--lisen", "x", at("first"))
}
