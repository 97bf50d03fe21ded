// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/elf"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/version"
	"github.com/spf13/cobra"
)

// build describes how the program was built.
type build struct {
	Version string `json:"version"`
	// with its time, and +dirty if files had changed since; (devel) outside a repository
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	OpenCV   string `json:"opencv,omitempty"` // of faceauth-eye; "" without it
	Platform string `json:"platform"`
}

func newVersion() *cobra.Command {
	var o cli.Options
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version, and how the program was built",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := build{Version: version.Version, Go: runtime.Version(), Platform: runtime.GOOS +
				"/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				b.Commit = info.Main.Version
			}
			b.OpenCV = linked(cli.EyeCommand()[0])
			return o.Print(c, b, "faceauth %s\ncommit   %s\nbuilt    with %s for %s, OpenCV %s\n",
				b.Version, b.Commit, b.Go, b.Platform, cmp.Or(b.OpenCV, "is missing"))
		},
	}
	o.JSONFlag(c.Flags())
	return c
}

// linked returns the version of OpenCV that a program is linked with, by the name of the library,
// libopencv_core.so.406 for 4.6; "" if it cannot be read. To start faceauth-eye takes 0.2 s.
func linked(program string) string {
	file, err := elf.Open(program)
	if err != nil {
		return "" // doctor says why
	}
	defer file.Close()
	libraries, _ := file.ImportedLibraries()
	for _, name := range libraries {
		var n int
		if _, err := fmt.Sscanf(name, "libopencv_core.so.%d", &n); err == nil {
			return fmt.Sprintf("%d.%d", n/100, n%100)
		}
	}
	return ""
}
