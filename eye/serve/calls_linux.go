// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"math"
	"os"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// needed are the system calls that every eye may make. They were recorded with strace while an eye
// decoded a video, pictures, and streams by HTTP and RTSP, with OpenCV 4.6. The calls that Go's
// runtime and other versions of glibc use instead are listed next to them. Names that a machine
// does not have are ignored.
var needed = []string{
	// Files. Landlock decides which ones; the limit for written files prevents writing. The rest of
	// /proc is closed.
	"read", "readv", "pread64", "write", "writev", "close", "lseek", "open", "openat", "getdents64",
	"getcwd",
	// The call newfstatat of amd64 is named fstatat on arm64.
	"stat", "lstat", "fstat", "newfstatat", "fstatat", "statx", "access", "faccessat", "faccessat2",
	"readlink",
	"readlinkat", "fadvise64",
	// Waiting.
	"poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait",
	"epoll_pwait", "epoll_pwait2",
	"eventfd2",
	// Memory.
	"munmap", "mremap", "madvise", "brk", "mincore", "membarrier",
	// Threads. Go stops them with signals to itself.
	"futex", "futex_waitv", "set_robust_list", "rseq", "set_tid_address", "sched_yield",
	"sched_getaffinity", "getcpu",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "rt_sigtimedwait",
	"restart_syscall", "exit",
	"exit_group",
	// Information about the process, and the time.
	"gettid", "getpid", "getuid", "geteuid", "getgid", "getegid", "getrlimit", "getrusage", "uname",
	"sysinfo",
	"getrandom",
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
	"times",
}

// connected are the further calls for a network camera. None of them accepts connections: nobody
// connects to an eye.
var connected = []string{
	"connect", "getsockopt", "setsockopt", "getsockname", "getpeername", "recvfrom", "recvmsg",
	"recvmmsg", "shutdown",
}

// Requests of ioctl that golang.org/x/sys has not.
const fionread, fionbio = 0x541b, 0x5421

// conditional are the calls that an eye may make with some arguments only. Each line is one allowed
// combination.
func conditional(camera, online bool) (all []seccomp.NameWithConditions) {
	may := func(name string, conditions ...seccomp.Condition) {
		all = append(all, seccomp.NameWithConditions{Name: name, Conditions: conditions})
	}
	is := func(argument uint32, value uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: seccomp.Equal, Value: value}
	}
	with := func(argument uint32, bit uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: seccomp.BitsSet, Value: bit}
	}
	without := func(argument uint32, bits uint64) seccomp.Condition {
		return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: bits}
	}
	// Threads and no processes: a process could outlive the eye. The filter cannot see the
	// arguments of clone3; glibc uses clone if the kernel has no clone3.
	may("clone", with(0, unix.CLONE_THREAD),
		without(0, unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWPID|
			unix.CLONE_NEWIPC|unix.CLONE_NEWUTS|unix.CLONE_NEWCGROUP))
	may("tgkill", is(0, uint64(os.Getpid())))
	// Code comes from files of the system only.
	may("mmap", without(2, unix.PROT_EXEC))
	may("mmap", without(2, unix.PROT_WRITE))
	may("mprotect", without(2, unix.PROT_EXEC))
	for _, command := range []uint64{unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
		unix.F_DUPFD_CLOEXEC} {
		may("fcntl", is(1, command))
	}
	// Names of threads and of memory, and calls of Go and the tests.
	for _, option := range []uint64{unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA,
		unix.PR_GET_DUMPABLE,
		unix.PR_GET_NO_NEW_PRIVS} {
		may("prctl", is(0, option))
	}
	may("prlimit64", is(2, 0)) // only reading limits
	// Questions whether a file is a terminal, and how much there is to read. A terminal that can be
	// written to allows worse.
	for _, request := range []uint64{unix.TCGETS, fionread, fionbio} {
		may("ioctl", is(1, request))
	}
	if camera {
		// Requests of Video4Linux: their second byte is V, 0x56. The kernel reads only the low 32
		// bits, and so does this.
		may("ioctl", with(1, 0x4000), with(1, 0x1000), with(1, 0x0400), with(1, 0x0200),
			without(1, 0xA900))
	}
	if !online {
		return all
	}
	stream, others := with(1, unix.SOCK_STREAM), // each kind is a bit
		without(1, math.MaxUint32&^(unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK))
	for _, family := range []uint64{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []uint64{0, unix.IPPROTO_TCP} {
			may("socket", is(0, family), stream, others, is(2, protocol))
		}
	}
	// Data that is sent with MSG_FASTOPEN makes a connection without a call of connect.
	may("sendto", without(3, unix.MSG_FASTOPEN))
	may("sendmsg", without(2, unix.MSG_FASTOPEN))
	may("sendmmsg", without(3, unix.MSG_FASTOPEN))
	return all
}

// relay lets the program at the other end of a socket answer all later calls of connect; it makes
// the connections itself. The error tells that this kernel cannot do that.
func relay(line int) error {
	if line < 0 || !relays() { // an eye of the system manager reads no URL
		return unix.ENOSYS
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	machine, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	// The filter that follows refuses calls of other architectures and of x32.
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.SyscallNames["connect"]), SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF},
	})
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, x := range raw {
		program[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	listener, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_TSYNC|
			unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
		uintptr(unsafe.Pointer(&p)))
	if e != 0 {
		return e
	}
	// No thread of this process may answer.
	defer unix.Close(int(listener))
	return unix.Sendmsg(line, []byte{1}, unix.UnixRights(int(listener)), nil, 0)
}

// relays reports whether this kernel lets a program answer calls of connect (Linux 5.9).
func relays() bool {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0,
		uintptr(unsafe.Pointer(&action)))
	var u unix.Utsname
	if e != 0 || unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major > 5 || major == 5 && minor >= 9
}

// firstNew is the number of the first system call of Linux 5.1. Later calls have the same number on
// all architectures, and libraries that use them work without them if the kernel reports that they
// are missing.
const firstNew = 424

// filter allows all threads of this process, for ever, only the system calls that an eye needs.
// Other calls are refused; calls of newer kernels are answered as an older kernel would.
func filter(camera, online bool) error {
	machine, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	names := needed
	if online {
		names = append(append([]string(nil), names...), connected...)
	}
	allowed := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	seen := make(map[int]bool) // two names of one call
	for _, name := range names {
		if number, ok := machine.SyscallNames[name]; ok && !seen[number] {
			seen[number] = true
			allowed.Names = append(allowed.Names, name)
		}
	}
	for _, c := range conditional(camera, online) {
		if _, ok := machine.SyscallNames[c.Name]; ok {
			allowed.NamesWithCondtions = append(allowed.NamesWithCondtions, c)
		}
	}
	missing := seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}
	for n, number := range machine.SyscallNames {
		if number >= firstNew && !seen[number] {
			seen[number] = true
			missing.Names = append(missing.Names, n)
		}
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionErrno,
			Syscalls: []seccomp.SyscallGroup{allowed, missing}},
	})
}
