// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/facedet"
	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confine sets what holds from the first moment: no memory beyond that, no file written, no core dump, and no look into
// this process by others of its user.
func confine(memory uint64) error {
	if memory == 0 {
		return errors.New("an eye has a limit of memory")
	}
	limits := []struct {
		what int
		name string
		most uint64
	}{
		{unix.RLIMIT_CORE, "core dumps", 0},
		{unix.RLIMIT_FSIZE, "written files", 0},
		{unix.RLIMIT_DATA, "memory", memory},
		{unix.RLIMIT_NOFILE, "open files", 256},
	}
	for _, l := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("limit of %s: %w", l.name, err)
		}
		most := min(l.most, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit of %s: %w", l.name, err)
		}
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// forbidden are the system calls that nothing in an eye needs. Each would be a way out of it, or into the kernel.
var forbidden = []string{
	"execve", "execveat", "fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "kill",
	"pidfd_open", "pidfd_getfd", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
	"unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
	"open_tree", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key",
	"keyctl", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
	"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid", "capset", "acct",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "iopl", "ioperm", "modify_ldt",
	"mknod", "mknodat", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "link", "linkat", "symlink",
	"symlinkat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "truncate", "syslog",
	"quotactl", "lookup_dcookie", "vhangup", "personality", "seccomp", "msgget", "semget", "shmget", "mq_open",
}

// offline are the system calls with which a process gets a socket that it was not given.
var offline = []string{"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4"}

// served are those with which one gets called by others, which a camera does not.
var served = []string{"socketpair", "listen", "accept", "accept4"}

// sandbox gives up what the eye needs no more once its networks are open: it may read roots, use a camera among them,
// and connect to the port of a URL among them. The report says what is in force: an old kernel has less to offer.
func sandbox(roots []string) (r eye.Report, err error) {
	var rules []landlock.Rule
	var ports []uint16
	for _, name := range roots {
		if scheme, _, ok := strings.Cut(name, "://"); ok {
			port, err := portOf(name, strings.ToLower(scheme))
			if err != nil {
				continue // what is wrong with the URL is said when it is opened
			}
			ports = append(ports, port)
			continue
		}
		if !facedet.IsRecording(name) {
			device := "/dev/video" + strings.TrimPrefix(name, "/dev/video")
			rules = append(rules, landlock.RWFiles(device).WithIoctlDev().IgnoreIfMissing())
			continue
		}
		rules = append(rules, readable(name)...)
	}
	online := len(ports) > 0
	if online {
		// A name is looked up, and a certificate checked.
		rules = append(rules,
			landlock.ROFiles("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
				"/run/systemd/resolve/stub-resolv.conf").IgnoreIfMissing(),
			landlock.RODirs("/etc/ssl", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/pki",
				"/usr/lib", "/lib", "/usr/share/zoneinfo").IgnoreIfMissing(),
			landlock.ConnectTCP(53))
		for _, p := range ports {
			rules = append(rules, landlock.ConnectTCP(p))
		}
	}
	if abi, err := llsys.LandlockGetABIVersion(); err == nil {
		r.Landlock = abi
	}
	if r.Landlock > 0 {
		// Of each version of the kernel, whatever it can.
		if err := landlock.V6.BestEffort().Restrict(rules...); err != nil {
			return r, fmt.Errorf("restricting files by Landlock: %w", err)
		}
	}
	names := forbidden
	if online {
		names = append(slices.Clone(names), served...)
	} else {
		names = append(slices.Clone(names), offline...)
	}
	if err := filter(names, online); err != nil {
		return r, fmt.Errorf("restricting calls by seccomp: %w", err)
	}
	r.Seccomp = true
	return r, nil
}

// Available says which parts of the sandbox this kernel has, or why it is not whole.
func Available() (string, error) {
	abi, err := llsys.LandlockGetABIVersion()
	switch {
	case err != nil || abi == 0:
		return "", errors.New("this kernel has no Landlock, so a flaw in a decoder could read your files; use Linux 5.13 or later, with landlock among lsm=")
	case abi < 4:
		return "", fmt.Errorf("the Landlock of this kernel, version %d, does not bound the network, so the eye of a network camera could connect elsewhere; use Linux 6.7 or later", abi)
	}
	return fmt.Sprintf("Landlock %d and seccomp", abi), nil
}

// filter refuses system calls by these names to every thread of this process, for ever. Online it refuses sockets that
// are none of the Internet.
func filter(names []string, online bool) error {
	machine, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	here := slices.DeleteFunc(slices.Clone(names), func(n string) bool { // a machine does not have all of them
		_, ok := machine.SyscallNames[n]
		return !ok
	})
	slices.Sort(here)
	refused := seccomp.SyscallGroup{Names: slices.Compact(here), Action: seccomp.ActionErrno}
	if online {
		refused.NamesWithCondtions = []seccomp.NameWithConditions{{Name: "socket", Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_INET}, {Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_INET6},
		}}}
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{refused}},
	})
}

// portOf returns the port that a URL of a camera means.
func portOf(name, scheme string) (uint16, error) {
	u, err := url.Parse(name)
	if err != nil {
		return 0, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "rtsp": "554", "rtsps": "322"}[scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return uint16(n), err
}

// readable returns the rules for a file or a folder with all that is below it, and for what links in it lead to.
func readable(name string) (rules []landlock.Rule) {
	seen := make(map[string]bool)
	var files, dirs []string
	var add func(path string)
	add = func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] {
			return // that it is not there is said when it is opened
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
