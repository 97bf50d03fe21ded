// SPDX-License-Identifier: Apache-2.0

package office

// The parts of an office that have tests of their own.
type (
	Room               = room
	RoomState          = roomState
	InView             = inView
	Groups             = groups
	Journal            = journal
	Records[H head[H]] = records[H]
)

var (
	NewRoom     = newRoom
	NewGroups   = newGroups
	NewJournal  = newJournal
	OpenJournal = openJournal
	ErrNoRecord = errNoRecord
)

// OpenRecords opens the records of one kind.
func OpenRecords[H head[H]](j *journal, kind string, s Limits) (*records[H], error) {
	return openRecords[H](j, kind, s)
}

// SetBefore has f called before each write.
func (j *journal) SetBefore(f func()) { j.before = f }

// Minute does the work that an office does once a minute.
func Minute(w *Office) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepPast()
}
