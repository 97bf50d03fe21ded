// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/faceauth/faceauth/eye/serve"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// vision finds faces and turns them into vectors: in an eye, or in this process for work on
// pictures. The caller closes it.
type vision struct {
	*cli.Vision
	detector  facedet.Detector // nil in an eye
	extractor preprocess.Extractor
}

// look opens a vision in an eye, or with pictures in this process.
func look(o *cli.Options, c *cobra.Command, pictures bool) (*vision, error) {
	if !pictures {
		v, err := o.Look(c, nil)
		return &vision{Vision: v}, err
	}
	planned, err := o.Plan(nil, func(s string) { cli.Warn(c, s) })
	if err != nil {
		return nil, err
	}
	v := &vision{Vision: planned}
	if v.detector, v.extractor, err = serve.Open(v.Config.Vision); err != nil {
		return nil, cli.Fail(cli.BadModel, err)
	}
	return v, nil
}

// Close ends the eye, or closes detector and extractor.
func (v *vision) Close() {
	v.Vision.Close()
	if v.detector != nil {
		v.detector.Close()
		v.extractor.Close()
	}
}
