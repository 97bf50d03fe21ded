// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"slices"

	"github.com/maruel/natural"
)

// Confusion counts the names under which the faces of each person were accepted.
type Confusion struct {
	Names []string `json:"names"` // names of the columns: enrolled people
	// enrolled people in the order of the columns, then strangers
	Rows []ConfusionRow `json:"rows"`
}

// ConfusionRow is the row of one person. A person can have two rows over several runs: as an
// enrolled person and as a stranger.
type ConfusionRow struct {
	Person  string `json:"person"`
	Known   bool   `json:"known"`
	As      []int  `json:"as"`      // faces accepted as each of the names
	Unknown int    `json:"unknown"` // faces that were not accepted
}

// confusion counts the trials, people in natural order.
func confusion(trials []trial) Confusion {
	type id struct {
		person string
		known  bool
	}
	var c Confusion
	var order []id
	seen := make(map[id]bool)
	for _, t := range trials {
		if key := (id{t.person, t.known}); !seen[key] {
			seen[key] = true
			order = append(order, key)
		}
	}
	slices.SortFunc(order, func(a, b id) int {
		switch {
		case a.known == b.known:
			return natural.Compare(a.person, b.person)
		case a.known:
			return -1
		}
		return 1
	})
	column := make(map[string]int)
	for _, key := range order {
		if key.known {
			column[key.person] = len(c.Names)
			c.Names = append(c.Names, key.person)
		}
	}
	row := make(map[id]int)
	for i, key := range order {
		row[key] = i
		c.Rows = append(c.Rows, ConfusionRow{Person: key.person, Known: key.known,
			As: make([]int, len(c.Names))})
	}
	for _, t := range trials {
		r := &c.Rows[row[id{t.person, t.known}]]
		if t.accepted {
			r.As[column[t.claim]]++
		} else {
			r.Unknown++
		}
	}
	return c
}

// Period is a part of the time since enrolment, counted in faces of a person.
type Period struct {
	From   int  `json:"from"` // faces of the person before it
	To     int  `json:"to"`   // faces of the person at its end
	Faces  int  `json:"faces"`
	Right  int  `json:"right"` // accepted, under the right name
	Recall Rate `json:"recall"`
}

// periods is the largest number of periods, for the longest recording.
const periods = 20

// overTime returns the recall of enrolled people over the time since their enrolment.
func overTime(trials []trial) []Period {
	last := -1
	for _, t := range trials {
		if t.known {
			last = max(last, t.after)
		}
	}
	if last < 0 {
		return nil
	}
	width := last/periods + 1
	all := make([]Period, last/width+1)
	for i := range all {
		all[i].From, all[i].To = i*width, (i+1)*width
	}
	for _, t := range trials {
		if !t.known {
			continue
		}
		p := &all[t.after/width]
		p.Faces++
		if t.accepted && t.correct() {
			p.Right++
		}
	}
	all = slices.DeleteFunc(all, func(p Period) bool { return p.Faces == 0 })
	for i := range all {
		all[i].Recall = rate(all[i].Right, all[i].Faces)
	}
	return all
}
