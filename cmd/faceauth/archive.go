// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/faceauth/faceauth/gallery"
	"github.com/faceauth/faceauth/internal/config"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/online"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// leastPassphrase is the least number of characters of a passphrase.
const leastPassphrase = 12

// sealing says how an archive of people is encrypted.
type sealing struct {
	passphrase string   // file of the passphrase
	recipients []string // public keys
	identity   string   // file of a private key
}

func newExport(o *options) *cobra.Command {
	var s sealing
	c := &cobra.Command{
		Use:   "export FILE [NAME...]",
		Short: "write enrolled faces into an encrypted archive, for another machine",
		Long: "Export writes the enrolled faces of the named people, or of all people, into the encrypted archive\n" +
			"FILE, in the format of age. It does not export learned faces. It asks for a passphrase, or reads\n" +
			"it from --passphrase-file, or encrypts for public keys of age (--recipient). If the passphrase is\n" +
			"lost, nobody can open the archive.",
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return o.names(c, args, part)
		},
		RunE: func(c *cobra.Command, args []string) error {
			path, err := o.galleryPath()
			if err != nil {
				return err
			}
			g, err := o.openGallery(c, path)
			if err != nil {
				return err
			}
			defer g.Close()
			data, err := g.Export(args[1:]...)
			if errors.Is(err, online.ErrUnknown) {
				return fail(refused, fmt.Errorf("%w; see faceauth people", err))
			}
			if err != nil {
				return fail(badGallery, err)
			}
			if _, err := os.Lstat(args[0]); !errors.Is(err, fs.ErrNotExist) {
				return fail(badUsage, fmt.Errorf("%s exists; name another file, or remove it", args[0]))
			}
			to, err := s.recipientsOf()
			if err != nil {
				return fail(badUsage, err)
			}
			var sealed bytes.Buffer
			w, err := age.Encrypt(&sealed, to...)
			if err == nil {
				_, err = w.Write(data)
			}
			if err == nil {
				err = w.Close()
			}
			if err == nil {
				err = safefile.Write(args[0], sealed.Bytes())
			}
			if err != nil {
				return err
			}
			n := len(args) - 1
			if n == 0 {
				n = len(g.People())
			}
			fmt.Fprintf(c.OutOrStdout(), "%s in %s, encrypted\n", count(n, "person"), args[0])
			return nil
		},
	}
	c.Flags().StringVar(&s.passphrase, "passphrase-file", "", "file with the passphrase (default: ask for it)")
	c.Flags().StringSliceVar(&s.recipients, "recipient", nil,
		"public key of age (age1...) that can open the archive, instead of a passphrase")
	return c
}

func newImport(o *options) *cobra.Command {
	var s sealing
	add := false
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "enrol the people of an archive that export wrote",
		Long: "Import decrypts FILE and enrols all people in it, or none. If a name is already enrolled, import\n" +
			"refuses the archive; with --add it adds the missing faces.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := s.open(args[0])
			if err != nil {
				return err
			}
			var names []string
			err = o.amend(c, func(g *gallery.Gallery) (_ bool, err error) {
				names, err = g.Import(data, add)
				if errors.Is(err, gallery.ErrExists) {
					err = fmt.Errorf("%w; --add adds the faces", err)
				}
				return true, err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "enrolled: %s\n", strings.Join(names, ", "))
			return nil
		},
	}
	c.Flags().StringVar(&s.passphrase, "passphrase-file", "", "file with the passphrase (default: ask for it)")
	c.Flags().StringVar(&s.identity, "identity", "",
		"file with a private key of age (AGE-SECRET-KEY-1...), instead of a passphrase")
	c.Flags().BoolVar(&add, "add", false, "add faces to an enrolled person")
	return c
}

// recipientsOf returns the age recipients of a new archive.
func (s sealing) recipientsOf() (to []age.Recipient, err error) {
	if len(s.recipients) > 0 {
		if s.passphrase != "" {
			return nil, errors.New("--recipient and --passphrase-file contradict each other")
		}
		for _, key := range s.recipients {
			r, err := age.ParseX25519Recipient(key)
			if err != nil {
				return nil, fmt.Errorf("%q is not a public key of age: %w", key, err)
			}
			to = append(to, r)
		}
		return to, nil
	}
	p, err := s.phrase(true)
	if err != nil {
		return nil, err
	}
	if len([]rune(p)) < leastPassphrase {
		return nil, fmt.Errorf("the passphrase is too short; use %d characters or more", leastPassphrase)
	}
	r, err := age.NewScryptRecipient(p)
	return []age.Recipient{r}, err
}

// open returns the decrypted content of an archive.
func (s sealing) open(path string) ([]byte, error) {
	sealed, err := safefile.ReadBytes(path)
	if err != nil {
		return nil, fail(badSource, fmt.Errorf("opening the archive: %w", err))
	}
	var keys []age.Identity
	if s.identity != "" {
		text, err := config.Secret(s.identity, "")
		if err == nil {
			keys, err = age.ParseIdentities(strings.NewReader(text))
		}
		if err != nil {
			return nil, fail(badUsage, fmt.Errorf("reading the private key: %w", err))
		}
	} else {
		p, err := s.phrase(false)
		if err != nil {
			return nil, fail(badUsage, err)
		}
		key, err := age.NewScryptIdentity(p)
		if err != nil {
			return nil, fail(badUsage, err)
		}
		key.SetMaxWorkFactor(22) // a file that asks for more work would take minutes
		keys = []age.Identity{key}
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), keys...)
	if err != nil {
		return nil, fail(refused, fmt.Errorf("opening %s: %w; is the passphrase right?", path, err))
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fail(badSource, fmt.Errorf("opening %s: it is damaged: %w", path, err))
	}
	return data, nil
}

// phrase returns the passphrase from its file, or asks for it; it asks twice for a new passphrase.
func (s sealing) phrase(twice bool) (string, error) {
	if s.passphrase != "" {
		return config.Secret(s.passphrase, "")
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", errors.New("there is no terminal to ask for the passphrase; use --passphrase-file")
	}
	ask := func(what string) (string, error) {
		fmt.Fprint(os.Stderr, what)
		p, err := term.ReadPassword(in)
		fmt.Fprintln(os.Stderr)
		return string(p), err
	}
	p, err := ask("passphrase: ")
	if err != nil || !twice {
		return p, err
	}
	again, err := ask("once more: ")
	if err == nil && again != p {
		err = errors.New("the passphrases differ")
	}
	return p, err
}
