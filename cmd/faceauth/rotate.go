// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

// rotation is the flag --rotate.
type rotation face.Rotation

// String, Set and Type implement pflag.Value.
func (r *rotation) String() string { return string(*r) }

func (r *rotation) Set(s string) error {
	if _, _, ok := face.Rotation(s).Degrees(); !ok || s == "" {
		return fmt.Errorf("use auto, 0, 90, 180 or 270")
	}
	*r = rotation(s)
	return nil
}

func (r *rotation) Type() string { return "rotation" }

// rotateFlag adds --rotate.
func (o *options) rotateFlag(c *cobra.Command) {
	o.rotate = rotation(face.Auto)
	c.Flags().Var(&o.rotate, "rotate", "degrees by which pictures are turned clockwise: 0, 90, 180, 270, or auto: "+
		"the first five pictures with faces decide")
	cli.Values(c, "rotate", "auto", "0", "90", "180", "270")
}

// turned returns a function that says that a source is turned.
func turned(c *cobra.Command, source string) func(int) {
	return func(degrees int) {
		warn(c, fmt.Sprintf("%s seems to be turned: its pictures are turned by %d degrees; --rotate 0 prevents it",
			source, degrees))
	}
}
