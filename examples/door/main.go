// SPDX-License-Identifier: Apache-2.0

// Command door opens a door for people whom it recognises.
//
//	go run ./examples/door alice=alice.avi bob=bob.avi 0
//
// It takes four good faces of each person from a recording, and then watches the last source, which
// may be a camera, a recording or a URL. It prints a line when the door opens.
//
// A door must not be misled by faces that it has seen, so it learns nothing: every verdict rests on
// the enrolled faces. One frame is not enough to open it: two clearly different views of a person
// who stays in view must match.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/faceauth/faceauth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "door:", err)
		stop()
		os.Exit(1)
	}
}

// shut is the time after which the door can open for the same person again.
const shut = 5 * time.Second

func run(ctx context.Context, out io.Writer, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("usage: door NAME=RECORDING... SOURCE")
	}
	r, err := faceauth.New(faceauth.Options{Frozen: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	last := len(args) - 1
	for _, arg := range args[:last] {
		name, recording, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: write NAME=RECORDING", arg)
		}
		if _, err := r.Enroll(ctx, name, recording); err != nil {
			return err
		}
	}
	opened := map[string]time.Duration{} // when it opened for each person last
	for f, err := range r.Watch(ctx, args[last]) {
		if err != nil {
			return err
		}
		at, before := opened[f.Name]
		if !f.Confirmed || before && f.At-at < shut { // a name alone does not open a door
			continue
		}
		opened[f.Name] = f.At
		fmt.Fprintf(out, "%6.1f s  the door opens for %s\n", f.At.Seconds(), f.Name)
	}
	return nil
}
