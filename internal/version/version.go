// SPDX-License-Identifier: Apache-2.0

// Package version holds the version. Package faceauth has it, too, but links OpenCV, which the
// programs do not.
package version

// Version is the version of the library and the programs, by semver.org.
const Version = "0.1.0"
