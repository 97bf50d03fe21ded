// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/policy"
	"github.com/faceauth/faceauth/internal/socket"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// login holds the flags of logins.
type login struct {
	options
	policy.Flags
	devices        []string
	infrared       string
	turn           face.Rotation
	store, keyFile string
	eye, socket    string
	idle           time.Duration
}

func newDaemon() *cobra.Command {
	var o login
	c := &cobra.Command{
		Use:   "daemon",
		Short: "serve logins by face",
		Long: "Daemon tells other programs (PAM, screen lockers, faceauth login) at a socket\n" +
			"whether the person in front of the camera is a user of this device. It opens\n" +
			"the camera only for a request. systemd starts it at the first one;\n" +
			"docs/login.md says how to install it.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.serve(c) },
	}
	c.Flags().StringArrayVar(&o.devices, "source", []string{"0"},
		"camera, or a recording, which is played at its own "+
			"speed; give it again for a camera that is used if those before cannot be opened")
	c.Flags().StringVar(&o.infrared, "infrared", "",
		"infrared camera whose emitter flashes, or a recording of raw frames: it alone decides "+
			"the logins of users who were enrolled with it, also in the dark")
	o.turn = "0"
	cli.RotateFlag(c, &o.turn,
		"`degrees` by which the pictures of the camera are turned clockwise: 0, 90, 180, "+
			"270, or auto, which decides by five pictures at the beginning of each login and "+
			"takes longer (default 0)")
	c.Flags().StringVar(&o.eye, "eye", "",
		"Unix socket at which the system starts eyes, the processes that use the "+
			"camera (default: a child of the "+
			"daemon)")
	c.Flags().StringVar(&o.socket, "socket", socket.Path, "socket of the daemon")
	c.Flags().DurationVar(&o.idle, "idle", 10*time.Minute,
		"end after this time without a request; 0 for never")
	c.Flags().StringVar(&o.store, "store", "/var/lib/faceauth/profiles",
		"file of the encrypted profiles")
	c.Flags().StringVar(&o.keyFile, "key-file", "",
		"file of the key, 32 random bytes (default: faceauth-key in "+
			"$CREDENTIALS_DIRECTORY, where the unit has it)")
	o.NetworkFlags(c)
	o.PolicyFlags(c)
	o.LearnerFlags(c)
	return c
}

func (o *login) serve(c *cobra.Command) error {
	log := slog.New(slog.NewTextHandler(c.ErrOrStderr(),
		&slog.HandlerOptions{ReplaceAttr: func(groups []string,
			a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{} // the journal has its own times
			}
			return a
		}}))
	protect(log)
	look, err := o.eyeConfig(c)
	if err != nil {
		return err
	}
	space := look.Space
	opt := o.Login
	opt.Learner = o.settings(c, online.Settings{})
	if opt.Policy.MinLiveness == 0 {
		log.Warn("the liveness check is off: a picture of a user can log in; see --min-liveness")
	}
	opt.Log, opt.UID, opt.Boot, opt.Wipe = log, socket.UID, boot, wipe
	camera := eyeCamera(look, o.devices, o.turn, log)
	if o.infrared != "" {
		look.Space, look.Vision.Infrared, look.Vision.Liveness = space.Infrared(), true, false
		opt.Infrared = eyeCamera(look, []string{o.infrared}, o.turn, log)
	}
	served := socket.Options{Log: log, Idle: o.idle}
	var a *tablet.Authenticator
	store, err := o.openStore(space)
	switch {
	case errors.Is(err, profile.ErrBusy):
		return cli.Fail(cli.BadGallery, err)
	case err != nil: // whoever asks is told, and does not wait for a daemon that cannot start
		log.Error("nobody is recognised: the store cannot be used", "error", err)
		served.Broken, served.Idle = err, brokenIdle
	default:
		defer store.Close()
		a, err = tablet.New(store, space, camera, opt)
		if err != nil {
			return cli.Fail(cli.BadUsage, err)
		}
	}
	l, err := socket.Listen(o.socket)
	if err != nil && served.Broken != nil {
		return cli.Fail(cli.BadGallery, served.Broken)
	}
	if err != nil {
		return fmt.Errorf("listening for requests: %w", err)
	}
	if a != nil {
		log.Info("ready", "sources", len(o.devices), "deadline", a.Policy().Deadline,
			"challenge", opt.Policy.Challenge, "min_liveness", opt.Policy.MinLiveness)
	}
	return socket.Serve(c.Context(), l, a, served)
}

// brokenIdle is how long a daemon without a store waits for the next request: the daemon after it
// tries again.
const brokenIdle = 5 * time.Second

// openStore opens the store with its key.
func (o *login) openStore(space face.Space) (*profile.Store, error) {
	key, err := profile.ReadKey(cmp.Or(o.keyFile,
		filepath.Join(os.Getenv("CREDENTIALS_DIRECTORY"), "faceauth-key")))
	if err != nil && o.keyFile == "" {
		err = fmt.Errorf("%w; the unit faceauth.service has it, and --key-file names another", err)
	}
	if err != nil {
		return nil, err
	}
	return profile.Open(o.store, key, space)
}

// eyeConfig says how faces are found for a login: by the networks, whatever it costs to be without.
// It checks their files: a missing one must be found now, and not by a login.
func (o *login) eyeConfig(c *cobra.Command) (eye.Config, error) {
	o.Features, o.Detector = "embedding", "network"
	// what opens a door was measured with it
	o.DetectorModel = cmp.Or(o.DetectorModel, models.Default(models.Detector).Name)
	v, err := o.Plan(nil, func(string) {})
	if err != nil {
		return eye.Config{}, err
	}
	v.Config.Socket = o.eye
	if o.Login.Policy.MinLiveness > 0 {
		d, err := o.Liveness(c)
		if err != nil {
			return v.Config, err
		}
		if err := d.Missing(o.Models); errors.Is(err, models.ErrMissing) {
			return v.Config, cli.Fail(cli.BadModel,
				fmt.Errorf("%w; it tells faces from pictures: without it, and with "+
					"--min-liveness 0, a picture of a user is let in", err))
		}
		v.Networks = append(v.Networks, d)
		v.Config.Vision.Liveness, v.Config.Vision.LivenessModel = true, o.LivenessModel
	}
	return v.Config, o.VerifyNetworks(v.Networks)
}

// eyeCamera opens cameras for logins, each time in a new eye, because an attacked eye could show
// old faces again. The first of the devices that can be opened is the camera; its frames are
// turned. The end of a stream ends its eye.
func eyeCamera(c eye.Config, devices []string, rotate face.Rotation,
	log *slog.Logger) tablet.Camera {
	var told sync.Once
	open := func(ctx context.Context, device string, gate eye.Gate) (tablet.Stream, error) {
		e, err := eye.Start(ctx, c)
		if err != nil {
			return nil, err
		}
		// The context ends before this timeout. A login needs at most eight faces of a frame.
		stream, err := e.Open(ctx, device,
			eye.Options{Gate: gate, AsIs: true, Faces: 8, Live: true, Pace: true,
				Timeout: time.Minute, Rotate: rotate})
		if err != nil {
			e.Close()
			return nil, err
		}
		if r := e.Report(); r.Landlock == 0 || !r.Seccomp {
			told.Do(func() {
				log.Warn("the eye is not in the whole of its sandbox", "landlock", r.Landlock,
					"seccomp", r.Seccomp)
			})
		}
		return stream, nil
	}
	return func(ctx context.Context, gate eye.Gate) (tablet.Stream, error) {
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

// boot returns a name of this boot of the device, or "" if /proc has none, and the time since then.
func boot() (name string, up time.Duration) {
	name = os.Getenv("FACEAUTH_BOOT")
	if name == "" {
		b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, the clock is trusted
		name = strings.TrimSpace(string(b))
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0
	}
	return name, time.Duration(t.Nano())
}

// protect protects the faces in this process's memory: other processes of this user cannot read it,
// a crash does not write it to disk, and it is not swapped.
func protect(log *slog.Logger) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		log.Warn("other processes of this user can read the faces in memory", "error", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		log.Warn("a crash would write down faces", "error", err)
	}
	// Pages are locked when they are first used, because most mapped pages are never used.
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		log.Warn("faces may get into swap; set LimitMEMLOCK=infinity, or encrypt the swap", "error",
			err)
	}
	if !strings.Contains(os.Getenv("GODEBUG"), "clobberfree=1") {
		log.Warn("memory of forgotten faces is not overwritten; set GODEBUG=clobberfree=1, as " +
			"the unit does")
	}
}

// wipe frees unused memory. Its content is overwritten if the program runs with
// GODEBUG=clobberfree=1, as the unit sets it.
func wipe() {
	// Only the second collection frees buffers in a sync.Pool, such as those of package cbor.
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
}
