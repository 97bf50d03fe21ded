// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const eyeProgram = "faceauth-eye"

// EyeCommand returns a command line of faceauth-eye, the program with OpenCV: it lies beside this program, or else in
// $PATH.
func EyeCommand(args ...string) []string {
	path := eyeProgram
	if self, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(self), eyeProgram)
	}
	if _, err := os.Stat(path); err != nil {
		if found, err := exec.LookPath(eyeProgram); err == nil {
			path = found
		}
	}
	return append([]string{path}, args...)
}

// AskEye runs faceauth-eye with arguments, and decodes its answer into v.
func AskEye(ctx context.Context, v any, args ...string) error {
	args = EyeCommand(args...)
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed) && len(failed.Stderr) > 0:
		return errors.New(strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), eyeProgram+": "))
	case err != nil:
		return withoutEye(err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("the answer of %s: %w", args[0], err)
	}
	return nil
}

// withoutEye says what to do if the program is not there.
func withoutEye(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w; put %s, which is built and packaged with this program, beside it", err, eyeProgram)
	}
	return err
}

// Finding is a row of "faceauth-eye check".
type Finding struct {
	What    string `json:"what"`
	Good    string `json:"good"`
	Problem string `json:"problem,omitempty"`
}
