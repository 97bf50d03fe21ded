// SPDX-License-Identifier: Apache-2.0

// Command faceauth-eye decodes and sees for the other programs of the project, which start it. It
// is the only one of them that links OpenCV. It belongs beside faceauth.
package main

import "github.com/faceauth/faceauth/internal/eyecmd"

func main() { eyecmd.Main() }
