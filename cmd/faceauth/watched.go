package main

import (
	"context"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/spf13/cobra"
)

// roomWarning returns a function that says, once each time, that a learner has no room for another centroid.
func roomWarning(c *cobra.Command, l *online.Learner) func() {
	said := l.Full() // then the warnings at the start have said it
	return func() {
		if full := l.Full(); full != said {
			said = full
			if full {
				warn(c, fmt.Sprintf("k = %d is full: faces are recognised, and no longer learned; use a larger --k, or people undo", l.Settings().K))
			}
		}
	}
}

// watched is what a source gives, for a program that watches it for as long as it likes.
type watched struct {
	*pipeline.Pipeline
	source facedet.Source
}

func (w watched) Close() error { return w.source.Close() }

// Dropped implements [office.Stream].
func (w watched) Dropped() int { return w.Count().Dropped }

// watch opens a source for v. With pace, a recording is played as a camera would give it.
func (v *vision) watch(ctx context.Context, name string, timeout time.Duration, pace bool, opt pipeline.Options) (*watched, error) {
	src, err := facedet.Open(ctx, name, facedet.Options{Timeout: timeout})
	if err != nil {
		return nil, err
	}
	src = live(src, name, pace)
	return &watched{pipeline.New(src, v.detector, v.extractor, opt), src}, nil
}

// live returns the source of that name as it shows what is now: a camera's newest frame and, with pace, a recording's at its
// own pace.
func live(src facedet.Source, name string, pace bool) facedet.Source {
	switch recording := facedet.IsRecording(name); {
	case recording && pace:
		return facedet.Live(src)
	case !recording:
		return facedet.Newest(src)
	}
	return src
}
