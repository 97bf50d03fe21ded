// SPDX-License-Identifier: Apache-2.0

package office_test

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/store"
)

// No statement that an office runs goes through all sightings, faces or events, or sorts them: an
// office keeps tens of thousands, and its cameras wait meanwhile.
func TestPlainPlans(t *testing.T) {
	ran := make(map[string]bool)
	store.Prepared = func(sql string) { ran[sql] = true }
	defer func() { store.Prepared = nil }()
	dir := village(t)
	h := enterWith(t, dir, office.Options{}, office.PastSettings{Records: 3, Clips: 1 << 20})
	w := office.New(h.past, h.o)
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		corrects(w, r)
		for _, c := range w.Corrections(0, 9) {
			if c.CanUndo && r.IntN(4) == 0 {
				w.Undo(c.ID)
			}
		}
	}
	w.Now()
	w.Events(0, 9, nil)
	for _, g := range w.Strangers() {
		refusal(w.ForgetGroup(g.ID))
	}
	for _, p := range w.Now().Known {
		w.Visits(office.Wanted{Person: p.ID})
		w.Profile(p.Name)
		nothing(t, refusal(w.Forget(p.Name)))
	}
	w.Visits(office.Wanted{})
	w.Face(1)
	w.ClipPicture(1, 0)
	q := h.past.Queue("hook")
	fixture.Must(func() (int, error) { n, _, err := q.Waiting(); return n, err }())(t)
	w = h.plays([]string{n(9, "a") + n(60, "s") + n(60, "-")}, nil)
	office.Minute(w)
	h.leave()
	store.Prepared = nil
	d := fixture.Must(store.Open(filepath.Join(dir, "gallery"), store.Schema{}, false))(t)
	defer d.Close()
	tables := regexp.MustCompile(`\b(sighting|face|event)\b`)
	of := regexp.MustCompile(`^(SCAN|SEARCH) (sighting|face|event)\b`)
	explained := 0
	for sql := range ran {
		verb, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
		if !slices.Contains([]string{"select", "insert", "update", "delete", "with"}, verb) ||
			!tables.MatchString(sql) {
			continue
		}
		explained++
		large := false
		nothing(t, d.Query("explain query plan "+sql, func(row store.Row) error {
			plan := row.ColumnText(3)
			large = large || of.MatchString(plan)
			scans := strings.HasPrefix(plan, "SCAN ") && of.MatchString(plan) ||
				strings.Contains(plan, "face_group (stranger=?)") &&
					strings.Contains(sql, "stranger = 0")
			if scans || large && strings.Contains(plan, "USE TEMP B-TREE FOR ORDER BY") {
				t.Errorf("%s: %s", plan, sql)
			}
			return nil
		}))
	}
	if explained < 40 {
		t.Errorf("only %d statements were run", explained)
	}
}
