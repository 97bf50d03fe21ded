// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"github.com/faceauth/faceauth/internal/safefile"
)

// Secret returns the content of a file without white space at its ends, or inline if path is empty.
func Secret(path, inline string) (string, error) {
	if path == "" {
		return inline, nil
	}
	text, err := safefile.ReadSecret(path)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return "", fmt.Errorf("%s is empty; write the secret into it", path)
	}
	return s, nil
}
