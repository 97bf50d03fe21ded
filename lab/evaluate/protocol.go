// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// Order says how the recordings of several people form one stream.
type Order string

const (
	Sequential  Order = "sequential"  // one recording after another
	Interleaved Order = "interleaved" // one face of each in turn
	// Mixed has recordings of enrolled people one after another, and strangers' faces at random
	// among them.
	Mixed    Order = "mixed"
	Shuffled Order = "shuffled" // at random: successive faces have no connection
)

// orders has all orders.
var orders = []Order{Sequential, Interleaved, Mixed, Shuffled}

// ParseOrder returns the order with this name.
func ParseOrder(s string) (Order, error) {
	if o := Order(s); slices.Contains(orders, o) {
		return o, nil
	}
	return "", fmt.Errorf("unknown order %q; use sequential, interleaved, mixed or shuffled", s)
}

// Protocol says who is enrolled, and how the other faces are streamed.
type Protocol struct {
	// first usable faces of each enrolled person that are labelled
	Enroll    int      `json:"enroll"`
	Strangers []string `json:"strangers"` // never enrolled
	Order     Order    `json:"order"`
	Seed      uint64   `json:"seed"`   // of random choices
	Stride    int      `json:"stride"` // every Nth streamed face is used
	// Apart is the share of each person's streamed faces, the last ones, that are the test. Nothing
	// is learned from the test. The earlier faces are for learning and are not counted. With 0 all
	// streamed faces are learned from and counted.
	Apart float64 `json:"apart"`
}

// Choices returns every choice of n of the names, in lexical order of their positions.
func Choices(names []string, n int) [][]string {
	if n <= 0 {
		return [][]string{{}}
	}
	var all [][]string
	for i := range names {
		for _, rest := range Choices(names[i+1:], n-1) {
			all = append(all, append([]string{names[i]}, rest...))
		}
	}
	return all
}

// mostChoices is the largest number of choices that [DrawChoices] lists.
const mostChoices = 10000

// DrawChoices returns n of the choices of of names, drawn at random without repetition, in lexical
// order; n = 0 means all. If there are too many to list, the error gives their number.
func DrawChoices(names []string, of, n int, seed uint64) ([][]string, error) {
	total := combin.GeneralizedBinomial(float64(len(names)), float64(of))
	if n == 0 || float64(n) >= total {
		if total > mostChoices+.5 {
			return nil, fmt.Errorf("there are %.3g choices, and %d are the most that can be run",
				total, mostChoices)
		}
		return Choices(names, of), nil
	}
	if n > mostChoices {
		return nil, fmt.Errorf("%d choices are too many; %d are the most that can be run", n,
			mostChoices)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	drawn := make(map[string][]int)
	for len(drawn) < n {
		positions := r.Perm(len(names))[:of]
		slices.Sort(positions)
		drawn[fmt.Sprint(positions)] = positions
	}
	all := slices.SortedFunc(maps.Values(drawn), slices.Compare)
	choices := make([][]string, n)
	for i, positions := range all {
		for _, at := range positions {
			choices[i] = append(choices[i], names[at])
		}
	}
	return choices, nil
}

// OneUser returns the choices of strangers for an authentication: each of the users in turn is the
// only enrolled person, and all other names are impostors.
func OneUser(names, users []string) [][]string {
	var all [][]string
	for _, user := range users {
		all = append(all, slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return name == user
		}))
	}
	return all
}

// streamed is a face on its way to a method.
type streamed struct {
	Face
	name  string
	after int  // earlier streamed faces of this person, with those that the stride skips
	known bool // of an enrolled person
	test  bool // counted

	recording int
}

// judge gives the face to a method.
func (s streamed) judge(m Method) (claim string, score float64, err error) {
	if w, ok := m.(Watching); ok {
		return w.See(s.Face, s.recording, s.Hold)
	}
	return m.Judge(s.Vector, s.Hold)
}

// split divides the faces into labelled faces and the stream of the others.
func (p Protocol) split(ids []Identity) (labelled, stream []streamed, counts Counts, err error) {
	for _, s := range p.Strangers {
		if !slices.ContainsFunc(ids, func(id Identity) bool { return id.Name == s }) {
			return nil, nil, counts, fmt.Errorf("%w: stranger %q is not among the recordings",
				ErrProtocol, s)
		}
	}
	if p.Enroll < 1 || p.Stride < 1 {
		return nil, nil, counts, fmt.Errorf(
			"%w: %d faces enrolled at a stride of %d; both must be at least 1",
			ErrProtocol, p.Enroll, p.Stride)
	}
	if !(p.Apart >= 0 && p.Apart < 1) {
		return nil, nil, counts, fmt.Errorf(
			"%w: a test of %g of the faces; it must be from 0 to below 1", ErrProtocol, p.Apart)
	}
	adapt, test := make([][]streamed, len(ids)), make([][]streamed, len(ids))
	known := 0
	for i, id := range ids {
		counts.Undetected += id.Undetected
		stranger := slices.Contains(p.Strangers, id.Name)
		enroll := p.Enroll
		if stranger {
			enroll = 0
		}
		enrolled, rest, err := id.Divide(enroll)
		if err != nil {
			return nil, nil, counts, err
		}
		for _, j := range enrolled {
			labelled = append(labelled, streamed{Face: id.Faces[j], name: id.Name})
		}
		var queue []streamed
		for n, j := range rest {
			if n%p.Stride == 0 {
				queue = append(queue, streamed{
					Face: id.Faces[j], name: id.Name, after: n, known: !stranger, test: true,
					recording: i<<20 +
						id.Faces[j].Take,
				})
			}
		}
		if p.Apart > 0 {
			n := len(queue) - int(p.Apart*float64(len(queue))+.5)
			for j := range queue {
				queue[j].test, queue[j].Hold = j >= n, queue[j].Hold || j >= n
			}
			adapt[i], queue = queue[:n], queue[n:]
			counts.Adaptation += n
		}
		test[i] = queue
		if stranger {
			counts.Strangers += len(queue)
			continue
		}
		if len(queue) == 0 {
			return nil, nil, counts, fmt.Errorf(
				"%w: %s has %d, of which %d are enrolled; no face is left to judge",
				ErrTooFew, id.Name, len(id.Faces), enroll)
		}
		known++
		counts.Known += len(queue)
	}
	if known == 0 {
		return nil, nil, counts, fmt.Errorf("%w: nobody is left to enrol", ErrProtocol)
	}
	counts.Enrolled = len(labelled)
	return labelled, append(p.merge(adapt), p.merge(test)...), counts, nil
}

// merge joins the queues into one stream.
func (p Protocol) merge(queues [][]streamed) []streamed {
	var stream []streamed
	r := rand.New(rand.NewPCG(p.Seed, 0))
	switch p.Order {
	case Interleaved:
		longest := slices.MaxFunc(queues, func(a, b []streamed) int {
			return cmp.Compare(len(a), len(b))
		})
		for i := range longest {
			for _, q := range queues {
				if i < len(q) {
					stream = append(stream, q[i])
				}
			}
		}
	case Mixed:
		var known, strangers []streamed
		for _, s := range slices.Concat(queues...) {
			if s.known {
				known = append(known, s)
			} else {
				strangers = append(strangers, s)
			}
		}
		r.Shuffle(len(strangers), func(i, j int) {
			strangers[i], strangers[j] = strangers[j], strangers[i]
		})
		for len(known)+len(strangers) > 0 {
			from := &known
			if r.IntN(len(known)+len(strangers)) >= len(known) {
				from = &strangers
			}
			stream = append(stream, (*from)[0])
			*from = (*from)[1:]
		}
	case Shuffled:
		stream = slices.Concat(queues...)
		r.Shuffle(len(stream), func(i, j int) { stream[i], stream[j] = stream[j], stream[i] })
	default:
		stream = slices.Concat(queues...)
	}
	return stream
}
