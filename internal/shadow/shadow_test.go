// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
)

// The hash is that of another program, for keys of all lengths.
func TestCrypt(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		fixture.Missing(t, "%v", err)
	}
	var keys []string
	for n := 1; n < 130; n += 3 {
		keys = append(keys, strings.Repeat("$y$j9T$Äb/.:x", 11)[:n])
	}
	c := exec.Command("openssl", "passwd", "-5", "-salt", "rounds=1000$faceauth", "-stdin")
	c.Stdin = strings.NewReader(strings.Join(keys, "\n") + "\n")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	if len(want) != len(keys) {
		t.Fatalf("%d hashes", len(want))
	}
	for i, k := range keys {
		if got := crypt(k); got != want[i] {
			t.Errorf("%q: %s, want %s", k, got, want[i])
		}
	}
}

func TestMark(t *testing.T) {
	if _, err := Mark(t.Context(), "nobody-at-all"); err == nil {
		t.Error("a user whom no system has")
	}
	for _, user := range []string{"0", "", "a:b", "-s"} {
		if m, err := Mark(t.Context(), user); err == nil {
			t.Errorf("%q: %s", user, m)
		}
	}
	if m, err := Mark(t.Context(), "nobody"); err != nil || !strings.HasPrefix(m, "$5$rounds=1000$faceauth$") {
		t.Errorf("%s, %v", m, err)
	}
}
