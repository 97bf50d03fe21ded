// SPDX-License-Identifier: Apache-2.0

// Package policy has the flags for the policy of logins: of the daemon, and of the laboratory that measures it. The eye
// has none, and links no code of logins.
package policy

import (
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet"
	"github.com/spf13/cobra"
)

// Flags holds the flags.
type Flags struct {
	Challenge     string
	Deadline      time.Duration
	Anchor        float64
	MinLiveness   float64
	LivenessModel string // file that describes a network of the user's own; empty means the built-in one
}

// PolicyFlags adds the flags.
func (l *Flags) PolicyFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.Challenge, "challenge", "", "gesture that the user must make: turn (the head, to a random side), "+
		"blink, or empty for none")
	f.DurationVar(&l.Deadline, "deadline", 0, "longest time of a login (default 5s, with a challenge 10s)")
	f.Float64Var(&l.Anchor, "anchor", 0, "largest distance to the nearest enrolled face for a login (default: 1.075 "+
		"times the impostor radius of "+
		"the feature space)")
	f.StringVar(&l.LivenessModel, "liveness-model", "", "description (JSON) of a liveness network of your own")
	f.Float64Var(&l.MinLiveness, "min-liveness", models.Default(models.Liveness).Threshold,
		"least mean liveness for a login, 0 to 1; 0 accepts pictures of faces, too. The description of your "+
			"own network has its own default")
}

// Liveness returns the description of the liveness network. Without --min-liveness the policy uses the threshold of the
// description.
func (l *Flags) Liveness(c *cobra.Command) (d models.Description, err error) {
	if d, err = models.Of(models.Liveness, l.LivenessModel); err != nil {
		return d, cli.Fail(cli.BadModel, err)
	}
	if f := c.Flags().Lookup("min-liveness"); f != nil && !f.Changed {
		l.MinLiveness = d.Threshold
	}
	return d, nil
}

// Policy returns the policy of the flags.
func (l *Flags) Policy() tablet.Policy {
	return tablet.Policy{Deadline: l.Deadline, Challenge: tablet.Challenge(l.Challenge), MinLiveness: l.MinLiveness}
}

// Tablet returns the options of an authenticator.
func (l *Flags) Tablet(s online.Settings) tablet.Options {
	return tablet.Options{Policy: l.Policy(), Learner: s, Anchor: l.Anchor}
}
