// SPDX-License-Identifier: Apache-2.0

// Command faceauth-lab measures how well faceauth recognises people, on labelled recordings,
// chooses settings on them, and makes the figures of lab/NOTES.md.
//
// Run "faceauth-lab help" for its commands. Results go to standard output and words for people to
// standard error. The exit codes are those of faceauth, and 8 if the recordings do not support the
// settings that were chosen.
package main

import (
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/lab/thesis"
	"github.com/spf13/cobra"
)

func main() { cli.Main(newRoot, manPage) }

func newRoot() *cobra.Command {
	return cli.Root(&cobra.Command{
		Use:   "faceauth-lab",
		Short: "measure faceauth on recordings",
		Long: "faceauth-lab measures on labelled recordings how well faceauth recognises\n" +
			"people, how it withstands attacks, and how logins and an office do. It chooses\n" +
			"settings that faceauth reads, and makes the figures of lab/NOTES.md.",
	}, newRead(), newEval(), newAsk(), newResults(), newTune(), newAttack(), newTrial(),
		thesis.New())
}

// newTrial returns the command "trial".
func newTrial() *cobra.Command {
	c := &cobra.Command{
		Use:   "trial",
		Short: "measure logins, liveness or an office on recordings",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLoginTrial(), newLivenessTrial(), newOfficeTrial(), newDistanceTrial())
	return c
}

// manPage is the end of the program's own manual page.
const manPage = `
# EXIT STATUS

    0    done
    1    something else failed
    2    the command line is wrong
    3    the recordings cannot be opened or read
    4    no usable face was found
    6    a model is missing or wrong
    8    the recordings do not support the settings that were chosen
    130  interrupted

# ENVIRONMENT

    FACEAUTH_MODELS        folder of the model files, which faceauth models install fetches
    FACEAUTH_DATA          folder of the recordings and tables of thesis
    FACEAUTH_EYE_NETWORKS  opencv: OpenCV runs the networks, also if ONNX Runtime is installed
    XDG_DATA_HOME          where the models lie, in place of ~/.local/share

# FILES

    ~/.local/share/faceauth/models   the networks, or /usr/share/faceauth/models for all users
`
