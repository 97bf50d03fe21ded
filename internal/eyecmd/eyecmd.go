// SPDX-License-Identifier: Apache-2.0

// Package eyecmd is the program faceauth-eye: everything that the other programs do with OpenCV, in processes of its
// own.
//
// [Main] is the program. Without a command it is an eye. The commands check what is installed, draw, and make the
// demo's recordings, for trusted input: they have no sandbox.
package eyecmd

import (
	"encoding/json"
	"strings"

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
	command := func(use, short string, run func(c *cobra.Command, args []string) (answer any, err error)) *cobra.Command {
		arguments := strings.Count(use, " ")
		return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(arguments),
			RunE: func(c *cobra.Command, args []string) error {
				answer, err := run(c, args)
				if err != nil || answer == nil {
					return err
				}
				return json.NewEncoder(c.OutOrStdout()).Encode(answer)
			}}
	}
	root := cli.Root(command("faceauth-eye", "decode and see for other programs of faceauth; not for people",
		func(c *cobra.Command, _ []string) (any, error) { return nil, serve.Main(c.Context(), 3, of) }),
		command("opencv", "print the version of OpenCV",
			func(*cobra.Command, []string) (any, error) { return cv.Version(), nil }),
		command("check MODELS", "print which parts of the machine work",
			func(_ *cobra.Command, args []string) (any, error) { return check(args[0]), nil }),
		command("demo FOLDER", "make the demo's recordings", func(c *cobra.Command, args []string) (any, error) {
			stills, err := demo.Find()
			if err != nil {
				return nil, err
			}
			return film.Write(c.Context(), stills, args[0])
		}),
		command("show", "show the frames of the input in a window",
			func(c *cobra.Command, _ []string) (any, error) { return nil, show(c.InOrStdin()) }),
		command("film FILE", "write the frames of the input to a video",
			func(c *cobra.Command, args []string) (any, error) { return nil, write(c.InOrStdin(), args[0]) }))
	root.Flags().StringVar(&of, "for", "", "the only user for whom it looks (default: the user who runs it)")
	cli.Main(func() *cobra.Command { return root }, "")
}
