// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/faceauth/faceauth/models"
	"github.com/spf13/cobra"
)

func newModels() *cobra.Command {
	var dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "models",
		Short: "list, verify or install the neural networks",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&dir, "models", models.Dir(), "folder of the model files")
	c.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON for programs")
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
				_, err := d.Path(dir)
				r := row{Description: d, Installed: err == nil}
				if err != nil {
					r.Problem = err.Error()
				}
				rows = append(rows, r)
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(rows)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
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
				path, err := d.Path(dir)
				if err != nil {
					broken++
					fmt.Fprintln(c.OutOrStdout(), err)
					continue
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: as it should be\n", path)
			}
			if broken > 0 {
				return fail(badModel, fmt.Errorf("%s cannot be used; run: faceauth models install",
					count(broken, "model")))
			}
			return nil
		},
	}, newInstall(&dir))
	return c
}

func newInstall(dir *string) *cobra.Command {
	var from string
	c := &cobra.Command{
		Use: "install", Short: "fetch missing networks", Args: cobra.NoArgs,
		Long: "Install fetches missing networks from the npm registry by HTTPS, 41 MB, and checks their hashes.\n" +
			"NPM_CONFIG_REGISTRY names another registry, and HTTPS_PROXY a proxy. Without a network, copy the\n" +
			"tarball to this machine and name it with --from.",
		RunE: func(c *cobra.Command, _ []string) error {
			report := func(s string) { fmt.Fprintln(c.ErrOrStderr(), s) }
			if from != "" {
				return fail(badModel, models.InstallFrom(from, *dir, report))
			}
			return fail(badModel, models.Install(c.Context(), *dir, report))
		},
	}
	c.Flags().StringVar(&from, "from", "", "tarball of the npm package that you have fetched already")
	return c
}
