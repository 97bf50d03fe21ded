// SPDX-License-Identifier: Apache-2.0

//go:build !man

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line of a program, and ends the process with its exit code. Page is the end
// of the program's manual page, in Markdown; see package manual.
func Main(root func() *cobra.Command, page string) {
	end := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is ignored
		end = append(end, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), end...)
	code := Run(ctx, root(), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
