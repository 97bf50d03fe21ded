// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine sets the limits that hold from the start: memory, no written files, no core dump, and no
// access to this process by other processes of its user.
func confine(memory uint64) error {
	if memory == 0 {
		return errors.New("an eye needs a memory limit")
	}
	limits := []struct {
		resource int
		name     string
		most     uint64
	}{
		{unix.RLIMIT_CORE, "core dumps", 0},
		{unix.RLIMIT_FSIZE, "written files", 0},
		{unix.RLIMIT_DATA, "memory", memory},
		{unix.RLIMIT_NOFILE, "open files", 256},
	}
	for _, l := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("limit of %s: %w", l.name, err)
		}
		most := min(l.most, now.Max)
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit of %s: %w", l.name, err)
		}
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// sandbox gives up all rights that the eye no longer needs once its networks are open: it may read
// the roots, use a camera among them, and use the connections that the program makes for a URL
// among them. Line is the number of the file for these. The report tells which protections are
// active: an old kernel has fewer.
func sandbox(roots []string, line int) (r wire.Report, err error) {
	var rules []landlock.Rule
	camera, online := false, false
	for _, name := range roots {
		switch {
		case strings.Contains(name, "://"):
			online = true
		case !input.IsRecording(name):
			camera = true
			device := "/dev/video" + strings.TrimPrefix(name, "/dev/video")
			rules = append(rules, landlock.RWFiles(device).WithIoctlDev().IgnoreIfMissing())
		default:
			rules = append(rules, readable(name)...)
		}
	}
	if online {
		if err := relay(line); err != nil {
			return r, fmt.Errorf(
				"letting the program make connections, for which it needs Linux 5.9: %w", err)
		}
		// Checking a certificate reads these files.
		rules = append(rules, landlock.RODirs(certificates...).IgnoreIfMissing())
	}
	if abi, err := llsys.LandlockGetABIVersion(); err == nil {
		r.Landlock = abi
	}
	if r.Landlock > 0 {
		// Use all protections that this kernel has.
		if err := landlock.V6.BestEffort().Restrict(rules...); err != nil {
			return r, fmt.Errorf("restricting files by Landlock: %w", err)
		}
	}
	if err := filter(camera, online); err != nil {
		return r, fmt.Errorf("restricting calls by seccomp: %w", err)
	}
	r.Seccomp = true
	return r, nil
}

// Available describes the sandbox on this kernel; the error tells why it is not complete.
func Available() (string, error) {
	abi, err := llsys.LandlockGetABIVersion()
	if err != nil || abi == 0 {
		return "", errors.New(
			"this kernel has no Landlock, so a flaw in a decoder could read your files; " +
				"use Linux 5.13 or later, with landlock among lsm=")
	}
	return fmt.Sprintf("Landlock %d and seccomp", abi), nil
}

// certificates are the folders of trusted certificates.
var certificates = []string{"/etc/ssl", "/etc/ca-certificates", "/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates", "/etc/pki"}

// readable returns the rules for reading a file, or a folder and everything below it, and the
// targets of links in it.
func readable(name string) (rules []landlock.Rule) {
	seen := make(map[string]bool)
	var files, dirs []string
	var add func(path string)
	add = func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] {
			return // the error comes when it is opened
		}
		seen[real] = true
		info, err := os.Stat(real)
		switch {
		case err != nil:
		case !info.IsDir():
			files = append(files, real)
		default:
			dirs = append(dirs, real)
			filepath.WalkDir(real, func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.Type()&fs.ModeSymlink != 0 {
					add(p)
				}
				return nil
			})
		}
	}
	add(name)
	if len(files) > 0 {
		rules = append(rules, landlock.ROFiles(files...).IgnoreIfMissing())
	}
	if len(dirs) > 0 {
		rules = append(rules, landlock.RODirs(dirs...).IgnoreIfMissing())
	}
	return rules
}
