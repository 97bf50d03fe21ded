// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/faceauth/faceauth/internal/manual"
	"github.com/spf13/cobra"
)

// NewMan returns the hidden command that makes the manual pages of a program, for packages. Sections are the last ones
// of the program's own page.
func NewMan(sections []manual.Section) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write the manual pages into a folder", Args: cobra.ExactArgs(1), Hidden: true,
		Long: "Man writes a manual page for each command into DIR. SOURCE_DATE_EPOCH gives their date.",
		RunE: func(c *cobra.Command, args []string) error {
			s := manual.Settings{Sections: sections}
			s.Home, _ = os.UserHomeDir()
			if value := os.Getenv("SOURCE_DATE_EPOCH"); value != "" {
				seconds, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					return Fail(BadUsage, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970", value))
				}
				s.Date = time.Unix(seconds, 0)
			}
			names, err := manual.Write(c.Root(), args[0], s)
			if err == nil {
				fmt.Fprintf(c.ErrOrStderr(), "wrote %s into %s\n", Count(len(names), "manual page"), args[0])
			}
			return err
		},
	}
}
