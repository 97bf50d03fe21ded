// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/bus"
	"github.com/spf13/cobra"
)

func newTablet() *cobra.Command {
	var user string
	var o cli.Options
	c := &cobra.Command{
		Use:   "tablet",
		Short: "ask the daemon: enrol, verify, undo, freeze, follow, forget",
		Long: "Tablet talks to the daemon (faceauth daemon) about your logins. Administrators can name another\n" +
			"user with --user.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&user, "user", "", "user (default: you)")
	o.JSONFlag(c.PersistentFlags())

	// ask calls f with a connection to the daemon.
	ask := func(c *cobra.Command, f func(*bus.Client) error) error {
		client, err := bus.Dial(c.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		err = f(client)
		var e *bus.Error
		if errors.As(err, &e) {
			return fail(refused, errors.New(words.Of(os.Getenv).Refusal(e.Name, e.Message, e.Wait)))
		}
		return err
	}
	// command makes a command that asks the daemon.
	command := func(use, short string, run func(*cobra.Command, *bus.Client) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				return ask(c, func(client *bus.Client) error { return run(c, client) })
			}}
	}
	// look makes the command for an action in which the daemon uses the camera.
	look := func(use, short, good, otherwise string,
		run func(*bus.Client, *cobra.Command, func(string)) (string, error)) *cobra.Command {
		return command(use, short, func(c *cobra.Command, client *bus.Client) error {
			sentence := words.Of(os.Getenv).Sentence
			word, err := run(client, c, func(word string) { fmt.Fprintln(c.ErrOrStderr(), sentence(word)) })
			if err != nil {
				return err
			}
			if err := o.Print(c, map[string]string{"result": word}, "%s\n", sentence(word)); err != nil {
				return err
			}
			if word != good {
				return fail(refused, errors.New(otherwise))
			}
			return nil
		})
	}
	known, more := false, false
	enroll := look("enroll", "show the device your face, in four poses", "enroll-completed",
		"nothing was enrolled; an earlier profile is unchanged",
		func(client *bus.Client, c *cobra.Command, tell func(string)) (string, error) {
			switch {
			case more:
				return client.AddLook(c.Context(), user, tell)
			case known:
				return client.EnrollRoot(c.Context(), user, tell)
			}
			return client.Enroll(c.Context(), user, tell)
		})
	enroll.Flags().BoolVar(&known, "i-know", false, "enrol root, too: a photograph of that face could become root")
	enroll.Flags().BoolVar(&more, "add-look", false, "keep the enrolled faces and add another look of you, as with "+
		"glasses; twice at most")
	history := command("history", "show the latest attempts to log in as a user",
		func(c *cobra.Command, client *bus.Client) error {
			events, err := client.History(c.Context(), user)
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, e := range events {
				fmt.Fprintf(&text, "%s  %s", e.At.Local().Format(time.DateTime), e.Result)
				if e.Service != "" {
					fmt.Fprintf(&text, ", service %s", e.Service)
				}
				if e.Asker != 0 {
					fmt.Fprintf(&text, ", asked by user %d", e.Asker)
				}
				if e.Infrared {
					text.WriteString(", by infrared")
				}
				text.WriteString("\n")
			}
			return o.Print(c, events, "%s", text.String())
		})
	history.Long = "History shows when somebody tried to log in as a user by face, through which service, with\n" +
		"which result, and whether by the infrared camera, and when the password was given and a face\n" +
		"enrolled. A login that saw no usable face is no attempt."
	undo := &cobra.Command{
		Use: "undo SINCE", Short: "take back the faces learned since a moment", Args: cobra.ExactArgs(1),
		Long: "Undo takes back the faces learned since a moment, and keeps enrolled faces. SINCE is a time such\n" +
			"as \"2026-11-20 17:30\", or a time span such as 90m or 12h.",
		RunE: func(c *cobra.Command, args []string) error {
			since, err := moment(args[0], time.Now())
			if err != nil {
				return fail(badUsage, err)
			}
			return ask(c, func(client *bus.Client) error {
				n, err := client.Undo(c.Context(), user, since)
				if err != nil {
					return err
				}
				return o.Print(c, map[string]uint32{"faces": n}, "%s taken back\n", count(int(n), "learned face"))
			})
		},
	}
	off := false
	freeze := command("freeze", "stop learning; --off starts it again",
		func(c *cobra.Command, client *bus.Client) error {
			if err := client.Freeze(c.Context(), user, !off); err != nil {
				return err
			}
			sentence := "nothing is learned any more"
			if off {
				sentence = "learning goes on"
			}
			return o.Print(c, map[string]bool{"frozen": !off}, "%s\n", sentence)
		})
	freeze.Flags().BoolVar(&off, "off", false, "start learning again, also after the drift alarm has stopped it")
	c.AddCommand(
		enroll, allow(),
		look("verify", "try a login", "verify-match", "use your password",
			func(client *bus.Client, c *cobra.Command, tell func(string)) (string, error) {
				return client.Verify(c.Context(), user, tell)
			}),
		command("status", "show a user's profile, and whether a login is possible",
			func(c *cobra.Command, client *bus.Client) error {
				s, err := client.Status(c.Context(), user)
				if err != nil {
					return err
				}
				had := fmt.Sprintf("enrolled %s with %s, %s learned since\n%s\n",
					s.Enrolled.Local().Format("2006-01-02 15:04"), count(int(s.Labelled), "face"),
					count(int(s.Learned), "face"), learning(s))
				if s.Labelled == 0 {
					had = "no face that this device has seen is enrolled\n"
				}
				if s.Fleet != nil {
					had += following(*s.Fleet) + "\n"
				}
				return o.Print(c, s, "%s%s\n", had, may(s))
			}),
		history, undo, freeze, follow(&user, ask, &o),
		command("forget", "remove a profile and every trace of it", func(c *cobra.Command, client *bus.Client) error {
			if err := client.Forget(c.Context(), user); err != nil {
				return err
			}
			return o.Print(c, map[string]bool{"forgotten": true}, "the profile is gone\n")
		}),
		command("users", "list the users with a profile (administrators only)",
			func(c *cobra.Command, client *bus.Client) error {
				users, err := client.Users(c.Context())
				if err != nil {
					return err
				}
				return o.Print(c, users, "%s", strings.Join(append(users, ""), "\n"))
			}),
		command("health", "print the memory use of the daemon (root only)",
			func(c *cobra.Command, client *bus.Client) error {
				h, err := client.Health(c.Context())
				if err != nil {
					return err
				}
				return o.Print(c, h, "%d MB resident, %s\n", h.Resident>>20, count(int(h.Sessions), "verification"))
			}),
	)
	return c
}

// learning says whether a profile still learns.
func learning(s bus.Status) string {
	switch {
	case s.Drifted:
		return "the learned faces had moved far from the enrolled ones, so learning has stopped; find out who uses " +
			"this account, then: faceauth tablet undo, or freeze --off"
	case s.Frozen:
		return "nothing is learned; to let it go on: faceauth tablet freeze --off"
	}
	return "it learns at each login that is sure"
}

// may says whether a login may begin.
func may(s bus.Status) string {
	switch {
	case s.Labelled == 0 && (s.Fleet == nil || s.Fleet.Faces == 0):
		return "a login by face is not possible: there is no enrolled face"
	case s.Labelled == 0 && s.Refusal == "":
		return "log in once by face and password: look into the camera, and give the password within a minute; then " +
			"the face alone will do"
	case s.Refusal != "" && s.Wait > 0:
		return fmt.Sprintf("a login by face may begin in %s: %s", count(int(s.Wait), "second"), s.Refusal)
	case s.Refusal != "":
		return fmt.Sprintf("log in with the password first: %s", s.Refusal)
	}
	return "a login by face may begin"
}

// heard is how long follow waits for an answer of the fleet's process.
const heard = 10 * time.Second

func follow(user *string, ask func(*cobra.Command, func(*bus.Client) error) error, o *cli.Options) *cobra.Command {
	var person string
	var off, share bool
	c := &cobra.Command{
		Use: "follow", Short: "connect an account with a person of a fleet (administrators only)", Args: cobra.NoArgs,
		Long: "Follow connects a user's logins with a person of a fleet. This device must take part in the fleet\n" +
			"(faceauth fleet tablet). The first login needs face and password, later logins need the face\n" +
			"alone. Who is forgotten in the fleet is forgotten here. --off removes everything that came from\n" +
			"the fleet. docs/tablet.md says how far you can rely on it.",
		Example: "  sudo faceauth tablet follow --user alice --person 0123456789abcdef0123456789abcdef\n" +
			"  sudo faceauth tablet follow --user alice --off",
		RunE: func(c *cobra.Command, _ []string) error {
			if off == (person != "") || off && share {
				return fail(badUsage, errors.New("give --person NUMBER, which faceauth people --fleet shows on "+
					"another device, or --off"))
			}
			return ask(c, func(client *bus.Client) error {
				if err := client.Follow(c.Context(), *user, person, share); err != nil {
					return err
				}
				if off {
					return o.Print(c, map[string]bool{"follows": false}, "this account follows nobody any more\n")
				}
				s, err := client.Status(c.Context(), *user)
				for end := time.Now().Add(heard); err == nil && s.Fleet != nil && s.Fleet.Word == "" &&
					time.Now().Before(end); s, err = client.Status(c.Context(), *user) {
					select {
					case <-c.Context().Done():
						return c.Context().Err()
					case <-time.After(200 * time.Millisecond):
					}
				}
				if err != nil {
					return err
				}
				if s.Fleet == nil {
					return fail(refused, errors.New("the account follows nobody: another administrator has ended it "+
						"meanwhile"))
				}
				return o.Print(c, s.Fleet, "%s\n%s\n", following(*s.Fleet), may(s))
			})
		},
	}
	c.Flags().StringVar(&person, "person", "", "number of the person, or the name that the fleet shows; it is looked "+
		"up once")
	c.Flags().BoolVar(&share, "share", false, "share the faces that faceauth tablet enroll takes of this user with "+
		"the fleet")
	c.Flags().BoolVar(&off, "off", false, "follow nobody, and remove everything that came from the fleet")
	return c
}

// following describes the state of an account that follows a person of a fleet.
func following(f tablet.FleetStatus) string {
	who := f.Number
	switch {
	case who == "":
		who = fmt.Sprintf("%q", f.Asked)
	case f.Asked != f.Number:
		who = fmt.Sprintf("%s (%q)", f.Number, f.Asked)
	}
	had := fmt.Sprintf("follows %s of the fleet: %s from there", who, count(int(f.Faces), "face"))
	if f.Enrolled > 0 {
		had += fmt.Sprintf(", on which %s seen here rest", count(int(f.Enrolled), "face"))
	}
	if f.Share {
		had += "; faces enrolled here are given to it"
	}
	since := f.Since.Local().Format("2006-01-02 15:04")
	switch {
	case f.Revoked:
		return had + "; the fleet does not let this device in any more: it was revoked"
	case f.Word == bus.InStep:
		return had + "; in step since " + since
	case f.Word == bus.Away:
		return had + "; the fleet is not reached since " + since + ", and what is here holds"
	case f.Word == bus.Nobody:
		return had + "; the fleet has nobody of that name or number: see faceauth people --fleet on another device"
	case f.Word == bus.Keyless:
		return had + "; this device has no key of the person yet: it must be invited with --people and that number, " +
			"or for all people, and a device that has the key must be there"
	case f.Word == bus.OtherSpace:
		return had + "; the fleet's faces of this person are of another feature space, and cannot be used here"
	}
	return had + "; nothing was heard of the fleet since the daemon started: systemctl status faceauth-fleet"
}
