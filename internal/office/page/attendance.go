// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"

	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/online"
)

// attendance adds the handler of visits as a table: who was there from when to when, as corrected
// until now.
func (p *Page) attendance(m *http.ServeMux) {
	p.handle(m, "GET /api/attendance", func(w http.ResponseWriter, r *http.Request) {
		q := asked(r, "from", "to", "name")
		wanted := office.Wanted{From: q.moment("from"), To: q.moment("to"), By: q.by.sees}
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
