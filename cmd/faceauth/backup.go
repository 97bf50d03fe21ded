// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/gallery"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/spf13/cobra"
)

// schema is the version that the database of a gallery must have.
var schema = store.Schema{Version: gallery.SchemaVersion}

// copyToday makes the daily copy of a gallery.
func copyToday(path string) error {
	d, err := store.Open(path, schema, false)
	if err == nil {
		err = errors.Join(d.Daily(time.Now()), d.Close())
	}
	if err != nil {
		err = fmt.Errorf("no daily copy of the gallery %s was made: %w", path, err)
	}
	return err
}

// daily makes the daily copy of a gallery that a command has changed.
func daily(c *cobra.Command, path string) {
	if err := copyToday(path); err != nil {
		cli.Warn(c, err.Error())
	}
}

func newBackup() *cobra.Command {
	var o options
	var file string
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "copy the gallery into a new file, beside running programs, also with another key",
		Long: "Copies the gallery into the new file FILE while other programs go on using it.\n" +
			"Only you can read FILE. It is encrypted with the gallery's key, if there is\n" +
			"one, or with --new-key, and contains nobody you have forgotten. Every command\n" +
			"can open it with --gallery FILE. To restore it, stop all programs, remove the\n" +
			"gallery and the files beside it (-wal, -shm, and the daily copies, which have\n" +
			"the old key), and copy FILE to its place. A key is a file of 32 random bytes:\n\n" +
			"    (umask 077; head -c 32 /dev/urandom >KEY)\n\n" +
			"Nobody can read a gallery without its key, so keep a copy of the key\n" +
			"elsewhere.",
		Args: cobra.ExactArgs(1), SuggestFor: []string{"export", "save", "dump"},
		RunE: func(c *cobra.Command, args []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			key := store.Key(path)
			if file != "" {
				key, err = store.ReadKey(file)
				if err != nil {
					return cli.Fail(cli.BadUsage, err)
				}
			} else if c.Flags().Changed("new-key") {
				key = nil
			}
			d, err := store.Open(path, schema, false)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w at %s", errNoGallery, path)
			}
			if err != nil {
				return cli.Fail(cli.BadGallery, err)
			}
			defer d.Close()
			err = store.SetKey(args[0], key)
			if err == nil {
				err = d.Backup(args[0])
			}
			if errors.Is(err, fs.ErrExist) {
				return cli.Fail(cli.BadUsage, err)
			}
			if err != nil {
				return fmt.Errorf("writing %s: %w; nothing was written", args[0], err)
			}
			how := ""
			switch {
			case file != "":
				how = fmt.Sprintf(", encrypted with the key in %s; keep a copy of the key", file)
			case c.Flags().Changed("new-key"):
				how = ", without encryption"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is a copy of %s%s\n", args[0], path, how)
			return nil
		},
	}
	o.galleryFlags(c.Flags())
	c.Flags().StringVar(&file, "new-key", "",
		"file of the 32 random bytes that encrypt the copy; \"\" for a copy "+
			"without encryption (default: the key of the gallery)")
	return c
}
