// SPDX-License-Identifier: Apache-2.0

// Package cli is what the programs of the project share: a root command with exit codes, the flags
// for detectors, embeddings and learners, and the process that sees for a command.
//
// [Main] runs the root command that [Root] makes. [Options] holds the shared flags, and
// [Options.Look] opens a [Vision]. Errors get their exit code from [Fail].
//
// The programs link no video decoder: faceauth-eye, which [EyeCommand] finds, has it.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/internal/version"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes beside 0 and 130.
const (
	Failed     = 1
	BadUsage   = 2
	BadSource  = 3
	NoFace     = 4
	BadGallery = 5
	BadModel   = 6
	Refused    = 7
	// Unsupported means that the recordings do not support the settings that faceauth-lab tune
	// chose.
	Unsupported = 8
	// Partly means that something could not be looked at, or not to its end.
	Partly = 9
)

// failure is an error with an exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Fail gives an error an exit code. A nil error stays nil.
func Fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code, err}
}

// Code returns the exit code that [Fail] has given to an error, or 0.
func Code(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	return 0
}

const again = "again"

// Again says how to go on after an interruption of a command.
func Again(c *cobra.Command, sentence string) { c.Annotations = map[string]string{again: sentence} }

// Run executes a command line and returns its exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	out := &output{w: stdout}
	stderr = &output{w: stderr}
	root.SetOut(out)
	root.SetErr(stderr)
	c, err := root.ExecuteContextC(ctx)
	if broken := out.failed(); err == nil && broken != nil {
		err = fmt.Errorf("writing the output: %w", broken)
	}
	if err == nil {
		return 0
	}
	code := cmp.Or(Code(err), Failed)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		code, err = 130, errors.New("interrupted; "+
			cmp.Or(c.Annotations[again], "only reported changes were made"))
	case strings.HasPrefix(err.Error(), "unknown command "): // cobra has no type for this error
		code, err = BadUsage, unknownCommand(root, c, args, err)
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

// Root makes root, which has its name and its help, the root command of a program with these
// commands.
func Root(root *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	root.Version, root.SilenceUsage, root.SilenceErrors = version.Version, true, true
	root.SetFlagErrorFunc(unknownFlag)
	root.PersistentFlags().BoolP("quiet", "q", false, "print no notes and no warnings")
	root.PersistentFlags().BoolP("verbose", "v", false,
		"say which files, networks and programs are used")
	root.AddCommand(commands...)
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		// so that its arguments are checked
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	usage(root)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
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
				topic := strings.Join(args, " ")
				return Fail(BadUsage, fmt.Errorf("unknown help topic %q%s", topic,
					cmp.Or(DidYouMean(meant(root, root, args[0])), "; see "+root.Name()+" help")))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// unknownCommand says in one sentence what is unknown of a command line, and what may have been
// meant. Cobra takes the word after an unknown flag for its value, and then complains of the word
// after that.
func unknownCommand(root, c *cobra.Command, args []string, err error) error {
	for _, arg := range args {
		name, dashed := strings.CutPrefix(arg, "-")
		if !dashed {
			break
		}
		flags := root.PersistentFlags()
		if name != "q" && name != "v" && flags.Lookup(strings.TrimPrefix(name, "-")) == nil {
			return fmt.Errorf(
				"unknown flag: %s; flags of a command come after it: %s COMMAND %[1]s", arg,
				root.Name())
		}
	}
	what, _, _ := strings.Cut(err.Error(), " for ")
	word, _ := strconv.Unquote(strings.TrimPrefix(what, "unknown command "))
	return errors.New(what + cmp.Or(DidYouMean(meant(root, c, word)), "; see "+c.CommandPath()+
		" --help"))
}

// meant returns the command lines that somebody may mean who types word after c.
func meant(root, c *cobra.Command, word string) (like []string) {
	for _, top := range root.Commands() {
		for _, sub := range append(top.Commands(), top) {
			if sub.IsAvailableCommand() && (slices.Contains(sub.SuggestFor, word) ||
				c == root && sub != top && (sub.Name() == word || sub.HasAlias(word))) {
				like = append(like, strings.TrimPrefix(sub.CommandPath(), root.Name()+" "))
			}
		}
	}
	if len(like) > 0 {
		return like
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return Near(names, word)
}

// DidYouMean is the end of a sentence about something unknown: what may have been meant. It is
// empty if nothing was.
func DidYouMean(like []string) string {
	if len(like) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(like, " or ") + "?"
}

// Near returns the names that a word resembles.
func Near(names []string, word string) []string {
	if word == "" {
		return nil
	}
	c := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra compares the names of commands
	for _, name := range names {
		c.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return c.SuggestionsFor(word)
}

// unknownFlag gives an error about a flag its exit code, and says which flag may have been meant.
func unknownFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := unknown.GetSpecifiedName()
		if like := DidYouMean(Near(names, "--"+name)); len(name) > 1 && like != "" {
			err = fmt.Errorf("%w%s", err, like)
		} else if !c.HasParent() {
			err = fmt.Errorf("%w; flags of a command come after it; see %s --help", err, c.Name())
		} else {
			err = fmt.Errorf(
				"%w; see %s --help, and put -- before a name or a file that begins with a dash",
				err,
				c.CommandPath())
		}
	}
	return Fail(BadUsage, err)
}

// usage gives errors about arguments a sentence that names them, and the exit code of a wrong
// command line.
func usage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			switch {
			case err != nil:
				err = fmt.Errorf("%w; see %s --help", arguments(c, args, err), c.CommandPath())
			case slices.Contains(args, ""):
				err = fmt.Errorf("an argument is empty: %s", c.UseLine())
			}
			return Fail(BadUsage, err)
		}
	}
	for _, sub := range c.Commands() {
		usage(sub)
	}
}

// arguments returns an error that names the first argument that is missing or too much, or err.
func arguments(c *cobra.Command, args []string, err error) error {
	var want []string // as the line of the command's use names them
	for _, word := range strings.Fields(c.Use)[1:] {
		if strings.HasPrefix(word, "--") || strings.HasPrefix(word, "(") {
			break
		}
		want = append(want, word)
	}
	switch n := len(args); {
	case n < len(want) && !strings.HasPrefix(want[n], "["):
		return fmt.Errorf("%s is missing: %s", strings.TrimSuffix(want[n], "..."), c.UseLine())
	case n > len(want) && len(want) > 0:
		return fmt.Errorf("%q is one argument too many: %s", args[len(want)], c.UseLine())
	}
	return err
}

// Detail prints a sentence for a person who asks for more by --verbose.
func Detail(c *cobra.Command, format string, args ...any) {
	if Verbose(c) {
		Note(c, fmt.Sprintf(format, args...))
	}
}

// Verbose reports whether --verbose is given.
func Verbose(c *cobra.Command) bool {
	more, _ := c.Root().PersistentFlags().GetBool("verbose")
	return more
}

// Note prints a sentence for a person, unless --quiet is given.
func Note(c *cobra.Command, sentence string) {
	if quiet, _ := c.Root().PersistentFlags().GetBool("quiet"); quiet {
		return
	}
	sentence = strings.ReplaceAll(strings.TrimSpace(sentence), "\n", " ")
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", c.Root().Name(), sentence)
}

// Warn prints warnings for a person.
func Warn(c *cobra.Command, sentences ...string) {
	for _, s := range sentences {
		Note(c, "warning: "+s)
	}
}

// Count writes a number of things: 1 face, 2 faces.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case noun == "person":
		noun = "people"
	case strings.HasSuffix(noun, "y") && noun != "key" && noun != "day":
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
