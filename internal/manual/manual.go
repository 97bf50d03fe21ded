// SPDX-License-Identifier: Apache-2.0

// Package manual writes the manual pages of a program from its cobra commands.
//
// [Write] makes a page for the program and one for each command. The text is the same as with --help. Cobra's own
// generator treats these texts as Markdown, where a star, an underscore or an indented table has another meaning, and
// it would add three modules to the program.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Settings has the values of pages that do not come from the commands.
type Settings struct {
	Date     time.Time // date of the pages; zero for none. The same commands and date give the same bytes.
	Home     string    // defaults of flags below this folder are shown below ~
	Sections []Section // at the end of the page of the program
}

// Section is a part of a page. Its text has the form of a command's text: an empty line separates paragraphs, and
// indented lines stay as they are.
type Section struct{ Title, Text string }

// Write makes a page of section 1 for root and for each visible command below it, in the folder dir, which it makes if
// necessary. It returns the names of the files.
func Write(root *cobra.Command, dir string, s Settings) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing manual pages: %w", err)
	}
	var names []string
	err := walk(root, func(c *cobra.Command) error {
		name := pageName(c) + ".1"
		names = append(names, name)
		return os.WriteFile(filepath.Join(dir, name), page(c, s), 0o644)
	})
	if err != nil {
		return nil, fmt.Errorf("writing manual pages: %w", err)
	}
	return names, nil
}

// walk calls f with a command and the visible commands below it.
func walk(c *cobra.Command, f func(*cobra.Command) error) error {
	if err := f(c); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		if err := walk(sub, f); err != nil {
			return err
		}
	}
	return nil
}

// pageName returns the name of a command's page: faceauth-tablet-enroll.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns the page of a command.
func page(c *cobra.Command, s Settings) []byte {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	var b bytes.Buffer
	date := ""
	if !s.Date.IsZero() {
		date = s.Date.UTC().Format(time.DateOnly)
	}
	root := c.Root()
	fmt.Fprintf(&b, ".TH %s 1 %q %q\n", escape(strings.ToUpper(pageName(c))), date, root.Name()+" "+root.Version)
	b.WriteString(".nh\n.ad l\n.SH NAME\n")
	fmt.Fprintf(&b, "%s \\- %s\n.SH SYNOPSIS\n", escape(pageName(c)), escape(c.Short))
	if c.Runnable() || !c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".B %s\n", escape(c.CommandPath()))
		if rest := strings.TrimPrefix(c.UseLine(), c.CommandPath()); rest != "" {
			fmt.Fprintf(&b, "%s\n", escape(strings.TrimSpace(rest)))
		}
	}
	if c.HasAvailableSubCommands() {
		if c.Runnable() {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B %s\nCOMMAND [flags]\n", escape(c.CommandPath()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	if c.Long == "" {
		text(&b, capital(c.Short)+".")
	} else {
		text(&b, c.Long)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", escape(pageName(sub)), escape(sub.Short))
			}
		}
	}
	flags(&b, "OPTIONS", c.LocalFlags(), s)
	flags(&b, "OPTIONS OF ALL COMMANDS OF "+strings.ToUpper(parentPath(c)), c.InheritedFlags(), s)
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		text(&b, c.Example)
	}
	if c == root {
		for _, section := range s.Sections {
			fmt.Fprintf(&b, ".SH %s\n", escape(strings.ToUpper(section.Title)))
			text(&b, section.Text)
		}
		return b.Bytes()
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)", escape(pageName(root)))
	if p := c.Parent(); p != root {
		fmt.Fprintf(&b, ",\n.BR %s (1)", escape(pageName(p)))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func parentPath(c *cobra.Command) string {
	if c.HasParent() {
		return c.Parent().CommandPath()
	}
	return c.CommandPath()
}

// flags writes a section about a set of flags, unless it is empty.
func flags(b *bytes.Buffer, title string, set *pflag.FlagSet, s Settings) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %q\n", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		names := `\fB` + escape("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			names = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + names
		}
		if kind != "" {
			names += ` \fI` + escape(kind) + `\fR`
		}
		fmt.Fprintf(b, "%s\n%s", names, escape(capital(usage)))
		if value := shown(f, s.Home); value != "" {
			fmt.Fprintf(b, " (default: %s)", escape(value))
		}
		b.WriteByte('\n')
	})
}

// shown returns the default of a flag, or "" if the default is an empty value.
func shown(f *pflag.Flag, home string) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	if rest, ok := strings.CutPrefix(f.DefValue, strings.TrimSuffix(home, "/")+"/"); ok && home != "" {
		return "~/" + rest
	}
	return f.DefValue
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// text writes paragraphs. Indented lines stay as they are.
func text(b *bytes.Buffer, s string) {
	as := false // lines stay as they are
	for _, line := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != as && line != "" {
			if as = indented; as {
				b.WriteString(".PP\n.RS 2\n.nf\n")
			} else {
				b.WriteString(".fi\n.RE\n.PP\n")
			}
		}
		switch {
		case line == "" && as:
			b.WriteString(".sp\n")
		case line == "":
			b.WriteString(".PP\n")
		default:
			fmt.Fprintf(b, "%s\n", escape(strings.TrimPrefix(line, "  ")))
		}
	}
	if as {
		b.WriteString(".fi\n.RE\n")
	}
}

// escape returns text in which roff finds no requests.
func escape(s string) string {
	signs := strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n", " ")
	s = signs.Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
