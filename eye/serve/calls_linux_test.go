// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"

	"github.com/faceauth/faceauth/internal/fixture"
)

// This call has different names on different processors, and os.Stat needs it.
func TestNeededHasStatOfEveryMachine(t *testing.T) {
	// Numbers of newfstatat, from the tables of the kernel: arch/x86/entry/syscalls/syscall_64.tbl
	// and include/uapi/asm-generic/unistd.h.
	for name, number := range map[string]int{"x86_64": 262, "aarch64": 79} {
		machine := fixture.Must(arch.GetInfo(name))(t)
		if !slices.ContainsFunc(needed, func(n string) bool {
			got, ok := machine.SyscallNames[n]
			return ok && got == number
		}) {
			t.Errorf("an eye on %s may not make the call %d, which it needs for os.Stat", name,
				number)
		}
	}
}
