// SPDX-License-Identifier: Apache-2.0

//go:build man

package main

import "github.com/faceauth/faceauth/internal/manual"

func main() { manual.Main(newRoot, manPage) }

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
