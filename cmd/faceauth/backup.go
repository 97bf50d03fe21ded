// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/store"
	"github.com/spf13/cobra"
)

func newBackup() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "copy the gallery into a new file, beside running programs",
		Long: "Backup copies the gallery, as it is now, into the new file FILE. Other programs may use the gallery\n" +
			"meanwhile. Only you can read FILE, and it has the key of the gallery, if there is one. Forgotten\n" +
			"people are not in it. Every command opens it with --gallery FILE; to restore it, end all programs,\n" +
			"remove the gallery and the files beside it (-wal and -shm), and copy FILE to its place.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			d, err := store.Open(path, false)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w at %s", errNoGallery, path)
			}
			if err != nil {
				return cli.Fail(cli.BadGallery, err)
			}
			defer d.Close()
			if err = o.setKey(args[0]); err == nil {
				err = d.Backup(args[0])
			}
			if errors.Is(err, fs.ErrExist) {
				return cli.Fail(cli.BadUsage, err)
			}
			if err != nil {
				return fmt.Errorf("writing %s: %w; nothing was written", args[0], err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is a copy of %s\n", args[0], path)
			return nil
		},
	}
	o.galleryFlag(c)
	return c
}

func newRekey() *cobra.Command {
	var o options
	var file string
	var none bool
	c := &cobra.Command{
		Use:   "rekey",
		Short: "encrypt the gallery, or change or remove its key",
		Long: "Rekey writes the gallery again, encrypted with the key in --new-key, or without a key (--no-key). --key\n" +
			"is the present key. No other program may have the gallery open. A key is a file of 32 random bytes:\n\n" +
			"    (umask 077; head -c 32 /dev/urandom >KEY)\n\n" +
			"Without its key nobody can read a gallery: keep a copy of the key in another place. The disk may\n" +
			"still hold bytes of the old file, until it writes something else there; old backups keep their key.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (file == "") == !none {
				return cli.Fail(cli.BadUsage, errors.New("give one of --new-key FILE and --no-key"))
			}
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			var key []byte
			if !none {
				if key, err = gallery.ReadKey(file); err != nil {
					return cli.Fail(cli.BadUsage, err)
				}
			}
			err = store.Rekey(path, key)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				err = fmt.Errorf("%w at %s", errNoGallery, path)
			case errors.Is(err, store.ErrBusy):
				err = fmt.Errorf("another program has %s open (faceauth doctor names it); end it, and try again", path)
			case err == nil && none:
				fmt.Fprintf(c.OutOrStdout(), "%s is not encrypted any more\n", path)
			case err == nil:
				fmt.Fprintf(c.OutOrStdout(), "%s is encrypted with the key in %s; keep a copy of the key\n",
					path, file)
			}
			return cli.Fail(cli.BadGallery, err)
		},
	}
	o.galleryFlag(c)
	c.Flags().StringVar(&file, "new-key", "", "file of the 32 random bytes that will encrypt the gallery")
	c.Flags().BoolVar(&none, "no-key", false, "write the gallery without encryption")
	return c
}

func newSalvage() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "salvage FILE",
		Short: "save what can be read of a damaged gallery into a new file",
		Long: "Salvage reads the people and the enrolled faces that can be read in the damaged gallery --gallery, and\n" +
			"writes them into the new gallery FILE. It takes learned faces only if all of them can be read. The\n" +
			"damaged file is never changed. End the programs that use it first. A backup may have more.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			if err := o.setKey(args[0]); err != nil {
				return err
			}
			d, err := o.Embedding()
			if err != nil {
				return err
			}
			s, err := gallery.Salvage(path, args[0], d.Space())
			switch {
			case errors.Is(err, fs.ErrExist):
				return cli.Fail(cli.BadUsage, err)
			case errors.Is(err, fs.ErrNotExist):
				return cli.Fail(cli.BadGallery, fmt.Errorf("%w at %s", errNoGallery, path))
			case err != nil:
				return cli.Fail(cli.BadGallery, err)
			case o.JSON:
				return json.NewEncoder(c.OutOrStdout()).Encode(s)
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "%s has %s with %s\n", args[0], cli.Count(s.People, "person"), cli.Count(s.Faces, "face"))
			fmt.Fprintf(w, "%d of %s of %s are damaged or empty\n", s.Damaged, cli.Count(s.Pages, "page"), path)
			if s.Nameless > 0 {
				fmt.Fprintf(w, "lost: %s whose names cannot be read\n", cli.Count(s.Nameless, "face"))
			}
			if s.Nobody > 0 {
				fmt.Fprintf(w, "lost: %s of whom no face can be read\n", cli.Count(s.Nobody, "person"))
			}
			if !s.Learned {
				fmt.Fprintln(w, "lost: all learned faces; faces that were on the damaged pages are not counted")
			}
			return nil
		},
	}
	o.galleryFlag(c)
	o.EmbeddingFlags(c)
	o.JSONFlag(c.Flags())
	return c
}
