// SPDX-License-Identifier: Apache-2.0

package safefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/safefile"
)

// Who asks whether a file is locked sees its owner, and no other asker; and leaves no lock.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	fixture.Check(t, os.WriteFile(path, nil, 0o600))
	one, two := fixture.Must(os.Open(path))(t), fixture.Must(os.Open(path))(t)
	defer one.Close()
	defer two.Close()
	if safefile.Locked(one) || safefile.Locked(two) {
		t.Error("nobody has locked it")
	}
	owner := fixture.Must(safefile.OpenLocked(path, 0))(t)
	if !safefile.Locked(one) || !safefile.Locked(two) {
		t.Error("it is locked")
	}
	fixture.Check(t, owner.Close())
	if safefile.Locked(one) {
		t.Error("its owner has ended")
	}
}
