// SPDX-License-Identifier: Apache-2.0

// Command fetch fetches files that the project does not contain, for tests and packagers. It builds without OpenCV.
//
//	go run ./internal/fetch axe                     axe-core, for the tests of the office's page
//	go run ./internal/fetch models DIR [TARBALL]    the networks, as faceauth models install does
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/faceauth/faceauth/internal/axe"
	"github.com/faceauth/faceauth/internal/npm"
	"github.com/faceauth/faceauth/models"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	report := func(s string) { fmt.Fprintln(os.Stderr, s) }
	registry, err := npm.Registry()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "axe":
		return axe.Fetch(ctx, registry)
	case len(args) == 2 && args[0] == "models":
		return models.Install(ctx, registry, args[1], report)
	case len(args) == 3 && args[0] == "models":
		return models.InstallFrom(args[2], args[1], report)
	}
	return errors.New("unknown arguments; use axe, or models DIR [TARBALL]")
}
