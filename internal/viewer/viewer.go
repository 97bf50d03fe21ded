// SPDX-License-Identifier: Apache-2.0

// Package viewer finds the faces of pictures that others send, in an eye.
package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"golang.org/x/sys/unix"
)

// ErrPicture is wrapped by an error about one picture, after which others can be looked at.
var ErrPicture = errors.New("the picture cannot be used")

// Viewer finds the faces of pictures, one after another. A picture is a file, in
// memory if the user has a folder there, only while the eye looks at it; [Sweep] removes
// what a program that was killed has left. It is safe for concurrent use; close it.
type Viewer struct {
	// Open opens a source in an eye that has opened nothing else. Drop ends that eye: the next Open
	// has another one.
	Open func(ctx context.Context, name string, o eye.Options) (*eye.Stream, error)
	Drop func()

	mu   sync.Mutex
	dir  string
	lock *os.File // of the folder; held while this program runs
}

// pictureFolder begins the names of folders with pictures.
const pictureFolder = "faceauth-picture-"

func pictureFolders() string {
	return cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir())
}

// Sweep removes the folders with pictures of programs of this user that were killed. A
// program calls it before it starts an eye.
func Sweep() {
	left, _ := filepath.Glob(filepath.Join(pictureFolders(), pictureFolder+"*"))
	for _, dir := range left {
		f, err := locked(dir)
		if err == nil {
			os.RemoveAll(dir)
			f.Close()
		}
	}
}

// locked locks a folder of this user. The error says that another program uses it, or that it is
// another user's.
func locked(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	if err == nil && int(info.Uid) != os.Geteuid() {
		err = os.ErrPermission
	}
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		_, err = os.Stat(dir) // a sweep may have removed it before it was locked
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// folder makes the folder of the pictures.
func (p *Viewer) folder() (err error) {
	if p.dir != "" {
		return nil
	}
	p.dir, err = os.MkdirTemp(pictureFolders(), pictureFolder)
	if err == nil {
		p.lock, err = locked(p.dir)
	}
	if err != nil {
		p.dir = ""
	}
	return err
}

// See finds the faces of a picture, whose name ends so. An error about the picture wraps
// [ErrPicture].
func (p *Viewer) See(ctx context.Context, picture []byte, end string,
	o eye.Options) (f face.Frame, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.folder(); err != nil {
		return f, fmt.Errorf("looking at the picture: %w", err)
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
	// the name of the file says nothing to those who sent it
	if _, rest, ok := strings.Cut(why, path+": "); ok {
		why = rest
	}
	return f, fmt.Errorf("%w: %s", ErrPicture, why)
}

// Close ends the eye, and removes the folder.
func (p *Viewer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Drop()
	if p.dir != "" {
		os.RemoveAll(p.dir)
		p.lock.Close()
	}
}
