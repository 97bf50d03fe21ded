// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs lists the other processes that have a file open, as far as this user may see them.
func programs(path string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		process := filepath.Dir(filepath.Dir(f))
		number := filepath.Base(process)
		if target, err := os.Readlink(f); err != nil || target != path || number == fmt.Sprint(os.Getpid()) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		all = append(all, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), number))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
