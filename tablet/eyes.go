// SPDX-License-Identifier: Apache-2.0

package tablet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/input"
)

// EyeCamera opens cameras for an [Authenticator], each time in a new eye, because an attacked eye could show old faces
// again. The first of the devices that can be opened is the camera; its frames are turned. The end of a stream ends its
// eye.
func EyeCamera(c eye.Config, devices []string, rotate face.Rotation, log *slog.Logger) Camera {
	var told sync.Once
	open := func(ctx context.Context, device string, gate eye.Gate) (Stream, error) {
		e, err := eye.Start(ctx, c)
		if err != nil {
			return nil, err
		}
		// The context ends before this timeout. A login needs at most eight faces of a frame.
		stream, err := e.Open(ctx, device, eye.Options{Gate: gate, AsIs: true, Faces: 8, Live: true, Pace: true,
			Timeout: time.Minute, Rotate: rotate})
		if err != nil {
			e.Close()
			return nil, err
		}
		if r := e.Report(); r.Landlock == 0 || !r.Seccomp {
			told.Do(func() {
				log.Warn("the eye is not in the whole of its sandbox", "landlock", r.Landlock, "seccomp", r.Seccomp)
			})
		}
		return stream, nil
	}
	return func(ctx context.Context, gate eye.Gate) (Stream, error) {
		for i, device := range devices {
			stream, err := open(ctx, device, gate)
			if err == nil || ctx.Err() != nil || i == len(devices)-1 {
				return stream, err
			}
			log.Warn("trying the next camera", "source", input.Shown(device), "error", err)
		}
		return nil, errors.New("no camera is named; see --source")
	}
}
