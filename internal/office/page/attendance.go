// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"

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
		w.Write(office.CSV(p.office.Visits(wanted))) // an error means a lost connection
	})
}
