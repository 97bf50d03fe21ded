// SPDX-License-Identifier: Apache-2.0

package distil

import "github.com/faceauth/faceauth/internal/safefile"

// Seal makes a verifier file of a body.
func Seal(body []byte) []byte { return safefile.Seal(kind, body) }
