// SPDX-License-Identifier: Apache-2.0

// Package policy has the flags for the policy of logins: of the daemon, and of the laboratory that
// measures it. The eye has none, and links no code of logins.
package policy

import (
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/tablet"
	"github.com/spf13/cobra"
)

// Flags holds the values of the flags.
type Flags struct {
	Login tablet.Options // its policy and anchor
	// file that describes a network of the user's own; empty means the built-in one
	LivenessModel string
}

// PolicyFlags adds the flags.
func (l *Flags) PolicyFlags(c *cobra.Command) {
	f, p := c.Flags(), &l.Login.Policy
	f.StringVar((*string)(&p.Challenge), "challenge", "",
		"gesture that the user must make: turn (the head, to a random "+
			"side), turn-both (to both sides), or empty for none")
	f.DurationVar(&p.Deadline, "deadline", 0,
		"longest time of a login (default 5s, with a challenge 10s)")
	f.Float64Var(&l.Login.Anchor, "anchor", 0,
		"largest distance to the nearest enrolled face for a login (default: "+
			"1.075 times the impostor radius of the feature space)")
	f.StringVar(&l.LivenessModel, "liveness-model", "",
		"description (JSON) of a liveness network of your own")
	f.Float64Var(&p.MinLiveness, "min-liveness", models.Default(models.Liveness).Threshold,
		"least mean liveness for a login, 0 to 1; 0 accepts pictures of faces, too. The "+
			"description of your own network has its own default")
}

// Liveness returns the description of the liveness network. Without --min-liveness the policy uses
// the threshold of the description.
func (l *Flags) Liveness(c *cobra.Command) (d models.Description, err error) {
	d, err = models.Of(models.Liveness, l.LivenessModel)
	if err != nil {
		return d, cli.Fail(cli.BadModel, err)
	}
	if f := c.Flags().Lookup("min-liveness"); f != nil && !f.Changed {
		l.Login.Policy.MinLiveness = d.Threshold
	}
	return d, nil
}
