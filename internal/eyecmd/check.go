// SPDX-License-Identifier: Apache-2.0

package eyecmd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye/serve"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
)

// check tries what only this program can try, with the networks of a folder.
func check(dir string) (all []cli.Finding) {
	add := func(what, good string, err error) {
		f := cli.Finding{What: what, Good: good}
		if err != nil {
			f.Problem = err.Error()
		}
		all = append(all, f)
	}
	add("OpenCV", cv.Version(), nil)
	running, err := runs(dir)
	add("ONNX Runtime", running, err)
	one, err := cost(dir)
	add("one face", one, err)
	haar, err := facedet.Haar()
	if err == nil {
		haar.Close()
	}
	add("Haar cascade", "of opencv-data", err)
	sandbox, err := serve.Available()
	add("sandbox of the decoders", sandbox, err)
	_, err = demo.Find()
	add("demo", "its stills are there", err)
	return all
}

// runs opens the networks, and names what runs them. The error says why it is OpenCV, for at least one.
func runs(dir string) (running string, err error) {
	for _, d := range models.Builtin() {
		n, err := network.Open(d, d.Kind, dir)
		if err != nil {
			continue // the row of the model says why
		}
		n.Close()
		name, err := n.Runs()
		if err != nil {
			return "", fmt.Errorf("%w; %s runs the networks", err, name)
		}
		running = strings.TrimPrefix(name, "ONNX Runtime ") + " runs the networks"
	}
	if running == "" {
		return "", errors.New("there is no network to run")
	}
	return running, nil
}

// cost measures what one face costs in both engines, and keeps for all eyes which one is faster.
func cost(dir string) (string, error) {
	cv.OneThread() // as eyes run them
	var total network.Cost
	both := false
	var parts []string
	what := map[models.Kind]string{
		models.Detector: "detection", models.Landmarks: "landmarks", models.Embedding: "embedding",
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }
	for _, d := range models.Builtin() {
		name := what[d.Kind]
		if name == "" {
			continue // liveness is scored at logins only
		}
		c, err := network.Measure(d, dir)
		if err != nil {
			return "", err
		}
		if c.Runtime == 0 {
			c.Runtime = c.OpenCV // which runs it for want of the other
		} else {
			both = true
		}
		total.Runtime += c.Runtime
		total.OpenCV += c.OpenCV
		parts = append(parts, fmt.Sprintf("%s %s", name, ms(c.Runtime)))
	}
	if !both {
		return fmt.Sprintf("%s in OpenCV", strings.Join(parts, ", ")), nil
	}
	text := fmt.Sprintf("%s in ONNX Runtime; together %s, in OpenCV %s", strings.Join(parts, ", "), ms(total.Runtime),
		ms(total.OpenCV))
	// A tenth is within the noise.
	slower := total.Runtime > total.OpenCV*11/10
	changed, err := network.Prefer(dir, slower)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s, but it could not be kept that OpenCV is to run the networks: %w; run faceauth doctor "+
			"as the owner of the folder", text, err)
	case slower:
		text += ": OpenCV is faster on this processor, and runs the networks"
	case changed:
		text += ": ONNX Runtime is faster again, and runs the networks"
	}
	return text, nil
}
