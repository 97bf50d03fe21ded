// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/input"
)

// eyeAge is how long an eye waits for the next login. The system ends eyes that are older, because they may hang.
const eyeAge = time.Minute

// Eyes opens cameras for an [Authenticator], each time in a new eye, because an attacked eye could show old faces
// again. For a minute after a login the next eye waits with its networks open. [NewEyes] makes one; close it after the
// Authenticator.
type Eyes struct {
	config  eye.Config
	devices []string // in the order in which they are tried
	rotate  face.Rotation
	log     *slog.Logger

	mu     sync.Mutex
	next   *eye.Eye
	closed bool
	told   bool // the report of the sandbox was logged
}

// NewEyes starts the first eye. The first of the devices that can be opened is the camera; its frames are turned.
func NewEyes(c eye.Config, devices []string, rotate face.Rotation, log *slog.Logger) *Eyes {
	s := &Eyes{config: c, devices: devices, rotate: rotate, log: log}
	s.renew()
	return s
}

// take returns the eye that is ready, or starts one.
func (s *Eyes) take(ctx context.Context) (*eye.Eye, error) {
	s.mu.Lock()
	e := s.next
	s.next = nil
	s.mu.Unlock()
	if e != nil {
		return e, nil
	}
	return eye.Start(ctx, s.config)
}

// renew starts the eye of the next login, which opens its networks before it is needed.
func (s *Eyes) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.next != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	e, err := eye.Start(ctx, s.config)
	if err != nil { // status, undo and forget need no camera and still work
		s.log.Warn("the eye cannot be started, so nobody is recognised", "error", err)
		return
	}
	s.next = e
	time.AfterFunc(eyeAge, func() { s.end(e) })
}

// end ends an eye that still waits.
func (s *Eyes) end(e *eye.Eye) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e != nil && s.next == e {
		s.next = nil
		e.Close()
	}
}

// looking is the stream of a login. Closing it ends its eye, and starts the next.
type looking struct {
	*eye.Stream
	eyes *Eyes
	once sync.Once
}

func (l *looking) Close() error {
	l.once.Do(func() {
		l.Stream.Close()
		l.eyes.renew()
	})
	return nil
}

// Camera is a [Camera].
func (s *Eyes) Camera(ctx context.Context, gate eye.Gate) (Stream, error) {
	for i, device := range s.devices {
		l, err := s.open(ctx, device, gate)
		switch {
		case err == nil:
			return l, nil
		case i == len(s.devices)-1 || ctx.Err() != nil:
			return nil, err
		}
		s.log.Warn("trying the next camera", "source", input.Shown(device), "error", err)
	}
	return nil, errors.New("no camera is named; see --source")
}

// open opens a camera. If an eye broke while it waited, it is replaced.
func (s *Eyes) open(ctx context.Context, device string, gate eye.Gate) (*looking, error) {
	for try := 1; ; try++ {
		e, err := s.take(ctx)
		if err != nil {
			return nil, err
		}
		// The context ends before this timeout. A login needs at most eight faces of a frame.
		stream, err := e.Open(ctx, device, eye.Options{Gate: gate, AsIs: true, Faces: 8, Live: true, Pace: true,
			Timeout: time.Minute, Rotate: s.rotate})
		if err == nil {
			s.report(e.Report())
			return &looking{Stream: stream, eyes: s}, nil
		}
		e.Close()
		if !eye.Broken(err) || try == 2 || ctx.Err() != nil {
			s.renew()
			return nil, err
		}
		s.log.Warn("restarting the eye", "error", err)
	}
}

// report logs once which protections the kernel does not have.
func (s *Eyes) report(r eye.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told && (r.Landlock == 0 || !r.Seccomp) {
		s.told = true
		s.log.Warn("the eye is not in the whole of its sandbox", "why",
			fmt.Sprintf("Landlock %d, seccomp %t", r.Landlock, r.Seccomp))
	}
}

// Close ends the waiting eye.
func (s *Eyes) Close() {
	s.mu.Lock()
	s.closed = true
	e := s.next
	s.mu.Unlock()
	s.end(e)
}
