// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/table"
)

// WriteText writes the summary as aligned lines for a person.
func (s Summary) WriteText(w io.Writer) error {
	t := table.New(w, 3)
	fmt.Fprintf(t, "%s, %s, %s\n", plural(s.Frames, "frame"), clock(s.Duration), plural(s.Faces, "face"))
	for _, p := range s.People {
		fmt.Fprintf(t, "  %s\t%s\t%s to %s\t%s\t%s\n", p.Name, plural(p.Faces, "face"), clock(p.First),
			clock(p.Last), p.rests(), p.near())
	}
	if s.Unknown.Faces > 0 {
		fmt.Fprintf(t, "  unknown\t%s\t%s to %s\t%s\n", plural(s.Unknown.Faces, "face"), clock(s.Unknown.First),
			clock(s.Unknown.Last), tally(s.Reasons))
	}
	if n := sum(s.Refused); n > 0 {
		fmt.Fprintf(t, "  not learned\t%s\tpoor pictures\t%s\n", plural(n, "face"), tally(s.Refused))
	}
	if s.NoRoom > 0 {
		fmt.Fprintf(t, "  not learned\t%s\tno room\tuse a larger k\n", plural(s.NoRoom, "face"))
	}
	return t.Flush()
}

// rests describes the evidence for the name.
func (p PersonSummary) rests() string {
	if p.Confirmed > 0 {
		return fmt.Sprintf("confirmed: %d", p.Confirmed)
	}
	return "not confirmed"
}

// near describes the distance of the faces, and what it means.
func (p PersonSummary) near() string {
	if p.Rarity == "" {
		return fmt.Sprintf("distance %.2f", p.Distance)
	}
	return fmt.Sprintf("distance %.2f (%s)", p.Distance, p.Rarity)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// clock writes seconds as minutes and seconds, and hours if there are any.
func clock(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, (d % time.Minute).Seconds()
	if h > 0 {
		return fmt.Sprintf("%d:%02d:%04.1f", h, m, s)
	}
	return fmt.Sprintf("%d:%04.1f", m, s)
}

// tally writes counts by reason, the largest first.
func tally(counts map[string]int) string {
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%s: %d", r, counts[r])
	}
	return strings.Join(reasons, ", ")
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
