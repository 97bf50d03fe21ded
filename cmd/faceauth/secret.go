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
	text, err := secretBytes(path)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return "", fmt.Errorf("%s is empty; write the secret into it", path)
	}
	return s, nil
}

// secretBytes returns the content of a file that only its owner can read.
func secretBytes(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read the secret in %s; run: chmod 600 %s", path, path)
	}
	return io.ReadAll(io.LimitReader(f, 1<<16))
}
