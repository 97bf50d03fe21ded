// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newFleetFollow() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "follow",
		Short: "keep a gallery up to date with the fleet, and give keys of people to other devices",
		Long: "Follow takes part in the fleet until it is interrupted, as faceauth office --fleet does, but\n" +
			"without a camera. It updates the gallery from the fleet, and the fleet from the gallery, whenever\n" +
			"either changes.\n\n" +
			"The server has no keys of people: a device that was away gets keys from another device. If no\n" +
			"office runs all the time, run follow on one machine.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.follow(c) },
	}
	o.galleryFlag(c)
	deviceFolderFlag(c.Flags(), &o.member.state, "state")
	return c
}

// follow keeps a gallery and the fleet in step until the context ends.
func (o *options) follow(c *cobra.Command) (err error) {
	path, err := o.galleryPath()
	if err != nil {
		return err
	}
	space, s, err := o.spaceOf(path)
	if err != nil {
		return err
	}
	o.member.fleet = true
	part, err := o.member.join(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.close()) }()
	g, err := fleet.OpenGallery(path, space, s)
	if err != nil {
		return fail(badGallery, err)
	}
	defer func() { err = errors.Join(err, fail(badGallery, g.Close())) }()
	err = part.Follow(c.Context(), g, func(x fleet.Reconciled) {
		fmt.Fprintf(c.OutOrStdout(), "%s taken from the fleet, %d told to it; %s known\n",
			count(x.Took, "change"), x.Published, count(len(x.People), "person"))
	}, func(reached bool) {
		if reached {
			fmt.Fprintln(c.ErrOrStderr(), "faceauth: the fleet is reached")
		} else {
			fmt.Fprintln(c.ErrOrStderr(), "faceauth: the fleet is not reached; it is tried again")
		}
	})
	if errors.Is(err, fleet.ErrRevoked) {
		return memberFailure(err)
	}
	return fail(badGallery, err)
}

// spaceOf returns the feature space and the settings of a gallery, or of a new gallery if there is none.
func (o *options) spaceOf(path string) (face.Space, online.Settings, error) {
	g, err := gallery.Read(path)
	if err == nil {
		defer g.Close()
		return g.Space(), g.Learner().Settings(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return face.Space{}, online.Settings{}, fail(badGallery, err)
	}
	d, err := o.Embedding()
	if err != nil {
		return face.Space{}, online.Settings{}, err
	}
	return d.Space(), online.Settings{}, nil
}
