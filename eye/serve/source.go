// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"net"
	"net/url"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// openSource opens a source. It closes the sandbox before the first one.
func (s *server) openSource(ctx context.Context, q wire.Open[eye.Options]) error {
	how := q.Options
	if s.source != nil {
		s.source.Close()
		s.source, s.pipeline = nil, nil
	}
	s.open, s.told = q, time.Now()
	if len(how.Files) > 0 {
		cv.Reuse()
	}
	gate, ok := map[eye.Gate]preprocess.Gate{eye.Learn: preprocess.LearnGate,
		eye.Login: preprocess.LoginGate,
		eye.Enrol: preprocess.EnrolGate}[how.Gate]
	if !ok {
		return fmt.Errorf("unknown gate %q", how.Gate)
	}
	if how.AsIs {
		gate.MaxGain = 0
	}
	if how.Spare && (how.Gate != eye.Learn || s.liveness != nil) {
		return errors.New("faces cannot be held for a login, an enrolment or liveness scores")
	}
	if !s.sandboxed {
		var err error
		s.addresses, err = addresses(ctx, how, q.Name)
		if err != nil {
			return err // keep the sandbox open, so that the name can be looked up again
		}
		report, err := sandbox(how.Roots, s.line)
		if err != nil {
			return fmt.Errorf("the sandbox of the eye cannot be closed: %w", err)
		}
		s.sandboxed, s.report.Landlock, s.report.Seccomp = true, report.Landlock, report.Seccomp
	}
	open := facedet.Open
	if s.infrared {
		open = facedet.OpenInfrared
	}
	src, err := open(ctx, q.Name, facedet.Options{
		Timeout: how.Timeout, Address: s.addresses[q.Name], From: how.From,
		Files: how.Files, Series: how.Series,
		Damaged: func(_ string, err error) {
			s.send(wire.Message{Kind: wire.Damaged, Text: wire.Printable(err.Error())})
		}})
	if err != nil {
		return err
	}
	recording := input.IsRecording(q.Name)
	src = &reporting{Source: src, server: s, pace: how.Live && how.Pace && recording}
	clip := input.IsURL(q.Name) && src.Count().Declared > 0 // a film with an end behind a URL
	switch {
	case recording && how.Live && how.Pace, clip && how.Live:
		src = facedet.Live(src)
	case !recording && how.Live:
		src = facedet.Newest(src)
	}
	if how.FPS > 0 {
		src = facedet.Sampled(src, how.FPS)
	}
	if how.Shape != (image.Point{}) {
		src = facedet.Stretched(src, how.Shape)
	}
	src = pipeline.Upright(src, s.detector, s.extractor, how.Rotate)
	s.source = src
	o := pipeline.Options{
		Gate: gate, Picture: how.Picture, Liveness: s.liveness, Faces: how.Faces, Spare: how.Spare,
		Turns: how.Gate == eye.Enrol, Near: how.Gate != eye.Learn && !how.Crowd,
		Righted: how.Rotate == face.Auto,
		Mask:    how.Mask,
		Frame:   func() bool { return s.picture }, Width: cmp.Or(how.Width, 640),
		NoFaces: how.NoFaces,
	}
	s.pipeline = pipeline.New(src, s.detector, s.extractor, o)
	return s.send(wire.Message{Kind: wire.Opened, Report: s.report, Count: src.Count()})
}

// addresses returns the numeric addresses of the hosts of URLs, because the closed sandbox cannot
// look up names. The program looks up the name again for each connection. The error is about the
// URL that is being opened.
func addresses(ctx context.Context, how eye.Options, open string) (map[string]string, error) {
	all := make(map[string]string)
	for _, name := range how.Roots {
		if !input.IsURL(name) {
			continue
		}
		u, err := url.Parse(name)
		if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil {
			continue // the error comes when the URL is opened
		}
		within, cancel := context.WithTimeout(ctx, how.Timeout)
		found, err := net.DefaultResolver.LookupHost(within, u.Hostname())
		cancel()
		switch {
		case err == nil && len(found) > 0:
			all[name] = found[0]
		case name == open:
			var failed *net.DNSError
			if errors.As(err, &failed) {
				err = errors.New(failed.Err)
			}
			return nil, fmt.Errorf("opening source %s: the name %s cannot be found: %w",
				input.Shown(name), u.Hostname(), err)
		}
	}
	return all, nil
}

// reporting is a source that reports progress while no frame reaches the program. Frames of a live
// source come from another goroutine: it reports nothing for them.
type reporting struct {
	facedet.Source
	server *server
	pace   bool
	begun  time.Time
}

// progressEvery is the time between two reports of progress.
const progressEvery = time.Second

func (r *reporting) Next(ctx context.Context) (*facedet.Frame, error) {
	f, err := r.Source.Next(ctx)
	s := r.server
	if err != nil || s.open.Options.Live && !r.pace {
		return f, err
	}
	if r.begun.IsZero() {
		r.begun = time.Now()
	}
	wait := time.Duration(0)
	if r.pace {
		wait = max(0, f.Time-time.Since(r.begun))
	}
	if wait > progressEvery || time.Since(s.told) > progressEvery {
		s.told = time.Now()
		s.send(wire.Message{Kind: wire.Progress, Count: s.count(), Wait: wait})
	}
	return f, nil
}

// count returns the numbers of frames of the source.
func (s *server) count() face.Count {
	if s.source == nil {
		return face.Count{Declared: -1}
	}
	return s.source.Count()
}
