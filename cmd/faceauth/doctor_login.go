// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/internal/words"
	"github.com/faceauth/faceauth/tablet"
)

// loginFindings looks at everything that a login by face needs. Below root are the files of the
// system; getenv is the environment. The daemon was asked for the user's status.
func loginFindings(root string, getenv func(string) string, who string, status tablet.Status,
	asked error) (
	all cli.Findings) {
	check := func(ok bool, what, good, bad string) {
		if ok {
			all.Add("", what, nil, good)
		} else {
			all.Add(needed, what, errors.New(bad), "")
		}
	}
	glob := func(patterns ...string) (found []string) {
		for _, p := range patterns {
			m, _ := filepath.Glob(filepath.Join(root, p))
			found = append(found, m...)
		}
		return found
	}
	check(glob("usr/lib/systemd/system/faceauth.service",
		"etc/systemd/system/faceauth.service") != nil, "service",
		"faceauth.service is installed",
		"the unit faceauth.service is not installed: docs/login.md")
	var refused *socket.Error
	if asked != nil && (!errors.As(asked, &refused) || refused.Name == "Internal") {
		check(false, "daemon", "", asked.Error())
	} else {
		check(true, "daemon", "it answers", "")
		why := may(status)
		if refused != nil {
			why = words.Of(getenv).Refusal(refused.Name, refused.Message, refused.Wait)
		}
		check(asked == nil && status.Refusal == "", "account", who+
			" is enrolled, and bound to the account", who+": "+why)
	}
	check(glob("usr/lib/*/security/pam_faceauth.so", "usr/lib*/security/pam_faceauth.so") != nil,
		"module", "pam_faceauth.so is installed",
		"pam_faceauth.so is not installed: make pam, and sudo make install")
	var asks []string
	for _, path := range glob("etc/pam.d/*") {
		b, err := os.ReadFile(path)
		if err == nil && faceLine.Match(b) {
			asks = append(asks, filepath.Base(path))
		}
	}
	check(asks != nil, "PAM", "the module stands in "+strings.Join(asks, ", "),
		"no service asks: sudo pam-auth-update --enable faceauth faceauth-password")

	list, err := os.ReadFile(filepath.Join(root, "etc/faceauth/services"))
	if err != nil {
		check(false, "services", "", "the list cannot be read, so nobody is answered: "+err.Error())
		return all
	}
	listed := listedServices(list)
	var wanted []string
	if unit, err := os.Readlink(filepath.Join(root,
		"etc/systemd/system/display-manager.service")); err == nil {
		wanted = append(wanted, socket.Manages(filepath.Base(unit)))
	}
	desktop := getenv("XDG_CURRENT_DESKTOP")
	for _, s := range socket.Services {
		if s.Desktop != "" && strings.Contains(strings.ToUpper(desktop), s.Desktop) {
			wanted = append(wanted, s.Name)
		}
	}
	missed := slices.DeleteFunc(wanted, func(service string) bool {
		_, ok := listed[service]
		return ok || service == ""
	})
	check(len(missed) == 0, "services",
		"those of this system are listed: "+cmp.Or(desktop, "no desktop is running here"),
		"not in /etc/faceauth/services: run: sudo faceauth login allow "+
			strings.Join(slices.Compact(missed), " "))
	all.Note("root", rootAnswers(listed))
	looks, others := programs(root, listed)
	all.Note("ask for a face", cmp.Or(strings.Join(looks, ", "), "no program"))
	all.Note("do not", strings.Join(others, ", "))
	if len(glob("dev/tpmrm*")) == 0 {
		all.Note("key", "no TPM seals the key of the faces: it lies on the same disk, sealed by "+
			"this system's own key, so only an encrypted disk protects it")
	}
	if byID := glob("dev/v4l/by-id/*-index0"); len(byID) > 0 {
		all.Note("cameras", "names that do not change: "+strings.Join(byID, ", "))
	}
	switch {
	case status.Here:
		all.Note("terminal", "a face counts in this terminal")
	case asked == nil && os.Geteuid() == 0:
		all.Note("terminal", "unknown: run this without sudo")
	case asked == nil:
		all.Note("terminal", "this terminal runs outside the sessions, or elsewhere: a face "+
			"counts here only for a service with a challenge, as sudo turn, and only at the device")
	}
	return all
}

// programs returns the PAM services of the installed programs that ask for a face, and of the
// others.
func programs(root string, listed map[string]string) (looks, others []string) {
	seen := make(map[string]bool)
	for _, dir := range []string{"etc/pam.d", "usr/lib/pam.d"} {
		files, _ := os.ReadDir(filepath.Join(root, dir))
		for _, f := range files {
			name := f.Name()
			if seen[name] || strings.HasPrefix(name, "common-") || name == "other" {
				continue
			}
			seen[name] = true
			challenge, ok := listed[name]
			switch {
			case !ok || !reachesModule(root, name, 0):
				others = append(others, name)
			case challenge != "":
				looks = append(looks, name+" with "+challenge)
			default:
				looks = append(looks, name)
			}
		}
	}
	return looks, others
}

// faceLine matches a line of PAM with the module, and includeLine one that leads to the lines of
// another service.
var (
	faceLine    = regexp.MustCompile(`(?m)^\s*-?auth\s.*\bpam_faceauth\.so`)
	includeLine = regexp.MustCompile(`(?m)^\s*(?:@include|-?auth\s+(?:include|substack))\s+(\S+)`)
)

// reachesModule reports whether a PAM service asks the module, perhaps by the lines of others,
// which a wrong file may nest without end.
func reachesModule(root, service string, depth int) bool {
	if depth > 8 {
		return false
	}
	for _, dir := range []string{"etc/pam.d", "usr/lib/pam.d"} {
		b, err := os.ReadFile(filepath.Join(root, dir, filepath.Base(service)))
		if err != nil {
			continue
		}
		if faceLine.Match(b) {
			return true
		}
		for _, m := range includeLine.FindAllSubmatch(b, -1) {
			if reachesModule(root, string(m[1]), depth+1) {
				return true
			}
		}
		return false
	}
	return false
}

// listedServices returns the challenges of the services in a list, by their names.
func listedServices(list []byte) map[string]string {
	all := make(map[string]string)
	for _, f := range serviceLine.FindAllStringSubmatch(string(list), -1) {
		name, challenge := f[2], f[3]
		all[name] = challenge
	}
	return all
}

// rootAnswers says whether a face makes root.
func rootAnswers(listed map[string]string) string {
	var all []string
	for _, s := range socket.Services {
		if challenge, ok := listed[s.Name]; ok && s.Kind == socket.AsRoot {
			all = append(all, s.Name+" with "+cmp.Or(challenge, "no challenge"))
		}
	}
	if len(all) == 0 {
		return "a face makes nobody root; to change that: sudo faceauth login allow sudo " +
			"--challenge turn"
	}
	return "a face is answered for by " + strings.Join(all, ", ")
}

// loginHere says whether a login works, or the first reason why it does not.
func loginHere(ctx context.Context) (diagnosis, error) {
	who := caller()
	status, err := socket.Client(socket.Path).Status(ctx, who)
	d := diagnosed(loginFindings("/", os.Getenv, who, status, err))
	lookForCameras(&d.Findings)
	return d, nil
}

func diagnosed(all cli.Findings) diagnosis {
	for _, f := range all {
		if f.State == needed {
			return diagnosis{false, "a login by face does not work: " + f.What + ": " + f.Text, all,
				"a login by face does not work; the password does"}
		}
	}
	return diagnosis{true, "a login by face works here", all, ""}
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
