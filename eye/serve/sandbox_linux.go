// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"github.com/faceauth/faceauth/internal/input"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/eye"
	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine sets the limits that hold from the start: memory, no written files, no core dump, and no access to this
// process by other processes of its user.
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

// sandbox gives up all rights that the eye no longer needs once its networks are open: it may read the roots, use a
// camera among them, and connect to a URL among them. Line is the number of the file for connections that the program
// makes. Without it, or on an old kernel, the eye may connect to the port of a URL on any machine and look up names.
// The report tells which protections are active: an old kernel has fewer.
func sandbox(roots []string, line int) (r eye.Report, err error) {
	var rules []landlock.Rule
	var ports []uint16
	camera, net := false, offline
	for _, name := range roots {
		if strings.Contains(name, "://") {
			net = byPort
			address, err := eye.Address(name)
			if err != nil {
				continue // the error comes when the URL is opened
			}
			if n, err := strconv.ParseUint(address[strings.LastIndexByte(address, ':')+1:], 10, 16); err == nil {
				ports = append(ports, uint16(n))
			}
			continue
		}
		if !input.IsRecording(name) {
			camera = true
			device := "/dev/video" + strings.TrimPrefix(name, "/dev/video")
			rules = append(rules, landlock.RWFiles(device).WithIoctlDev().IgnoreIfMissing())
			continue
		}
		rules = append(rules, readable(name)...)
	}
	if net == byPort && line >= 0 && relays() {
		if err := relay(line); err != nil {
			return r, fmt.Errorf("letting the program make connections: %w", err)
		}
		net = relayed
	}
	switch net {
	case relayed:
		// Checking a certificate reads these files.
		rules = append(rules, landlock.RODirs(certificates...).IgnoreIfMissing())
	case byPort:
		// Looking up a name reads these files, too.
		rules = append(
			rules,
			landlock.ROFiles("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf",
				"/etc/services",
				"/run/systemd/resolve/stub-resolv.conf").IgnoreIfMissing(),
			landlock.RODirs(append([]string{"/usr/lib", "/lib", "/usr/share/zoneinfo"}, certificates...)...).
				IgnoreIfMissing(),
			landlock.ConnectTCP(53),
		)
		for _, p := range ports {
			rules = append(rules, landlock.ConnectTCP(p))
		}
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
	if err := filter(camera, net); err != nil {
		return r, fmt.Errorf("restricting calls by seccomp: %w", err)
	}
	r.Seccomp = true
	return r, nil
}

// Available describes the sandbox on this kernel; the error tells why it is not complete.
func Available() (string, error) {
	abi, err := llsys.LandlockGetABIVersion()
	switch {
	case err != nil || abi == 0:
		return "", errors.New("this kernel has no Landlock, so a flaw in a decoder could read your files; " +
			"use Linux 5.13 or later, with landlock among lsm=")
	case abi < 4 && !relays():
		return "", fmt.Errorf("the Landlock of this kernel, version %d, does not bound the network, "+
			"so the eye of a network camera could connect elsewhere; use Linux 5.9 or later", abi)
	}
	return fmt.Sprintf("Landlock %d and seccomp", abi), nil
}

// certificates are the folders of trusted certificates.
var certificates = []string{"/etc/ssl", "/etc/ca-certificates", "/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates", "/etc/pki"}

// readable returns the rules for reading a file, or a folder and everything below it, and the targets of links in it.
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
