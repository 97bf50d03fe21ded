// Command faceauth recognises people by their faces, on this device alone.
//
// Run "faceauth help" for its commands, and see the README for what they do together. Results go to
// standard output and words for people to standard error.
//
// Exit codes: 0 done; 1 something else failed; 2 the command line is wrong; 3 the source cannot be
// opened or read; 4 no usable face was found; 5 the gallery cannot be used or saved; 6 a model is
// missing or wrong; 7 a face was not recognised, or not enrolled; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/faceauth/faceauth"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
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
	}
	fmt.Fprintf(stderr, "faceauth: %v\n", err)
	return code
}

// Exit codes beside 0, 1 and 130.
const (
	badUsage   = 2
	badSource  = 3
	noFace     = 4
	badGallery = 5
	badModel   = 6
	refused    = 7
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
		Long: "faceauth recognises the people it was shown, keeps learning from faces that nobody labels,\n" +
			"refuses strangers, and stays within fixed memory and time for ever.",
		Version:       faceauth.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fail(badUsage, err) })
	root.AddCommand(newEnroll(), newReplay(), newWatch(), newPeople(), newEval(), newTune(), newOffice(), newSearch(), newAudit(), newCompact(), newDistil(), newVerify(), newDaemon(), newTablet(), newModels(), newDemo(), newDoctor(), newVersion())
	usage(root)
	return root
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
