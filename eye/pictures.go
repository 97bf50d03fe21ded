// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/faceauth/faceauth/face"
)

// ErrPicture is wrapped by an error about one picture, after which others can be looked at.
var ErrPicture = errors.New("the picture cannot be used")

// Pictures finds the faces of pictures that others send, one after another. A picture is a file, in memory if the user
// has a folder there, only while the eye looks at it. It is safe for concurrent use; close it.
type Pictures struct {
	// Open opens a source in an eye that has opened nothing else. Drop ends that eye: the next Open has another one.
	Open func(ctx context.Context, name string, o Options) (*Stream, error)
	Drop func()

	mu  sync.Mutex
	dir string
}

// See finds the faces of a picture, whose name ends so. An error about the picture wraps [ErrPicture].
func (p *Pictures) See(ctx context.Context, picture []byte, end string, o Options) (f face.Frame, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		p.dir, err = os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), "faceauth-picture-")
		if err != nil {
			return f, fmt.Errorf("looking at the picture: %w", err)
		}
	}
	path := filepath.Join(p.dir, "picture"+end)
	defer os.Remove(path)
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		return f, fmt.Errorf("looking at the picture: %w", err)
	}
	o.Roots = []string{p.dir}
	stream, err := p.Open(ctx, path, o)
	if err == nil {
		f, err = stream.Next(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	p.Drop() // whatever the picture has done to the eye
	why := err.Error()
	if _, rest, ok := strings.Cut(why, path+": "); ok { // the name of the file says nothing to those who sent it
		why = rest
	}
	return f, fmt.Errorf("%w: %s", ErrPicture, why)
}

// Close ends the eye, and removes the folder.
func (p *Pictures) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Drop()
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}
