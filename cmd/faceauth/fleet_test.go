// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/fleet/server"
	"github.com/faceauth/faceauth/internal/office/presence"
)

// Somebody is enrolled, renamed and forgotten on one device, and an office on another one, which
// was given no flag, says so.
func TestFleetOffice(t *testing.T) {
	a, b := newSite(t), &site{t: t, dir: t.TempDir(), run: t.TempDir(), demo: films(t)}
	said := new(fixture.Log)
	start := func(args ...string) {
		c := exec.CommandContext(t.Context(), "faceauth", append([]string{"fleet"}, args...)...)
		c.Stdout, c.Stderr = said, said
		fixture.Check(t, c.Start())
		t.Cleanup(func() { c.Wait() })
	}
	at, monitor := fixture.ClosedAddress(t), fixture.ClosedAddress(t)
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(t.Context(), filepath.Join(t.TempDir(), "server"),
			server.Settings{Listen: at, URLs: []string{"tls://" + at}, Monitor: monitor},
			func(first string) { fmt.Fprintln(said, first) })
	}()
	t.Cleanup(func() { t.Log(said, <-served) })
	line := regexp.MustCompile(`faceauth-fleet-1-\S+`)
	waits(t, "an invitation", func() bool { return line.MatchString(said.String()) })
	a.tells("fleet", "join", line.FindString(said.String()), "--models", fixture.Models(t))
	b.tells("fleet", "join", line.FindString(a.tells("fleet", "invite", "hall")), "--models",
		fixture.Models(t))
	start("run", "--gallery", filepath.Join(b.dir, "gallery"))
	door := a.newStage("")
	r := a.office("door="+door.URL, "--json", "--away", "4s")
	r.until("door: camera connected")
	a.show(door, "bob")
	r.awaits(presence.Unknown, "")
	b.enrol("bob")
	r.awaits(presence.Arrived, "bob")
	b.tells("people", "rename", "bob", "robert")
	waits(t, "the other name", func() bool { return strings.Join(a.people(), " ") == "robert" })
	waits(t, "both devices are connected", func() bool {
		out := a.tells("fleet", "devices", "--json")
		return strings.Count(out, `"connected":true`) == 2 && strings.Contains(out, `"waiting":0`)
	})
	health := fixture.Must(http.Get("http://" + monitor + "/healthz"))(t)
	health.Body.Close()
	if health.StatusCode != http.StatusOK {
		t.Error(health.Status)
	}
	b.tells("people", "remove", "robert", "--yes")
	waits(t, "robert is forgotten", func() bool { return len(a.people()) == 0 })
	a.tells("fleet", "revoke", "hall")
	waits(t, "the device is shut out", func() bool {
		return strings.Contains(said.String(), "was revoked")
	})
}
