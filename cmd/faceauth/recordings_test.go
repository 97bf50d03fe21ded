// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "eye" { // a test that runs a command in its own process started an eye
		main()
		return
	}
	testscript.Main(tests{m}, map[string]func(){"faceauth": main})
}

// tests runs all tests. The demo's recordings, which many tests use, are made once and removed at the end.
type tests struct{ m *testing.M }

func (a tests) Run() int {
	// Tests mostly wait for other processes.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", "4")
	}
	defer func() {
		if shared.folder != "" {
			os.RemoveAll(shared.folder)
		}
	}()
	return a.m.Run()
}

// long skips a test that make test leaves out, because it takes half a minute or more, mostly of waiting. make test-all
// and CI run it.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long; make test-all runs it")
	}
}

var shared struct {
	once           sync.Once
	stills, folder string
	err            error
}

// recordings returns two folders that no test may change: the demo's stills, and its recordings. The recordings are
// those of faceauth demo, and brief.avi, which is every sixth frame of recording.avi: everybody is in it, in a sixth of
// the time.
func recordings(t testing.TB) (stills, folder string) {
	t.Helper()
	shared.once.Do(func() { shared.err = record() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stills, shared.folder
}

func record() (err error) {
	if shared.stills, err = demo.Find(); err != nil {
		return err
	}
	if shared.folder, err = os.MkdirTemp("", "faceauth-test"); err != nil {
		return err
	}
	script, err := demo.Write(context.Background(), shared.stills, shared.folder)
	if err != nil {
		return err
	}
	brief := facedet.NewRecorder(filepath.Join(shared.folder, "brief.avi"), 15)
	i := 0
	err = eachFrame(context.Background(), script.Recording, func(p *facedet.Picture) error {
		if i++; i%6 != 1 {
			return nil
		}
		return brief.Write(p)
	})
	return errors.Join(err, brief.Close())
}

// eachFrame shows every frame of a recording.
func eachFrame(ctx context.Context, recording string, show func(*facedet.Picture) error) error {
	src, err := facedet.Open(ctx, recording, facedet.Options{})
	if err != nil {
		return err
	}
	defer src.Close()
	for {
		f, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = show(f.Image)
		f.Close()
		if err != nil {
			return err
		}
	}
}
