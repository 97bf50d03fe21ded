// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/models"
	"github.com/spf13/cobra"
)

func newModels() *cobra.Command {
	var o cli.Options
	c := &cobra.Command{
		Use:   "models",
		Short: "check or install the neural networks",
		Long:  "Models lists the networks, and compares their files with the known hashes.",
		Args:  cobra.NoArgs, SuggestFor: []string{"download", "fetch"},
		RunE: func(c *cobra.Command, _ []string) error { return checkModels(c, &o) },
	}
	c.PersistentFlags().StringVar(&o.Models, "models", models.Dir(), "folder of the model files")
	o.JSONFlag(c.Flags())
	c.AddCommand(newInstall(&o.Models), newModelList(&o))
	return c
}

// checkModels lists the networks. The error says how many cannot be used.
func checkModels(c *cobra.Command, o *cli.Options) error {
	type row struct {
		models.Description
		Installed bool   `json:"installed"`
		Problem   string `json:"problem,omitempty"`
	}
	var rows []row
	broken := 0
	t := table.New(c.OutOrStdout(), 3)
	for _, d := range models.Present(o.Models) {
		r := row{Description: d, Installed: true}
		state := "as it should be"
		if _, err := d.Path(o.Models); err != nil {
			broken++
			r.Installed, r.Problem, state = false, err.Error(), err.Error()
		}
		rows = append(rows, r)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.Kind, r.Licence, r.Source, state)
	}
	var err error
	if o.JSON {
		err = json.NewEncoder(c.OutOrStdout()).Encode(rows)
	} else {
		err = t.Flush()
	}
	if err != nil {
		return err
	}
	if broken > 0 {
		return cli.Fail(cli.BadModel, fmt.Errorf("%s cannot be used; run: faceauth models install",
			cli.Count(broken, "model")))
	}
	return nil
}

func newModelList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "list the networks that can be installed by name", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := table.New(c.OutOrStdout(), 3)
			for _, d := range models.Catalogue() {
				state := "installed"
				if _, err := d.Path(o.Models); errors.Is(err, models.ErrMissing) {
					state = "not installed"
				} else if err != nil {
					state = "damaged"
				}
				if d.Tuned() != nil {
					state += "; not measured here"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", d.Name, d.Kind, d.Licence, d.Source,
					state)
			}
			return t.Flush()
		},
	}
}

func newInstall(dir *string) *cobra.Command {
	var from string
	var noRuntime bool
	c := &cobra.Command{
		Use: "install [NAME...]", Short: "fetch missing networks, and ONNX Runtime",
		Long: "With names of `faceauth models list`, it fetches these networks, and with\n" +
			"--from FILE a single one from its file. yunet is used wherever it is installed:\n" +
			"it finds smaller faces than the built-in detector and invents fewer, and an\n" +
			"office takes about twice the processor time with it.\n\n" +
			"Without names it fetches missing networks from the npm registry by HTTPS,\n" +
			"41 MB, and checks their hashes. It then fetches ONNX Runtime, 114 MB, which\n" +
			"runs them in half the time that OpenCV takes; --no-runtime skips it.\n" +
			"HTTPS_PROXY names a proxy.\n\n" +
			"Without a network, copy the tarball of each package to this machine and name\n" +
			"it with --from.",
		RunE: func(c *cobra.Command, names []string) error {
			report := func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }
			if from != "" && len(names) > 1 {
				return cli.Fail(cli.BadUsage, errors.New("--from FILE is for one network"))
			}
			for _, name := range names {
				err := install.Named(c.Context(), name, from, *dir, report)
				if err != nil {
					return cli.Fail(cli.BadModel, err)
				}
			}
			if len(names) > 0 {
				return nil
			}
			if from != "" {
				return cli.Fail(cli.BadModel, install.From(from, *dir, report))
			}
			err := install.Builtin(c.Context(), *dir, report)
			if err != nil || noRuntime {
				return cli.Fail(cli.BadModel, err)
			}
			err = install.Runtime(c.Context(), *dir, report)
			if errors.Is(err, install.ErrNoRuntime) {
				report(err.Error() + ": OpenCV runs the networks")
				return nil
			}
			return cli.Fail(cli.BadModel, err)
		},
	}
	c.Flags().StringVar(&from, "from", "",
		"file of NAME, or tarball of one of the npm packages, that you have fetched already")
	c.Flags().BoolVar(&noRuntime, "no-runtime", false, "do not fetch ONNX Runtime")
	return c
}
