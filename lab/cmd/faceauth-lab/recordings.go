// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/dataset"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/spf13/cobra"
)

// labelledRecordings describes a folder of recordings, for help texts.
const labelledRecordings = "DIR holds one entry for each identity: a video, a folder of images, " +
	"or a folder of several such\n" +
	"recordings of one person, which are taken in natural order. Of several faces in a frame the\n" +
	"largest counts."

// reader returns the reader of the recordings below roots. It shows progress.
func (o *options) reader(c *cobra.Command, v *vision, roots ...string) *dataset.Reader {
	r := &dataset.Reader{
		Detector: v.detector, Extractor: v.extractor,
		Source: facedet.Options{Timeout: o.Timeout, Series: face.Filmed},
		Warn:   func(s string) { cli.Warn(c, s) },
		Begin: func(name string, frames int) (step, end func()) {
			bar := cli.NewProgress(frames, name)
			return func() { bar.Add(1) }, func() { bar.Finish() }
		},
	}
	if v.detector == nil {
		r.Open = func(ctx context.Context, path string, opt pipeline.Options, damaged func(string)) (dataset.Stream,
			error) {
			if opt.Gate != preprocess.LearnGate || opt.Turns || opt.Show != nil ||
				opt.Liveness != nil ||
				opt.Frame != nil {
				return nil, errors.New(
					"an eye gives no pictures to work on; the networks must be in this process")
			}
			s, err := v.Open(ctx, path, eye.Options{
				Gate: eye.Learn, Picture: opt.Picture, Timeout: o.Timeout, Roots: roots,
				Damaged: damaged, Series: face.Filmed,
			})
			if errors.Is(err, eye.ErrVision) {
				return nil, cli.Fail(cli.BadModel, err)
			}
			if err != nil {
				return nil, err
			}
			return seen{s}, nil
		}
	}
	return r
}

// seen is the stream of an eye, which the eye itself closes.
type seen struct{ *eye.Stream }

func (seen) Close() error { return nil }

// recordings reads the faces of all identities in dir, or in a file of faces that the command read
// has written.
func (o *options) recordings(c *cobra.Command, v *vision,
	dir string) ([]evaluate.Identity, []string, error) {
	info, err := os.Stat(dir)
	var ids []evaluate.Identity
	if err == nil && info.Mode().IsRegular() {
		ids, err = readFaces(dir, v.Space.ID)
	} else {
		ids, err = o.reader(c, v, dir).Identities(c.Context(), dir, nil)
	}
	if err != nil {
		return nil, nil, readError(c, err)
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.Name
	}
	return ids, names, nil
}

// readError gives an error of a dataset.Reader its exit code.
func readError(c *cobra.Command, err error) error {
	if errors.Is(err, evaluate.ErrTooFew) || errors.Is(err, evaluate.ErrProtocol) {
		return evalError(err)
	}
	return cli.StreamError(c, err)
}
