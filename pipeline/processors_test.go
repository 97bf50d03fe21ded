// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// Each processor gives the same verdicts and distances on recordings: amd64 with and without the
// instructions of GOAMD64=v3, which fuse a product and a sum, and arm64, by qemu.
func TestProcessors(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings and two compilers take a while")
	}
	d, e := network(t)
	all := struct {
		Space face.Space
		Films [][]face.Sample
	}{Space: e.Space()}
	for p := range 6 {
		path := fixture.Recordings(t, fmt.Sprintf("faces/vidtimit_rot/p%d", p))
		src := fixture.Must(facedet.Open(t.Context(), path, facedet.Options{}))(t)
		s := pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate})
		var film []face.Sample
		for f, err := range face.Frames(t.Context(), s) {
			fixture.Check(t, err)
			if len(f.Samples) == 1 && f.Samples[0].Vector != nil {
				film = append(film, f.Samples[0])
			}
			if f.Index == 64 {
				break
			}
		}
		src.Close()
		all.Films = append(all.Films, film)
	}
	var b bytes.Buffer
	fixture.Check(t, gob.NewEncoder(&b).Encode(all))
	faces := filepath.Join(t.TempDir(), "faces")
	fixture.Check(t, os.WriteFile(faces, b.Bytes(), 0o600))
	qemu, missing := exec.LookPath("qemu-aarch64-static")
	fused, _ := os.ReadFile("/proc/cpuinfo")
	var want []byte
	for _, c := range []struct {
		build  string
		run    []string
		cannot bool
	}{
		{build: "GOAMD64=v1"},
		{build: "GOAMD64=v3", cannot: !bytes.Contains(fused, []byte(" fma "))},
		{"GOARCH=arm64", []string{qemu}, missing != nil},
	} {
		if c.cannot {
			continue
		}
		program := filepath.Join(t.TempDir(), "verdicts")
		build := exec.Command("go", "test", "-c", "-o", program, "../internal/processors")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", c.build)
		out, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.build, err, out)
		}
		run := append(c.run, program, "-test.run=.")
		test := exec.Command(run[0], run[1:]...)
		test.Env = append(os.Environ(), "FACEAUTH_FACES="+faces)
		out, err = test.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.build, err, out)
		}
		if want == nil {
			want = out
		}
		if n := bytes.Count(out, []byte("confirmed")); n < 100 || !bytes.Equal(out, want) {
			t.Errorf("%s: %d confirmed faces, or other verdicts:\n%s", c.build, n, out)
		}
	}
	if missing != nil {
		t.Skip("arm64 was not compared: qemu-user-static is not installed")
	}
}
