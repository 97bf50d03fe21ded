// SPDX-License-Identifier: Apache-2.0

package socket_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/socket"
)

// The list that is installed has the services that are known, and none that makes people root.
func TestServices(t *testing.T) {
	b := fixture.Must(os.ReadFile("../../tablet/install/services"))(t)
	var listed, want []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "#" {
			listed = append(listed, f[0]+" "+f[1])
		}
	}
	for _, s := range socket.Services {
		if s.Kind != socket.AsRoot {
			want = append(want, string(s.Kind)+" "+s.Name)
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("the list has\n%s\nand known are\n%s", strings.Join(listed, "\n"),
			strings.Join(want, "\n"))
	}
}
