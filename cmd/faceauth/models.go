// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/npm"
	"github.com/faceauth/faceauth/internal/table"
	"github.com/faceauth/faceauth/models"
	"github.com/spf13/cobra"
)

func newModels() *cobra.Command {
	var o cli.Options
	c := &cobra.Command{
		Use:   "models",
		Short: "list, verify or install the neural networks",
		Args:  cobra.NoArgs, SuggestFor: []string{"download", "fetch"},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&o.Models, "models", models.Dir(), "folder of the model files")
	o.JSONFlag(c.PersistentFlags())
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "list the networks, and whether they are installed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			type row struct {
				models.Description
				Installed bool   `json:"installed"`
				Problem   string `json:"problem,omitempty"`
			}
			var rows []row
			for _, d := range models.Builtin() {
				_, err := d.Path(o.Models)
				r := row{Description: d, Installed: err == nil}
				if err != nil {
					r.Problem = err.Error()
				}
				rows = append(rows, r)
			}
			if o.JSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(rows)
			}
			t := table.New(c.OutOrStdout(), 3)
			for _, r := range rows {
				state := "installed"
				if !r.Installed {
					state = "not usable"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.Kind, state, r.Licence, r.Source)
			}
			return t.Flush()
		},
	}, &cobra.Command{
		Use: "verify", Short: "compare the files with their known hashes", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			broken := 0
			for _, d := range models.Builtin() {
				path, err := d.Path(o.Models)
				if err != nil {
					broken++
					fmt.Fprintln(c.OutOrStdout(), err)
					continue
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: as it should be\n", path)
			}
			if broken > 0 {
				return cli.Fail(cli.BadModel, fmt.Errorf("%s cannot be used; run: faceauth models install",
					cli.Count(broken, "model")))
			}
			return nil
		},
	}, newInstall(&o.Models))
	return c
}

func newInstall(dir *string) *cobra.Command {
	var from string
	var noRuntime bool
	c := &cobra.Command{
		Use: "install", Short: "fetch missing networks, and ONNX Runtime", Args: cobra.NoArgs,
		Long: "Install fetches missing networks from the npm registry by HTTPS, 41 MB, and checks their hashes.\n" +
			"It then fetches ONNX Runtime, 114 MB, which runs them in half the time that OpenCV takes; with\n" +
			"--no-runtime it does not. NPM_CONFIG_REGISTRY or ~/.npmrc names another registry, and\n" +
			"HTTPS_PROXY a proxy.\n" +
			"Without a network, copy the tarball of each package to this machine and name it with --from.",
		RunE: func(c *cobra.Command, _ []string) error {
			report := func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }
			if from != "" {
				err := models.InstallFrom(from, *dir, report)
				if errors.Is(err, models.ErrIntegrity) {
					if other := models.InstallRuntimeFrom(from, *dir, report); !errors.Is(other,
						models.ErrIntegrity) {
						err = other
					}
				}
				return cli.Fail(cli.BadModel, err)
			}
			registry, err := npm.Registry()
			if err != nil {
				return cli.Fail(cli.BadModel, err)
			}
			err = models.Install(c.Context(), registry, *dir, report)
			if err != nil || noRuntime {
				return cli.Fail(cli.BadModel, err)
			}
			if err = models.InstallRuntime(c.Context(), registry, *dir, report); errors.Is(err, models.ErrNoRuntime) {
				report(err.Error() + ": OpenCV runs the networks")
				return nil
			}
			return cli.Fail(cli.BadModel, err)
		},
	}
	c.Flags().StringVar(&from, "from", "", "tarball of one of the npm packages that you have fetched already")
	c.Flags().BoolVar(&noRuntime, "no-runtime", false, "do not fetch ONNX Runtime")
	return c
}
