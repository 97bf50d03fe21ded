// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// members returns the devices that may take part.
func (s *service) members() []ledger.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.ledger.Devices(), func(m ledger.Member) bool { return m.Revoked || s.barred.bars(m.ID) })
}

// refresh has the embedded server let in the members, and nobody else.
func (s *service) refresh() {
	if s.server == nil {
		return
	}
	var ids []string
	for _, m := range s.members() {
		ids = append(ids, m.ID)
	}
	s.server.Admit(ids)
	if s.epoch() > 0 {
		s.server.Rejoin()
	}
	s.server.Invite(s.tokens.bearers())
}
