// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"embed"
	"strings"

	"github.com/faceauth/faceauth/internal/store"
)

// SchemaVersion is the version of the tables of a gallery. A change of any of them gets another
// one.
const SchemaVersion = 12

// The tables are what this package, the office and the fleet agree on: schema has a file for each,
// which says who writes it. A time is a number of nanoseconds since 1970, except where a comment
// says something else.
//
//go:embed schema/*.sql
var files embed.FS

var schema = store.Schema{Version: SchemaVersion, Tables: tables()}

func tables() string {
	var all strings.Builder
	names, _ := files.ReadDir("schema") // what is embedded can be read
	for _, f := range names {
		text, _ := files.ReadFile("schema/" + f.Name())
		all.Write(text)
	}
	return all.String()
}
