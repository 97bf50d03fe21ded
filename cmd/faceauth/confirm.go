// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func newConfirm(o *options) *cobra.Command {
	var numbers []int64
	c := &cobra.Command{
		Use:   "confirm NAME",
		Short: "look at the learned faces of a person, and enrol them",
		Long: "Turns up to eight learned faces of a person into enrolled ones: faces of a turned head that no\n" +
			"enrolled face is near and that stand for most other faces. (Learned faces alone never confirm a\n" +
			"person.) You first get a page with their pictures, the farthest from the enrolled faces first. In a\n" +
			"terminal you are then asked; elsewhere, look at the page and name the right faces with --faces. The\n" +
			"page is next to the gallery, only you can read it, and it is removed after your answer.\n\n" +
			"Frontal faces far from the enrolled ones are not offered, because a film that changes one face into\n" +
			"another produces such faces. After a new beard or new glasses, use faceauth enroll --add.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: o.names,
		RunE: func(c *cobra.Command, args []string) error { return o.confirm(c, args[0], numbers) },
	}
	c.Flags().Int64SliceVar(&numbers, "faces", nil, "numbers of the faces to enrol, from the page; nothing is asked")
	return c
}

func (o *options) confirm(c *cobra.Command, name string, numbers []int64) error {
	path, err := o.galleryPath()
	if err != nil {
		return err
	}
	if len(numbers) == 0 {
		g, err := o.readGallery(path)
		if err != nil {
			return err
		}
		far, err := g.Unconfirmed(name)
		if err != nil {
			return cli.Fail(cli.Refused, fmt.Errorf("%w; see faceauth people", err))
		}
		if len(far) == 0 {
			fmt.Fprintf(c.OutOrStdout(), "nothing was learned of %s that may be confirmed\n", name)
			return nil
		}
		if numbers, err = o.ask(c, name, path, far); err != nil || len(numbers) == 0 {
			return err
		}
	}
	err = o.amend(c, func(g *gallery.Gallery) (bool, error) {
		err := g.Confirm(name, numbers, time.Now())
		if errors.Is(err, online.ErrUnknown) {
			err = fmt.Errorf("%w; see faceauth people", err)
		}
		if errors.Is(err, gallery.ErrNotOffered) {
			err = fmt.Errorf("%w; run faceauth people confirm again", err)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s of %s enrolled\n", cli.Count(len(numbers), "learned face"), name)
	return removeSheet(path)
}

// ask shows the faces, and returns the numbers of all if the user says that they are right, and else none.
func (o *options) ask(c *cobra.Command, name, path string, far []gallery.Offered) (numbers []int64, err error) {
	without := 0
	var list []string
	for _, f := range far {
		numbers, list = append(numbers, f.ID), append(list, strconv.FormatInt(f.ID, 10))
		if f.Picture == nil {
			without++
		}
	}
	if err := writeSheet(sheetOf(path), "confirm", struct {
		Name  string
		Cards []gallery.Offered
	}{name, far}); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.ErrOrStderr(), "pictures of %s of %s: %s\n", cli.Count(len(far), "learned face"), name,
		sheetOf(path))
	if without > 0 {
		cli.Warn(c,
			fmt.Sprintf("%s without a picture: nobody can judge a face without its picture; they were learned "+
				"with --no-pictures, or by an older version", cli.Count(without, "face")))
	}
	in, terminal := c.InOrStdin().(*os.File)
	if !terminal || !term.IsTerminal(int(in.Fd())) {
		return nil, cli.Fail(cli.Refused,
			fmt.Errorf("nothing was enrolled, because there is nobody here to ask: look at the "+
				"pictures, and run faceauth people confirm %q --faces %s with the numbers of the right ones", name,
				strings.Join(list, ",")))
	}
	fmt.Fprintf(c.ErrOrStderr(), "do all of them show %s? enrol them [y/N] ", name)
	line, err := bufio.NewReader(in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	if err == nil && slices.Contains([]string{"y", "yes"}, answer) {
		return numbers, nil
	}
	fmt.Fprintln(c.OutOrStdout(), "nothing was enrolled; to enrol some of them, name them with --faces; to take all "+
		"back, see faceauth people undo")
	return nil, removeSheet(path)
}

// sheetOf returns the path of the page with pictures for a gallery.
func sheetOf(gallery string) string { return gallery + ".confirm.html" }

// removeSheet removes the page with pictures for a gallery, if there is one.
func removeSheet(gallery string) error {
	if err := os.Remove(sheetOf(gallery)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the page with pictures: %w", err)
	}
	return nil
}
