// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"strings"

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

// printUsage is cobra's usage with the flags for tuning last.
func printUsage(c *cobra.Command) error {
	w := c.OutOrStderr()
	fmt.Fprint(w, "Usage:\n")
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nAvailable Commands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(w, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	var everyday, rest pflag.FlagSet
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, few := f.Annotations[tuning]; few {
			rest.AddFlag(f)
		} else {
			everyday.AddFlag(f)
		}
	})
	for _, part := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", &everyday}, {"Tuning", &rest}, {"Global Flags", c.InheritedFlags()}} {
		if part.flags.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s\n", part.title, strings.TrimRight(part.flags.FlagUsages(), " \n"))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more information about a command.\n", c.CommandPath())
	}
	return nil
}
