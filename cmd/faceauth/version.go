// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
			if cli.AskEye(c.Context(), &b.OpenCV, "opencv") != nil { // doctor says why
				b.OpenCV = ""
			}
			return o.Print(c, b, "faceauth %s\ncommit   %s\nbuilt    with %s for %s, OpenCV %s\n",
				b.Version, b.Commit, b.Go, b.Platform, cmp.Or(b.OpenCV, "is missing"))
		},
	}
	o.JSONFlag(c.Flags())
	return c
}
