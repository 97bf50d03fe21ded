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
	return slices.DeleteFunc(s.ledger.Devices(), func(m ledger.Member) bool { return s.out(m.ID) })
}

// out reports whether a device was revoked. It is called with the mutex held.
func (s *service) out(id string) bool {
	m, _ := s.ledger.Device(id)
	return m.Revoked || s.barred.bars(id)
}

func (s *service) isRevoked(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out(id)
}

// revoked returns the devices that were revoked.
func (s *service) revoked() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.ledger.Devices() {
		if s.out(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// revocation returns the entry by which a device was revoked, or nil where it was not. The error is that of the disk.
func (s *service) revocation(id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data := s.barred.entries[id]; data != nil {
		return data, nil
	}
	return s.ledger.Revocation(id)
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
	s.server.Revoked(s.revoked())
	if s.epoch() > 0 {
		s.server.Rejoin()
	}
	s.server.Invite(s.tokens.bearers())
}
