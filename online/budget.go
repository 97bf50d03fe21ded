// SPDX-License-Identifier: Apache-2.0

package online

// budget counts the faces learned of each person in the current window, also if no LearnCap is set: a cap that is set
// later then holds for the whole window. Faces that were taken back since count, too.
type budget struct {
	Window int64 `cbor:"window"` // number of the window
	Used   []int `cbor:"used"`   // by class
}

// affords reports whether n more faces of a class may be learned in the window of an observation.
func (l *Learner) affords(class, n int, observation int64) bool {
	if l.settings.LearnCap == 0 || class < 0 {
		return true
	}
	used := 0
	if l.budget.Window == observation/int64(l.settings.LearnWindow) && class < len(l.budget.Used) {
		used = l.budget.Used[class]
	}
	return n <= l.settings.LearnCap-used
}

// spend counts n learned faces of a class.
func (l *Learner) spend(class, n int, observation int64) {
	if class < 0 {
		return
	}
	if w := observation / int64(l.settings.LearnWindow); w != l.budget.Window {
		l.budget.Window = w
		clear(l.budget.Used)
	}
	for len(l.budget.Used) <= class {
		l.budget.Used = append(l.budget.Used, 0)
	}
	l.budget.Used[class] += n
}
