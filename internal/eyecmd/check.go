// SPDX-License-Identifier: Apache-2.0

package eyecmd

import (
	"errors"
	"fmt"
	"strings"

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
			return "", fmt.Errorf("%w; %s runs the networks, in twice the time", err, name)
		}
		running = strings.TrimPrefix(name, "ONNX Runtime ") + " runs the networks"
	}
	if running == "" {
		return "", errors.New("there is no network to run")
	}
	return running, nil
}
