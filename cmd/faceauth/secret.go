// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/faceauth/faceauth/internal/safefile"
)

// secret returns the content of a file without white space at its ends, or inline if path is empty.
func secret(path, inline string) (string, error) {
	if path == "" {
		return inline, nil
	}
	f, err := safefile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others can read the secret in %s; run: chmod 600 %s", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return "", fmt.Errorf("%s is empty; write the secret into it", path)
	}
	return s, nil
}
