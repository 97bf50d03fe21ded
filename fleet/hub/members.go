// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
)

// members returns the devices that are not revoked.
func (s *service) members() []ledger.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.ledger.Devices(), func(m ledger.Member) bool { return s.isOut(m.ID) })
}

// isOut reports whether a device was revoked, by the log or by a revocation that a device has shown. The caller holds
// mu.
func (s *service) isOut(id string) bool {
	m, _ := s.ledger.Device(id)
	return m.Revoked || s.barred.has(id)
}

func (s *service) isRevoked(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isOut(id)
}

// revoked returns the revoked devices.
func (s *service) revoked() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.ledger.Devices() {
		if s.isOut(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// revocation returns the entry that revoked a device, or nil. The error comes from the disk.
func (s *service) revocation(id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data := s.barred.entries[id]; data != nil {
		return data, nil
	}
	return s.ledger.Revocation(id)
}

// refresh tells the embedded server which devices and tokens it should let in.
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
