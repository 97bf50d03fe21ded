// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/socket"
	"github.com/spf13/cobra"
)

// systemRoot is where doctor looks for files of the system; tests look elsewhere.
const systemRoot = "/"

// finding is a row of doctor --login.
type finding struct {
	State string `json:"state"` // ok, or no: a login by face does not work for this reason, or else note
	What  string `json:"what"`
	Text  string `json:"text"`
}

// desktops are the PAM services that a desktop asks, by a part of $XDG_CURRENT_DESKTOP: to unlock the screen.
var desktops = []struct{ part, service string }{
	{"GNOME", "gdm-password"}, {"KDE", "kde"}, {"X-CINNAMON", "cinnamon-screensaver"}, {"MATE", "mate-screensaver"},
	{"XFCE", "xfce4-screensaver"}, {"SWAY", "swaylock"}, {"HYPRLAND", "hyprlock"}, {"PHOSH", "phosh"},
	{"COSMIC", "cosmic-greeter"}, {"I3", "i3lock"},
}

// answered is how the daemon has answered questions about a user.
type answered struct {
	status tablet.Status
	err    error // of the status
	here   error // nil if this program is at the device
}

// loginFindings looks at everything that a login by face needs. Below root are the files of the system; getenv is the
// environment.
func loginFindings(root string, getenv func(string) string, who string, d answered) (all []finding) {
	add := func(what string, bad error, good string) {
		if bad != nil {
			all = append(all, finding{"no", what, bad.Error()})
			return
		}
		all = append(all, finding{"ok", what, good})
	}
	note := func(what, text string) { all = append(all, finding{"note", what, text}) }
	glob := func(patterns ...string) (found []string) {
		for _, p := range patterns {
			m, _ := filepath.Glob(filepath.Join(root, p))
			found = append(found, m...)
		}
		return found
	}
	var missing error
	if len(glob("usr/lib/systemd/system/faceauth.service", "lib/systemd/system/faceauth.service",
		"etc/systemd/system/faceauth.service")) == 0 {
		missing = errors.New("the unit faceauth.service is not installed: docs/login.md")
	}
	add("service", missing, "faceauth.service is installed")
	var e *socket.Error
	switch refused := errors.As(d.err, &e); {
	case d.err != nil && !refused:
		add("daemon", d.err, "")
	case refused && e.Name == "Internal":
		add("daemon", errors.New(e.Message), "")
	default:
		add("daemon", nil, "it answers")
		switch {
		case refused:
			add("account", fmt.Errorf("%s: %s", who, words.Of(getenv).Refusal(e.Name, e.Message, e.Wait)), "")
		case d.status.Refusal != "":
			add("account", fmt.Errorf("%s: %s", who, may(d.status)), "")
		default:
			add("account", nil, who+" is enrolled, and bound to the account")
		}
	}
	var module error
	if len(glob("lib/*/security/pam_faceauth.so", "usr/lib/*/security/pam_faceauth.so", "lib/security/pam_faceauth.so",
		"usr/lib/security/pam_faceauth.so", "usr/lib64/security/pam_faceauth.so")) == 0 {
		module = errors.New("pam_faceauth.so is not installed: make pam, and sudo make install")
	}
	add("module", module, "pam_faceauth.so is installed")
	var asks []string
	for _, path := range glob("etc/pam.d/*") {
		b, err := os.ReadFile(path)
		if err == nil && regexp.MustCompile(`(?m)^\s*-?auth\s.*\bpam_faceauth\.so`).Match(b) {
			asks = append(asks, filepath.Base(path))
		}
	}
	var off error
	if len(asks) == 0 {
		off = errors.New("no service asks: sudo pam-auth-update --enable faceauth faceauth-password")
	}
	add("PAM", off, "the module stands in "+strings.Join(asks, ", "))

	list, err := os.ReadFile(filepath.Join(root, "etc/faceauth/services"))
	if err != nil {
		add("services", fmt.Errorf("the list cannot be read, so nobody is answered: %w", err), "")
		return all
	}
	listed := listedServices(list)
	var missed []string
	wanted := func(service string) {
		if _, ok := listed[service]; !ok && service != "" {
			missed = append(missed, service)
		}
	}
	if unit, err := os.Readlink(filepath.Join(root, "etc/systemd/system/display-manager.service")); err == nil {
		wanted(socket.Greeters[filepath.Base(unit)])
	}
	desktop := getenv("XDG_CURRENT_DESKTOP")
	for _, d := range desktops {
		if strings.Contains(strings.ToUpper(desktop), d.part) {
			wanted(d.service)
		}
	}
	var unlisted error
	if len(missed) > 0 {
		unlisted = fmt.Errorf("not in /etc/faceauth/services: run: sudo faceauth login allow %s",
			strings.Join(slices.Compact(missed), " "))
	}
	add("services", unlisted, "those of this system are listed: "+cmp.Or(desktop, "no desktop is running here"))
	note("root", rootAnswers(listed))
	switch placed := errors.As(d.here, &e); {
	case d.here == nil:
		note("terminal", "a face counts in this terminal")
	case placed && e.Name == "Elsewhere":
		note("terminal", "this terminal runs outside the sessions, or elsewhere: a face counts here only for a service "+
			"with a challenge, as sudo turn, and only at the device")
	default:
		note("terminal", "unknown: "+d.here.Error())
	}
	return all
}

// listedServices returns the challenges of the services in a list, by their names.
func listedServices(list []byte) map[string]string {
	all := make(map[string]string)
	for line := range bytes.Lines(list) {
		f := strings.Fields(string(line))
		if len(f) > 1 && (f[0] == "session" || f[0] == "greeter") {
			all[f[1]] = strings.Join(f[2:], " ")
		}
	}
	return all
}

// rootAnswers says whether a face makes root.
func rootAnswers(listed map[string]string) string {
	var all []string
	for _, name := range rootServices {
		if challenge, ok := listed[name]; ok {
			all = append(all, name+" with "+cmp.Or(challenge, "no challenge"))
		}
	}
	if len(all) == 0 {
		return "a face makes nobody root; to change that: sudo faceauth login allow sudo --challenge turn"
	}
	return "a face is answered for by " + strings.Join(all, ", ")
}

// verdict is the first line: whether a login works, or the first reason why it does not.
func verdict(all []finding) (works bool, text string) {
	for _, f := range all {
		if f.State == "no" {
			return false, "a login by face does not work: " + f.What + ": " + f.Text
		}
	}
	return true, "a login by face works here"
}

// doctorLogin prints what a login needs, with the verdict in the first line. An error follows if it does not work.
func (o *options) doctorLogin(c *cobra.Command) error {
	who, d, client := caller(), answered{here: errors.New("run this without sudo")}, socket.Client(socket.Path)
	d.status, d.err = client.Status(c.Context(), who)
	if os.Geteuid() != 0 { // root may ask from everywhere
		d.here = client.Here(c.Context())
	}
	all := loginFindings(systemRoot, os.Getenv, who, d)
	all = append(all, cameraFindings()...)
	works, text := verdict(all)
	if o.JSON {
		if err := o.Print(c, map[string]any{"works": works, "verdict": text, "findings": all}, ""); err != nil {
			return err
		}
	} else {
		w := c.OutOrStdout()
		fmt.Fprintln(w, text)
		for _, f := range all {
			fmt.Fprintf(w, "%-4s  %s: %s\n", f.State, f.What, f.Text)
		}
	}
	if !works {
		return errors.New("a login by face does not work; the password does")
	}
	return nil
}

// caller returns the name of the user who is concerned: with sudo, the one who ran it.
func caller() string {
	if name := os.Getenv("SUDO_USER"); name != "" && os.Geteuid() == 0 {
		return name
	}
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// cameraFindings tells of each camera whether it is an infrared one, by the formats that it offers.
func cameraFindings() (all []finding) {
	devices, _ := filepath.Glob("/dev/video*")
	if len(devices) == 0 {
		return []finding{{"note", "camera", "there is no /dev/video*; the daemon may have another --source"}}
	}
	for _, path := range devices {
		c, err := cameraOf(path)
		switch {
		case errors.Is(err, fs.ErrPermission):
			all = append(all, finding{"note", path, "you may not ask it; run this with sudo"})
		case err != nil:
			all = append(all, finding{"note", path, err.Error()})
		case len(c.Formats) == 0: // the data about the pictures of another camera
		case c.infrared:
			all = append(all, finding{"note", path, c.Name + ": infrared; try it: faceauth doctor --infrared " + path})
		default:
			all = append(all, finding{"note", path, c.Name + ": in colour"})
		}
	}
	return all
}
