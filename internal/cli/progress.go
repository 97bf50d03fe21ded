// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows the progress of long work, only on a terminal.
type Progress struct{ bar *progressbar.ProgressBar }

// NewProgress begins a bar with a number of steps; -1 if it is unknown.
func NewProgress(total int, what string) Progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return Progress{}
	}
	return Progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// Step counts a step.
func (p Progress) Step() {
	if p.bar != nil {
		p.bar.Add(1)
	}
}

// To sets the number of finished steps.
func (p Progress) To(n int) {
	if p.bar != nil {
		p.bar.Set(n)
	}
}

// End removes the bar.
func (p Progress) End() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
