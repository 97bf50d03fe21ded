// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagsThatDiffer are the flags that do not have the same kind of value, default and help in all commands, each with
// the reason. A flag of a new command needs no line here if it has the same meaning as in the other commands.
var flagsThatDiffer = map[string]string{
	"admin-key":        "fleet serve makes the file, the other commands of the fleet only read it",
	"attack":           "eval attacks the learner, tablet trial a login: other attacks are possible",
	"challenge":        "tablet allow asks for a gesture at some services, the daemon at all of them",
	"choose-strangers": "a day of office trial has strangers unless told otherwise, eval has none",
	"creds":            "fleet serve logs a service in, fleet join a device, and a cluster takes other files of each",
	"force":            "tune checks settings, the others check faces: each says which check is passed over",
	"fps": "search looks at recordings, whose frames it chooses; " +
		"office looks at cameras, which may be slow",
	"learn":   "eval has no gallery, and says what it learns from",
	"name":    "fleet join names a device, search takes an enrolled person, the others need a person",
	"off":     "each command undoes what it does without it",
	"out":     "each command writes other files, and says which and where",
	"rotate":  "a login has no time for the pictures by which auto decides",
	"seed":    "the figures of docs/results.md rest on the default of each of the two commands",
	"share":   "tablet follow gives faces to the fleet, office trial lessons, and how often",
	"state":   "the office, the server of a fleet and a device of a fleet keep folders of their own",
	"timeout": "commands of the fleet wait for a server and not for a source",
	"token":   "fleet join takes a token itself, office a file of one",
}

// A flag has one meaning in all commands.
func TestFlagsMeanTheSame(t *testing.T) {
	meanings := make(map[string]map[string][]string) // for each flag its meanings, and for each meaning its commands
	eachCommand(newRoot(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			meaning := fmt.Sprintf("%s, default %q: %s", f.Value.Type(), f.DefValue, f.Usage)
			if meanings[f.Name] == nil {
				meanings[f.Name] = make(map[string][]string)
			}
			meanings[f.Name][meaning] = append(meanings[f.Name][meaning], c.CommandPath())
		})
	})
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		reason, differs := flagsThatDiffer[name]
		switch {
		case len(meanings[name]) > 1 && !differs:
			t.Errorf("--%s has several meanings: %s\n"+
				"use the same words and default, or another name, or give the reason in flagsThatDiffer", name,
				listed(meanings[name]))
		case len(meanings[name]) == 1 && differs:
			t.Errorf("--%s means the same everywhere; take it out of flagsThatDiffer (%s)", name, reason)
		}
	}
	for name := range flagsThatDiffer {
		if meanings[name] == nil {
			t.Errorf("no command has --%s; take it out of flagsThatDiffer", name)
		}
	}
}

// Names of flags are small letters, digits and dashes. A switch is off unless it is given.
func TestFlagsAreNamed(t *testing.T) {
	eachCommand(newRoot(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("%s --%s: a name has small letters, digits and dashes", c.CommandPath(), f.Name)
			}
			if f.Value.Type() == "bool" && f.DefValue != "false" {
				t.Errorf("%s --%s is on by default; name it no-%s, and let it be off", c.CommandPath(), f.Name, f.Name)
			}
			if strings.Contains(strings.ReplaceAll(f.Name, "enroll", ""), "enrol") {
				t.Errorf("%s --%s: commands and flags spell it enroll", c.CommandPath(), f.Name)
			}
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: the help is %q; give a phrase without a full stop", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

// eachCommand calls f with a command and with all commands below it.
func eachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, below := range c.Commands() {
		eachCommand(below, f)
	}
}

func listed(meanings map[string][]string) (s string) {
	for _, m := range slices.Sorted(maps.Keys(meanings)) {
		s += fmt.Sprintf("\n  %s (%s)", m, strings.Join(meanings[m], ", "))
	}
	return s
}
