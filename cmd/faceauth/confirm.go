// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/spf13/cobra"
)

func newConfirm(o *options) *cobra.Command {
	var numbers []int64
	c := &cobra.Command{
		Use:   "confirm NAME",
		Short: "look at the learned faces of a person, and enrol them",
		Long: "Turns up to eight learned faces of a person into enrolled ones: faces of a turned head that no\n" +
			"enrolled face is near and that stand for most other faces. (Learned faces alone never confirm a\n" +
			"person.) You first get a page with their pictures, the farthest from the enrolled faces first. Look\n" +
			"at it, and name the right faces with --faces. The page is next to the gallery, only you can read\n" +
			"it, and the next change of the gallery removes it.\n\n" +
			"Frontal faces far from the enrolled ones are not offered, because a film that changes one face into\n" +
			"another produces such faces. After a new beard or new glasses, use faceauth enroll --add.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: o.names,
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if len(numbers) == 0 {
				return o.offer(c, name)
			}
			err := o.amend(c, func(g *gallery.Gallery) (bool, error) {
				err := g.Confirm(name, numbers, time.Now())
				if errors.Is(err, gallery.ErrNotOffered) {
					err = fmt.Errorf("%w; run faceauth people confirm again", err)
				}
				return true, err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s of %s enrolled\n", cli.Count(len(numbers), "learned face"), name)
			return nil
		},
	}
	c.Flags().Int64SliceVar(&numbers, "faces", nil, "numbers of the faces to enrol, from the page")
	return c
}

// offer writes a page with the faces that may be confirmed, and says how to enrol them.
func (o *options) offer(c *cobra.Command, name string) error {
	g, err := o.openGallery(c)
	if err != nil {
		return err
	}
	defer g.Close()
	far, err := g.Unconfirmed(name)
	if err != nil {
		return cli.Fail(cli.Refused, fmt.Errorf("%w; see faceauth people", err))
	}
	if len(far) == 0 {
		fmt.Fprintf(c.OutOrStdout(), "nothing was learned of %s that may be confirmed\n", name)
		return nil
	}
	without := 0
	var list []string
	for _, f := range far {
		list = append(list, strconv.FormatInt(f.ID, 10))
		if f.Picture == nil {
			without++
		}
	}
	if err := writeSheet(sheetOf(g.Path()), "confirm", struct {
		Name  string
		Cards []gallery.Offered
	}{name, far}); err != nil {
		return err
	}
	if without > 0 {
		cli.Warn(c, fmt.Sprintf("%s without a picture, which were learned with --no-pictures: nobody can judge a face "+
			"without its picture", cli.Count(without, "face")))
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "pictures of %s of %s: %s\nto enrol the right ones: faceauth people confirm %q "+
		"--faces %s\nto take back what was learned: see faceauth people undo\n", cli.Count(len(far), "learned face"), name,
		sheetOf(g.Path()), name, strings.Join(list, ","))
	return err
}

// sheetOf returns the path of the page with pictures for a gallery.
func sheetOf(gallery string) string { return gallery + ".confirm.html" }
