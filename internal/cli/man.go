// SPDX-License-Identifier: Apache-2.0

//go:build man

package cli

import "github.com/faceauth/faceauth/internal/manual"

// Main writes the manual pages and completions of a program.
var Main = manual.Main
