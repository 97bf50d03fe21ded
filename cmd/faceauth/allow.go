// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/tablet"
	"github.com/spf13/cobra"
)

func isRootService(name string) bool { return socket.Known(name).Kind == socket.AsRoot }

// together returns services with those by which the same commands ask: sudo -i does as sudo-i.
func together(services []string) (all []string) {
	for _, name := range services {
		for _, s := range []string{name, socket.Known(name).Also} {
			if s != "" && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// pamService matches the name of a PAM service.
var pamService = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,126}$`)

// allow returns the command that changes the list of PAM services.
func allow() *cobra.Command {
	var list, challenge string
	var off, greeter bool
	c := &cobra.Command{
		Use: "allow SERVICE...", Short: "let PAM services ask for a face, such as sudo (root only)",
		Args: cobra.MinimumNArgs(1),
		Long: "Allow lets PAM services ask for the face of a person in a session at the\n" +
			"device, or with --off no longer. sudo, su and polkit-1 are off until then, and\n" +
			"need a --challenge: turn (the head), or none. sudo means sudo -i, too, and su\n" +
			"means su -, which ask by services of their own.",
		Example: "  sudo faceauth login allow sudo --challenge turn\n" +
			"  sudo faceauth login allow sudo --off",
		RunE: func(c *cobra.Command, services []string) error {
			services = together(services)
			for _, name := range services {
				if !pamService.MatchString(name) {
					return cli.Fail(cli.BadUsage, fmt.Errorf(
						"%q is not the name of a file in /etc/pam.d", name))
				}
				if off || !isRootService(name) {
					continue
				}
				cli.Warn(c,
					fmt.Sprintf("whoever holds a photograph of you before the camera could "+
						"become root through %s; a challenge makes this much harder", name))
				if challenge == "" {
					return cli.Fail(cli.BadUsage,
						errors.New("give --challenge turn, or --challenge none "+
							"if a photograph may become root"))
				}
			}
			if challenge == "none" && !off && slices.ContainsFunc(services, isRootService) {
				cli.Warn(c, "without a challenge a face counts only in a session, and not in the "+
					"terminals of GNOME and KDE, which run outside it: there these services ask "+
					"for the password alone")
			}
			ask := challenge
			if ask == "none" {
				ask = ""
			}
			policy := tablet.Policy{Challenge: tablet.Challenge(ask)}
			if err := policy.Defaults().Check(); err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			b, err := os.ReadFile(list)
			if err != nil {
				return fmt.Errorf("reading the list of services: %w", err)
			}
			if err := safefile.Write(list,
				[]byte(allowed(string(b), services, ask, off, greeter))); err != nil {
				return fmt.Errorf("writing the list of services: %w; run the command with sudo",
					err)
			}
			return os.Chmod(list, 0o644) // lockers read it as their users
		},
	}
	c.Flags().StringVar(&list, "services", "/etc/faceauth/services", "list of the services")
	c.Flags().StringVar(&challenge, "challenge", "",
		"gesture that these services ask for: turn, turn-both (to both sides) or none")
	c.Flags().BoolVar(&greeter, "greeter", false,
		"these services belong to a display manager, and ask before anybody "+
			"has a session; known for those of GDM, SDDM, LightDM and others")
	c.Flags().BoolVar(&off, "off", false, "these services ask for no face any more")
	return c
}

// serviceLine matches a line of the list: kind, service and challenge.
var serviceLine = regexp.MustCompile(
	`(?m)^[ \t]*(session|greeter(?:-once)?)[ \t]+(\S+)[ \t]*(\S*).*\n?`)

// allowed returns a list of services with other lines for some of them.
func allowed(list string, services []string, challenge string, off, greeter bool) string {
	kinds := make(map[string]string)
	list = serviceLine.ReplaceAllStringFunc(strings.TrimSuffix(list, "\n")+"\n",
		func(line string) string {
			f := serviceLine.FindStringSubmatch(line)
			kind, name := f[1], f[2]
			if !slices.Contains(services, name) {
				return line
			}
			kinds[name] = kind
			return ""
		})
	for _, name := range services {
		kind := cmp.Or(kinds[name], "session")
		switch known := socket.Known(name).Kind; {
		case known == socket.Greeter || known == socket.GreeterOnce:
			kind = string(known)
		case greeter:
			kind = "greeter"
		}
		if !off {
			list += strings.TrimSpace(kind+" "+name+" "+challenge) + "\n"
		}
	}
	return list
}
