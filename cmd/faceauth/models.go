// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/internal/cli"
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
	c.AddCommand(newInstall(&o.Models))
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
	for _, d := range models.Builtin() {
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

func newInstall(dir *string) *cobra.Command {
	var from string
	var noRuntime bool
	c := &cobra.Command{
		Use: "install", Short: "fetch missing networks, and ONNX Runtime", Args: cobra.NoArgs,
		Long: "Fetches missing networks from the npm registry by HTTPS, 41 MB, and checks\n" +
			"their hashes. It then fetches ONNX Runtime, 114 MB, which runs them in half\n" +
			"the time that OpenCV takes; --no-runtime skips it. HTTPS_PROXY names a proxy.\n\n" +
			"Without a network, copy the tarball of each package to this machine and name\n" +
			"it with --from.",
		RunE: func(c *cobra.Command, _ []string) error {
			report := func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }
			if from != "" {
				return cli.Fail(cli.BadModel, models.InstallFrom(from, *dir, report))
			}
			err := models.Install(c.Context(), *dir, report)
			if err != nil || noRuntime {
				return cli.Fail(cli.BadModel, err)
			}
			err = models.InstallRuntime(c.Context(), *dir, report)
			if errors.Is(err, models.ErrNoRuntime) {
				report(err.Error() + ": OpenCV runs the networks")
				return nil
			}
			return cli.Fail(cli.BadModel, err)
		},
	}
	c.Flags().StringVar(&from, "from", "",
		"tarball of one of the npm packages that you have fetched already")
	c.Flags().BoolVar(&noRuntime, "no-runtime", false, "do not fetch ONNX Runtime")
	return c
}
