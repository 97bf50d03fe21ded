// SPDX-License-Identifier: Apache-2.0

// Command fetchmodels does the same as faceauth models install, but builds without OpenCV. It is for packagers.
//
//	go run ./internal/fetchmodels DIR [TARBALL]
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/faceauth/faceauth/models"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetchmodels:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	report := func(s string) { fmt.Fprintln(os.Stderr, s) }
	switch len(args) {
	case 1:
		return models.Install(ctx, args[0], report)
	case 2:
		return models.InstallFrom(args[1], args[0], report)
	}
	return fmt.Errorf("give a folder, and optionally a tarball: fetchmodels DIR [TARBALL]")
}
