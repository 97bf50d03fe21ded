package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

func newPeople() *cobra.Command {
	var o options
	list := func(c *cobra.Command, _ []string) error {
		path, err := o.galleryPath()
		if err != nil {
			return err
		}
		g, err := gallery.Read(path)
		people := []gallery.Person{}
		switch {
		case errors.Is(err, fs.ErrNotExist): // nobody is enrolled
		case err != nil:
			return fail(badGallery, err)
		default:
			people = append(people, g.People()...)
		}
		if o.json {
			return json.NewEncoder(c.OutOrStdout()).Encode(people)
		}
		if len(people) == 0 {
			fmt.Fprintln(c.ErrOrStderr(), "nobody is enrolled")
			return nil
		}
		t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
		for _, p := range people {
			fmt.Fprintf(t, "%s\t%s\tenrolled %s\n", p.Name, count(p.Faces, "face"), p.Enrolled.Local().Format("2006-01-02 15:04"))
		}
		return t.Flush()
	}
	c := &cobra.Command{
		Use:   "people",
		Short: "list the people in the gallery, or remove one",
		Args:  cobra.NoArgs,
		RunE:  list,
	}
	c.PersistentFlags().StringVar(&o.gallery, "gallery", "", "file of the people (default: faceauth/gallery below $XDG_DATA_HOME or ~/.local/share)")
	c.PersistentFlags().BoolVar(&o.json, "json", false, "print JSON for programs")
	remove := &cobra.Command{
		Use:   "remove NAME",
		Short: "forget a person: the labelled faces and all that was learned from them",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			g, err := o.openGallery(c, path)
			if err != nil {
				return err
			}
			if err := g.Remove(args[0]); err != nil {
				if errors.Is(err, online.ErrUnknown) {
					err = fmt.Errorf("%w; see faceauth people", err)
				}
				return fail(badGallery, err)
			}
			if err := g.Save(path); err != nil {
				return fail(badGallery, err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is forgotten\n", args[0])
			return nil
		},
	}
	c.AddCommand(&cobra.Command{Use: "list", Short: "list the people", Args: cobra.NoArgs, RunE: list}, remove)
	return c
}
