// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"os"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/spf13/cobra"
)

// faces is the content of a file of faces, written by encoding/gob.
type faces struct {
	Space string // its ID
	IDs   []evaluate.Identity
}

var errFaces = errors.New(
	"not a file of faces of this program; write it again with faceauth-lab read")

func newRead() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "read DIR FILE",
		Short: "keep the faces of labelled recordings in a file",
		Long: "Read finds the faces in labelled recordings, and writes their vectors, landmarks " +
			"and measurements into\n" +
			"FILE, which eval and tune take in place of DIR. So a recording is looked at once, " +
			"and not for each\n" +
			"figure. FILE holds biometric data; only you can read it. It is for the version that " +
			"wrote it.\n\n" +
			labelledRecordings,
		Example: "  faceauth-lab read recordings recordings.faces\n" +
			"  faceauth-lab eval recordings.faces --choose-strangers 2",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			v, err := look(&o.Options, c, false)
			if err != nil {
				return err
			}
			defer v.Close()
			ids, names, err := o.recordings(c, v, args[0])
			if err != nil {
				return err
			}
			var b bytes.Buffer
			err = gob.NewEncoder(&b).Encode(faces{v.Space.ID, ids})
			if err == nil {
				err = safefile.Write(args[1], b.Bytes())
			}
			if err != nil {
				return fmt.Errorf("writing faces: %w", err)
			}
			n := 0
			for _, id := range ids {
				n += len(id.Faces)
			}
			return o.Print(c, map[string]int{"people": len(names), "faces": n}, "%s of %s\n",
				cli.Count(n, "face"), cli.Count(len(names), "person"))
		},
	}
	o.VisionFlags(c)
	return c
}

// readFaces reads a file of faces of a space.
func readFaces(path, space string) ([]evaluate.Identity, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all faces
	err = gob.NewDecoder(bytes.NewReader(data)).Decode(&all)
	switch {
	case err != nil:
		return nil, cli.Fail(cli.BadSource, fmt.Errorf("%s: %w", path, errFaces))
	case all.Space != space:
		return nil, cli.Fail(cli.BadSource,
			fmt.Errorf("%s is of the space %s, and this is %s; read the recordings again",
				path, all.Space, space))
	}
	return all.IDs, nil
}
