// SPDX-License-Identifier: Apache-2.0

// Command faceauth recognises people by their faces, on this device alone.
//
// Run "faceauth help" for its commands, and see the README for what they do together. Results go to
// standard output and words for people to standard error.
//
// Exit codes: 0 done; 1 something else failed; 2 the command line is wrong; 3 the source cannot be
// opened or read; 4 no usable face was found; 5 the gallery cannot be used or saved; 6 a model is
// missing or wrong; 7 a face was not recognised, or not enrolled; 8 the recordings do not support
// the settings that were chosen; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/faceauth/faceauth"
	"github.com/spf13/cobra"
)

func main() {
	end := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is ignored
		end = append(end, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), end...)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes a command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	out := &output{w: stdout}
	stderr = &output{w: stderr}
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if broken := out.failed(); err == nil && broken != nil {
		err = fmt.Errorf("writing the output: %w", broken)
	}
	if err == nil {
		return 0
	}
	code := 1
	var f *failure
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		code, err = 130, errors.New("interrupted; only reported changes were made")
	case errors.As(err, &f):
		code = f.code
	case strings.HasPrefix(err.Error(), "unknown command "): // cobra has no type for this error
		code, err = badUsage, unknownCommand(err)
	}
	fmt.Fprintf(stderr, "faceauth: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

// Exit codes beside 0 and 130.
const (
	failed     = 1
	badUsage   = 2
	badSource  = 3
	noFace     = 4
	badGallery = 5
	badModel   = 6
	refused    = 7
	// unsupported means that the recordings do not support the settings of tune.
	unsupported = 8
)

// failure is an error with an exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code, err}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "faceauth",
		Short: "recognise people by their faces, on this device alone",
		Long: "faceauth recognises people whom you have enrolled. It learns from later faces by itself,\n" +
			"refuses strangers, and its memory has a fixed limit.",
		Version:       faceauth.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fail(badUsage, err) })
	root.AddCommand(commands()...)
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() } // so that its arguments are checked
	}
	usage(root)
	return root
}

// newHelp returns the help command. Unlike cobra's help command it refuses unknown topics.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "explain a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return fail(badUsage, fmt.Errorf("unknown help topic %q; see faceauth help", strings.Join(args, " ")))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// unknownCommand turns cobra's error of several lines about an unknown command into one sentence.
func unknownCommand(err error) error {
	what, rest, _ := strings.Cut(err.Error(), "\n")
	what, _, _ = strings.Cut(what, " for ")
	_, names, _ := strings.Cut(rest, "Did you mean this?")
	if like := strings.Fields(names); len(like) > 0 {
		return fmt.Errorf("%s; did you mean %s?", what, strings.Join(like, " or "))
	}
	return fmt.Errorf("%s; see faceauth help", what)
}

// usage gives errors about the number of arguments the exit code of a wrong command line.
func usage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fail(badUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usage(sub)
	}
}
