// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Boot returns a name of this boot of the device, or "" if /proc has none, and the time since then.
func Boot() (name string, up time.Duration) {
	name = os.Getenv("FACEAUTH_BOOT")
	if name == "" {
		b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, the clock is trusted
		name = strings.TrimSpace(string(b))
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0
	}
	return name, time.Duration(t.Nano())
}

// Protect protects the faces in this process's memory: other processes of this user cannot read it, a crash does not
// write it to disk, and it is not swapped.
func Protect(log *slog.Logger) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		log.Warn("other processes of this user can read the faces in memory", "error", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		log.Warn("a crash would write down faces", "error", err)
	}
	// Pages are locked when they are first used, because most mapped pages are never used.
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		log.Warn("faces may get into swap; set LimitMEMLOCK=infinity, or encrypt the swap", "error", err)
	}
	if !strings.Contains(os.Getenv("GODEBUG"), "clobberfree=1") {
		log.Warn("memory of forgotten faces is not overwritten; set GODEBUG=clobberfree=1, as the unit does")
	}
}

// Wipe frees unused memory. Its content is overwritten if the program runs with GODEBUG=clobberfree=1, as the unit sets
// it.
func Wipe() {
	// Only the second collection frees buffers in a sync.Pool, such as those of package cbor.
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
}
