// SPDX-License-Identifier: Apache-2.0

// Package manual writes what the packages of a program ship about its commands: manual pages by
// cobra's generator, and completions. The programs do not link it. With the tag man, by which make
// man builds, a program is this generator.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// home is where the home folder of the pages' reader is.
const home = "/nonexistent"

// Main writes the pages and completions of the commands of root into the folder that the command
// line names. Page is Markdown that follows the description of root. SOURCE_DATE_EPOCH gives the
// pages their date.
func Main(root func() *cobra.Command, page string) {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "manual: want one folder to write into")
		os.Exit(2)
	}
	// Defaults of flags come from the environment; the pages are the same on every machine.
	date := os.Getenv("SOURCE_DATE_EPOCH")
	os.Clearenv()
	for name, value := range map[string]string{"HOME": home, "XDG_DATA_DIRS": home,
		"SOURCE_DATE_EPOCH": date} {
		os.Setenv(name, value)
	}
	if err := Write(root(), page, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// Write writes the pages and completions into folders below dir, as below /usr/share.
func Write(root *cobra.Command, page, dir string) error {
	name := root.Name()
	bash := filepath.Join(dir, "bash-completion/completions", name)
	zsh := filepath.Join(dir, "zsh/vendor-completions/_"+name)
	fish := filepath.Join(dir, "fish/vendor_completions.d", name+".fish")
	pages := filepath.Join(dir, "man/man1")
	for _, folder := range []string{filepath.Dir(bash), filepath.Dir(zsh), filepath.Dir(fish),
		pages} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, err := range []error{root.GenBashCompletionFileV2(bash, true),
		root.GenZshCompletionFile(zsh),
		root.GenFishCompletionFile(fish, true)} {
		if err != nil {
			return err
		}
	}
	markdown(root)
	root.Long += "\n\n" + page
	return doc.GenManTree(root, &doc.GenManHeader{Source: name + " " + root.Version,
		Manual: "faceauth"}, pages)
}

// markdown makes Markdown of the texts of a command: indented lines stay as they are, and no sign
// has a meaning.
func markdown(c *cobra.Command) {
	c.DisableAutoGenTag = true
	signs := strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`")
	var lines []string
	indented := false
	for _, line := range strings.Split(c.Long, "\n") {
		was := indented
		indented = strings.HasPrefix(line, "  ")
		if indented != was {
			lines = append(lines, "")
		}
		if indented {
			line = "  " + line // Markdown asks for four spaces
		} else {
			line = signs.Replace(line)
		}
		lines = append(lines, line)
	}
	c.Long = strings.Join(lines, "\n")
	change := func(f *pflag.Flag) {
		f.Usage = signs.Replace(strings.ReplaceAll(f.Usage, "`", ""))
		f.DefValue = strings.Replace(f.DefValue, home, "~", 1)
	}
	c.LocalNonPersistentFlags().VisitAll(change)
	c.PersistentFlags().VisitAll(change)
	for _, sub := range c.Commands() {
		markdown(sub)
	}
}
