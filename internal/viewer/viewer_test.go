// SPDX-License-Identifier: Apache-2.0

package viewer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/viewer"
)

// A program that begins to look at pictures removes those of programs that were killed, and of no
// other.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	killed := filepath.Join(dir, "faceauth-picture-1")
	fixture.Check(t, os.Mkdir(killed, 0o700))
	fixture.Check(t, os.WriteFile(filepath.Join(killed, "picture.jpg"), []byte("a face"), 0o600))
	other := filepath.Join(dir, "other")
	fixture.Check(t, os.Mkdir(other, 0o700))
	fixture.Check(t, os.Symlink(other, filepath.Join(dir, "faceauth-picture-link")))

	refused := errors.New("no eye")
	seen := ""
	p := viewer.Viewer{Drop: func() {},
		Open: func(_ context.Context, name string, _ eye.Options) (*eye.Stream, error) {
			viewer.Sweep() // as another program does
			_, err := os.Stat(name)
			if err != nil {
				t.Errorf("the picture that is looked at is gone: %v", err)
			}
			seen = name
			return nil, refused
		}}
	_, err := p.See(t.Context(), []byte("a face"), ".jpg", eye.Options{})
	if !errors.Is(err, viewer.ErrPicture) || seen == "" {
		t.Errorf("%q: %v", seen, err)
	}
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a folder behind a link: %v", err)
	}
	p.Close()
	if left := fixture.Must(filepath.Glob(filepath.Join(dir,
		"faceauth-picture-?*")))(t); len(left) > 1 {
		t.Errorf("%v are left", left)
	}
}
