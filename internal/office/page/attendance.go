// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/online"
)

// attendance adds the handler of visits as a table: who was there from when to when, as corrected until now.
func (p *Page) attendance(m *http.ServeMux) {
	r := route{pattern: "GET /api/attendance", summary: "Visits as a table (CSV), the first one first", kind: "text/csv",
		more: "A row for each visit: name, number of the person, number of the stranger, first and last time (RFC 3339), " +
			"seconds, cameras. A name that a spreadsheet would take for a formula has an apostrophe before it.",
		parameters: []object{
			parameter("from", "Only visits that have not ended before.", aMoment),
			parameter("to", "Only visits that have begun before.", aMoment),
			parameter("name", "Only visits of this person.", anyText),
		}}
	p.handle(m, r, func(w http.ResponseWriter, r *http.Request) {
		q := asked(r, "from", "to", "name")
		wanted := office.Wanted{From: q.moment("from"), To: q.moment("to")}
		name := q.text("name", false)
		if q.err != nil {
			refuse(w, badRequest(q.err), http.StatusBadRequest)
			return
		}
		if name != "" {
			wanted.Person = p.office.Number(name)
			if wanted.Person == 0 {
				refuse(w, fmt.Errorf("%w: %s", online.ErrUnknown, name), http.StatusNotFound)
				return
			}
		}
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="attendance.csv"`)
		w.Write(table(p.office.Visits(wanted))) // an error means a lost connection
	})
}

// table returns visits, of which the latest comes first, as CSV.
func table(visits []office.Visit) []byte {
	var b bytes.Buffer
	t := csv.NewWriter(&b) // a buffer takes all
	t.Write([]string{"name", "person", "stranger", "first", "last", "seconds", "cameras"})
	for i := len(visits) - 1; i >= 0; i-- {
		v := visits[i]
		name := v.Name
		if name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0])) {
			name = "'" + name
		}
		t.Write([]string{name, number(v.Person), number(int64(v.Group)), v.First.Format(time.RFC3339),
			v.Last.Format(time.RFC3339), fmt.Sprint(int(v.Last.Sub(v.First).Seconds())), strings.Join(v.Cameras, " ")})
	}
	t.Flush()
	return b.Bytes()
}

// number returns a number as text, or "" for none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
