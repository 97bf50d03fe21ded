// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/faceauth/faceauth/internal/clitest"
)

// flagsThatDiffer are the flags that do not have the same kind of value, default and help in all commands, each with
// the reason. A flag of a new command needs no line here if it has the same meaning as in the other commands.
var flagsThatDiffer = map[string]string{
	"challenge": "login allow asks for a gesture at some services, the daemon at all of them",
	"fps": "search looks at recordings, whose frames it chooses; " +
		"office looks at cameras, which may be slow",
	"infrared": "the daemon logs in with it, doctor looks at what it shows",
	"name":     "search takes an enrolled person, the others need a person",
	"out":      "each command writes other files, and says which and where",
	"rotate":   "a login has no time for the pictures by which auto decides",
}

func TestFlags(t *testing.T) { clitest.Flags(t, newRoot(), flagsThatDiffer) }
