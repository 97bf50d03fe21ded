// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/pagestyle"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
)

// inspection holds the flags of audit.
type inspection struct {
	learned, all bool
	sheet        string
	undo         int64
}

func newAudit() *cobra.Command {
	var o options
	var i inspection
	c := &cobra.Command{
		Use:   "audit",
		Short: "find faces in the gallery that have the wrong name",
		Long: "Finds labelled faces that look more like another person, as when two names\n" +
			"were swapped. --learned checks learned faces as well. A face unlike all others\n" +
			"is not reported. The gallery holds pictures of learned faces only.",
		Example: "  faceauth audit\n  faceauth audit --learned --sheet audit.html\n" +
			"  faceauth audit --undo 17",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("undo") {
				return o.takeOut(c, i.undo)
			}
			return o.audit(c, i)
		},
	}
	o.galleryFlags(c.Flags())
	o.JSONFlag(c.Flags())
	f := c.Flags()
	f.BoolVar(&i.learned, "learned", false, "also rank learned faces")
	f.BoolVar(&i.all, "all", false, "list all faces, not only suspicious ones")
	f.StringVar(&i.sheet, "sheet", "", "write a contact sheet, an HTML page")
	f.Int64Var(&i.undo, "undo", 0,
		"remove the face with this number: a labelled face, or a learned face with the faces "+
			"learned through it")
	return c
}

// audited is the result of an audit.
type audited struct {
	Faces    int `json:"faces"` // faces that were checked
	Suspects int `json:"suspects"`
	// Isolated counts faces that are near no other face, so their names cannot be checked.
	Isolated int               `json:"isolated"`
	Unusual  []gallery.Unusual `json:"unusual"` // the most unusual first
}

// Headline says how many faces look like somebody else.
func (a audited) Headline() string {
	of := cli.Count(a.Faces, "face")
	switch a.Suspects {
	case 0:
		return of + ": no name is unusual"
	case 1:
		return "1 of " + of + " looks more like somebody else"
	}
	return fmt.Sprintf("%d of %s look more like somebody else", a.Suspects, of)
}

func (o *options) audit(c *cobra.Command, i inspection) error {
	g, err := o.openGallery(c)
	if err != nil {
		return err
	}
	defer g.Close()
	all, err := g.Audit(i.learned)
	if err != nil {
		return cli.Fail(cli.BadGallery, err)
	}
	a := audited{Faces: len(all), Unusual: []gallery.Unusual{}}
	for _, u := range all {
		if u.Suspect {
			a.Suspects++
		}
		if u.Isolated {
			a.Isolated++
		}
		if u.Suspect || i.all {
			a.Unusual = append(a.Unusual, u)
		}
	}
	if i.sheet != "" {
		if err := writeSheet(i.sheet, "audit", a); err != nil {
			return err
		}
	}
	if o.JSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(a)
	}
	w := table.New(c.OutOrStdout(), 3)
	if len(a.Unusual) > 0 {
		fmt.Fprintln(w, "face\tname\tseems\tdistance\tscore\t")
	}
	for _, u := range a.Unusual {
		seems, distance := "-", "-"
		if u.Likes != "" {
			seems, distance = u.Likes, fmt.Sprintf("%.2f", u.Distance)
		}
		note := ""
		if u.Learned {
			note = "learned, " + cli.Count(int(u.Faces), "face")
		}
		if u.Isolated {
			note = strings.TrimPrefix(note+", no face is near", ", ")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%.2f\t%s\n", u.ID, u.Name, seems, distance, u.Score, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if a.Isolated > 0 {
		fmt.Fprintf(c.OutOrStdout(),
			"no face is near %s: nothing says whether the names are right; --all lists them "+
				"last\n",
			cli.Count(a.Isolated, "other face"))
	}
	if a.Suspects == 0 {
		_, err = fmt.Fprintln(c.OutOrStdout(), a.Headline())
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s; to take one out: faceauth audit --undo %d\n",
		a.Headline(), a.Unusual[0].ID)
	return err
}

func (o *options) takeOut(c *cobra.Command, id int64) error {
	faces := 0
	err := o.amend(c, func(g *gallery.Gallery) (_ bool, err error) {
		faces, err = g.Remove(id)
		if errors.Is(err, online.ErrUnknown) {
			err = fmt.Errorf("the gallery has no face %d; see faceauth audit --all --learned", id)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	more := ""
	if faces > 0 {
		more = ", and with it " + cli.Count(faces, "learned face")
	}
	return o.Print(c, struct {
		Face    int64 `json:"face"`
		Learned int   `json:"learned_faces"`
	}{id, faces}, "face %d is taken out%s\n", id, more)
}

//go:embed *.html.tmpl
var sheetFiles embed.FS

// sheets are the pages of the commands audit, confirm, replay of several and search.
var sheets = template.Must(template.New("").Funcs(pagestyle.Funcs).Funcs(template.FuncMap{
	"percent": func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"stamp":   stamp,
	"base":    filepath.Base,
	"mark":    mark,
	"beside":  beside,
}).ParseFS(sheetFiles, "*.html.tmpl"))

// writeSheet writes the page of a command.
func writeSheet(path, command string, page any) error {
	return pagestyle.Write(path, sheets.Lookup(command+".html.tmpl"), page)
}
