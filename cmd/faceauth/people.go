// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/recordings/search"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// sure asks on the terminal whether to do what cannot be undone, unless the user has said yes.
// Without a terminal nobody can be asked.
func sure(c *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return cli.Fail(cli.BadUsage, errors.New(
			"this cannot be undone, and there is no terminal to ask at; add --yes"))
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s [y/N] ", question)
	answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return cli.Fail(cli.Failed, errors.New("nobody is forgotten"))
	}
	return nil
}

func newPeople() *cobra.Command {
	o := new(options)
	list := func(c *cobra.Command, _ []string) error { return o.list(c) }
	c := &cobra.Command{
		Use:   "people",
		Short: "list and change the people in the gallery",
		Args:  cobra.NoArgs, Aliases: []string{"list", "ls"},
		RunE: list,
	}
	o.galleryFlags(c.PersistentFlags())
	o.JSONFlag(c.PersistentFlags())
	c.AddCommand(newUndo(o), newConfirm(o), newRename(o), newRemove(o),
		&cobra.Command{Use: "list", Short: "list the people", Args: cobra.NoArgs, RunE: list,
			Aliases: []string{"ls"}})
	return c
}

// row is a person in the list of people.
type row struct {
	gallery.Person
	Drift online.Drift `json:"drift"`
	// Unconfirmed is the number of learned faces that are far from all enrolled faces.
	Unconfirmed int `json:"unconfirmed"`
}

// listed returns the people of the gallery, and how many faces were observed; nobody, if there is
// no gallery.
func (o *options) listed(c *cobra.Command) (people []row, observed int64, err error) {
	people = []row{}
	g, err := o.openGallery(c)
	if errors.Is(err, errNoGallery) {
		return people, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer g.Close()
	cli.Warn(c, g.Learner().Warnings()...)
	for _, p := range g.People() {
		d, err := g.Learner().Drift(p.ID)
		if err != nil {
			return nil, 0, cli.Fail(cli.BadGallery, err)
		}
		far, err := g.Unconfirmed(p.Name)
		if err != nil {
			return nil, 0, cli.Fail(cli.BadGallery, err)
		}
		people = append(people, row{Person: p, Drift: d, Unconfirmed: len(far)})
	}
	return people, g.Learner().Counts().Observed, nil
}

// list prints the people of the gallery.
func (o *options) list(c *cobra.Command) error {
	people, observed, err := o.listed(c)
	switch {
	case err != nil:
		return err
	case o.JSON:
		return json.NewEncoder(c.OutOrStdout()).Encode(people)
	case len(people) == 0:
		fmt.Fprintln(c.ErrOrStderr(), "nobody is enrolled")
		return nil
	}
	t := table.New(c.OutOrStdout(), 3)
	for _, p := range people {
		alarm := ""
		if p.Drift.Alarm {
			alarm = ", steadily further from the enrolled ones: is it still the same person?"
		}
		if cli.Verbose(c) {
			alarm = fmt.Sprintf(", on average %.2f from the enrolled ones%s", p.Drift.Distance,
				alarm)
		}
		fmt.Fprintf(t, "%s\t%s\tenrolled %s\tlearned %.0f%s\n", p.Name,
			cli.Count(p.Faces, "face"), p.Enrolled.Local().Format("2006-01-02 15:04"),
			p.Drift.Learned, alarm)
	}
	if err := t.Flush(); err != nil || observed == 0 {
		return err
	}
	for _, p := range people {
		if p.Unconfirmed > 0 {
			fmt.Fprintf(c.OutOrStdout(),
				"still %s? %s far from the enrolled ones: faceauth people confirm %s, "+
					"or people undo\n",
				p.Name, cli.Count(p.Unconfirmed, "learned face"), p.Name)
		}
	}
	_, err = fmt.Fprintf(c.OutOrStdout(),
		"observed so far: %d faces; to take back everything learned after "+
			"them: faceauth people undo %d\n", observed, observed)
	return err
}

func newRemove(o *options) *cobra.Command {
	yes := false
	remove := &cobra.Command{
		Use:   "remove NAME",
		Short: "forget a person: the labelled faces, and all faces learned from them",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: o.names,
		Aliases: []string{"rm"}, SuggestFor: []string{"forget", "delete", "del"},
		RunE: func(c *cobra.Command, args []string) error {
			recordings := 0
			err := sure(c, yes, "Forget "+args[0]+" for ever, and all that was learned of them?")
			if err != nil {
				return err
			}
			err = o.amend(c, func(g *gallery.Gallery) (bool, error) {
				var err error
				recordings, err = search.Forget(g, args[0])
				if err == nil {
					err = g.Forget(args[0])
				}
				return true, err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is forgotten\n", args[0])
			if recordings > 0 {
				fmt.Fprintf(c.OutOrStdout(),
					"search will look through %s again, where somebody looks like %s\n",
					cli.Count(recordings, "recording"), args[0])
			}
			return nil
		},
	}
	remove.Flags().BoolVar(&yes, "yes", false, "do not ask; needed without a terminal")
	return remove
}

func newRename(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "rename NAME NEW", Short: "give a person another name", Aliases: []string{"mv"},
		Args: cobra.ExactArgs(2), ValidArgsFunction: o.names,
		RunE: func(c *cobra.Command, args []string) error {
			err := o.amend(c, func(g *gallery.Gallery) (bool, error) {
				return true, g.Rename(args[0], args[1])
			})
			if err != nil {
				return err
			}
			return o.Print(c, map[string]string{"was": args[0], "name": args[1]}, "%s is now %s\n",
				args[0], args[1])
		},
	}
}

func newUndo(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "undo SINCE",
		Short: "take back the faces learned since a moment",
		Long: "Takes back what was learned since a moment. Enrolled faces stay. SINCE is the\n" +
			"number of faces observed, as faceauth people prints it, a time such as\n" +
			"\"2026-11-20 17:30\", or how long ago, such as 90m or 12h.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			undo, err := undoSince(args[0], time.Now())
			if err != nil {
				return cli.Fail(cli.BadUsage, err)
			}
			var n int
			err = o.amend(c, func(g *gallery.Gallery) (_ bool, err error) {
				n, err = undo(g.Learner())
				return n > 0, err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s taken back\n", cli.Count(n, "learned face"))
			return nil
		},
	}
}

// amend changes the gallery, and saves it if change returns true.
func (o *options) amend(c *cobra.Command,
	change func(*gallery.Gallery) (changed bool, err error)) (err error) {
	g, err := o.openGallery(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cli.Fail(cli.BadGallery, g.Close())) }()
	err = g.Change(func() error {
		changed, err := change(g)
		if err == nil && !changed {
			err = errUnchanged
		}
		return err
	})
	switch {
	case errors.Is(err, errUnchanged):
		return nil
	case errors.Is(err, online.ErrUnknown):
		return cli.Fail(cli.Refused, fmt.Errorf("%w; see faceauth people", err))
	case errors.Is(err, gallery.ErrNotOffered):
		return cli.Fail(cli.Refused, err)
	case errors.Is(err, face.ErrName), errors.Is(err, gallery.ErrExists),
		errors.Is(err, gallery.ErrAlike):
		return cli.Fail(cli.BadUsage, err)
	case err != nil:
		return cli.Fail(cli.BadGallery, err)
	}
	if err := g.Unerased(); err != nil {
		cli.Warn(c, err.Error()+
			"; the next program that opens the gallery tries again, and faceauth doctor says "+
			"whether it is done")
	}
	daily(c, g.Path())
	if err := os.Remove(sheetOf(g.Path())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the page with pictures: %w", err)
	}
	return nil
}

var errUnchanged = errors.New("nothing was changed")

// undoSince returns the function that takes back everything learned since a moment. The moment is a
// text from the user.
func undoSince(s string, now time.Time) (func(*online.Learner) (int, error), error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return func(l *online.Learner) (int, error) { return l.Undo(n) }, nil
	}
	t, err := moment(s, now)
	if err != nil {
		return nil, fmt.Errorf("%w, or the number of an observation (see faceauth people)", err)
	}
	return func(l *online.Learner) (int, error) { return l.UndoSince(t, now) }, nil
}

// moment parses a time, or a time span before now.
func moment(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf(
		"%q is not a time; give one such as %q, or how long ago, such as 12h", s,
		"2026-11-20 17:30")
}

func newConfirm(o *options) *cobra.Command {
	var numbers []int64
	c := &cobra.Command{
		Use:   "confirm NAME",
		Short: "look at the learned faces of a person, and enrol them",
		Long: "Turns up to eight learned faces of a person into enrolled ones: faces of a\n" +
			"turned head that no enrolled face is near and that stand for most other faces.\n" +
			"(Learned faces alone never confirm a person.) You first get a page with their\n" +
			"pictures, the farthest from the enrolled faces first. Look at it, and name the\n" +
			"right faces with --faces. The page is next to the gallery, only you can read\n" +
			"it, and the next change of the gallery removes it.\n\n" +
			"Frontal faces far from the enrolled ones are not offered, because a film that\n" +
			"changes one face into another produces such faces. After a new beard or new\n" +
			"glasses, use faceauth enroll --add.",
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
			fmt.Fprintf(c.OutOrStdout(), "%s of %s enrolled\n",
				cli.Count(len(numbers), "learned face"), name)
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
		cli.Warn(c, fmt.Sprintf("%s without a picture, which were learned with --no-pictures: "+
			"nobody can judge a face without its picture", cli.Count(without, "face")))
	}
	_, err = fmt.Fprintf(c.OutOrStdout(),
		"pictures of %s of %s: %s\nto enrol the right ones: faceauth people confirm %q "+
			"--faces %s\nto take back what was learned: see faceauth people undo\n",
		cli.Count(len(far), "learned face"), name,
		sheetOf(g.Path()), name, strings.Join(list, ","))
	return err
}

// sheetOf returns the path of the page with pictures for a gallery.
func sheetOf(gallery string) string { return gallery + ".confirm.html" }
