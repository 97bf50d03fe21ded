// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/version"
	"github.com/spf13/cobra"
)

// build describes how the program was built.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // "" if it was built outside a repository
	Time     string `json:"time,omitempty"`   // of the commit
	Modified bool   `json:"modified"`         // files had changed since the commit
	Go       string `json:"go"`
	OpenCV   string `json:"opencv,omitempty"` // of faceauth-eye; "" without it
	Platform string `json:"platform"`
}

func thisBuild(ctx context.Context) build {
	b := build{
		Version: version.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if cli.AskEye(ctx, &b.OpenCV, "opencv") != nil { // doctor says why
		b.OpenCV = ""
	}
	return b
}

func newVersion() *cobra.Command {
	var o cli.Options
	c := &cobra.Command{
		Use:   "version",
		Short: "print the version, and how the program was built",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := thisBuild(c.Context())
			commit := ""
			if b.Commit != "" {
				commit = fmt.Sprintf("commit   %s of %s", b.Commit, b.Time)
				if b.Modified {
					commit += ", with changes"
				}
				commit += "\n"
			}
			return o.Print(c, b, "faceauth %s\n%sbuilt    with %s for %s, OpenCV %s\n", b.Version, commit, b.Go,
				b.Platform, cmp.Or(b.OpenCV, "is missing"))
		},
	}
	o.JSONFlag(c.Flags())
	return c
}
