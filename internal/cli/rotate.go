// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/faceauth/faceauth/face"
)

// Rotation is the value of a flag that says how frames are turned.
type Rotation face.Rotation

// String, Set and Type implement [pflag.Value].
func (r *Rotation) String() string { return string(*r) }

func (r *Rotation) Set(s string) error {
	if _, _, ok := face.Rotation(s).Degrees(); !ok || s == "" {
		return fmt.Errorf("use auto, 0, 90, 180 or 270")
	}
	*r = Rotation(s)
	return nil
}

func (r *Rotation) Type() string { return "rotation" }
