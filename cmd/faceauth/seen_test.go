// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/spf13/cobra"
)

// If no other eye can be opened after one that broke at a photograph, that is an error, and the
// counts stay.
func TestNoFurtherEye(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.jpg", "b.jpg", "c.jpg"} {
		fixture.Check(t, os.WriteFile(filepath.Join(folder, name), []byte{0xff}, 0o600))
	}
	var said bytes.Buffer
	c := new(cobra.Command)
	c.SetErr(&said)
	s := &seen{o: new(options), c: c, name: folder, still: true,
		before: face.Count{Declared: 3, Read: 1}, at: 1,
		open: func(context.Context, int) (*eye.Stream, error) { return nil, io.EOF }}
	_, err := s.after(t.Context(), eye.ErrBroken)
	if !errors.Is(err, io.EOF) || !strings.Contains(said.String(), "skipped: b.jpg") {
		t.Errorf("%v, %q", err, &said)
	}
	if n := s.Count(); !s.photographs() || n.Read != 1 || n.Damaged != 1 {
		t.Errorf("%+v", n)
	}
}
