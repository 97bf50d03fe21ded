// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
	"github.com/spf13/cobra"
)

// logins has the flags of faceauth login, which its commands share.
type logins struct {
	user, at string
	o        cli.Options
}

func newLogin() *cobra.Command {
	l := new(logins)
	c := &cobra.Command{
		Use:   "login",
		Short: "log in to this computer by face: enroll, try, status, history, undo, forget, allow",
		Long: "Login talks to the daemon (faceauth daemon) about logins by face.\n" +
			"Administrators can name another user with --user. People of offices and\n" +
			"recordings are enrolled by faceauth enroll. If a login does nothing: faceauth\n" +
			"doctor --login.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&l.user, "user", "", "user (default: you)")
	c.PersistentFlags().StringVar(&l.at, "socket", socket.Path, "socket of the daemon")
	c.PersistentFlags().MarkHidden("socket")
	l.o.JSONFlag(c.PersistentFlags())
	c.AddCommand(
		l.enroll(), allow(), notify(),
		l.look("try", "try a login: look into the camera", "match", "use your password",
			func(c *cobra.Command, tell func(string)) (string, error) {
				return l.client().Verify(c.Context(), l.user, tell)
			}),
		l.command("status", "show a user's profile, and whether a login is possible", cobra.NoArgs,
			l.status),
		l.history(), l.undo(),
		l.command("forget", "remove a profile and every trace of it", cobra.NoArgs,
			func(c *cobra.Command, _ []string) error {
				if err := l.client().Forget(c.Context(), l.user); err != nil {
					return err
				}
				return l.o.Print(c, map[string]bool{"forgotten": true}, "the profile is gone\n")
			}),
	)
	return c
}

func (l *logins) client() socket.Client {
	if os.Getenv("PKEXEC_UID") != "" { // whom polkit has made root does not choose who is told
		return socket.Path
	}
	return socket.Client(l.at)
}

// command makes a command that asks the daemon. About other users root alone may ask.
func (l *logins) command(use, short string, args cobra.PositionalArgs,
	run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args,
		RunE: func(c *cobra.Command, args []string) error {
			if l.user != "" && l.user != caller() || c.Name() == "enroll" {
				if err := l.asRoot(c); err != nil {
					return err
				}
			}
			err := run(c, args)
			var e *socket.Error
			if errors.As(err, &e) {
				return cli.Fail(cli.Refused, errors.New(words.Of(os.Getenv).Refusal(e.Name,
					e.Message, e.Wait)))
			}
			return err
		}}
}

// look makes the command for an action in which the daemon uses the camera.
func (l *logins) look(use, short, good, otherwise string,
	run func(*cobra.Command, func(string)) (string, error)) *cobra.Command {
	return l.command(use, short, cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		sentence := words.Of(os.Getenv).Sentence
		word, err := run(c, func(word string) { fmt.Fprintln(c.ErrOrStderr(), sentence(word)) })
		if err != nil {
			return err
		}
		if err := l.o.Print(c, map[string]string{"result": word}, "%s\n",
			sentence(word)); err != nil {
			return err
		}
		if word != good {
			return cli.Fail(cli.Refused, errors.New(otherwise))
		}
		return nil
	})
}

func (l *logins) enroll() *cobra.Command {
	more := false
	enroll := l.look("enroll", "show the device your face, in four poses", "enrolled",
		"nothing was enrolled; an earlier profile is unchanged",
		func(c *cobra.Command, tell func(string)) (string, error) {
			return l.client().Enroll(c.Context(), l.user, markOf(c, l.user), more, tell)
		})
	enroll.Long = "Enroll shows the device a user's face in four poses, so that the user can log " +
		"in with it. It needs\n" +
		"an administrator: run it with sudo and --user NAME, or without, and it asks for a " +
		"password by polkit.\n" +
		"The face counts at once. To enrol a person for recordings or an office: faceauth enroll."
	enroll.Example = "  sudo faceauth login enroll --user \"$USER\""
	enroll.Flags().BoolVar(&more, "add-look", false,
		"keep the enrolled faces and add another look of you, as with "+
			"glasses; twice at most")
	return enroll
}

func (l *logins) history() *cobra.Command {
	history := l.command("history", "show the latest attempts to log in as a user", cobra.NoArgs,
		func(c *cobra.Command, _ []string) error {
			events, err := l.client().History(c.Context(), l.user)
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, e := range events {
				fmt.Fprintf(&text, "%s  %s", e.At.Local().Format(time.DateTime),
					strings.ReplaceAll(e.Result, "-", " "))
				if e.Service != "" {
					fmt.Fprintf(&text, ", service %s", e.Service)
				}
				switch {
				case e.Outside:
					fmt.Fprintf(&text, ", from outside the sessions (%s)",
						cmp.Or(e.From, "unit not known"))
				case e.From != "":
					fmt.Fprintf(&text, ", from %s", e.From)
				}
				if e.Asker != 0 {
					fmt.Fprintf(&text, ", asked by user %d", e.Asker)
				}
				if e.Infrared {
					text.WriteString(", by infrared")
				}
				text.WriteString("\n")
			}
			return l.o.Print(c, events, "%s", text.String())
		})
	history.Long = "History shows when somebody tried to log in as a user by face, through which " +
		"service, from\n" +
		"which unit and terminal, with which result, and whether by the infrared camera, and " +
		"when the\n" +
		"password was given and a face enrolled. A login that saw no usable face is no attempt. " +
		"Who\n" +
		"starts a unit outside the sessions also chooses its name."
	return history
}

func (l *logins) undo() *cobra.Command {
	undo := l.command("undo SINCE", "take back the faces learned since a moment",
		cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
			since, err := moment(args[0], time.Now())
			if err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			n, err := l.client().Undo(c.Context(), l.user, since)
			if err != nil {
				return err
			}
			return l.o.Print(c, map[string]int{"faces": n}, "%s taken back\n",
				cli.Count(n, "learned face"))
		})
	undo.Long = "Undo takes back the faces learned since a moment, and keeps enrolled faces. " +
		"SINCE is a time such\n" +
		"as \"2026-11-20 17:30\", or a time span such as 90m or 12h."
	return undo
}

func (l *logins) status(c *cobra.Command, _ []string) error {
	s, err := l.client().Status(c.Context(), l.user)
	if err != nil {
		return err
	}
	had := fmt.Sprintf("enrolled %s with %s, %s learned since\n%s\n",
		s.Enrolled.Local().Format("2006-01-02 15:04"), cli.Count(s.Labelled, "face"),
		cli.Count(s.Learned, "face"), learning(s))
	return l.o.Print(c, s, "%s%s\n", had, may(s))
}

// asRoot runs this command anew by polkit, if this is not root and there is a daemon.
func (l *logins) asRoot(c *cobra.Command) error {
	if os.Geteuid() == 0 {
		return nil
	}
	_, err := l.client().Status(c.Context(), "")
	if errors.Is(err, socket.ErrNoService) {
		return err // without a request for a password that leads nowhere
	}
	pkexec, err := exec.LookPath("pkexec")
	self, unknown := os.Executable()
	if err != nil || unknown != nil {
		return cli.Fail(cli.Refused, errors.New(
			"an administrator is needed for that: run the command with sudo"))
	}
	args := append([]string{pkexec, self}, os.Args[1:]...)
	if l.user == "" {
		args = append(args, "--user", caller())
	}
	return fmt.Errorf("asking polkit for leave: %w", syscall.Exec(pkexec, args, os.Environ()))
}

// markOf returns the mark of a user's account; without it the next password binds the face.
func markOf(c *cobra.Command, user string) string {
	mark, err := socket.Mark(cmp.Or(user, "root"))
	if err != nil {
		cli.Warn(c, err.Error()+"; log in once with the password within a minute after your face")
	}
	return mark
}

// learning says whether a profile still learns.
func learning(s tablet.Status) string {
	if s.Drifted {
		return "the learned faces had moved far from the enrolled ones, so learning has stopped; " +
			"find out who uses this account, then: faceauth login undo 1000h, or enrol again"
	}
	return "it learns at each login that is sure"
}

// may says whether a login may begin.
func may(s tablet.Status) string {
	switch {
	case s.Refusal != "" && s.Wait > 0:
		return fmt.Sprintf("a login by face may begin in %s: %s", cli.Count(s.Wait, "second"),
			s.Refusal)
	case s.Refusal != "":
		return fmt.Sprintf("log in with the password first: %s", s.Refusal)
	}
	return "a login by face may begin"
}
