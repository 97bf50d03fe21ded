// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows the progress of long work, only on a terminal.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress begins a bar with a number of steps; -1 if it is unknown.
func newProgress(total int, what string) progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return progress{}
	}
	return progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

func (p progress) step() {
	if p.bar != nil {
		p.bar.Add(1)
	}
}

// to sets the number of finished steps.
func (p progress) to(n int) {
	if p.bar != nil {
		p.bar.Set(n)
	}
}

func (p progress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
