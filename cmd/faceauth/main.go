// SPDX-License-Identifier: Apache-2.0

// Command faceauth recognises people by their faces, on this device alone.
//
// Run "faceauth help" for its commands, and see the README for what they do together. Results go to
// standard output and words for people to standard error.
package main

import (
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

func main() { cli.Main(newRoot, manPage) }

func newRoot() *cobra.Command {
	return cli.Root(&cobra.Command{
		Use:   "faceauth",
		Short: "recognise people by their faces, on this device alone",
		Long: "faceauth recognises the people you enrolled. It goes on learning from the\n" +
			"faces it sees, refuses strangers, and never uses more than a fixed amount of\n" +
			"memory.",
	}, commands()...)
}

// commands returns all commands.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newEnroll(), newReplay(), newWatch(), newPeople(), newOffice(), newSearch(), newWho(),
		newAudit(),
		newFleet(), newDaemon(), newLogin(), newModels(), newDemo(), newDoctor(), newBackup(),
		newVersion(),
	}
}

// manPage is the end of the program's own manual page.
const manPage = `
# EXIT STATUS

    0    done
    1    something else failed
    2    the command line is wrong
    3    the source cannot be opened or read
    4    no usable face was found
    5    the gallery cannot be used or saved
    6    a model is missing or wrong
    7    a face was not recognised, not found, or not enrolled
    9    something could not be looked at, or not to its end
    130  interrupted

# ENVIRONMENT

    FACEAUTH_GALLERY     file of the gallery, in place of --gallery
    FACEAUTH_KEY         file of the key that encrypts it, in place of --key
    FACEAUTH_MODELS      folder of the model files
    HTTPS_PROXY          proxy of models install
    FACEAUTH_EYE_NETWORKS  opencv: OpenCV runs the networks, even if ONNX Runtime is installed
    XDG_DATA_HOME        where the gallery and the models lie, in place of ~/.local/share
    XDG_CACHE_HOME       where search keeps its sightings, in place of ~/.cache

# FILES

    ~/.local/share/faceauth/faceauth.db  the people of enroll, replay, watch, office and search
    ~/.local/share/faceauth/models   the networks, or /usr/share/faceauth/models for all users
    /etc/faceauth/services           the PAM services that may ask for a face
    /etc/default/faceauth            FACEAUTH_OPTIONS, options of the daemon
    /var/lib/faceauth                the sealed profiles of logins, and their key
`
