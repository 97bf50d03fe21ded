// SPDX-License-Identifier: Apache-2.0

// Package eyecmd is the program faceauth-eye: everything that the other programs do with OpenCV, in processes of its
// own.
//
// [Main] is the program. Without a command it is an eye. The commands check what is installed, draw, and make the
// demo's recordings, for trusted input: they have no sandbox.
package eyecmd

import (
	"encoding/json"

	"github.com/faceauth/faceauth/eye/serve"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/spf13/cobra"
)

// Main runs the command line of the process, and ends it.
func Main() {
	var of string
	root := cli.Root(&cobra.Command{
		Use:   "faceauth-eye",
		Short: "decode and see for other programs of faceauth; not for people",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return serve.Main(c.Context(), 3, of) },
	}, &cobra.Command{
		Use: "opencv", Short: "print the version of OpenCV", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return json.NewEncoder(c.OutOrStdout()).Encode(cv.Version())
		},
	}, &cobra.Command{
		Use: "check MODELS", Short: "print which parts of the machine work", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return json.NewEncoder(c.OutOrStdout()).Encode(check(args[0]))
		},
	}, &cobra.Command{
		Use: "demo FOLDER", Short: "make the demo's recordings", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			stills, err := demo.Find()
			if err != nil {
				return err
			}
			script, err := film.Write(c.Context(), stills, args[0])
			if err != nil {
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(script)
		},
	}, &cobra.Command{
		Use: "show", Short: "show the frames of the input in a window", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return show(c.InOrStdin()) },
	}, &cobra.Command{
		Use: "film FILE", Short: "write the frames of the input to a video", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return write(c.InOrStdin(), args[0]) },
	})
	root.Flags().StringVar(&of, "for", "", "the only user for whom it looks (default: the user who runs it)")
	cli.Main(func() *cobra.Command { return root }, "")
}
