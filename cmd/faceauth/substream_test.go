// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/tape"
)

// shrink makes the face of a stage too small to be recognised.
func (g *stage) shrink() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pictures = nil
	for i := range 15 {
		a := tape.Moving("alice", .5, i)
		a.Box.Max = a.Box.Min.Add(image.Pt(24, 28))
		g.pictures = append(g.pictures, tape.JPEG(a))
	}
}

func (g *stage) frames() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.served
}

// A person who is too small in the substream is recognised by the large stream. The camera is up,
// and no password is said.
func TestPlainOfficeSubstream(t *testing.T) {
	s := newSite(t)
	s.enrol("alice")
	large, small := s.newStage("alice"), s.newStage("alice")
	small.shrink()
	secret := func(g *stage) string {
		return strings.Replace(g.URL, "http://", "http://me:hidden@", 1)
	}
	path := filepath.Join(t.TempDir(), "office.yaml")
	fixture.Check(t, os.WriteFile(path,
		fmt.Appendf(nil, "cameras: [{name: door, source: %q, substream: %q}]",
			secret(large), secret(small)), 0o600))
	r := s.office("--config", path, "--json", "--away", "60s")
	r.awaits(presence.Arrived, "alice")
	if small.frames() == 0 || large.frames() == 0 {
		t.Errorf("%d frames of the small stream, %d of the large one", small.frames(),
			large.frames())
	}
	r.stop()
	if n := strings.Count(r.log.String(), "camera connected"); n != 1 ||
		strings.Contains(r.out.String()+r.log.String(), "hidden") {
		t.Errorf("connected %d times: %s", n, r.log)
	}
}
