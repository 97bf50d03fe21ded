// SPDX-License-Identifier: Apache-2.0

package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/internal/manual"
	"github.com/spf13/cobra"
)

func program() *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "does things", Version: "1.2",
		Long: "Prog does things.\n.so it is\n'quoted' C:\\path\n\nIt has:\n  a   1\n  b   2\nThat is all."}
	run := func(*cobra.Command, []string) {}
	show := &cobra.Command{Use: "show FILE", Short: "show a file", Run: run, Example: "  prog show x"}
	show.Flags().StringP("dir", "d", "/home/x/.local/share/prog", "a `folder` of files")
	show.Flags().Int("k", 0, "how many")
	show.Flags().Bool("secret", false, "not shown")
	show.Flags().MarkHidden("secret")
	root.PersistentFlags().Bool("json", false, "print JSON")
	root.AddCommand(show, &cobra.Command{Use: "hidden", Hidden: true, Run: run})
	return root
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	settings := manual.Settings{
		Date: time.Date(2026, 5, 1, 23, 0, 0, 0, time.UTC), Home: "/home/x",
		Sections: []manual.Section{{"Exit status", "0 done"}},
	}
	names, err := manual.Write(program(), dir, settings)
	if err != nil || !slices.Equal(names, []string{"prog.1", "prog-show.1"}) {
		t.Fatalf("names %v, error %v", names, err)
	}
	for name, want := range map[string][]string{
		"prog.1": {`.TH PROG 1 "2026-05-01" "prog 1.2"`, `prog \- does things`, "\n\\&.so it is\n",
			`\(aqquoted\(aq C:\epath`,
			".PP\n.RS 2\n.nf\na   1\nb   2\n.fi\n.RE\n.PP\nThat is all.\n", ".BR prog\\-show (1)\nshow a file\n",
			".SH EXIT STATUS\n0 done\n"},
		"prog-show.1": {".TH PROG\\-SHOW 1", ".B prog show\nFILE [flags]\n", "Show a file.\n",
			`\fB\-d\fR, \fB\-\-dir\fR \fIfolder\fR`,
			`A folder of files (default: \(ti/.local/share/prog)`, "How many\n",
			`.SH "OPTIONS OF ALL COMMANDS OF PROG"`,
			".SH SEE ALSO\n.BR prog (1)\n", ".nf\nprog show x\n.fi"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s has no %q:\n%s", name, w, text)
			}
		}
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".so") || strings.Contains(line, "secret") ||
				strings.Contains(line, "hidden") {
				t.Errorf("%s has the line %q", name, line)
			}
		}
		groff, err := exec.LookPath("groff")
		if err != nil {
			t.Log("there is no groff to check the pages with; apt-get install groff-base")
			continue
		}
		out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", filepath.Join(dir, name)).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("groff says of %s: %s %v", name, out, err)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := manual.Write(program(), filepath.Join(file, "man"), manual.Settings{}); err == nil {
		t.Error("writing pages below a file gave no error")
	}
}
