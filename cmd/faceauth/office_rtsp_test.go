// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office/presence"
	"github.com/faceauth/faceauth/internal/tape"
)

// python is Debian's Python, which has the bindings of GStreamer.
const python = "/usr/bin/python3"

// rtspCamera is an RTSP server of GStreamer.
type rtspCamera struct {
	t               testing.TB
	folder, address string
	process         *exec.Cmd
}

// rtsp returns a camera that shows a recording again and again by RTSP. The camera is not started.
func (s *site) rtsp(name string) *rtspCamera {
	s.t.Helper()
	check := "import gi; gi.require_version('GstRtspServer', '1.0')"
	if out, err := exec.Command(python, "-c", check).CombinedOutput(); err != nil {
		fixture.Missing(s.t,
			"there is no RTSP server; install the Debian packages gir1.2-gst-rtsp-server-1.0, "+
				"python3-gi, gstreamer1.0-plugins-base, gstreamer1.0-plugins-good and "+
				"gstreamer1.0-plugins-ugly (%v %s)",
			err, out)
	}
	c := &rtspCamera{t: s.t, folder: s.t.TempDir(), address: fixture.ClosedAddress(s.t)}
	i := 0
	fixture.Check(s.t, eachFrame(s.t.Context(), s.recording(name), func(p *facedet.Picture) error {
		b, err := p.JPEG(90)
		if err != nil {
			return err
		}
		i++
		return os.WriteFile(filepath.Join(c.folder, fmt.Sprintf("%05d.jpg", i-1)), b, 0o600)
	}))
	s.t.Cleanup(c.kill)
	return c
}

func (c *rtspCamera) start() {
	c.t.Helper()
	_, port, _ := net.SplitHostPort(c.address)
	said := new(fixture.Log)
	c.process = exec.Command(python, filepath.Join("testdata", "rtsp.py"), c.folder, port)
	c.process.Stderr = said
	fixture.Check(c.t, c.process.Start())
	for end := time.Now().Add(longest); ; time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", c.address); err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("the RTSP server does not start: %s", said)
		}
	}
}

func (c *rtspCamera) kill() {
	if c.process != nil {
		c.process.Process.Kill()
		c.process.Wait()
		c.process = nil
	}
}

// When the server of an RTSP camera is killed and comes back, the camera is watched again, and
// nobody has left.
func TestSystemSeesRTSP(t *testing.T) {
	long(t)
	s := newSite(t)
	_, s.demo = recordings(t)
	s.eye = tape.RealOnly
	s.enrol("alice")
	camera := s.rtsp("alice")
	camera.start()
	r := s.office("door=rtsp://"+camera.address+"/live", "--json", "--away", "4s", "--timeout",
		"5s")
	r.awaits(presence.Arrived, "alice")
	camera.kill()
	r.until("it is tried again")
	time.Sleep(6 * time.Second) // longer than --away
	camera.start()
	back := time.Now()
	for ; strings.Count(r.log.String(),
		"door: camera connected") < 2; time.Sleep(20 * time.Millisecond) {
		if time.Since(back) > time.Minute {
			t.Fatal("it does not come back")
		}
	}
	t.Logf("back %v after the server was", time.Since(back))
	time.Sleep(6 * time.Second)
	if all := r.events(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	r.stop()
}
