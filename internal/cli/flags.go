// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tuning marks flags that few people need.
const tuning = "tuning"

// tunes marks flags as flags for tuning: help lists them after the others.
func tunes(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, tuning, nil); err != nil {
			panic("cli: " + err.Error()) // no flag has the name: a fault of the program
		}
	}
}

// Values lets the shell complete the values of a flag.
func Values(c *cobra.Command, flag string, all ...string) {
	err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("cli: " + err.Error()) // no flag has the name: a fault of the program
	}
}

// Cameras completes a source: the numbers of cameras, and files.
func Cameras(_ *cobra.Command, _ []string, _ string) (all []string, _ cobra.ShellCompDirective) {
	devices, _ := filepath.Glob("/dev/video[0-9]*")
	for _, d := range devices {
		all = append(all, strings.TrimPrefix(d, "/dev/video")+"\tcamera "+d)
	}
	return all, cobra.ShellCompDirectiveDefault
}

// usageTemplate is cobra's usage with the flags for tuning in a part of their own.
func usageTemplate(of string) string {
	const local = "{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	cobra.AddTemplateFunc("everyday", func(c *cobra.Command) string { return flagUsages(c, false) })
	cobra.AddTemplateFunc("tuning", func(c *cobra.Command) string { return flagUsages(c, true) })
	return strings.Replace(of, local, "{{everyday . | trimTrailingWhitespaces}}{{with tuning .}}\n\nTuning:\n"+
		"{{. | trimTrailingWhitespaces}}{{end}}", 1)
}

func flagUsages(c *cobra.Command, tunes bool) string {
	var set pflag.FlagSet
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, few := f.Annotations[tuning]; few == tunes {
			set.AddFlag(f)
		}
	})
	return set.FlagUsages()
}

// positive adds a flag for a number above 0. The learner's settings use 0 for the default, so a user's 0 must be
// refused.
func positive[N int | float64](f *pflag.FlagSet, to *N, name, usage string) {
	f.Func(name, usage, func(s string) error {
		var n N
		var rest string
		if got, _ := fmt.Sscan(s+" ", &n, &rest); got != 1 {
			return errors.New("it is not a number")
		}
		if !(n > 0) || math.IsInf(float64(n), 1) {
			return errors.New("it must be positive and finite")
		}
		*to = n
		return nil
	})
}

// RotateFlag adds --rotate, which says how frames are turned.
func RotateFlag(c *cobra.Command, to *face.Rotation, usage string) {
	c.Flags().Func("rotate", usage, func(s string) error {
		if _, _, ok := face.Rotation(s).Degrees(); !ok || s == "" {
			return errors.New("use auto, 0, 90, 180 or 270")
		}
		*to = face.Rotation(s)
		return nil
	})
	Values(c, "rotate", string(face.Auto), "0", "90", "180", "270")
}
